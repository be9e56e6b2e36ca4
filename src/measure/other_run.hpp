// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Whose data lies where a run's own should be.
#pragma once

#include <doorbell/pattern.hpp>

#include <optional>
#include <string>

namespace doorbell::measure {

/// Who wrote the pattern::kUnitBytes at `unit`, by their header; empty where they are no whole unit.
[[nodiscard]] std::optional<pattern::Identity> writer_of(const u32* unit);

/// Names the first other run whose units were found.
class OtherRun {
 public:
  OtherRun() = default;
  /// The run itself has this seed and sequences from `first` on.
  OtherRun(u64 seed, u64 first) : seed_(seed), first_(first) {}

  /// A failed check has found a unit of `writer` at byte `at` of `place`. The run's own sequences end before
  /// `next`.
  void found(const std::string& place, u64 at, const pattern::Identity& writer, u64 next);
  /// A warning; "" while only this run's units were found.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool known() const { return !text_.empty(); }

 private:
  u64 seed_ = 0;
  u64 first_ = 0;
  std::string text_;
};

}  // namespace doorbell::measure
