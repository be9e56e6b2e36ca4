// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A sweep's folder: plan.yaml, results.jsonl, runs.csv. One process at a time.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/record.hpp"
#include "system/descriptor.hpp"

namespace doorbell::sweep {

/// The names of the files that are overwritten in a folder. plan.yaml is not among them: it is written once.
inline constexpr std::array<const char*, 3> kWritten = {"results.jsonl", "runs.csv", "plan.json"};

/// The paths of all files that a sweep's folder has, with its plan.
[[nodiscard]] std::vector<std::string> files_in(const std::string& folder);

/// The paths of the Results in a folder that runs of sweeps which were killed have left behind.
[[nodiscard]] std::vector<std::string> stale_in(const std::string& folder);

/// The contents of a folder before anything in it is changed.
enum class Found {
  nothing,  ///< it is absent or empty
  same,     ///< it holds this plan
  another,  ///< it holds another plan
  foreign,  ///< it holds something else
};
/// `setting`: what messages call the folder, which may be an option of a command; empty: its path.
[[nodiscard]] Found look(const std::string& folder, std::string_view plan_text,
                         const std::string& setting = {});

class Folder {
 public:
  /// Creates the folder with a copy of the plan, or opens a folder with the same plan and removes what is
  /// stale in it. Throws doorbell::Error if that fails or if another sweep uses the folder.
  Folder(std::string path, std::string_view plan_text, const std::string& setting = {});

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const char* name) const { return path_ + "/" + name; }

  /// A path for the Result of the run that starts now. No other run has it: a run may outlive its sweep, or
  /// its time, and still write.
  [[nodiscard]] std::string new_result() const;

  /// The records of earlier runs, without an incomplete last line.
  [[nodiscard]] Records read() const;
  /// Replaces the content of the files by `kept`.
  void keep(const std::vector<Record>& kept);
  /// Adds a line and its rows; both are on the disk when this returns.
  void append(const Record& record);

 private:
  std::string path_;
  Descriptor lock_;
};

}  // namespace doorbell::sweep
