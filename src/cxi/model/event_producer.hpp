// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The device's side of one event queue.
#pragma once

#include <doorbell/cxi/event_queue.hpp>

#include <atomic>

#include "model/dma.hpp"

namespace doorbell::cxi {

/// Where a queue lies. In host memory the device writes it directly, in GPU memory through the DMA engine.
struct QueuePlace {
  u8* host = nullptr;  ///< null: in GPU memory
  Iova iova = 0;
};

class EventProducer {
 public:
  EventProducer(const QueuePlace& place, u64* csr, u32 bytes, u64 capacity)
      : place_(place), csr_(csr), bytes_(bytes), capacity_(capacity) {}

  /// Call when everything that the event announces is in place. False: the queue is full, and the event is
  /// lost.
  template <class E>
  bool write(model::DmaEngine& dma, const E& event) {
    const auto encoded = encode_event(event);
    return write(dma, encoded.w, E::kWords);
  }
  /// Checks whether the reader has noticed lost events.
  void look(model::DmaEngine& dma);

  [[nodiscard]] u32 bytes() const { return bytes_; }
  [[nodiscard]] u64 written() const { return written_; }
  /// Events for which the queue had no room, including those for which the configuration left none.
  [[nodiscard]] u64 dropped() const { return dropped_; }
  [[nodiscard]] u64 refused() const { return refused_; }

 private:
  // Blocks of 64 bytes that stay free; the driver asks the hardware for the same number.
  static constexpr u32 kReserved = 2;

  bool write(model::DmaEngine& dma, const u64* words, u32 count);
  bool drop(model::DmaEngine& dma);
  [[nodiscard]] bool room(u32 blocks) const;
  [[nodiscard]] u32 free_blocks() const;
  void fill(model::DmaEngine& dma, u32 count);
  void store(model::DmaEngine& dma, const u64* words, u32 count);
  void publish_status(model::DmaEngine& dma);

  QueuePlace place_;
  u64* csr_;
  u32 bytes_;
  u64 capacity_;  // events for which there is room; 0: no such limit
  u32 at_ = kEventQueueHead;
  u64 written_ = 0;
  u64 dropped_ = 0;
  u64 refused_ = 0;
  bool unackd_dropped_ = false;
  bool drop_seq_ = false;
};

}  // namespace doorbell::cxi
