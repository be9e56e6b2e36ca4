// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <doorbell/net/stream_queues.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "net/links/namespaces.hpp"
#include "net/peer/peer_link.hpp"
#include "net/stream.hpp"

namespace doorbell::net {

struct StreamQueues::Parts {
  StreamRequest request;
  const StreamKind* kind = nullptr;
  std::unique_ptr<Link> link;
  std::unique_ptr<Stream> stream;  // goes before the link
  u64 interface_drops = 0;         // before the stream

  [[nodiscard]] u64 drops_of_interfaces() const {
    u64 n = 0;
    if (request.has_tx) n += link->interface_drops(End::tx);
    if (request.has_rx) n += link->interface_drops(End::rx);
    return n;
  }
};

namespace {

std::unique_ptr<Link> link_for(const std::string& name, const StreamRequest& r, bool raw) {
  if (r.has_tx && r.has_rx) {
    if (name == "veth" || name.starts_with("veth:")) enter_user_namespace_if_needed();
    return open_link({.spec = name, .queues = std::max(r.flows, r.rx_queues)});
  }
  if (!r.has_tx && !r.has_rx)
    throw Error("a stream", "neither of its ends is to be in this process", "set has_tx or has_rx");
  if (r.has_tx && r.other_end.empty())
    throw Error("a stream's sending end", "the address of its other end is not given", "set other_end");
  if (raw && r.has_tx && r.other_mac.empty())
    throw Error("the sending end of raw frames", "the Ethernet address of its other end is not given",
                "set other_mac");
  auto link = std::make_unique<PeerLink>(r.has_tx ? End::tx : End::rx, name, r.other_end);
  if (!r.other_mac.empty()) link->set_other_mac(r.other_mac);
  return link;
}

template <class Queues>
auto& at(Queues& queues, u32 i, const char* what) {
  if (i >= queues.size())
    throw Error(fmt::format("{} {}", what, i), fmt::format("this process has {} of them", queues.size()));
  return *queues[i];
}

}  // namespace

std::unique_ptr<StreamQueues> StreamQueues::open(const std::string& stream, const std::string& link,
                                                 const StreamRequest& request) {
  auto parts = std::make_unique<Parts>();
  parts->request = request;
  parts->kind = &find_kind(stream, request.engine, link);
  if (const BackendStatus s = parts->kind->status(); !s.usable)
    throw Error(fmt::format("a {} stream by {}", stream, parts->kind->name), s.detail, "", ExitCode::absent);
  check_abilities(*parts->kind, request.split, request.steering);
  parts->link = link_for(link, request, parts->kind->frames);
  parts->interface_drops = parts->drops_of_interfaces();
  parts->stream = parts->kind->open(request, *parts->link);
  return std::unique_ptr<StreamQueues>(new StreamQueues(std::move(parts)));
}

StreamQueues::StreamQueues(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
StreamQueues::~StreamQueues() = default;

RxQueue& StreamQueues::rx(u32 queue) {
  return at(parts_->stream->rx, queue, "receive queue");
}
TxQueue& StreamQueues::tx(u32 flow) {
  return at(parts_->stream->tx, flow, "the send queue of flow");
}
u32 StreamQueues::rx_queues() const {
  return static_cast<u32>(parts_->stream->rx.size());
}
u32 StreamQueues::tx_flows() const {
  return static_cast<u32>(parts_->stream->tx.size());
}

std::vector<u16> StreamQueues::queue_of_flow() const {
  std::vector<u16> queues = parts_->stream->queue_of_flow;
  for (u32 f = static_cast<u32>(queues.size()); f < parts_->request.flows; ++f)
    queues.push_back(static_cast<u16>(f % parts_->request.rx_queues));
  return queues;
}

const StreamRequest& StreamQueues::request() const {
  return parts_->request;
}
std::string StreamQueues::carrier() const {
  return parts_->kind->name;
}
bool StreamQueues::reliable() const {
  return parts_->kind->reliable;
}

Drops StreamQueues::drops() {
  Drops all;
  for (const auto& q : parts_->stream->rx) all += q->drops();
  add_interface_drops(*parts_->stream, parts_->drops_of_interfaces() - parts_->interface_drops, &all);
  return all;
}

u64 StreamQueues::unmatched() {
  u64 n = 0;
  for (const auto& q : parts_->stream->rx) n += q->unmatched();
  return n;
}

std::string StreamQueues::facts() {
  return nlohmann::ordered_json{{"stream", parts_->stream->facts()}, {"link", parts_->link->facts()}}.dump();
}

std::vector<StreamSupport> stream_support() {
  std::vector<StreamSupport> all;
  for (const StreamKind* k : stream_kinds()) {
    const BackendStatus s = k->status();
    all.push_back({k->name, k->frames, s.usable, s.detail});
  }
  return all;
}

}  // namespace doorbell::net
