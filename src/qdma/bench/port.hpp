// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A QDMA card as one-sided operations see it: puts and gets through transfer descriptors. The other end of
// each connection is the card's own memory.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "qdma/bench/run_memory.hpp"
#include "qdma/bench/transfer_queue.hpp"
#include "qdma/driver.hpp"
#include "rma/bench.hpp"

namespace doorbell::qdma {

/// The queue pairs of each transfer descriptor.
enum class Channels : u32 {
  both,
  only0,
  only1,
};
/// "both", "0", "1", in the order of Channels.
[[nodiscard]] const std::vector<std::string>& channel_names();

/// A transfer's deadline as a part of the limit of an operation: only the card knows which one hangs.
inline constexpr double kDeadlineShare = 0.8;

/// How a run uses a card.
struct CardUse {
  MemoryPart memory = card_memories().front();
  u64 starting_offset = 0;  ///< into the memory, where that is not given; a multiple of the granule
  MemoryAccess access = {};
  Channels channels = Channels::both;
  PolicyKind policy = PolicyKind::balanced;
  BalancedPolicy balanced = {};
  u32 ring_index = 0;
  Direction measured = Direction::host_to_card;  ///< whose time by the card's clock is reported
  double deadline_s = 0;                         ///< of each transfer; 0: the driver's own limit
  bool deadline_grows = false;                   ///< by what large transfers of a model may take
  Patience patience = {};
};

/// A descriptor and the queue pairs behind it.
class ChannelDescriptor {
 public:
  ChannelDescriptor(Card& card, const CardUse& use);
  [[nodiscard]] TransferDescriptor& transfers() { return descriptor_; }

 private:
  std::vector<QueuePair> queue_pairs_;
  TransferDescriptor descriptor_;
};

class QdmaPort final : public rma::Port {
 public:
  QdmaPort(const rma::PortRequest& request, const CardUse& use);
  ~QdmaPort() override;

  [[nodiscard]] std::string kind() const override { return driver_->kind(); }
  [[nodiscard]] std::string name() const override { return driver_->name(); }
  [[nodiscard]] rma::Limits limits() const override;
  [[nodiscard]] Region allocate(Place place, u64 bytes) override;
  [[nodiscard]] std::unique_ptr<rma::RegisteredMemory> register_memory(const Region& region,
                                                                       rma::Reach reach) override;
  [[nodiscard]] std::unique_ptr<rma::QueueSet> create_queues(u32 count, rma::Ends ends,
                                                             const rma::QueueShape& shape) override;
  [[nodiscard]] u64 device_memory(u32 number, u64 bytes) override;
  [[nodiscard]] bool read_device(u64 address, std::span<u8> to) override;
  [[nodiscard]] u64 queue_bytes(rma::Ends ends, const rma::QueueShape& shape) const override;
  [[nodiscard]] u64 queue_files(const rma::QueueShape& shape) const override;
  [[nodiscard]] measure::StatusName status_names() const override;
  [[nodiscard]] const u32* alive(Initiator) override { return &alive_; }
  [[nodiscard]] nlohmann::ordered_json described() const override;
  [[nodiscard]] nlohmann::ordered_json counters() override;
  [[nodiscard]] rma::DeviceTime device_time() override;

 private:
  CardUse use_;
  std::shared_ptr<Driver> driver_;
  RunMemory memory_;
  Card card_;
  BufferTable buffers_;
  std::deque<CardTime> times_;  ///< of every queue there has been
  bool one_at_a_time_ = false;  ///< transfers, of all queues
  u32 alive_ = 1;
  bool of_this_process_;  ///< the software card
};

/// The defaults for a bench of transfers, on the first model.
[[nodiscard]] rma::BenchOptions bench_of_transfers(const CardUse& use = {});

}  // namespace doorbell::qdma
