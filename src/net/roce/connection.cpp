// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/roce/connection.hpp"

#include <doorbell/memory_order.hpp>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "rma/names.hpp"
#include "system/clock.hpp"

namespace doorbell::net {

nlohmann::ordered_json Statuses::errors() const {
  auto all = nlohmann::ordered_json::object();
  for (u32 i = 1; i < kKinds; ++i)
    if (counts_[i] > 0) all[rma::status_name(static_cast<u16>(i))] = counts_[i];
  return all;
}

auto IdleWatch::look() -> Verdict {
  Verdict v = Verdict::wait;
  if (alive_ != nullptr && load_acquire(alive_) == 0) {
    v = Verdict::removed;
  } else if (timeout_ns_ != 0) {
    const u64 now = wall_ns();
    if (!waited_) waited_ = RunningTime(now);
    if (waited_->look(now) > timeout_ns_) v = Verdict::expired;
  }
  const bool sure = std::exchange(suspected_, v != Verdict::wait);
  return sure ? v : Verdict::wait;
}

RoceMemory::RoceMemory(rdma::NicDevice& nic, Place place, u64 bytes) : region(nic.allocate(place, bytes)) {
  region.populate();
  registered = nic.register_memory(region, rdma::access::local_write);
}

void roce_pause(u64 limit_ns) {
  constexpr u64 kPause = 20'000;
  std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(limit_ns, kPause)));
}

}  // namespace doorbell::net
