// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Transfers of any length on one transfer descriptor: cut by a policy, issued call after call, blocking or
// submitted. Below TransferDescriptor and the C interface; knows buffers by their descriptors.
#pragma once

#include <doorbell/qdma/card.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace doorbell::qdma {

class Submitter;
struct Work;

/// A transfer that is to be cut.
struct WholeTransfer {
  Direction direction = Direction::host_to_card;
  int buffer = -1;
  u64 buffer_bytes = 0;
  u64 buffer_offset = 0;
  u64 address = 0;
  u64 bytes = 0;
};

/// Puts segments into calls: each has at most one sub-transfer a queue pair, so that both queue pairs work,
/// and at most kMaxCallBytes. Segments of one queue pair keep their order.
[[nodiscard]] std::vector<Transfer> calls_of(const WholeTransfer& t, std::span<const Segment> segments);

/// Any thread may call any function but set_policy().
class Transfers {
 public:
  /// `channels`: of the descriptor's queue pairs. Closes `fd` at the end if it owns it.
  Transfers(std::shared_ptr<CardState> card, int fd, std::vector<u32> channels, bool owns_fd = true);
  ~Transfers();
  Transfers(Transfers&&) noexcept;
  Transfers& operator=(Transfers&&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] u32 queue_pairs() const { return static_cast<u32>(channels_.size()); }
  [[nodiscard]] CardState& card() const { return *card_; }
  void set_policy(PolicyKind kind, const BalancedPolicy& balanced);

  [[nodiscard]] TransferResult transfer(const WholeTransfer& t, double deadline_s);
  [[nodiscard]] TransferResult batch(std::span<const SubXfer> parts, double deadline_s);
  [[nodiscard]] TransferId submit(const WholeTransfer& t, double deadline_s, u64 user);
  [[nodiscard]] u32 complete(std::span<TransferCompletion> out, double wait_s);
  void cancel(TransferId id);
  [[nodiscard]] std::string submit_engine();

 private:
  struct Lazy;
  /// 0, or why it cannot be cut.
  [[nodiscard]] int plan(const WholeTransfer& t, Work& work) const;
  [[nodiscard]] TransferResult run(Work work);
  [[nodiscard]] Submitter& submitter();

  std::shared_ptr<CardState> card_;
  int fd_ = -1;
  bool owns_fd_ = true;
  std::vector<u32> channels_;
  PolicyKind policy_ = PolicyKind::balanced;
  BalancedPolicy balanced_;
  std::unique_ptr<Lazy> lazy_;
};

}  // namespace doorbell::qdma
