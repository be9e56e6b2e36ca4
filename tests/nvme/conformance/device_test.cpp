// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The conformance cases against controllers that are not part of doorbell: QEMU's, or the one that the
// environment names (DOORBELL_TEST_CONTROLLER, a --controller SPEC; its contents are overwritten).

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "conformance.hpp"
#include "nvme/backends.hpp"

namespace doorbell::nvme::conformance {
namespace {

struct Subject {
  std::string name;
  std::string spec;
  std::string slow;  // added to the spec for commands that stay outstanding; empty: cannot
  unsigned has;
};

void PrintTo(const Subject& s, std::ostream* out) {
  *out << s.spec;
}

/// The features of QEMU's controller beyond the musts; docs/nvme.md explains what is missing here.
constexpr unsigned kQemuHas = slow | doorbell_events | shadow | mdts | identify_lists;

/// A real controller is held to the musts alone; what it answers to the rest is its own affair.
bool is_qemu(const std::string& spec) {
  if (spec.starts_with("vfio-user:")) return false;  // nor is one that another program emulates
  try {
    return open_device({.spec = spec})->kind() == "emulated";
  } catch (const std::exception&) {
    return false;  // each case will say why
  }
}

std::vector<Subject> subjects() {
  if (const char* named = std::getenv("DOORBELL_TEST_CONTROLLER"); named != nullptr && *named != '\0')
    return {{"Named", named, "", is_qemu(named) ? kQemuHas & ~slow : unsigned{mdts}}};
  return {{"Qemu", "qemu:capacity=64Mi", ",iops=50", kQemuHas},
          {"Qemu4096", "qemu:capacity=64Mi,lba=4096,mdts=3,queues=8", ",iops=50", kQemuHas}};
}

Target target_of(const Subject& s) {
  Target t;
  t.has = s.has;
  t.open = [s](bool slow_commands) { return open_device({.spec = s.spec + (slow_commands ? s.slow : "")}); };
  return t;
}

class Conformance : public testing::TestWithParam<std::tuple<Subject, Case>> {};

TEST_P(Conformance, Holds) {
  const auto& [subject, one] = GetParam();
  if ((one.needs & ~subject.has) != 0) GTEST_SKIP() << "this controller cannot";
  try {
    one.run(target_of(subject));
  } catch (const std::exception& e) {
    FAIL() << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Device, Conformance,
                         testing::Combine(testing::ValuesIn(subjects()), testing::ValuesIn(cases())),
                         [](const auto& p) {
                           return std::get<0>(p.param).name + "_" + std::get<1>(p.param).name;
                         });

}  // namespace
}  // namespace doorbell::nvme::conformance

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  using namespace doorbell::nvme;
  const auto status = backend_of(conformance::subjects().front().spec).status();
  if (!status.usable) {
    std::printf("skipped: %s\n", status.detail.c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
