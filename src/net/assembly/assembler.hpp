// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Packets of an unordered stream become contiguous windows of data: reordered, with gaps named.
#pragma once

#include <optional>

#include "net/assembly/convert.hpp"
#include "net/assembly/gpu_assembly.hpp"
#include "net/assembly/window.hpp"
#include "net/assembly/window_buffers.hpp"

namespace doorbell::net {

struct AssemblerRequest {
  u32 flow = 0;  ///< what its windows say
  WindowShape shape;
  u32 data_bytes = 0;  ///< of every packet, behind its header
  Missing missing = Missing::zero;
  Place place = Place::pageable;  ///< of the windows
  std::shared_ptr<gpu::Gpu> gpu = {};
  /// Gathers the packets, and must be there, where `place` is GPU memory; converts as `convert` says.
  std::shared_ptr<GpuAssembly> gatherer = {};
  u32 in_flight = 2;  ///< windows that the consumer may keep
  std::optional<Conversion> convert = {};
  u32 audit_every = 0;           ///< one window in so many gets slot_crcs; 0: none
  u64 wait_ns = 10'000'000'000;  ///< how long the consumer may keep all buffers
};

/// The windows of one flow. Thread rule: one thread at a time, and that calls the consumer as well.
class Assembler {
 public:
  /// The consumer outlives the assembler. Throws Error: a number out of range, no memory.
  Assembler(const AssemblerRequest& request, WindowConsumer& consumer);

  /// A packet whose header has been verified: `data` are the bytes behind it, which may lie in two places.
  /// Copies them, or puts them on the gatherer's list, and delivers the windows that close. Throws Error only
  /// when the consumer keeps every buffer for too long.
  struct Data {
    const u8* first;
    u32 first_bytes;
    const u8* second = nullptr;
    u32 second_bytes = 0;
  };
  Placing add(u64 sequence, const Data& data, u64 now_ns);
  Placing add(u64 sequence, const u8* data, u32 bytes, u64 now_ns) {
    return add(sequence, {data, bytes}, now_ns);
  }
  /// Once a burst, and when next_timeout_ns() has passed: closes windows whose time is over, and lets the
  /// consumer give back what it has done.
  void poll(u64 now_ns);
  [[nodiscard]] u64 next_timeout_ns() const { return tracker_.next_timeout_ns(); }
  /// The end of the run: delivers what is open, up to the stream's last packet if their number is known, and
  /// waits for the consumer.
  void finish(u64 total_packets = 0);

  [[nodiscard]] const WindowCounts& counts() const { return tracker_.counts(); }
  /// Packets that were not as long as they must be; they count nowhere else.
  [[nodiscard]] u64 wrong_length() const { return wrong_length_; }
  [[nodiscard]] u64 slot_bytes() const { return slot_bytes_; }
  [[nodiscard]] u64 window_bytes() const { return buffers_.bytes(); }

 private:
  static constexpr u32 kNone = ~0u;

  void audit(const Data& data, u32 buffer, u32 slot);
  void put(const u8* data, u32 bytes, u32 buffer, u64 at);
  void zero_missing(const Window& window);
  void deliver(const ClosedWindow& closed);
  u32 new_buffer();

  u32 flow_;
  u32 data_bytes_;
  Missing missing_;
  std::optional<Conversion> convert_;
  u64 slot_bytes_;
  u64 wait_ns_;
  std::shared_ptr<GpuAssembly> gatherer_;
  WindowTracker tracker_;
  WindowBuffers buffers_;
  WindowConsumer& consumer_;
  std::vector<u32> buffer_of_;  ///< of each open window, by its place in the tracker's ring
  u64 wrong_length_ = 0;
  u32 audit_every_;
  std::vector<u32> slot_crcs_;  ///< of each buffer
  std::vector<u8> expected_;    ///< what an audited packet becomes
};

}  // namespace doorbell::net
