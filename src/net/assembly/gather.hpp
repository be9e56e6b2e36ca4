// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Messages of an ordered stream become contiguous windows of data, in the order of their arrival. A message
// that is as large as a window is passed through where it lies.
#pragma once

#include "net/assembly/window.hpp"
#include "net/assembly/window_buffers.hpp"

namespace doorbell::net {

struct GatherRequest {
  u32 flow = 0;          ///< what its windows say
  u32 data_bytes = 0;    ///< of every message, behind its header
  u64 window_bytes = 0;  ///< wanted: rounded to whole messages, or cut from a message that is larger
  Place place = Place::pageable;
  std::shared_ptr<gpu::Gpu> gpu = {};
  u32 in_flight = 2;             ///< windows that the consumer may keep
  u64 wait_ns = 10'000'000'000;  ///< how long the consumer may keep all buffers
};

/// The windows of one flow. Thread rule: one thread at a time, and that calls the consumer as well.
class Gather final : public WindowOwner {
 public:
  Gather(const GatherRequest& request, WindowConsumer& consumer);

  /// Message `number` of its flow: `data` are the bytes behind its header. `device` is its address for the
  /// GPU, where it has one and the message may be passed through. Throws Error only when the consumer keeps
  /// every buffer for too long.
  Placing add(u64 number, const u8* data, u32 bytes, u64 now_ns, const u8* device = nullptr);
  void poll() { consumer_.poll(); }
  /// Delivers what has been gathered since the last whole window, and waits for the consumer.
  void finish();

  /// Windows over messages that the consumer still has: their bursts are not to be released.
  [[nodiscard]] u32 borrowed() const { return borrowed_; }
  /// True when messages are passed through and not copied.
  [[nodiscard]] bool passes_through() const { return slices_ != 0; }
  [[nodiscard]] u64 window_bytes() const { return window_bytes_; }
  [[nodiscard]] const WindowCounts& counts() const { return counts_; }
  [[nodiscard]] u64 wrong_length() const { return wrong_length_; }

  void give_back(const Window& window) override;

 private:
  void pass(u64 number, const u8* data, u64 now_ns, const u8* device);
  void deliver();

  u32 flow_;
  u32 data_bytes_;
  u32 slices_;   ///< windows in a message; 0: windows hold whole messages
  u32 packets_;  ///< messages in a window
  u64 window_bytes_;
  u64 wait_ns_;
  WindowBuffers buffers_;
  WindowConsumer& consumer_;
  std::vector<u64> bits_;  ///< of the window that is being filled
  u32 filled_ = 0;
  u32 buffer_ = 0;
  u64 first_packet_ = 0;
  u64 first_ns_ = 0;
  u64 index_ = 0;
  u32 borrowed_ = 0;
  WindowCounts counts_;
  u64 wrong_length_ = 0;
};

}  // namespace doorbell::net
