// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A QDMA card from a program's side: buffers, queue pairs, transfer descriptors. The same for every back end:
// the software card, a card server, the kernel's driver, the daemon.
//
// Errors of calls are the driver's error numbers (errno), in a CardError. Threads: objects of one card may be
// used by several threads; one object by one thread at a time, but TransferDescriptor, which any number of
// threads may use.
#pragma once

#include <doorbell/error.hpp>
#include <doorbell/qdma/abi.hpp>
#include <doorbell/qdma/policy.hpp>
#include <doorbell/region.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace doorbell::qdma {

/// A call that a card has refused: `number()` is the errno, as docs/qdma.md lists them. EINTR: the run was
/// stopped while it waited; the exit code is that of an interrupted run.
class CardError : public Error {
 public:
  /// `call` and `why` as in Error; `number` is a positive errno.
  CardError(std::string call, int number, const std::string& why, std::string hint = {});
  /// The errno.
  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  int number_;
};

/// @cond
struct CardState;  // the objects of one card share it; it is no user's
/// @endcond

/// How one sub-transfer ended.
struct SubResult {
  int error = 0;      ///< 0, or an errno: ETIMEDOUT, ECANCELED, ENXIO (drained by STOP), EIO, EFAULT, ...
  u64 bytes = 0;      ///< moved before it ended; with `known` false, 0
  u64 ns = 0;         ///< from its start on the card to its end; 0: not reported
  bool known = true;  ///< false: the driver gives one result for the whole call
};

/// Host memory that a card reads and writes; the driver owns it. It lives until this object, every mapping
/// and every transfer of it are gone: closing is the only clean-up.
class Buffer {
 public:
  /// An empty one, as after a move.
  Buffer() = default;
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  /// The mapping, page aligned, of all `bytes()`; it lives as long as this object.
  [[nodiscard]] u8* data() const { return data_; }
  /// Whole granules.
  [[nodiscard]] u64 bytes() const { return bytes_; }
  /// The driver's descriptor, as SubXfer::buf_fd takes it; it stays this object's.
  [[nodiscard]] int fd() const { return fd_; }
  /// Offsets of transfers in the buffer are multiples of it: kGranule.
  [[nodiscard]] u32 granule() const { return granule_; }
  /// The same memory as one that the GPU reaches as well: registered with it as long as the region lives,
  /// which this buffer must outlive. Throws Error if the GPU's driver refuses.
  [[nodiscard]] Region pinned_for(std::shared_ptr<gpu::Gpu> gpu) const;
  /// 1: one queue pair is enough, 2: split as for a V80.
  [[nodiscard]] u32 transfer_hint() const { return hint_; }

 private:
  friend class Card;
  friend class TransferDescriptor;
  /// Maps the descriptor, which it owns. Throws CardError.
  Buffer(int fd, u64 bytes, u32 granule, u32 hint);
  [[nodiscard]] static Buffer create(CardState& card, int fd, u64 bytes);
  void close() noexcept;
  int fd_ = -1;
  u8* data_ = nullptr;
  u64 bytes_ = 0;
  u32 granule_ = kGranule;
  u32 hint_ = 0;
};

/// The parameters with which a queue pair is created.
struct QueuePairOptions {
  u32 directions = kDirH2C | kDirC2H;  ///< kDirH2C, kDirC2H or both
  u32 channel = kChannelAuto;          ///< kChannelAuto, kChannel0 or kChannel1
  u32 ring_index = 0;                  ///< of both rings: kRingEntries has their lengths
  u32 aperture = 0;                    ///< 0, or a power of two in bytes, in which the card's addresses wrap
};

/// A queue pair; stopped and deleted with this object.
class QueuePair {
 public:
  ~QueuePair();
  QueuePair(QueuePair&&) noexcept;
  QueuePair& operator=(QueuePair&&) noexcept;

  /// The driver's id; on doorbell's own back ends the upper bits are a generation, so that an old id is
  /// ESTALE.
  [[nodiscard]] u32 id() const { return id_; }
  /// Lets it carry transfers. Throws CardError.
  void start();
  /// Transfers that are queued end with ENXIO.
  void stop();

 private:
  friend class Card;
  friend class TransferDescriptor;
  QueuePair(std::shared_ptr<CardState> card, u32 id, u32 channel);
  void operate(QueueOp op, const char* what);
  void del() noexcept;
  std::shared_ptr<CardState> card_;
  u32 id_ = 0;
  u32 channel_ = 0;
};

/// One sub-transfer of a batch.
struct SubTransfer {
  u32 queue_pair = 0;                             ///< index into the descriptor's queue pairs
  Direction direction = Direction::host_to_card;  ///< may differ within a batch
  const Buffer* buffer = nullptr;                 ///< outlives the call
  u64 buffer_offset = 0;                          ///< a multiple of the granule
  u64 address = 0;                                ///< on the card
  u64 bytes = 0;                                  ///< 1 to kMaxCallBytes
};

