// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// `doorbell qdma validate`: is the card's memory right, and how fast is it, each direction alone and both
// together? Plain transfer() calls of several threads. Everything that is moved is verified, outside of the
// measured time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qdma/bench/port.hpp"

namespace doorbell::qdma {

/// The largest buffer, and what one is by default if the memory allows.
inline constexpr u64 kLargestValidateBuffer = u64{512} << 20;
inline constexpr u32 kMostValidateThreads = 64;

/// The measurements of a validation.
enum class ValidatePhase : u8 { integrity, read, write, duplex, gpu_read, gpu_write };
/// "integrity", ...: by ValidatePhase.
[[nodiscard]] const std::vector<std::string>& validate_phase_names();

struct ValidateOptions : measure::RunOptions {
  std::string device = "model";
  bool hbm = true;
  bool ddr = true;
  bool each = true;      ///< each memory by itself, before both together
  u32 threads = 8;       ///< of each direction; there are twice as many places in a memory
  u64 buffer_bytes = 0;  ///< 0: kLargestValidateBuffer, or what fits the memory available
  u64 offset =
      0;  ///< from place to place; 0: kLargestValidateBuffer, or the buffer's size if that is smaller
  u64 starting_offset = 0;
  /// Channel of each place, in turn; empty: the policy chooses, and duplex is also measured with chosen
  /// channels.
  std::vector<Channels> channels = {};
  bool paired = false;  ///< places 2k and 2k + 1 are region_stride apart
  u64 region_stride = u64{16} << 30;
  std::optional<ValidatePhase> phase = {};  ///< this one alone
  u64 gpu_chunk = u64{1} << 20;             ///< what goes between card and GPU at a time
  bool gpu_memory = false;                  ///< with the phases in which the bytes are a GPU's
  u64 iterations = 1;                       ///< transfers of each thread, if there is no duration
  CardUse card = {};                        ///< policy and ring size
};

/// The work of a validation after it has written and read all places once.
struct PlannedWork {
  u32 cells = 0;         ///< whose rates are measured
  u64 buffer_bytes = 0;  ///< of each transfer
  double repeat_s = 0;   ///< about, of a repeat by count, without checks; 0: not known
};
[[nodiscard]] PlannedWork work_of(const ValidateOptions& options);

/// Throws Error for options that cannot go together.
void check(const ValidateOptions& options);
/// A cell for each memory, phase and layout of channels.
[[nodiscard]] measure::BenchResult validate(const ValidateOptions& options, const measure::RunWatch& watch);

/// The cells as lines, in the form of the vendor's tool but for the units.
[[nodiscard]] std::string validate_text(const report::Result& result);

}  // namespace doorbell::qdma
