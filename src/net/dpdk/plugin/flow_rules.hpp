// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Flow rules in a NIC: which flow's packets go to which receive queue.
#pragma once

#include <rte_flow.h>

#include <vector>

#include "net/dpdk/plugin/port.hpp"

namespace doorbell::net::dpdk {

/// One rule in a port, which is removed with it.
class FlowRule {
 public:
  FlowRule(const Port& port, u16 udp_port, u16 queue);
  ~FlowRule();
  FlowRule(FlowRule&& other) noexcept;
  FlowRule& operator=(FlowRule&&) = delete;

 private:
  u16 port_;
  rte_flow* rule_ = nullptr;
};

using FlowRules = std::vector<FlowRule>;

/// Flow f, whose UDP port is `first_port` + f, goes to queue f mod `queues`. Throws Error when the NIC
/// refuses.
[[nodiscard]] FlowRules flow_rules(const Port& port, u16 first_port, u32 flows, u32 queues);

}  // namespace doorbell::net::dpdk
