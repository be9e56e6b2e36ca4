// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What the options of add_common_options() say of a run, for the command of any path.
#pragma once

#include <doorbell/initiator.hpp>

#include <string>
#include <vector>

#include "cli/option.hpp"
#include "model/fault.hpp"

namespace doorbell::cli {

struct RunOptions {
  u64 seed = 1;
  bool verify = true;
  double verify_sample = 1;  ///< share of operations that are checked
  double timeout_s = 10;
  double late_after_s = 1;
  double warmup_s = 0;
  u32 repeats = 1;
  double duration_s = 0;  ///< 0: by count
  model::FaultRates faults;
  Initiator initiator = Initiator::cpu;
  int gpu = 0;
};

[[nodiscard]] RunOptions run_options(const Options& options);

/// The items of "a,b,c"; empty ones are kept.
[[nodiscard]] std::vector<std::string> split(const std::string& list);

}  // namespace doorbell::cli