/// A transfer as a whole: what ended it, and how far it came.
struct TransferResult {
  int error = 0;  ///< the first sub-transfer's that failed
  u64 bytes = 0;  ///< moved by all sub-transfers
  /// Of every sub-transfer that was issued, in order. Nothing is issued after one that failed.
  std::vector<SubResult> parts;
  /// Its time on the card: of each call, which follows the one before, its longest part. 0: not reported.
  u64 card_ns = 0;
};

/// The id of a submitted transfer until its completion has been taken.
using TransferId = u64;

/// The end of a submitted transfer.
struct TransferCompletion {
  TransferId id = 0;      ///< as submit() returned it; free for another one from now on
  u64 user = 0;           ///< as submit() got it
  TransferResult result;  ///< as transfer() returns it
};

/// A transfer descriptor: one or two queue pairs, and the calls that move bytes through them.
class TransferDescriptor {
 public:
  /// Cancels what is in flight and waits until the card has ended it, at most until its deadline and a
  /// second.
  ~TransferDescriptor();
  TransferDescriptor(TransferDescriptor&&) noexcept;
  TransferDescriptor& operator=(TransferDescriptor&&) noexcept;

  /// The driver's descriptor, as the C interface takes it; it stays this object's.
  [[nodiscard]] int fd() const;
  /// 1 or 2.
  [[nodiscard]] u32 queue_pairs() const;
  /// Card::create_buffer() for these queue pairs' card.
  [[nodiscard]] Buffer create_buffer(u64 bytes);

  /// The policy that transfer() and submit() cut with. Not during a transfer.
  void set_policy(PolicyKind kind, const BalancedPolicy& balanced = {});

  /// One plain call: cuts by the policy and moves `bytes` between the buffer and the card, through both
  /// channels where that pays; any length. Blocks until all of it has ended or `deadline_s` has passed (0:
  /// the driver's own limit, for each call that it takes). Never throws for a failed transfer: EINVAL for no
  /// bytes, an unaligned offset or a range outside the buffer, EBADF for an empty buffer, EFAULT for
  /// addresses that the policy knows no way to, else what the driver says.
  [[nodiscard]] TransferResult transfer(Direction direction, const Buffer& buffer, u64 buffer_offset,
                                        u64 address, u64 bytes, double deadline_s = 0);
  /// Exactly these sub-transfers, concurrently, in one call: 1..kMaxSubTransfers, kMaxCallBytes together.
  [[nodiscard]] TransferResult transfer_batch(std::span<const SubTransfer> parts, double deadline_s = 0);

  /// Begins a transfer as transfer() does and returns at once. The buffer must outlive its completion. `user`
  /// comes back with the completion. Fails (CardError EAGAIN) if kMaxSubmitted are in flight.
  [[nodiscard]] TransferId submit(Direction direction, const Buffer& buffer, u64 buffer_offset, u64 address,
                                  u64 bytes, double deadline_s = 0, u64 user = 0);
  /// Takes up to out.size() completions, waiting up to `wait_s` for the first. Returns how many.
  [[nodiscard]] u32 complete(std::span<TransferCompletion> out, double wait_s);
  /// Asks the card to give up a submitted transfer: its completion then says ECANCELED, or how it had ended
  /// before.
  void cancel(TransferId id);
  /// Transfers in flight on one descriptor, until complete() has taken them.
  static constexpr u32 kMaxSubmitted = 256;
  /// The engine that submit() uses here: "io_uring" or "threads".
  [[nodiscard]] std::string submit_engine() const;

 private:
  friend class Card;
  struct State;
  explicit TransferDescriptor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// An open card. The objects made of it stay usable when it is gone.
class Card {
 public:
  /// Opens a card by its name: "model[:KEY=VALUE,...]", "server:PATH", "kernel:/dev/slash_qdma_ctlN",
  /// "daemon[:PATH]". Throws Error; a back end is never replaced by another.
  [[nodiscard]] static Card open(const std::string& name);

  /// As open() got it.
  [[nodiscard]] const std::string& name() const;
  /// "model" or "hardware".
  [[nodiscard]] std::string kind() const;
  /// Asks the driver. Throws CardError.
  [[nodiscard]] Info info() const;
  /// A new queue pair, stopped. Throws CardError, also where all kMaxQueuePairs are in use.
  [[nodiscard]] QueuePair add_queue_pair(const QueuePairOptions& options = {});
  /// A descriptor for one or two queue pairs, which need not be started.
  [[nodiscard]] TransferDescriptor descriptor(std::span<const QueuePair* const> queue_pairs);
  /// Host memory that this card reaches; `bytes` is a multiple of kGranule. Throws CardError.
  [[nodiscard]] Buffer create_buffer(u64 bytes);
  /// Both channels: two started queue pairs in one descriptor that owns them.
  [[nodiscard]] TransferDescriptor both_channels(u32 ring_index = 0);

 private:
  friend Card card_with(std::shared_ptr<CardState> state);
  friend const std::shared_ptr<CardState>& state_of(const Card& card);
  explicit Card(std::shared_ptr<CardState> state);
  std::shared_ptr<CardState> state_;
};

}  // namespace doorbell::qdma
