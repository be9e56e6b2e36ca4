// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A stream in memory for tests: whole packets in a queue with a lock, in order, without loss. What a test
// wants changed it changes in `packets`. And single packets.
#pragma once

#include <doorbell/net/packet.hpp>
#include <doorbell/net/queue.hpp>
#include <doorbell/region.hpp>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

namespace doorbell::net {

struct MemoryWire {
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<std::vector<u8>> packets;
  bool closed = false;
  u64 capacity = 4096;
  /// Packets that find the wire full are dropped and counted, or refused.
  bool drop_when_full = false;
  u64 dropped = 0;
  u64 taken = 0, released = 0;  // by the receiver
};

class MemoryTx final : public TxQueue {
 public:
  MemoryTx(std::shared_ptr<MemoryWire> wire, u32 payload)
      : wire_(std::move(wire)),
        stride_((payload + 31) / 32 * 32),
        memory_(Place::pageable, u64{stride_} * kTemplates) {}
  [[nodiscard]] TxSlots slots() const override { return {memory_.host(), stride_, kTemplates}; }
  u32 send(u64 first, u32 count, u32 bytes) override {
    const std::scoped_lock lock(wire_->mutex);
    u32 done = 0;
    for (; done < count; ++done) {
      const u8* p = slots().payload(first + done);
      if (wire_->packets.size() >= wire_->capacity) {
        if (!wire_->drop_when_full) break;
        ++wire_->dropped;
        continue;
      }
      wire_->packets.emplace_back(p, p + bytes);
    }
    accepted_ = first + done;
    wire_->arrived.notify_all();
    return done;
  }
  [[nodiscard]] u64 completed() override { return accepted_; }
  void wait(u64 limit_ns) override {
    std::unique_lock lock(wire_->mutex);
    wire_->arrived.wait_for(lock, std::chrono::nanoseconds(limit_ns),
                            [&] { return wire_->packets.size() < wire_->capacity; });
  }
  [[nodiscard]] bool finish() override {
    const std::scoped_lock lock(wire_->mutex);
    wire_->closed = true;
    wire_->arrived.notify_all();
    return true;
  }

 private:
  std::shared_ptr<MemoryWire> wire_;
  u32 stride_;
  Region memory_;
  u64 accepted_ = 0;
};

class MemoryRx : public RxQueue {
 public:
  explicit MemoryRx(std::shared_ptr<MemoryWire> wire) : wire_(std::move(wire)) {}
  u32 receive(Burst& burst) override {
    const std::scoped_lock lock(wire_->mutex);
    burst.count = 0;
    taken_.clear();
    while (burst.count < burst.capacity() && !wire_->packets.empty()) {
      taken_.push_back(std::move(wire_->packets.front()));
      wire_->packets.pop_front();
      burst.data[burst.count] = taken_.back().data();
      burst.length[burst.count++] = static_cast<u32>(taken_.back().size());
    }
    wire_->taken += burst.count;
    wire_->arrived.notify_all();
    return burst.count;
  }
  void release(Burst& burst) override {
    const std::scoped_lock lock(wire_->mutex);
    wire_->released += burst.count;
    burst.count = 0;
  }
  void wait(u64 limit_ns) override {
    std::unique_lock lock(wire_->mutex);
    wire_->arrived.wait_for(lock, std::chrono::nanoseconds(limit_ns),
                            [&] { return !wire_->packets.empty(); });
  }
  [[nodiscard]] bool ended() override {
    const std::scoped_lock lock(wire_->mutex);
    return wire_->closed && wire_->packets.empty();
  }
  [[nodiscard]] Drops drops() override {
    const std::scoped_lock lock(wire_->mutex);
    return {.ring = wire_->dropped};
  }

 private:
  std::shared_ptr<MemoryWire> wire_;
  std::deque<std::vector<u8>> taken_;
};

/// Says when it took a burst.
class TimedRx final : public MemoryRx {
 public:
  using MemoryRx::MemoryRx;
  u32 receive(Burst& burst) override {
    const u32 n = MemoryRx::receive(burst);
    burst.rx_time_ns = now_ns;
    return n;
  }
  u64 now_ns = 0;
};

/// Of `data` bytes behind the header, all zeros.
inline std::vector<u8> packet(u16 tag, u16 stream, u64 sequence, u32 data) {
  std::vector<u8> bytes(kHeaderBytes + data);
  Header h;
  h.run_tag = tag;
  h.data_bytes = data;
  h.stream_sequence = stream_sequence(stream, sequence);
  h.version_flags |= kHasDataCrc << 4;
  h.data_crc32c = crc32c(bytes.data() + kHeaderBytes, data);
  h.header_crc32c = crc32c(&h, kHeaderBytes - 4);
  std::memcpy(bytes.data(), &h, kHeaderBytes);
  return bytes;
}

}  // namespace doorbell::net
