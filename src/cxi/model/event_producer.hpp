// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The device's side of one event queue.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/cxi/event_queue.hpp>

namespace doorbell::cxi {

/// Where a queue lies. What the device reaches it uses directly, the rest through its DMA engine.
struct QueuePlace {
  u8* host = nullptr;  ///< the address that the device uses; null: in GPU memory that it does not reach
  Iova iova = 0;
};

/// The form of a queue's events, and who is told of them.
struct EventQueueRule {
  u32 owner = 0;
  bool long_initiator = false;
  bool alone = false;                 ///< each event has its 64 bytes to itself, with NULL events behind it
  int on_event = -1, on_status = -1;  ///< descriptors for Parts::signal(); -1: none
};

/// Plain data. `Parts`: what the device's engine is built of, of which this uses dma, wall_ns() and signal().
class EventProducer {
 public:
  EventProducer() = default;
  EventProducer(const QueuePlace& place, u64* csr, u32 bytes, u64 capacity, const EventQueueRule& rule = {})
      : place_(place), csr_(csr), bytes_(bytes), capacity_(capacity), rule_(rule) {}

  [[nodiscard]] DOORBELL_INLINE bool exists() const { return bytes_ != 0; }
  [[nodiscard]] DOORBELL_INLINE u32 owner() const { return rule_.owner; }
  [[nodiscard]] DOORBELL_INLINE bool long_initiator_events() const { return rule_.long_initiator; }
  /// Goes on at the beginning of another queue's memory. The reader says in its register when it has
  /// followed.
  DOORBELL_HD void move_to(const EventProducer& other) {
    place_ = other.place_;
    bytes_ = other.bytes_;
    at_ = kEventQueueHead;
    buffer_b_ = !buffer_b_;
  }
  /// Call when everything that the event announces is in place. False: the queue is full, and the event is
  /// lost.
  template <class Parts, class E>
  DOORBELL_HD bool write(Parts& parts, const E& event) {
    const auto encoded = encode_event(event);
    return write(parts, encoded.w, E::kWords);
  }
  /// Checks whether the reader has noticed lost events.
  template <class Parts>
  DOORBELL_HD void look(Parts& parts) {
    if (!unackd_dropped_) return;
    const u64 word = load64_acquire(csr_);
    if (unpack<EventQueueCsr>(&word).event_drop_seq_no != drop_seq_) return;
    unackd_dropped_ = false;
    publish_status(parts);
  }
  /// Events for which the queue had no room, including those for which the configuration left none.
  [[nodiscard]] DOORBELL_INLINE u64 dropped() const { return dropped_; }
  /// Events for which the configuration left no room.
  [[nodiscard]] DOORBELL_INLINE u64 refused() const { return refused_; }

 private:
  // Blocks of 64 bytes that stay free; the driver asks the hardware for the same number.
  static constexpr u32 kReserved = 2;

  template <class Parts>
  DOORBELL_GPU_NOINLINE bool write(Parts& parts, const u64* words, u32 count);
  template <class Parts>
  DOORBELL_HD bool drop(Parts& parts) {
    ++dropped_;
    if (!unackd_dropped_) {
      unackd_dropped_ = true;
      drop_seq_ = !drop_seq_;
    }
    publish_status(parts);
    return false;
  }
  [[nodiscard]] DOORBELL_HD bool room(u32 blocks) const { return blocks == 0 || free_blocks() >= blocks; }
  [[nodiscard]] DOORBELL_HD u32 free_blocks() const;
  template <class Parts>
  DOORBELL_HD void fill(Parts& parts, u32 count) {
    if (count == 2) store(parts, encode_event(NullEvent<2>{}).w, 2);
    else store(parts, encode_event(NullEvent<4>{}).w, 4);
  }
  template <class Parts>
  DOORBELL_GPU_NOINLINE void store(Parts& parts, const u64* words, u32 count);
  template <class Parts>
  DOORBELL_GPU_NOINLINE void publish_status(Parts& parts);

