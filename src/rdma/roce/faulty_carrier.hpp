// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A carrier that injects faults of the wire into what another one sends. The engine writes into memory of
// this one, and packets that nothing happens to are copied on: who injects faults does not measure rates.
#pragma once

#include <doorbell/config.hpp>

#include <memory>
#include <unordered_map>
#include <vector>

#include "rdma/roce/carriers.hpp"
#include "rdma/roce/counted.hpp"
#include "rdma/roce/fault_log.hpp"
#include "rdma/roce/wire_faults.hpp"
#include "system/clock.hpp"

namespace doorbell::roce {

class FaultyCarrier;

class FaultyPath final : public Path {
 public:
  FaultyPath(Endpoint peer, FaultyCarrier& carrier, Path& below);
  void flush() override;
  [[nodiscard]] bool lossless() const override { return false; }

  /// Sends what was held back and is due. Returns when the next one is; ~0: nothing is held back.
  u64 release(u64 now_ns);

 protected:
  bool refill(std::size_t bytes) override;

 private:
  /// As long as a packet that is to be overtaken waits for others to overtake it.
  static constexpr u64 kReorderNs = 2'000'000;
  static constexpr std::size_t kStaged = 256 << 10;

  struct Held {
    u64 due_ns;
    u64 after;  ///< it leaves when so many packets have gone
    std::vector<u8> packet;
  };
  bool forward(const u8* packet, std::size_t bytes);
  bool pass_on(const u8* packet, std::size_t bytes, u32 damaged_bit_plus_one = 0);

  FaultyCarrier& carrier_;
  Path& below_;
  std::unique_ptr<u8[]> staged_;
  u8* begin_;      ///< what has not been looked at yet
  u64 place_ = 0;  ///< of the packet at begin_
  std::vector<Held> held_;
};

class FaultyCarrier final : public Carrier {
 public:
  /// `below` obeys damage.hpp. Throws Error where the log cannot be written.
  FaultyCarrier(std::unique_ptr<Carrier> below, const WireFaults& faults, u64 seed, const std::string& log);

  [[nodiscard]] Endpoint self() const override { return below_->self(); }
  [[nodiscard]] Path& path(Endpoint peer) override;
  [[nodiscard]] std::span<const Arrival> receive() override { return below_->receive(); }
  void flush() override;
  [[nodiscard]] u64 next_due_ns() const override { return next_due_ns_; }
  [[nodiscard]] u32 largest_mtu() const override { return below_->largest_mtu(); }
  [[nodiscard]] int descriptor() const override { return below_->descriptor(); }
  void add_to_descriptor(int fd) override { below_->add_to_descriptor(fd); }
  void arm() override { below_->arm(); }
  void woken() override { below_->woken(); }
  [[nodiscard]] CarrierCounters counters() const override;
  void finish_trace() override { below_->finish_trace(); }
  void leave_to_parent() override {
    below_->leave_to_parent();
    log_.close();
  }

 private:
  friend class FaultyPath;
  void count(WireFault kind, Endpoint to, u64 place, const u8* packet, const std::string& detail);

  std::unique_ptr<Carrier> below_;
  const WireFaults faults_;
  const u64 seed_;
  FaultLog log_;
  std::array<Counted, kWireFaults> counts_;
  std::unordered_map<u64, std::unique_ptr<FaultyPath>> paths_;
  u64 next_due_ns_ = kNever;
};

}  // namespace doorbell::roce
