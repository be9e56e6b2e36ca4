// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Names of this process' own for links that stay, and what must be left of them: nothing.
#pragma once

#include <fmt/format.h>

#include <filesystem>

#include "net/links/kept_link.hpp"
#include "net/scratch.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net::test {

inline bool said_by(const std::vector<std::string>& lines, const std::string& part) {
  for (const std::string& line : lines)
    if (line.find(part) != std::string::npos) return true;
  return false;
}

class KeptLinkTest : public testing::Test {
 protected:
  void SetUp() override { NEEDS_ROOT(); }
  void TearDown() override {
    try {
      inside([&] { (void)link_down(names_); });
    } catch (const Error&) {
      // Nothing is left, as it should be.
    }
  }

  /// Runs `f` in a namespace that takes the place of the machine's own.
  void inside(const std::function<void()>& f) { space_().run(f); }
  const Namespace& space_() {
    if (!made_) made_.emplace(Namespace::create());
    return *made_;
  }

  static std::string wrong_of(const std::vector<Finding>& findings) {
    std::string all;
    for (const Finding& f : findings)
      if (f.state == Finding::State::wrong) all += f.text + "\n";
    return all;
  }
  static void expect_all_good(const std::vector<Finding>& findings) {
    EXPECT_EQ(wrong_of(findings), "");
    EXPECT_FALSE(findings.empty());
  }
  void expect_nothing_left() {
    for (const std::string& name : names_in(kNamespaceFolder))
      EXPECT_FALSE(name.starts_with(prefix_)) << name;
    for (const std::string& name : names_in("/run/doorbell"))
      EXPECT_EQ(name.find(prefix_), std::string::npos) << name;
  }

  const std::string prefix_ = fmt::format("doorbell-test-{}-", getpid());
  const KeptNames names_ = {prefix_ + "tx", prefix_ + "rx"};

 private:
  std::optional<Namespace> made_;
};

}  // namespace doorbell::net::test
