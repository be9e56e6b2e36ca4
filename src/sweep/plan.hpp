// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A sweep's plan: the command, its options, and the values over which to sweep.
#pragma once

#include <doorbell/config.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options/option.hpp"
#include "sweep/pairs.hpp"

namespace doorbell::sweep {

/// A command that can be swept, with what the plan's checks need.
struct Subject {
  std::string name;
  options::OptionTable table;
  /// Converts the words after the command's name to checked options; throws doorbell::Error.
  std::function<options::Options(const std::vector<std::string>&)> parse;
  /// Of a command that has --listen and --connect: the options that belong to the listening end, too.
  std::vector<std::string> listening = {};
};

/// One option as a plan gives it.
struct Setting {
  std::string name;  ///< the option's own name, even if the plan has an alias
  std::string text;  ///< as written; "true" or "false" for a flag
  bool flag = false;
};

struct Axis {
  std::string name;
  std::vector<Setting> values;
};

/// Assigns one of doorbell's options to a column of a published table.
struct Match {
  std::string option;
  std::string column;
  /// Pairs of doorbell's and the published value, if they differ; an unlisted value has no published row.
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

/// A smaller or larger form of a plan, chosen by its name.
struct Profile {
  std::string name;
  std::vector<Setting> options;  ///< in place of the plan's options of the same names, or besides them
  u32 rounds = 0;                ///< 0: the plan's
  std::string only;              ///< as --only; empty: every cell
};

struct Plan {
  std::string file;
  std::string name;
  std::string title;
  std::string source;  ///< whose published tables it reproduces; empty: none
  const Subject* subject = nullptr;
  std::vector<Setting> options;
  std::vector<Axis> matrix;
  std::vector<std::vector<Setting>> cells;
  std::vector<int> cell_lines;  ///< the line of each of `cells`
  bool shuffled = false;
  u32 rounds = 1;
  std::vector<Reference> references;
  std::vector<Profile> profiles;
  std::optional<PairPlan> pairs = {};  ///< the cells are runs between two ranks
  std::string only = {};               ///< of the profile in use
};

[[nodiscard]] std::string file_of(const Plan& plan, const Reference& reference);
/// Everything that a sweep of this plan reads: the plan, and its published tables.
[[nodiscard]] std::vector<std::string> files_of(const Plan& plan);

inline constexpr std::size_t kMaxCells = 10'000;
inline constexpr u32 kMaxRounds = 1'000;
inline constexpr std::size_t kMaxPlan = 1 << 20;  ///< bytes of a plan

/// Reads a plan; opens no file. Throws doorbell::Error with file, line and key for everything unknown, and
/// for every value that the command's option table refuses. The subjects must outlive the plan.
[[nodiscard]] Plan parse_plan(std::string_view text, const std::string& file,
                              const std::vector<Subject>& subjects);

/// Makes the plan that of one of its profiles. Throws doorbell::Error if it has none of that name. `setting`:
/// what messages call the name, which may be an option of a command.
void apply_profile(Plan* plan, const std::string& name, const std::string& setting = "profile");

}  // namespace doorbell::sweep
