// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Packets that tests of raw engines send and expect: each is known by its flow and number, and every byte of
// it is checked.
#pragma once

#include <doorbell/net/packet.hpp>
#include <doorbell/net/queue.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "eventually.hpp"
#include "idle_gpu.hpp"
#include "net/stream.hpp"

namespace doorbell::net::test_packets {

/// A GPU whose memory is the host's, so that what was copied to it can be looked at.
class CopyingGpu final : public IdleGpu {
 public:
  void copy(void* to, const void* from, u64 bytes) override { std::memcpy(to, from, bytes); }
  void copy(std::span<const gpu::Copy> batch) override {
    ++batches;
    for (const gpu::Copy& c : batch) std::memcpy(c.to, c.from, c.bytes);
  }
  u64 batches = 0;
};

/// The payload of packet n of a flow: a header with its number, then data.
inline void make_payload(u16 flow, u64 n, u32 bytes, u8* out) {
  Header h;
  h.data_bytes = bytes - kHeaderBytes;
  h.stream_sequence = stream_sequence(flow, n);
  std::memcpy(out, &h, kHeaderBytes);
  for (u32 at = 0; at < h.data_bytes; at += 8) {
    const u64 word = data_word(Fill::bytes, 1, flow, static_cast<u32>(n % kTemplates), at / 8);
    std::memcpy(out + kHeaderBytes + at, &word, std::min(8u, h.data_bytes - at));
  }
}

/// Sends packets of one flow, in its order.
class Sender {
 public:
  Sender(TxQueue& queue, u16 flow) : queue_(queue), flow_(flow) {}
  /// Offers up to `count` packets; returns how many the queue accepted.
  u32 send(u32 count, u32 bytes) {
    // A slot is written when its last packet has left it.
    const u64 room = queue_.completed() + queue_.slots().count - sent_;
    count = static_cast<u32>(std::min<u64>(count, room));
    for (u32 i = 0; i < count; ++i) make_payload(flow_, sent_ + i, bytes, queue_.slots().payload(sent_ + i));
    const u32 n = queue_.send(sent_, count, bytes);
    EXPECT_LE(n, count);
    sent_ += n;
    return n;
  }
  [[nodiscard]] u64 sent() const { return sent_; }
  [[nodiscard]] TxQueue& queue() { return queue_; }
  [[nodiscard]] u16 flow() const { return flow_; }

 private:
  TxQueue& queue_;
  u16 flow_;
  u64 sent_ = 0;
};

/// Checks what one receive queue delivers, and how often each packet came.
class Checker {
 public:
  Checker(RxQueue& queue, u32 flows, u32 burst = 64)
      : seen_(flows), unique_(flows), queue_(queue), bursts_{Burst(burst), Burst(burst)} {}
  /// Gives a burst back only behind the next one, as a receiver does whose GPU reads packets where they lie,
  /// and looks at it once more.
  void keep_each() { keeps_ = true; }
  /// For engines that take packets where the kernel or a NIC has put them.
  void accept_unaligned() { alignment_ = 1; }

  /// Takes a burst and gives it back; returns its packets.
  u32 receive(u32 bytes) {
    Burst& burst = bursts_[turn_];
    u32 n = queue_.receive(burst);
    if (n == 0 && kept_) {
      give_back(bytes);
      n = queue_.receive(burst);
    }
    EXPECT_EQ(n, burst.count);
    EXPECT_LE(n, burst.capacity());
    EXPECT_TRUE(n == 0 || burst.rx_time_ns > 0);
    for (u32 i = 0; i < n; ++i) check(burst, i, bytes);
    give_back(bytes);
    kept_ = n > 0 && keeps_;
    if (kept_) turn_ = 1 - turn_;
    else if (n > 0) queue_.release(burst);
    received_ += n;
    return n;
  }

  [[nodiscard]] u64 received() const { return received_; }
  /// How often each packet of a flow came.
  [[nodiscard]] const std::vector<u32>& of_flow(u32 flow) const { return seen_[flow]; }
  /// How many packets of a flow have come at least once. They may come in any order.
  [[nodiscard]] u64 unique(u32 flow) const { return unique_[flow]; }
  [[nodiscard]] u64 wrong() const { return wrong_; }
  [[nodiscard]] u64 out_of_order() const { return out_of_order_; }
  [[nodiscard]] RxQueue& queue() { return queue_; }

