// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Transfers of a card with the interface that the loop of one-sided operations needs (rma/op_loop.hpp): a put
// moves bytes from host to card, a get from card to host. A request's `lkey` is the number of a buffer, its
// `local` an offset there, and its `remote` a card address.
//
// Thread rule: one CPU thread owns a TransferQueue and its SubmitQueue.
#pragma once

#include <doorbell/qdma/card.hpp>
#include <doorbell/rma/types.hpp>
#include <doorbell/warp.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <vector>

namespace doorbell::qdma {

/// The status of a transfer that failed is this number plus its errno: above the numbers of ibv_wc_status.
inline constexpr u32 kStatusOfErrno = 0x200;
[[nodiscard]] constexpr rma::Status status_of(int error) {
  return static_cast<rma::Status>(kStatusOfErrno + static_cast<u32>(error));
}

/// The buffers that requests name by their number; an empty place belongs to none.
using BufferTable = std::vector<std::unique_ptr<Buffer>>;

/// How long transfers took by the card's own clock, as far as it reports that: its time, not the host's. One
/// thread writes it.
struct alignas(64) CardTime {
  std::array<u64, 2> bytes{};  ///< host to card, card to host
  std::array<u64, 2> ns{};     ///< TransferResult::card_ns
  bool lacked_files = false;   ///< a transfer has failed for want of file descriptors: no error of the card

  void add(Direction direction, const TransferResult& result) {
    if (result.card_ns == 0 || result.error != 0) return;
    const u32 d = direction == Direction::host_to_card ? 0 : 1;
    bytes[d] += result.bytes;
    ns[d] += result.card_ns;
  }
};

/// The state of a TransferQueue: a descriptor, and the requests that are posted or in flight.
class SubmitQueue {
 public:
  static constexpr u32 kMost = TransferDescriptor::kMaxSubmitted;

  /// The arguments must outlive it. `alive` becomes 0 if the card has gone.
  SubmitQueue(TransferDescriptor& descriptor, const BufferTable& buffers, u32* alive, double deadline_s,
              CardTime* time)
      : descriptor_(descriptor), buffers_(buffers), alive_(alive), deadline_s_(deadline_s), time_(time) {
    // The engine made here has descriptors of its own, and threads with a file table of their own would lose
    // them.
    (void)descriptor_.submit_engine();
  }

  void put_aside(u32 serial, const rma::WorkRequest& request) {
    Entry& e = entry(serial);
    e = {.request = request};
  }

  /// Hands the request to the card.
  void submit(u32 serial) {
    Entry& e = entry(serial);
    const rma::WorkRequest& r = e.request;
    try {
      (void)descriptor_.submit(direction_of(r), *buffers_[r.lkey], r.local, r.remote, r.bytes, deadline_s_,
                               serial);
    } catch (const CardError& error) {
      end(e, error.number(), 0);
    }
  }

  /// Takes what has ended, without waiting. `first`: the oldest request in flight, of `open`. Returns how
  /// many completions belong to none of them.
  u32 take(u32 first, u32 open) {
    std::array<TransferCompletion, kTogether> ended;
    const u32 n = descriptor_.complete(ended, 0);
    u32 strays = 0;
    for (u32 i = 0; i < n; ++i) {
      const auto serial = static_cast<u32>(ended[i].user);
      if (serial - first >= open || entry(serial).done) {
        ++strays;
        continue;
      }
      time_->add(direction_of(entry(serial).request), ended[i].result);
      end(entry(serial), ended[i].result.error, ended[i].result.bytes);
    }
    return strays;
  }

  [[nodiscard]] bool done(u32 serial) const { return entries_[serial % kMost].done; }
  [[nodiscard]] int error(u32 serial) const { return entries_[serial % kMost].error; }

 private:
  static constexpr u32 kTogether = 16;

  struct Entry {
    rma::WorkRequest request;
    bool done = false;
    int error = 0;
  };
  [[nodiscard]] static Direction direction_of(const rma::WorkRequest& r) {
    return r.op == rma::Op::read ? Direction::card_to_host : Direction::host_to_card;
  }
  [[nodiscard]] Entry& entry(u32 serial) { return entries_[serial % kMost]; }

  void end(Entry& e, int error, u64 bytes) {
    // A request that a card has taken along does not end.
    if (error == ENODEV) {
      store_relaxed(alive_, 0);
      return;
    }
    e.done = true;
    if (error == EMFILE) time_->lacked_files = true;
    e.error = error == 0 && bytes != e.request.bytes ? ENODATA : error;  // less than asked for, and no reason
  }

  TransferDescriptor& descriptor_;
  const BufferTable& buffers_;
  u32* alive_;
  double deadline_s_;
  CardTime* time_;
  std::array<Entry, kMost> entries_{};
};

/// A TransferQueue's state between two phases.
struct TransferQueueState {
  SubmitQueue* queue = nullptr;
  u32 requests = 1;  ///< in flight at most, <= SubmitQueue::kMost
  u32 posted = 0;    ///< modulo 2^32
  u32 rung = 0;      ///< of these, handed to the card
  u32 completed = 0;
  u32 duplicated = 0;
};

/// Only for Op::write and Op::read. Transfers may end in any order; they are reported in theirs.
class TransferQueue {
 public:
  using State = TransferQueueState;
  struct Polled {
    u32 count = 0;
    rma::Completion mine;
    u32 serial = 0;  ///< requests finished up to and including this one, modulo 2^32
  };

  explicit TransferQueue(const TransferQueueState& s) : s_(s) {}
  [[nodiscard]] TransferQueueState state() const { return s_; }
  [[nodiscard]] u32 room() const { return s_.requests - (s_.posted - s_.completed); }
  [[nodiscard]] u32 completed() const { return s_.completed; }
  /// Completions of transfers that were not in flight.
  [[nodiscard]] u32 duplicated() const { return s_.duplicated; }
  [[nodiscard]] u32 skipped() const { return 0; }
  [[nodiscard]] u32 protocol() const { return 0; }

  template <class Build>
  void post(const OneLane&, u32 n, Build build) {
    for (u32 i = 0; i < n; ++i) s_.queue->put_aside(s_.posted++, build(i));
  }
  u32 ring(const OneLane&) {
    const u32 n = s_.posted - s_.rung;
    while (s_.rung != s_.posted) s_.queue->submit(s_.rung++);
    return n;
  }

  /// Takes transfers that have ended. Does not wait.
  [[nodiscard]] Polled poll(const OneLane&, u32 = 1) {
    if (s_.completed == s_.posted || !s_.queue->done(s_.completed))
      s_.duplicated += s_.queue->take(s_.completed, s_.posted - s_.completed);
    Polled p;
    while (s_.completed != s_.posted && s_.queue->done(s_.completed)) {
      const int error = s_.queue->error(s_.completed);
      if (error != 0 && p.count != 0) break;  // a completion of its own
      p.count = 1;
      p.serial = ++s_.completed;
      if (error == 0) continue;
      p.mine.status = status_of(error);
      break;
    }
    return p;
  }

 private:
  TransferQueueState s_;
};

}  // namespace doorbell::qdma
