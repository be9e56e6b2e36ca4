// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The conformance cases against the software controller, in several configurations.

#include "conformance.hpp"

#include <gtest/gtest.h>

#include "nvme/backends.hpp"

namespace doorbell::nvme::conformance {
namespace {

struct Configuration {
  std::string name;
  std::string spec;  // what follows "model:"; none of them has slow commands
  unsigned lacks = nothing;
};

Target target_of(const Configuration& c) {
  Target t;
  t.has = ~0u & ~c.lacks;
  t.open = [spec = c.spec](bool slow_commands) {
    return open_device({.spec = "model:" + spec + (slow_commands ? ",latency=20ms" : "")});
  };
  return t;
}

class Conformance : public testing::TestWithParam<std::tuple<Configuration, Case>> {};

TEST_P(Conformance, Holds) {
  const auto& [configuration, one] = GetParam();
  if ((one.needs & configuration.lacks) != 0) GTEST_SKIP() << "this configuration cannot";
  try {
    one.run(target_of(configuration));
  } catch (const std::exception& e) {
    FAIL() << e.what();
  }
}

const Configuration kConfigurations[] = {
    {"Default", "capacity=64Mi"},
    {"Blocks4096", "lba=4096,capacity=64Mi,stride=4,threads=3,formats=40"},
    {"ChainedLists", "capacity=64Mi,mdts=10,threads=2,stride=1,entries=256"},
    {"KernelCode", "capacity=64Mi,mdts=10,threads=2,engine=kernel-on-cpu", io_errors},
};

INSTANTIATE_TEST_SUITE_P(Model, Conformance,
                         testing::Combine(testing::ValuesIn(kConfigurations), testing::ValuesIn(cases())),
                         [](const auto& p) {
                           return std::get<0>(p.param).name + "_" + std::get<1>(p.param).name;
                         });

}  // namespace
}  // namespace doorbell::nvme::conformance