  QueuePlace place_;
  u64* csr_ = nullptr;
  u32 bytes_ = 0;
  u64 capacity_ = 0;  // events for which there is room; 0: no such limit
  u32 at_ = kEventQueueHead;
  u64 written_ = 0;
  u64 dropped_ = 0;
  u64 refused_ = 0;
  EventQueueRule rule_;
  bool unackd_dropped_ = false;
  bool drop_seq_ = false;
  bool buffer_b_ = false;  // which of two memories is written, as the reader's register names them
};

/// The number of blocks that may be begun. Blocks from the reader to the writer, both included, are in use.
DOORBELL_HD inline u32 EventProducer::free_blocks() const {
  // The acquire orders the reader's zeros before the stores that overwrite them.
  const u64 word = load64_acquire(csr_);
  const u32 total = bytes_ / kSlotBytes - 1;
  const auto csr = unpack<EventQueueCsr>(&word);
  // A reader that is still at the memory before this one has taken nothing here.
  const u32 read = csr.reading_buffer_b == buffer_b_ ? csr.rd_ptr : 0;
  const u32 reader = read < 1 || read > total ? 0 : read - 1;
  const u32 writer = at_ / kSlotBytes - 1;
  const u32 used = writer >= reader ? writer - reader : writer + total - reader;
  return total - used > kReserved ? total - used - kReserved : 0;
}

template <class Parts>
DOORBELL_GPU_NOINLINE bool EventProducer::write(Parts& parts, const u64* words, u32 count) {
  if (capacity_ != 0 && written_ >= capacity_) {
    ++refused_;
    return drop(parts);
  }
  const u32 size = count * 8;
  const u32 gap = (0u - at_) & (size - 1);
  // A new block is begun at a block's beginning, or if the rest of the block is too short.
  const bool begins = at_ % kSlotBytes == 0 || at_ % kSlotBytes + gap + size > kSlotBytes;
  if (begins && !room(at_ % kSlotBytes == 0 ? 1 : 2)) return drop(parts);
  // A gap would stop the reader, so NULL events fill it, each at its own alignment.
  while ((at_ & (size - 1)) != 0) fill(parts, (at_ & 16) != 0 ? 2 : 4);
  if (rule_.alone && size < kSlotBytes) [[unlikely]] {
    // The rest of the block first: a reader that sees the event may look at all of its 64 bytes.
    const u32 here = at_;
    at_ += size;
    while (at_ % kSlotBytes != 0) fill(parts, (at_ & 16) != 0 ? 2 : 4);
    const u32 behind = at_;
    at_ = here;
    store(parts, words, count);
    at_ = behind;
  } else {
    store(parts, words, count);
  }
  ++written_;
  if (rule_.on_event >= 0) [[unlikely]] {
    const u64 word = load64_acquire(csr_);
    if (!unpack<EventQueueCsr>(&word).event_int_disable) parts.signal(rule_.on_event);
  }
  return true;
}

/// Stores the word with size and type after the others, and the return code last.
template <class Parts>
DOORBELL_GPU_NOINLINE void EventProducer::store(Parts& parts, const u64* words, u32 count) {
  if (place_.host != nullptr) {
    auto* const to = reinterpret_cast<u64*>(place_.host + at_);
    for (u32 k = 0; k < count; ++k)
      if (k != 1 && k != count - 1) store64_relaxed(to + k, words[k]);
    if (count == 2) store64_relaxed(to, words[0]);
    else store64_release(to + 1, words[1]);
    // The release orders the rest of the event, and the data that it announces, before the return code.
    store64_release(to + count - 1, words[count - 1]);
  } else {
    (void)parts.dma.deliver(place_.iova + at_, words, (count - 1) * 8);
    (void)parts.dma.commit();
    (void)parts.dma.deliver(place_.iova + at_ + (count - 1) * 8, words + count - 1, 8);
    (void)parts.dma.commit();
  }
  at_ += count * 8;
  if (at_ >= bytes_) at_ = kEventQueueHead;
}

template <class Parts>
DOORBELL_GPU_NOINLINE void EventProducer::publish_status(Parts& parts) {
  constexpr u64 kSecond = 1'000'000'000;
  EventQueueStatus s;
  const u64 now = Parts::wall_ns();
  s.ns = s.ns_copy = static_cast<u32>(now % kSecond);
  s.sec = s.sec_copy = now / kSecond;
  s.unackd_dropped = unackd_dropped_;
  s.drop_seq = drop_seq_;
  s.slots_free = free_blocks();
  s.slots_reserved = kReserved;
  s.wr_ptr = at_ / kSlotBytes;
  s.buffer_b = buffer_b_;
  const auto words = pack(s);
  if (place_.host == nullptr) {
    (void)parts.dma.deliver(place_.iova, words.w, sizeof words.w);
    (void)parts.dma.commit();
    return;
  }
  // Each word behind the one before: a reader takes a status only if its two time stamps agree.
  auto* const to = reinterpret_cast<u64*>(place_.host);
  for (u32 k = 0; k < EventQueueStatus::kWords; ++k) store64_release(to + k, words.w[k]);
  if (rule_.on_status >= 0) {
    const u64 word = load64_acquire(csr_);
    if (!unpack<EventQueueCsr>(&word).eq_sts_int_disable) parts.signal(rule_.on_status);
  }
}

}  // namespace doorbell::cxi
