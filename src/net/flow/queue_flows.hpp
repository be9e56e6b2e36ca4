// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Which flows arrive at a receive queue.
#pragma once

#include <doorbell/config.hpp>

#include <span>
#include <vector>

namespace doorbell::net {

/// Receive queues of one stream, which the flows are spread over.
struct Spreading {
  u32 flows = 1, queues = 1;
  /// The queue of each flow; empty: flow f arrives at queue f mod queues.
  std::vector<u16> queue_of_flow = {};
};

/// The flows of one queue, each with its place among them.
class QueueFlows {
 public:
  QueueFlows(const Spreading& s, u32 queue) : place_(s.flows, kNone) {
    for (u32 f = 0; f < s.flows; ++f)
      if ((s.queue_of_flow.empty() ? f % s.queues : s.queue_of_flow[f]) == queue) {
        place_[f] = static_cast<u32>(all_.size());
        all_.push_back(f);
      }
  }
  [[nodiscard]] bool has(u32 flow) const { return flow < place_.size() && place_[flow] != kNone; }
  /// Of a flow that this queue has.
  [[nodiscard]] u32 place(u32 flow) const { return place_[flow]; }
  [[nodiscard]] const std::vector<u32>& all() const { return all_; }

 private:
  static constexpr u32 kNone = ~0u;
  std::vector<u32> place_;
  std::vector<u32> all_;
};

}  // namespace doorbell::net
