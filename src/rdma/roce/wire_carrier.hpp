// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A NIC's ways to others: a UDP socket, and a ring to each NIC of the same host and user.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "rdma/roce/carriers.hpp"
#include "rdma/roce/ring_links.hpp"
#include "rdma/roce/trace.hpp"
#include "rdma/roce/udp_socket.hpp"
#include "system/clock.hpp"

namespace doorbell::roce {

class WireCarrier;

class WirePath final : public Path {
 public:
  WirePath(Endpoint peer, WireCarrier& carrier) : Path(peer), carrier_(carrier) {}
  void flush() override;
  [[nodiscard]] bool lossless() const override { return way_ == Way::ring; }

 protected:
  bool refill(std::size_t bytes) override;

 private:
  enum class Way : u8 { none, ring, udp, nowhere };
  static constexpr std::size_t kStaged = 256 << 10;
  static constexpr u64 kRetryNs = 10'000'000, kLongestRetryNs = 1'000'000'000;

  friend class WireCarrier;
  void choose();
  bool connect(u64 now_ns);
  void leave_ring();
  void stage();
  bool refill_ring(std::size_t bytes);
  void flush_ring();
  void flush_staged();

  WireCarrier& carrier_;
  Way way_ = Way::none;
  bool listed_ = false;  ///< in WireCarrier::unflushed_
  RingLinks::Outgoing* ring_ = nullptr;
  u8* begin_ = nullptr;  ///< ring: what the writer does not know of begins; else: what has not been sent
  std::unique_ptr<u8[]> staged_;
  u64 retry_at_ns_ = 0, retry_ns_ = kRetryNs;
};

class WireCarrier final : public Carrier {
 public:
  struct Options : CarrierOptions {
    bool damage = false;  ///< records may ask for it (damage.hpp)
  };
  explicit WireCarrier(const Options& options);
  ~WireCarrier() override;

  [[nodiscard]] Endpoint self() const override { return self_; }
  [[nodiscard]] Path& path(Endpoint peer) override;
  [[nodiscard]] std::span<const Arrival> receive() override;
  void flush() override;
  [[nodiscard]] u64 next_due_ns() const override { return kNever; }
  [[nodiscard]] u32 largest_mtu() const override { return largest_mtu_; }
  [[nodiscard]] int descriptor() const override { return links_->descriptor(); }
  void add_to_descriptor(int fd) override { links_->watch_also(fd); }
  void arm() override;
  void woken() override;
  [[nodiscard]] CarrierCounters counters() const override;
  void finish_trace() override {
    if (trace_) trace_->finish();
  }
  void leave_to_parent() override { descriptors_.close_all(); }

 private:
  friend class WirePath;
  static constexpr std::size_t kBurst = 64, kBurstOfRing = 32;
  void read_rings();
  void take(const RingLinks::Incoming& ring, std::span<const u8> packet);

  Options options_;
  Endpoint self_;
  u32 largest_mtu_ = 4096;
  OpenDescriptors descriptors_;
  WireCounts counts_;
  std::unique_ptr<Trace> trace_;
  std::optional<UdpSocket> udp_;
  std::optional<RingLinks> links_;
  std::unordered_map<u64, std::unique_ptr<WirePath>> paths_;
  std::vector<WirePath*> unflushed_;
  std::vector<Arrival> arrivals_;
  u32 armed_ = 0;  ///< the value of arm_requests_ that has been obeyed
  u32 since_look_ = 0, udp_soon_ = 0;
  std::size_t first_ring_ = 0;
  bool watching_writable_ = false;
  std::atomic<u32> arm_requests_ = 0;
  std::atomic<bool> asleep_ = false, look_now_ = true;
};

}  // namespace doorbell::roce
