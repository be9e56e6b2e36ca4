// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A device of this process: its NIC, the carrier below it and the thread that serves it. All contexts that a
// program opens of one device share one adapter.
#pragma once

#include <doorbell/config.hpp>

#include <atomic>
#include <memory>
#include <string>

#include "rdma/dropin/ring_service.hpp"
#include "rdma/dropin/settings.hpp"
#include "rdma/roce/attendant.hpp"
#include "rdma/roce/carrier.hpp"
#include "rdma/roce/nic.hpp"

namespace doorbell::dropin {

class Adapter {
 public:
  /// nullptr with a sentence in `why` where the network refuses.
  static std::shared_ptr<Adapter> make(const Settings& settings, u32 device, roce::Listener listener,
                                       std::string& why);
  Adapter(std::unique_ptr<roce::Carrier> carrier, u32 device, u32 mtu, roce::Listener listener,
          const roce::CompletionFaults& faults, const std::string& fault_log);
  ~Adapter() = default;
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  [[nodiscard]] roce::Nic& nic() const { return *nic_; }
  [[nodiscard]] roce::Attendant& attendant() const { return *attendant_; }
  /// Serves rings that programs write themselves.
  [[nodiscard]] RingService& rings() { return rings_; }
  /// The trace is complete, and nothing is written to it any more.
  void finish_trace() {
    nic_->between_rounds([this] { carrier_->finish_trace(); });
  }
  [[nodiscard]] roce::CarrierCounters carrier_counters() const { return carrier_->counters(); }
  [[nodiscard]] roce::Endpoint self() const { return self_; }
  [[nodiscard]] u32 device() const { return device_; }
  /// Bytes.
  [[nodiscard]] u32 mtu() const { return mtu_; }
  /// Of this device's objects, in all its contexts.
  [[nodiscard]] u32 next_handle() { return handles_.fetch_add(1, std::memory_order_relaxed); }
  /// In a child of fork(), which has neither the thread nor the right to the parent's packets: closes the
  /// files that the child got. The adapter is never destroyed there.
  void leave_to_parent();

 private:
  u32 device_, mtu_;
  roce::Endpoint self_;
  std::atomic<u32> handles_{1};
  // In this order: the threads end first.
  std::unique_ptr<roce::Carrier> carrier_;
  std::unique_ptr<roce::Nic> nic_;
  std::unique_ptr<roce::Attendant> attendant_;
  RingService rings_;
};

}  // namespace doorbell::dropin
