// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/model/event_producer.hpp"

#include "system/clock.hpp"

namespace doorbell::cxi {

namespace {

constexpr u64 kSecond = 1'000'000'000;

}  // namespace

/// The number of blocks that may be begun. Blocks from the reader to the writer, both included, are in use.
u32 EventProducer::free_blocks() const {
  // The acquire orders the reader's zeros before the stores that overwrite them.
  const u64 word = load64_acquire(csr_);
  const u32 total = bytes_ / kSlotBytes - 1;
  const u32 read = unpack<EventQueueCsr>(&word).rd_ptr;
  const u32 reader = read < 1 || read > total ? 0 : read - 1;
  const u32 writer = at_ / kSlotBytes - 1;
  const u32 used = writer >= reader ? writer - reader : writer + total - reader;
  return total - used > kReserved ? total - used - kReserved : 0;
}

bool EventProducer::room(u32 blocks) const {
  return blocks == 0 || free_blocks() >= blocks;
}

bool EventProducer::drop(model::DmaEngine& dma) {
  if (!unackd_dropped_) {
    unackd_dropped_ = true;
    drop_seq_ = !drop_seq_;
  }
  publish_status(dma);
  return false;
}

bool EventProducer::write(model::DmaEngine& dma, const u64* words, u32 count) {
  if (capacity_ != 0 && written_ >= capacity_) {
    ++refused_;
    return drop(dma);
  }
  const u32 size = count * 8;
  const u32 gap = (0u - at_) & (size - 1);
  // A new block is begun at a block's beginning, or if the rest of the block is too short.
  const bool begins = at_ % kSlotBytes == 0 || at_ % kSlotBytes + gap + size > kSlotBytes;
  if (begins && !room(at_ % kSlotBytes == 0 ? 1 : 2)) {
    ++dropped_;
    return drop(dma);
  }
  // A gap would stop the reader, so NULL events fill it, each at its own alignment.
  while ((at_ & (size - 1)) != 0) fill(dma, (at_ & 16) != 0 ? 2 : 4);
  store(dma, words, count);
  ++written_;
  return true;
}

void EventProducer::fill(model::DmaEngine& dma, u32 count) {
  if (count == 2) store(dma, encode_event(NullEvent<2>{}).w, 2);
  else store(dma, encode_event(NullEvent<4>{}).w, 4);
}

/// Stores the word with size and type after the others, and the return code last.
void EventProducer::store(model::DmaEngine& dma, const u64* words, u32 count) {
  if (place_.host != nullptr) {
    auto* const to = reinterpret_cast<u64*>(place_.host + at_);
    for (u32 k = 0; k < count; ++k)
      if (k != 1 && k != count - 1) store64_relaxed(to + k, words[k]);
    if (count == 2) store64_relaxed(to, words[0]);
    else store64_release(to + 1, words[1]);
    // The release orders the rest of the event, and the data that it announces, before the return code.
    store64_release(to + count - 1, words[count - 1]);
  } else {
    (void)dma.deliver(place_.iova + at_, words, (count - 1) * 8);
    (void)dma.commit();
    (void)dma.deliver(place_.iova + at_ + (count - 1) * 8, words + count - 1, 8);
    (void)dma.commit();
  }
  at_ += count * 8;
  if (at_ >= bytes_) at_ = kEventQueueHead;
}

void EventProducer::publish_status(model::DmaEngine& dma) {
  EventQueueStatus s;
  const u64 now = wall_ns();
  s.ns = s.ns_copy = static_cast<u32>(now % kSecond);
  s.sec = s.sec_copy = now / kSecond;
  s.unackd_dropped = unackd_dropped_;
  s.drop_seq = drop_seq_;
  s.slots_free = free_blocks();
  s.slots_reserved = kReserved;
  s.wr_ptr = at_ / kSlotBytes;
  const auto words = pack(s);
  if (place_.host == nullptr) {
    (void)dma.deliver(place_.iova, words.w, sizeof words.w);
    (void)dma.commit();
    return;
  }
  auto* const to = reinterpret_cast<u64*>(place_.host);
  for (u32 k = 0; k < EventQueueStatus::kWords; ++k) store64_release(to + k, words.w[k]);
}

void EventProducer::look(model::DmaEngine& dma) {
  if (!unackd_dropped_) return;
  const u64 word = load64_acquire(csr_);
  if (unpack<EventQueueCsr>(&word).event_drop_seq_no != drop_seq_) return;
  unackd_dropped_ = false;
  publish_status(dma);
}

}  // namespace doorbell::cxi