 private:
  /// Its header, if it is as it was sent.
  [[nodiscard]] std::optional<Header> header(const Burst& burst, u32 i, u32 bytes) const {
    std::vector<u8> got(burst.data[i], burst.data[i] + burst.length[i]);
    if (burst.split) got.insert(got.end(), burst.body[i], burst.body[i] + burst.body_length[i]);
    if (got.size() != bytes || reinterpret_cast<std::uintptr_t>(burst.data[i]) % alignment_ != 0) return {};
    Header h;
    std::memcpy(&h, got.data(), sizeof h);
    std::vector<u8> want(bytes);
    make_payload(h.stream(), h.sequence(), bytes, want.data());
    if (want != got || h.stream() >= seen_.size()) return {};
    return h;
  }
  void give_back(u32 bytes) {
    if (!kept_) return;
    Burst& burst = bursts_[1 - turn_];
    for (u32 i = 0; i < burst.count; ++i) wrong_ += header(burst, i, bytes) ? 0 : 1;
    queue_.release(burst);
    kept_ = false;
  }
  void check(const Burst& burst, u32 i, u32 bytes) {
    const std::optional<Header> known = header(burst, i, bytes);
    if (!known) {
      ++wrong_;
      return;
    }
    const Header& h = *known;
    std::vector<u32>& seen = seen_[h.stream()];
    if (h.sequence() < seen.size()) ++out_of_order_;
    else seen.resize(h.sequence() + 1);
    if (++seen[h.sequence()] == 1) ++unique_[h.stream()];
  }

  std::vector<std::vector<u32>> seen_;
  std::vector<u64> unique_;
  RxQueue& queue_;
  std::array<Burst, 2> bursts_;
  u32 turn_ = 0;
  bool keeps_ = false, kept_ = false;
  u32 alignment_ = 8;
  u64 received_ = 0, wrong_ = 0, out_of_order_ = 0;
};

/// Sends `packets` of every flow, never more than `in_flight` of one beyond what has arrived, and expects
/// each of them once, unchanged, and at queue flow mod rx_queues.
inline void expect_all_arrive(Stream& stream, u32 packets, u32 bytes, u32 in_flight = 64) {
  std::vector<Sender> senders;
  std::vector<Checker> checkers;
  const u32 flows = static_cast<u32>(stream.tx.size()), queues = static_cast<u32>(stream.rx.size());
  for (u16 f = 0; f < flows; ++f) senders.emplace_back(*stream.tx[f], f);
  for (auto& q : stream.rx) checkers.emplace_back(*q, flows).keep_each();
  const auto arrived = [&](u32 f) { return checkers[f % queues].unique(f); };
  const auto advance = [&] {
    u32 moved = 0;
    for (Sender& s : senders) {
      const u64 limit = arrived(s.flow()) + in_flight;
      const u64 room = limit > s.sent() ? limit - s.sent() : 0;
      moved += s.send(static_cast<u32>(std::min<u64>({packets - s.sent(), room, 32})), bytes);
    }
    for (Checker& c : checkers) moved += c.receive(bytes);
    return moved > 0;
  };
  const bool all = test::eventually([&] {
    // On a busy machine each turn of the scheduler is dear: on until nothing moves.
    while (advance()) {
    }
    return std::ranges::all_of(senders, [&](const Sender& s) { return arrived(s.flow()) == packets; });
  });
  EXPECT_TRUE(all);
  for (u32 f = 0; f < flows; ++f) {
    const std::vector<u32>& seen = checkers[f % queues].of_flow(f);
    EXPECT_EQ(seen.size(), packets) << "flow " << f;
    EXPECT_EQ(std::ranges::count(seen, 1u), static_cast<long>(packets)) << "flow " << f;
    EXPECT_TRUE(test::eventually([&] { return senders[f].queue().finish(); }));
    EXPECT_EQ(senders[f].queue().completed(), packets);
  }
  for (Checker& c : checkers) {
    EXPECT_EQ(c.wrong(), 0u);
    EXPECT_EQ(c.received(),
              static_cast<u64>(packets) * ((flows + queues - 1 - (&c - checkers.data())) / queues));
    EXPECT_EQ(c.queue().unmatched(), 0u);
    EXPECT_EQ(c.queue().drops().sum(), 0u);
  }
}

/// The same with each encapsulation, several flows to several queues.
template <class Open>
void expect_each_encapsulation_arrives(StreamRequest r, Open open, u32 packets) {
  for (const Encapsulation e : {Encapsulation::udp4, Encapsulation::udp6, Encapsulation::bare}) {
    r.encapsulation = e;
    for (const u32 bytes : {46u, 1001u, 8000u}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(e)) + ", " + std::to_string(bytes) + " bytes");
      r.payload_bytes = bytes;
      const auto s = open(r);
      expect_all_arrive(*s, packets, bytes, 32);
    }
  }
}

}  // namespace doorbell::net::test_packets
