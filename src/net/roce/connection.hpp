// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Parts that both ends of a flow's connection have: registered memory, a queue pair, and what went wrong.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "net/roce/roce.hpp"
#include "rdma/burst_queue.hpp"
#include "system/running_time.hpp"

namespace doorbell::net {

/// How often completions ended with each status.
class Statuses {
 public:
  void count(rdma::Status s) { ++counts_[static_cast<u32>(s) % kKinds]; }
  [[nodiscard]] u64 of(rdma::Status s) const { return counts_[static_cast<u32>(s)]; }
  Statuses& operator+=(const Statuses& o) {
    for (u32 i = 0; i < kKinds; ++i) counts_[i] += o.counts_[i];
    return *this;
  }
  /// Those that are not `ok`, by name.
  [[nodiscard]] nlohmann::ordered_json errors() const;

 private:
  static constexpr u32 kKinds = 32;
  std::array<u64, kKinds> counts_{};
};

/// Detects when a queue that yields nothing will not do so any more. The clock is read only then, and a
/// verdict counts only if polls after it have found nothing either.
class IdleWatch {
 public:
  enum class Verdict { wait, removed, expired };
  /// `alive`: Nic::alive(). `timeout_ns` 0: for ever.
  IdleWatch(const u32* alive, u64 timeout_ns) : alive_(alive), timeout_ns_(timeout_ns) {}
  void found() { idle_ = 0, waited_.reset(), suspected_ = false; }
  [[nodiscard]] Verdict missed() { return ++idle_ % kPolls != 0 ? Verdict::wait : look(); }

 private:
  static constexpr u32 kPolls = 64;  ///< that find nothing, between two looks
  [[nodiscard]] Verdict look();

  const u32* alive_;
  u64 timeout_ns_;
  u32 idle_ = 0;
  std::optional<RunningTime> waited_;  ///< since the first look that found nothing
  bool suspected_ = false;
};

/// Memory that the NIC may use; the NIC loses access before it is freed.
struct RoceMemory {
  RoceMemory(rdma::NicDevice& nic, Place place, u64 bytes);
  Region region;
  std::unique_ptr<rdma::MemoryRegion> registered;
};

/// Sleeps a little while, so that threads with work get the processor. There is nothing to be woken by.
void roce_pause(u64 limit_ns);

}  // namespace doorbell::net
