// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The RoCE NIC under any packets: of its peer, with numbers near those that it expects, and of a stranger.
// Memory that nobody was given a right to stays as it is, and a stranger changes nothing of a connection.

#include <algorithm>
#include <array>

#include "fuzz/fuzz.hpp"
#include "rdma/roce/fake_wire.hpp"

using namespace doorbell;
using namespace doorbell::roce;
using namespace doorbell::roce::test;
using fuzz::require;

namespace {

constexpr u32 kSelf = 0x7F4D0001, kPeer = 0x7F4D0002, kStranger = 0x7F4D0003;
constexpr std::size_t kShared = 1024, kReceives = 2048, kMemory = 8192;
constexpr std::size_t kReadInto = kReceives + 2048;
constexpr u8 kUntouched = 0xA5;
constexpr std::array kServices = {Service::rc, Service::uc, Service::ud, Service::xrc};
constexpr u32 kPsn = 100, kPeersQueuePair = 77;

/// A NIC with a queue pair of each service, of XRC a responder; of its memory the peer may write the first
/// kShared bytes, receives lie from kReceives on, and what is between and behind is nobody's.
struct Target {
  FakeWire wire;
  Host host{wire, kSelf, kMemory};
  RegisteredMemory shared;
  std::array<std::unique_ptr<SharedReceiveQueue>, 2> xrc;  ///< the second one is of another domain
  std::array<std::unique_ptr<QueuePair>, 4> pairs;

  Target() {
    std::fill(host.memory.begin(), host.memory.end(), kUntouched);
    require(host.nic->register_memory(Host::kDomain, host.memory.data(), kShared,
                                      reinterpret_cast<u64>(host.memory.data()), Host::kEveryRight,
                                      shared) == 0);
    for (u32 i = 0; i < 2; ++i) xrc[i] = host.make_receives(1 + i);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const bool of_xrc = kServices[i] == Service::xrc;
      const Half half = of_xrc ? Half::responder : Half::both;
      pairs[i] = host.make({.service = kServices[i],
                            .half = half,
                            .xrc_domain = of_xrc ? 1U : 0U,
                            .send_requests = 8,
                            .receive_requests = 8,
                            .send_sges = 2,
                            .receive_sges = 2});
      auto a = connected_attributes({.address = kPeer, .port = kPort}, kPeersQueuePair);
      a.receive_psn = a.send_psn = kPsn;
      require(bring_up(*pairs[i], kServices[i], a, half) == 0);
      for (u64 id = 0; id < 2; ++id) {
        const std::array piece = {host.sge(kReceives + i * 512 + id * 256, 200)};
        require((of_xrc ? xrc[0]->post(id, piece) : pairs[i]->post_receive(id, piece)) == 0);
      }
    }
    // Answers find something that waits for them.
    require(pairs[0]->post({.id = 10,
                            .opcode = WrOpcode::read,
                            .flags = kSignaled,
                            .remote_address = 0x1000,
                            .remote_key = 5},
                           std::array{host.sge(kReadInto, 200)}) == 0);
    require(pairs[0]->post({.id = 11,
                            .opcode = WrOpcode::write,
                            .flags = kSignaled,
                            .remote_address = 0x1000,
                            .remote_key = 5},
                           std::array{host.sge(0, 300)}) == 0);
  }
  [[nodiscard]] bool untouched(std::size_t from, std::size_t to) const {
    return std::all_of(host.memory.begin() + static_cast<std::ptrdiff_t>(from),
                       host.memory.begin() + static_cast<std::ptrdiff_t>(to),
                       [](u8 b) { return b == kUntouched; });
  }
};

Bytes packet(FuzzedDataProvider& in, const Target& target) {
  if (in.ConsumeIntegralInRange(0, 15) == 0)
    return in.ConsumeBytes<u8>(in.ConsumeIntegralInRange<std::size_t>(0, 300));
  Headers h;
  const std::size_t i = in.ConsumeIntegralInRange<std::size_t>(0, 3);
  h.service = kServices[i];
  do h.operation = static_cast<Operation>(in.ConsumeIntegralInRange<u8>(0, 29));
  while (!shape_of(h.service, h.operation).exists && in.remaining_bytes() != 0);
  if (!shape_of(h.service, h.operation).exists) h.operation = Operation::send_only;
  h.solicited = in.ConsumeBool();
  h.wants_ack = in.ConsumeBool();
  h.queue_pair = target.pairs[in.ConsumeIntegralInRange(0, 15) == 0 ? 0 : i]->number();
  h.shared_receives = target.xrc[in.ConsumeIntegralInRange(0, 7) == 0 ? 1 : 0]->number();
  if (in.ConsumeIntegralInRange(0, 15) == 0) h.shared_receives = in.ConsumeIntegral<u32>() & kMask24;
  h.psn = (kPsn + in.ConsumeIntegralInRange<u32>(0, 12) - 3) & kMask24;
  h.range.address =
      reinterpret_cast<u64>(target.host.memory.data()) + in.ConsumeIntegralInRange<u64>(0, kMemory);
  if (in.ConsumeIntegralInRange(0, 15) == 0) h.range.address = in.ConsumeIntegral<u64>();
  h.range.key = in.ConsumeIntegralInRange(0, 7) == 0 ? in.ConsumeIntegral<u32>() : target.shared.remote_key;
  h.range.length = in.ConsumeIntegralInRange(0, 7) == 0 ? in.ConsumeIntegral<u32>()
                                                        : in.ConsumeIntegralInRange<u32>(0, 1200);
  h.swap_or_add = in.ConsumeIntegral<u64>();
  h.ack = {.kind = static_cast<Acknowledge::Kind>(in.ConsumeIntegralInRange(0, 3)),
           .value = static_cast<u8>(in.ConsumeIntegralInRange(0, 31)),
           .msn = in.ConsumeIntegralInRange<u32>(0, 8)};
  h.invalidate_key = in.ConsumeBool() ? target.shared.remote_key : in.ConsumeIntegral<u32>();
  h.queue_key = 0x1111;
  h.source_queue_pair = kPeersQueuePair;
  const std::size_t bytes = shape_of(h.service, h.operation).payload
                                ? (in.ConsumeBool() ? kMtu : in.ConsumeIntegralInRange<std::size_t>(0, 300))
                                : 0;
  Bytes out(kLongestHeaders + bytes + 3, 0x11);
  const std::size_t headers = encode(h, bytes, out.data());
  out.resize(headers + bytes + pad_bytes(bytes));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  FuzzedDataProvider in(data, size);
  Target target;
  u64 now = wall_ns();
  (void)target.host.nic->round_at(now);
  while (in.remaining_bytes() != 0) {
    const bool stranger = in.ConsumeIntegralInRange(0, 7) == 0;
    const Bytes bytes = packet(in, target);
    Decoded decoded;
    const bool connected = !decode(bytes, decoded) && decoded.headers.service != Service::ud;
    const Bytes before = target.host.memory;
    target.host.carrier.inbox.emplace_back(Endpoint{.address = stranger ? kStranger : kPeer, .port = kPort},
                                           bytes);
    now += in.ConsumeIntegralInRange<u64>(0, 1) * 5'000'000;
    (void)target.host.nic->round_at(now);
    if (stranger && connected) require(before == target.host.memory);
    require(target.untouched(kShared, kReceives));
    require(target.untouched(kReadInto + 200, kMemory));
    for (const Completion& c : target.host.poll())
      require(c.bytes <= 300 || c.status != Status::success || c.opcode == WcOpcode::receive_write_immediate);
  }
  return 0;
}
