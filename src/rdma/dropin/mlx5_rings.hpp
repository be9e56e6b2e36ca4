// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Rings in ConnectX's format in front of queues of the RoCE NIC, for programs that write WQEs and ring
// doorbells themselves, kernels of GPUs among them. What mlx5dv_init_obj hands out.
//
// One thread serves them (the attendant's); the program owns what the layout shows.
#pragma once

#include <doorbell/rdma/mlx5.hpp>

#include <memory>
#include <mutex>

#include "rdma/model/rings.hpp"
#include "rdma/roce/nic.hpp"

namespace doorbell::dropin {

/// Zeroed pages that a GPU can be given: whole pages of their own. Throws std::bad_alloc.
class RingPages {
 public:
  explicit RingPages(std::size_t bytes);
  ~RingPages();
  RingPages(const RingPages&) = delete;
  RingPages& operator=(const RingPages&) = delete;
  [[nodiscard]] u8* data() const { return data_; }

 private:
  u8* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The send and the receive ring of one queue pair.
class Mlx5QueueRings {
 public:
  /// Where a program finds them. `record`: two big-endian counters, receives first. `doorbell`: 8 bytes, the
  /// only ones of their register page that mean anything (no WQEs are copied into it).
  struct Layout {
    Word16* send = nullptr;
    u32 send_blocks = 0;  ///< of 64 bytes
    Word16* receive = nullptr;
    u32 receive_entries = 0;  ///< of 16 bytes
    u32* record = nullptr;
    u64* doorbell = nullptr;
  };
  /// `queue` outlives the rings, and gets its requests from them alone from now on.
  Mlx5QueueRings(roce::QueuePair& queue, u32 send_requests, u32 receive_requests, u32 inline_bytes);

  [[nodiscard]] const Layout& layout() const { return layout_; }
  /// Takes what the program has announced; true if that was anything. A WQE that means nothing ends the queue
  /// pair, as a ConnectX does: local_operation, and the error state.
  bool serve();
  /// As the queue pair goes to RESET: all counters start again.
  void reset();

 private:
  bool serve_sends();
  bool serve_receives();
  bool post(const rdma::DecodedWqe& wqe, u32 first_part);

  roce::QueuePair& queue_;
  RingPages pages_;
  Layout layout_;
  rdma::WorkRing sends_, receives_;
};

/// A completion ring. The program tells by its record how far it has read.
class Mlx5CompletionRing {
 public:
  struct Layout {
    Word16* entries = nullptr;
    u32 count = 0;          ///< of 64 bytes
    u32* record = nullptr;  ///< the consumer's big-endian counter, and one for arming
  };
  /// `queue` outlives it; nobody else polls it from now on.
  explicit Mlx5CompletionRing(roce::CompletionQueue& queue);

  [[nodiscard]] const Layout& layout() const { return layout_; }
  /// Moves completions into the ring, while it has room; true if there was any. Any thread.
  bool serve();

 private:
  roce::CompletionQueue& queue_;
  RingPages pages_;
  Layout layout_;
  std::mutex mutex_;  ///< from a completion's end in the queue to its entry in the ring
  rdma::RingPosition at_;
  rdma::RingPosition consumed_;
};

}  // namespace doorbell::dropin
