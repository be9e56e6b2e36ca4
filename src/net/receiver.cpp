// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/receiver.hpp"

#include <doorbell/net/crc32c.hpp>

#include "system/clock.hpp"

namespace doorbell::net {

Receiver::Receiver(const ReceiverOptions& options, RxQueue& queue, PacketSink* sink)
    : o_(options),
      flows_(options.spreading, options.queue),
      queue_(queue),
      sink_(sink),
      bursts_{Burst(options.burst), Burst(options.burst)},
      packet_(options.burst),
      flow_(options.burst),
      number_(options.burst) {
  for (u32 i = 0; i < flows_.all().size(); ++i) maps_.emplace_back(o_.first_sequence, o_.map_span);
}

u32 Receiver::step() {
  Burst& burst = bursts_[turn_];
  u32 n = queue_.receive(burst);
  ++counts_.polls;
  if (n == 0 && used_ != 0) {
    // It may be all that the queue has room for.
    settle();
    n = queue_.receive(burst);
  }
  if (n == 0) {
    ++counts_.empty_polls;
    return 0;
  }
  ++counts_.bursts;
  counts_.received += n;
  const u64 now = burst.rx_time_ns != 0 ? burst.rx_time_ns : wall_ns();
  u32 unique = 0;
  for (u32 i = 0; i < n; ++i)
    if (classify(burst, i, now, &flow_[unique], &number_[unique])) packet_[unique++] = i;
  u64 used = 0;
  if (unique > 0) {
    last_ns_ = now;
    if (sink_ != nullptr)
      used = sink_->take(burst, {packet_.data(), unique}, {flow_.data(), unique}, {number_.data(), unique});
    progress_.store(counts_.unique, std::memory_order_release);
  }
  settle();
  if (used == 0) {
    queue_.release(burst);
  } else {
    used_ = used;
    turn_ = 1 - turn_;
  }
  return n;
}

void Receiver::settle() {
  if (used_ == 0) return;
  sink_->await(used_);
  queue_.release(bursts_[1 - turn_]);
  used_ = 0;
}

bool Receiver::classify(const Burst& burst, u32 i, u64 now, u16* flow, u64* number) {
  const u64 bytes = u64{burst.length[i]} + (burst.split ? burst.body_length[i] : 0);
  Header h;
  if (burst.length[i] >= kHeaderBytes) std::memcpy(&h, burst.data[i], kHeaderBytes);
  if (burst.length[i] < kHeaderBytes || h.magic != kMagic) {
    ++counts_.alien;
    return false;
  }
  if (crc32c(&h, kHeaderBytes - 4) != h.header_crc32c) {
    ++counts_.corrupt;
    return false;
  }
  if (h.version() != kVersion || h.run_tag != o_.run_tag) {
    ++counts_.alien;
    return false;
  }
  if (h.data_bytes + u64{kHeaderBytes} != bytes) {
    ++counts_.short_;
    return false;
  }
  const u32 f = h.stream();
  if (!owns(f)) {
    ++counts_.misplaced;
    return false;
  }
  const bool checked =
      o_.verify && h.has(kHasDataCrc) && pattern::sampled(h.sequence(), o_.seed, o_.verify_below);
  if (checked && !data_good(burst, i, h)) {
    ++counts_.corrupt;
    return false;
  }
  const ArrivalMap::Noted noted = maps_[flows_.place(f)].note(h.sequence());
  if (noted.arrival != Arrival::first) {
    ++(noted.arrival == Arrival::duplicate ? counts_.duplicate : counts_.misplaced);
    return false;
  }
  ++counts_.unique;
  counts_.unique_bytes += bytes;
  if (!noted.in_order) ++counts_.out_of_order;
  if (checked) {
    ++counts_.checked;
    counts_.checked_bytes += bytes;
  }
  const u64 way_ns = now > h.tx_time_ns ? now - h.tx_time_ns : 0;
  if (way_ns > o_.late_ns) ++counts_.late;
  if ((h.sequence() & (o_.latency_every - 1)) == 0) latency_.record(way_ns);
  *flow = static_cast<u16>(f);
  *number = noted.number - o_.first_sequence;
  return true;
}

bool Receiver::data_good(const Burst& burst, u32 i, const Header& h) const {
  u32 crc = crc32c(burst.data[i] + kHeaderBytes, burst.length[i] - kHeaderBytes);
  if (burst.split) crc = crc32c(burst.body[i], burst.body_length[i], crc);
  return crc == h.data_crc32c;
}

}  // namespace doorbell::net
