// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Verdicts as JUnit XML, which systems for continuous integration show: a cell is a test case.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace doorbell::report {

struct TestCase {
  enum class End {
    passed,
    failed,   ///< what was measured is wrong, or worse than it may be
    errored,  ///< it could not be measured
    skipped,  ///< what it needs is absent, or nothing was decided
  };
  std::string group = {};  ///< "doorbell.nvme"
  std::string name = {};   ///< "batch=1 size_bytes=4096"
  double time_s = 0;
  End end = End::passed;
  std::string type = {};     ///< the class of a failure: "data", "regression"
  std::string message = {};  ///< one line
  std::string text = {};     ///< the rest
};

/// One suite of these cases as a document. Characters that XML cannot have, and what is not UTF-8, become
/// '?'.
[[nodiscard]] std::string to_junit(const std::string& suite, const std::vector<TestCase>& cases);

/// The cells of a Result (its JSON) as cases. A cell with failures of verification or with errors has failed;
/// each class is named with its count. Where the Result's exit code is not 0 and no cell says why, or it is
/// incomplete, one more case does: a Result with an exit code other than 0 has a case that is not passed.
[[nodiscard]] std::vector<TestCase> cases_of(const nlohmann::ordered_json& result);

/// A run that left no Result, or ended with `code` without its Result saying so, as a case.
[[nodiscard]] TestCase case_of_end(const std::string& group, const std::string& name, int code,
                                   const std::string& why);

}  // namespace doorbell::report
