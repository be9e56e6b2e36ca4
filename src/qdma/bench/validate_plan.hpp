// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts of a validation, before any card is open.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qdma/bench/validate.hpp"

namespace doorbell::qdma {

/// How the channels of a phase are chosen.
enum class Layout { given, same_channel, crossed };
[[nodiscard]] std::string_view name(Layout layout);
[[nodiscard]] const std::string& name(ValidatePhase phase);
[[nodiscard]] bool of_gpu(ValidatePhase phase);
[[nodiscard]] bool reads(ValidatePhase phase);

struct MemorySet {
  std::string name;
  std::vector<MemoryPart> memories;
};
[[nodiscard]] std::vector<MemorySet> memory_sets(const ValidateOptions& o);
/// The phases whose rate is measured, in their order.
[[nodiscard]] std::vector<std::pair<ValidatePhase, Layout>> measured_phases(const ValidateOptions& o,
                                                                            const MemorySet& set);

[[nodiscard]] bool uses_gpu(const ValidateOptions& o);
/// Buffers that all sets use one after the other.
[[nodiscard]] u32 places(const ValidateOptions& o);
/// Host memory of a run with buffers of so many bytes. A model holds what is on the card as well.
[[nodiscard]] u64 memory_of(const ValidateOptions& o, u64 buffer_bytes, bool model);
/// The size that was given, or the largest power of two that takes at most half of the memory available.
[[nodiscard]] u64 buffer_bytes_of(const ValidateOptions& o, bool model);

}  // namespace doorbell::qdma
