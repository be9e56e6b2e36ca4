// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/dpdk/plugin/flow_rules.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <rte_errno.h>

#include <utility>

#include "net/dpdk/plugin/eal.hpp"

namespace doorbell::net::dpdk {

FlowRule::FlowRule(const Port& port, u16 udp_port, u16 queue) : port_(port.id()) {
  rte_flow_attr attributes{};
  attributes.ingress = 1;
  rte_flow_item_udp match{}, mask{};
  match.hdr.dst_port = rte_cpu_to_be_16(udp_port);
  mask.hdr.dst_port = 0xffff;
  const rte_flow_item pattern[] = {
      {.type = RTE_FLOW_ITEM_TYPE_ETH, .spec = nullptr, .last = nullptr, .mask = nullptr},
      {.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = nullptr, .last = nullptr, .mask = nullptr},
      {.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &match, .last = nullptr, .mask = &mask},
      {.type = RTE_FLOW_ITEM_TYPE_END, .spec = nullptr, .last = nullptr, .mask = nullptr}};
  const rte_flow_action_queue to = {.index = queue};
  const rte_flow_action actions[] = {{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to},
                                     {.type = RTE_FLOW_ACTION_TYPE_END, .conf = nullptr}};
  rte_flow_error why{};
  rule_ = rte_flow_create(port_, &attributes, pattern, actions, &why);
  if (rule_ == nullptr)
    throw Error(fmt::format("a flow rule for UDP port {}", udp_port),
                why.message != nullptr ? why.message : rte_strerror(rte_errno), "use one receive queue");
}

FlowRule::~FlowRule() {
  rte_flow_error ignored{};
  if (rule_ != nullptr) rte_flow_destroy(port_, rule_, &ignored);
}

FlowRule::FlowRule(FlowRule&& other) noexcept
    : port_(other.port_), rule_(std::exchange(other.rule_, nullptr)) {}

FlowRules flow_rules(const Port& port, u16 first_port, u32 flows, u32 queues) {
  FlowRules rules;
  rules.reserve(flows);
  for (u32 f = 0; f < flows; ++f)
    rules.emplace_back(port, static_cast<u16>(first_port + f), static_cast<u16>(f % queues));
  return rules;
}

}  // namespace doorbell::net::dpdk
