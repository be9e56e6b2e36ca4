// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/sweep_cases.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace doorbell::cli {

namespace {

using report::TestCase;

TestCase case_of(const std::string& group, const std::string& name, const sweep::Record& r) {
  TestCase c{.group = group, .name = name, .time_s = r.wall_s};
  if (r.code() == 0 && r.complete()) return c;
  std::string why;
  if (r.result.is_object())
    for (const TestCase& part : report::cases_of(r.result))
      if (part.end != TestCase::End::passed)
        why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", part.name, part.message);
  if (!r.error.empty()) why += (why.empty() ? "" : "\n") + r.error;
  const int code = r.code() == 0 ? sweep::kInterrupted : r.code();
  TestCase bad = report::case_of_end(group, name, code, why);
  bad.time_s = r.wall_s;
  // A crash and a run that took too long have the code of wrong data, and are none.
  if (r.ended != "exit" && bad.end == TestCase::End::failed) bad.type = r.ended;
  return bad;
}

}  // namespace

std::vector<TestCase> cases_of(const PreparedSweep& s, const SweepOutcome& o) {
  const std::string group = "doorbell.sweep." + s.plan.name;
  std::vector<TestCase> cases;
  bool said = false;
  for (const sweep::Turn& turn : s.turns) {
    const sweep::Cell& cell = s.cells[turn.cell];
    std::string name = fmt::format("cell {}", sweep::shown_number(cell.index));
    if (s.plan.rounds > 1) name += fmt::format(" round {}", turn.round);
    if (const std::string label = sweep::label_of(s.plan, cell); !label.empty()) name += " " + label;
    const auto r = std::ranges::find_if(
        o.records, [&](const auto& x) { return x.cell == turn.cell && x.round == turn.round; });
    if (r == o.records.end()) {
      cases.push_back({.group = group,
                       .name = name,
                       .end = TestCase::End::skipped,
                       .message = "the sweep ended before it"});
      continue;
    }
    cases.push_back(case_of(group, name, *r));
    const TestCase::End end = cases.back().end;
    said = said || end == TestCase::End::failed || end == TestCase::End::errored;
  }
  if (o.code != 0 && o.code != static_cast<int>(ExitCode::absent) && !said)
    cases.push_back(
        report::case_of_end(group, "the whole sweep", o.code, o.failure.empty() ? o.verdict : o.failure));
  return cases;
}

}  // namespace doorbell::cli
