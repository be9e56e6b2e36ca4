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

/// The names under which a folder's files are written over, plan.yaml apart: that is written once.
inline constexpr std::array<const char*, 3> kWritten = {"results.jsonl", "runs.csv", ".running.json"};

/// What is in a folder before anything in it is touched.
enum class Found {
  nothing,  ///< it is absent or empty
  same,     ///< it holds this plan
  another,  ///< it holds another plan
  foreign,  ///< it holds something else
};
[[nodiscard]] Found look(const std::string& folder, std::string_view plan_text);

class Folder {
 public:
  /// Makes the folder with a copy of the plan, or opens one that holds the same. Throws doorbell::Error when
  /// that fails or another sweep is at work in it.
  Folder(std::string path, std::string_view plan_text);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const char* name) const { return path_ + "/" + name; }

  /// What earlier runs left; a torn last line is not among it.
  [[nodiscard]] Records read() const;
  /// Makes `kept` all that the files hold.
  void keep(const std::vector<Record>& kept);
  /// Adds a line and its rows; both are on the disk when it returns.
  void append(const Record& record);

 private:
  std::string path_;
  Descriptor lock_;
};

}  // namespace doorbell::sweep
