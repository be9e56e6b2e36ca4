// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A sweep's plan: which command, with which options, over which values.
#pragma once

#include <doorbell/config.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options/option.hpp"

namespace doorbell::sweep {

/// A command that can be swept, as the plan's checks need it.
struct Subject {
  std::string name;
  options::OptionTable table;
  /// From the words behind the command's name to checked options; throws doorbell::Error.
  std::function<options::Options(const std::vector<std::string>&)> parse;
};

/// One option as a plan gives it.
struct Setting {
  std::string name;  ///< the option's own name, whatever alias the plan has
  std::string text;  ///< as written; "true" or "false" for a flag
  bool flag = false;
};

struct Axis {
  std::string name;
  std::vector<Setting> values;
};

/// Which of our options is which column of a published table.
struct Match {
  std::string option;
  std::string column;
  /// Our value and theirs, where they are not the same; a value that is not listed has no published row.
  std::vector<std::pair<std::string, std::string>> values;
};

struct Reference {
  int line = 0;
  std::string file;  ///< relative to the plan
  /// A column and the values that it may have.
  std::vector<std::pair<std::string, std::vector<std::string>>> where;
  std::vector<Match> match;
  std::vector<std::pair<std::string, std::string>> columns;  ///< mean, std, min, max, value: their names
  std::string unit;                                          ///< of those columns
  std::string ours;                                          ///< "latency_ns.mean"
  std::string note;
};

struct Plan {
  std::string file;
  std::string name;
  std::string title;
  const Subject* subject = nullptr;
  std::vector<Setting> options;
  std::vector<Axis> matrix;
  std::vector<std::vector<Setting>> cells;
  std::vector<int> cell_lines;  ///< where each of `cells` stands
  bool shuffled = false;
  u32 rounds = 1;
  std::vector<Reference> references;
};

inline constexpr std::size_t kMaxCells = 10'000;
inline constexpr u32 kMaxRounds = 1'000;
inline constexpr std::size_t kMaxPlan = 1 << 20;  ///< bytes of a plan

/// Reads a plan; opens no file. Throws doorbell::Error with file, line and key for anything that it does not
/// know, and for every value that the command's option table refuses. The subjects must outlive the plan.
[[nodiscard]] Plan parse_plan(std::string_view text, const std::string& file,
                              const std::vector<Subject>& subjects);

}  // namespace doorbell::sweep
