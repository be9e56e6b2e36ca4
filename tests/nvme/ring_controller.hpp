// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The other end of one queue pair, driven step by step by a test in its own thread. It believes only
// what the specification lets a controller believe: the doorbells and the bytes in the rings.
#pragma once

#include <doorbell/nvme/queue_pair.hpp>

#include <cstring>
#include <stdexcept>
#include <vector>

namespace doorbell::nvme {

class RingController {
 public:
  explicit RingController(u32 entries, u16 qid = 1)
      : entries_(entries), qid_(qid), sq_(entries * kSqeParts), cq_(entries) {}

  [[nodiscard]] QueuePairMemory memory() {
    QueuePairMemory m;
    m.sq = sq_.data();
    m.cq = cq_.data();
    m.sq_doorbell = &tail_;
    m.cq_doorbell = &head_;
    m.entries = entries_;
    m.qid = qid_;
    return m;
  }

  [[nodiscard]] u32 tail() const { return load_relaxed(&tail_); }
  [[nodiscard]] u32 cq_head() const { return load_relaxed(&head_); }
  /// Entries announced and not fetched. Throws when the doorbell holds what no driver may write.
  [[nodiscard]] u32 announced() const {
    const u32 tail = load_acquire(&tail_);
    if (tail >= entries_) throw std::runtime_error("SQ tail doorbell out of range");
    return (tail + entries_ - fetched_) % entries_;
  }
  /// The next announced entry.
  [[nodiscard]] Sqe fetch() {
    if (announced() == 0) throw std::runtime_error("nothing to fetch");
    Sqe e;
    std::memcpy(static_cast<void*>(&e), sq_.data() + std::size_t{fetched_} * kSqeParts, sizeof e);
    fetched_ = (fetched_ + 1) % entries_;
    return e;
  }
  [[nodiscard]] bool cq_full() const {
    const u32 head = load_acquire(&head_);
    if (head >= entries_) throw std::runtime_error("CQ head doorbell out of range");
    return (at_ + 1) % entries_ == head;
  }
  /// Writes a completion; the queue must not be full.
  void complete(u16 cid, u16 type_and_code = 0, u32 dw0 = 0) {
    complete_as(cid, type_and_code, dw0, qid_, fetched_);
  }
  void complete_as(u16 cid, u16 type_and_code, u32 dw0, u16 sq_id, u32 sq_head) {
    if (cq_full()) throw std::runtime_error("completion queue overrun");
    Cqe c;
    c.dw0 = dw0;
    c.sq_head = static_cast<u16>(sq_head);
    c.sq_id = sq_id;
    c.cid = cid;
    c.status = static_cast<u16>(type_and_code << 1 | phase_);
    store16_release(&cq_[at_], encode_cqe(c));
    if (++at_ == entries_) {
      at_ = 0;
      phase_ ^= 1;
    }
  }
  [[nodiscard]] u32 phase() const { return phase_; }
  [[nodiscard]] const std::vector<Word16>& sq_bytes() const { return sq_; }
  [[nodiscard]] u32 entries() const { return entries_; }

 private:
  u32 entries_;
  u16 qid_;
  std::vector<Word16> sq_;
  std::vector<Word16> cq_;
  u32 tail_ = 0;
  u32 head_ = 0;
  u32 fetched_ = 0;
  u32 at_ = 0;
  u32 phase_ = 1;
};

}  // namespace doorbell::nvme
