// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/raw/tx_frames.hpp"

#include <arpa/inet.h>
#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace doorbell::net::raw {

namespace {

/// More flows or queues than this have no port, core or descriptor ring of their own anywhere.
constexpr u32 kMostQueues = 64;

u64 stride_of(u32 max_payload, u64 stride) {
  return stride != 0 ? stride : (kPayloadOffset + max_payload + 63u) / 64 * 64;
}

}  // namespace

FlowAddress flow_address(const Link& link, const StreamRequest& request, u32 flow) {
  const u32 port = request.port + flow;
  if (port > 65535)
    throw Error(fmt::format("flow {}", flow), fmt::format("its UDP port would be {}, above 65535", port),
                "begin at a lower port");
  FlowAddress a;
  a.encapsulation = request.encapsulation;
  a.flow = static_cast<u16>(flow);
  a.source_mac = link.mac(End::tx), a.destination_mac = link.raw_destination();
  if (a.source_mac == Mac{}) a.source_mac = {2, 0, 0, 0, 0, 1};
  if (a.destination_mac == Mac{}) a.destination_mac = {2, 0, 0, 0, 0, 2};
  // Addresses for measuring networks (RFC 2544): a kernel that sees these frames too has no such address, and
  // is done with them before it looks for a socket or answers.
  a.source_ip = 0xc6120101 + flow;  // 198.18.1.1 and on: RSS over addresses alone tells flows apart too
  a.destination_ip = 0xc6120002;    // 198.18.0.2
  // Likewise (RFC 5180): 2001:2::1:1 and on, 2001:2::2.
  a.source_ip6 = {0x20, 0x01, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, static_cast<u8>(1 + flow)};
  a.destination_ip6 = {0x20, 0x01, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
  a.source_port = a.destination_port = static_cast<u16>(port);
  return a;
}

u64 max_payload(const Link& link, Encapsulation encapsulation) {
  const u64 longest = std::min(link.mtu(), 65535u), headers = header_bytes(encapsulation) - kEthernetBytes;
  return longest < headers ? 0 : longest - headers;
}

StreamKind frames_kind(StreamKind engine) {
  engine.reliable = false;
  engine.frames = true;
  engine.splits = true;
  engine.unit = "frame";
  engine.overhead_bytes = kUdp4Bytes;
  engine.usual_link = "ring";
  engine.usual_cell.batch = 10240;
  engine.usual_grid = {{8000, 4096, 1024, 256, 64}, {10240, 4096, 1024, 256}};
  engine.max_payload = [](const Link& link) { return max_payload(link, Encapsulation::udp4); };
  return engine;
}

void check_request(const StreamRequest& request, const Link& link, bool has_rss) {
  const bool bare = request.encapsulation == Encapsulation::bare;
  const u64 least = bare ? kLeastBarePayload : kHeaderBytes, most = max_payload(link, request.encapsulation);
  if (request.payload_bytes < least || request.payload_bytes > most)
    throw Error(fmt::format("a payload of {} bytes", request.payload_bytes),
                fmt::format("raw frames over {} carry {}..{}", link.name(), least, most),
                fmt::format("the link's MTU is {}", link.mtu()));
  if (request.flows < 1 || request.flows > kMostQueues || request.rx_queues < 1 ||
      request.rx_queues > kMostQueues)
    throw Error(fmt::format("{} flows to {} receive queues", request.flows, request.rx_queues),
                fmt::format("a raw stream has 1..{} of each", kMostQueues));
  if (request.steering == Steering::rss && !has_rss)
    throw Error("RSS",
                fmt::format("what carries frames over {} has no hash to choose queues by", link.name()),
                "the engine ring has");
  if (request.steering == Steering::rss && bare)
    throw Error("RSS of bare frames", "they have no addresses and ports that a hash could be over",
                "use UDP over IPv4 or IPv6");
  if (request.place == Place::gpu && !request.split)
    throw Error("received packets in GPU memory", "the CPU has to read their headers",
                "split header and data, so that only the data goes to the GPU");
}

TxFrames::TxFrames(const FlowAddress& address, u32 max_payload, std::shared_ptr<gpu::Gpu> gpu, u64 stride)
    : address_(address),
      header_bytes_(raw::header_bytes(address.encapsulation)),
      max_payload_(max_payload),
      memory_(gpu ? Place::pinned : Place::pageable, stride_of(max_payload, stride) * kTemplates, gpu),
      slots_{memory_.host() + kPayloadOffset, stride_of(max_payload, stride), kTemplates},
      payload_bytes_(kTemplates) {
  for (u32 slot = 0; slot < kTemplates; ++slot)
    std::memcpy(slots_.payload(slot) + kFlowOffset, &address_.flow, sizeof address_.flow);
  finish(0, kTemplates, max_payload);
}

void TxFrames::finish(u64 first, u32 count, u32 bytes) {
  const bool sums = address_.encapsulation == Encapsulation::udp6;
  u32 slot = static_cast<u32>(first % kTemplates);
  for (; count > 0; --count) {
    if (payload_bytes_[slot] != bytes) {
      encode(address_, bytes, frame(slot));
      payload_bytes_[slot] = bytes;
    }
    if (sums) checksum_udp6(frame(slot), bytes);
    if (++slot == kTemplates) slot = 0;
  }
}

}  // namespace doorbell::net::raw
