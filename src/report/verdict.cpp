// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/verdict.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace doorbell::report {

namespace {

// Every class of failure with its count over all cells, verification first; only non-zero ones.
std::vector<std::pair<std::string, u64>> failures_of(const Result& result) {
  std::vector<std::pair<std::string, u64>> found;
  for (const auto& [kind, count] : Verify::kFailures) {
    found.emplace_back(kind, 0);
    for (const Cell& c : result.cells) found.back().second += c.verify.*count;
  }
  Counts errors;
  for (const Cell& c : result.cells)
    for (const auto& [kind, count] : c.errors) errors[kind] += count;
  for (const auto& [kind, count] : errors) {
    found.emplace_back(kind == "completion" ? "completion errors" : kind, count);
  }
  // A run that somebody has ended has not promised anything.
  if (result.complete()) {
    const auto empty = std::ranges::count_if(
        result.cells, [](const Cell& c) { return !c.repeats.empty() && c.metrics.ops == 0; });
    found.emplace_back("cells in which nothing was measured", static_cast<u64>(empty));
  }
  std::erase_if(found, [](const auto& f) { return f.second == 0; });
  return found;
}

// How bad an exit code is; codes of a later date count as data errors.
int badness(int code) {
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::ok:
      return 0;
    case ExitCode::absent:
      return 1;
    case ExitCode::usage:
      return 2;
    case ExitCode::interrupted:
      return 3;
    default:
      return 4;
  }
}

}  // namespace

int worse_of(int a, int b) {
  return badness(b) > badness(a) ? b : a;
}

int exit_code_for(const Result& result) {
  int code = result.exit_code;
  if (result.stop_reason == StopReason::requested)
    code = worse_of(code, static_cast<int>(ExitCode::interrupted));
  if (!failures_of(result).empty()) code = worse_of(code, static_cast<int>(ExitCode::data));
  return code;
}

Verdict verdict_for(const Result& result) {
  const auto failures = failures_of(result);
  const int code = exit_code_for(result);
  if (!failures.empty()) {
    std::string text = "FAILED:";
    for (std::size_t i = 0; i < failures.size(); ++i) {
      text += fmt::format("{} {} {}", i == 0 ? "" : ",", failures[i].second, failures[i].first);
    }
    if (!result.complete()) text += fmt::format(" (partial, stopped by {})", name(result.stop_reason));
    return {Verdict::Kind::failed, text};
  }
  if (code == static_cast<int>(ExitCode::absent)) {
    return {Verdict::Kind::skipped, "SKIPPED: the hardware asked for is absent"};
  }
  if (code != 0 && code != static_cast<int>(ExitCode::interrupted)) {
    return {Verdict::Kind::failed,
            fmt::format("FAILED: stopped by {}, exit code {}{}", name(result.stop_reason), code,
                        result.warnings.empty() ? "" : " (see the warnings)")};
  }
  if (!result.complete() && result.stop_reason != StopReason::requested) {
    return {Verdict::Kind::interrupted,
            fmt::format("INTERRUPTED (partial, stopped by {})", name(result.stop_reason))};
  }
  if (!result.complete()) return {Verdict::Kind::interrupted, "INTERRUPTED (partial)"};
  const auto unverified = [](const Cell& c) { return c.verify.checked == 0; };
  const auto blind = std::ranges::count_if(result.cells, unverified);
  if (blind == 0) return {Verdict::Kind::ok, "OK"};
  if (static_cast<std::size_t>(blind) == result.cells.size()) {
    return {Verdict::Kind::ok, "OK, but the data was NOT verified"};
  }
  return {Verdict::Kind::ok,
          fmt::format("OK, but the data of {} of {} cells was NOT verified", blind, result.cells.size())};
}

}  // namespace doorbell::report
