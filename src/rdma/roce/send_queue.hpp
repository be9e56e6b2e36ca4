// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The send requests of a queue pair: any thread posts, whoever has the engine takes and gives back in order.
#pragma once

#include <atomic>
#include <mutex>
#include <span>
#include <vector>

#include "rdma/roce/nic.hpp"
#include "rdma/roce/pieces.hpp"

namespace doorbell::roce {

/// A request, and how far the requester is with it.
struct SendSlot {
  SendRequest request;
  u64 bytes = 0;
  u32 sges = 0;
  Status status = Status::success;  ///< another one: the request means nothing, and ends with it

  CompletionFault fault = CompletionFault::none;
  bool drawn = false;     ///< of the faults
  bool reported = false;  ///< its completion has been seen; the slot counts no longer
  bool started = false;
  bool counted = false;  ///< a READ or an atomic that is in flight
  u32 first_psn = 0;
  u32 packets = 0;  ///< 0: a request that nothing is sent for
  u32 part = 0;     ///< READ: packets that one request asks for
  PiecesCursor at;

  [[nodiscard]] u32 end_psn() const { return psn_after(first_psn, packets); }
  /// Answered by READ responses.
  [[nodiscard]] bool reads() const {
    return request.opcode == WrOpcode::read || request.opcode == WrOpcode::atomic_write;
  }
  [[nodiscard]] bool answered() const {
    return reads() || request.opcode == WrOpcode::compare_swap || request.opcode == WrOpcode::fetch_add;
  }
};

class SendQueue {
 public:
  /// `lends`: a request may be completed before it is carried out.
  SendQueue(u32 requests, u32 sges, u32 inline_bytes, bool lends = false);

  /// ENOMEM: full. EINVAL: more SGEs, or more inline bytes, than a request may have.
  Errno post(const SendRequest& request, std::span<const Sge> sges, Status status = Status::success);
  [[nodiscard]] u32 requests() const { return requests_; }
  [[nodiscard]] u32 room() const {
    // The tail first: it never passes a head that is read later.
    const u64 tail = tail_.load(std::memory_order_acquire);
    const u64 used = head_.load(std::memory_order_acquire) - tail, most = most_posted();
    return used < most ? static_cast<u32>(most - used) : 0;
  }

  // With the engine. Indices count up for ever.
  [[nodiscard]] u64 posted() const { return head_.load(std::memory_order_acquire); }
  [[nodiscard]] u64 oldest() const { return tail_.load(std::memory_order_relaxed); }
  [[nodiscard]] SendSlot& at(u64 index) { return slots_[index & mask_]; }
  [[nodiscard]] std::span<const Sge> sges(u64 index) {
    return {&sges_[(index & mask_) * most_sges_], slots_[index & mask_].sges};
  }
  [[nodiscard]] const u8* inline_data(u64 index) const { return &inline_[(index & mask_) * inline_bytes_]; }
  /// Gives the oldest one's slot back to those who post.
  void release() {
    lent_.store(0, std::memory_order_relaxed);
    tail_.store(oldest() + 1, std::memory_order_release);
  }
  /// Lets one more be posted: the oldest one, of which the NIC still needs the slot, is over for the program.
  void lend() { lent_.store(1, std::memory_order_release); }
  /// Forgets all requests; nobody can post meanwhile.
  void clear();

 private:
  [[nodiscard]] u64 most_posted() const { return u64{requests_} + lent_.load(std::memory_order_acquire); }

  const u32 requests_, most_sges_, inline_bytes_;
  std::vector<SendSlot> slots_;
  std::vector<Sge> sges_;
  std::vector<u8> inline_;
  const u64 mask_;
  std::mutex post_lock_;
  alignas(64) std::atomic<u64> head_{0};  ///< written by posters, with post_lock_
  alignas(64) std::atomic<u64> tail_{0};  ///< written by the engine
  std::atomic<u32> lent_{0};              ///< by the engine; 0 or 1
};

}  // namespace doorbell::roce
