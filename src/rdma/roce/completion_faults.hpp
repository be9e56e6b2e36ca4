// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Faults of a NIC's completions: a request that was carried out ends in error, or is completed before
// anything of it has left. Which request has which follows from the seed and its place among those of the
// NIC.
#pragma once

#include <doorbell/config.hpp>

#include <array>
#include <string_view>

#include "rdma/roce/fault_log.hpp"

namespace doorbell::roce {

enum class CompletionFault : u8 {
  error,  ///< the status is "remote operation error", and the queue pair is in error, though the data arrived
  early,  ///< success is reported before the first packet leaves; what is completed at all, that is
  none
};
inline constexpr std::size_t kCompletionFaults = 2;
inline constexpr std::array<std::string_view, kCompletionFaults> kCompletionFaultNames{"error", "early"};

struct CompletionFaults {
  /// Of each fault. A request has one at most, so their sum is 1 at most.
  std::array<double, kCompletionFaults> probability{};
  u64 early_ns = 500'000;  ///< between an early completion and the request's first packet
  u64 seed = 1;

  [[nodiscard]] bool any() const { return probability[0] > 0 || probability[1] > 0; }
};

/// Draws for a NIC's requests. With the engine.
class CompletionFaultDraws {
 public:
  CompletionFaultDraws(const CompletionFaults& faults, const std::string& log) : faults_(faults), log_(log) {}

  /// The next request's fault.
  CompletionFault draw();
  void carried_out(CompletionFault fault, u32 queue_pair, u64 request_id) const;
  [[nodiscard]] u64 early_ns() const { return faults_.early_ns; }

 private:
  const CompletionFaults faults_;
  FaultLog log_;
  u64 place_ = 0;
};

}  // namespace doorbell::roce
