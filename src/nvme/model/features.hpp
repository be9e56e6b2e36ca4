// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The features of a model controller: values that a host sets and gets. A controller reset brings back their
// defaults. No feature is saved over a power cycle.
#pragma once

#include <doorbell/nvme/wire.hpp>

#include <array>
#include <map>
#include <span>

#include "nvme/model/admin_wire.hpp"

namespace doorbell::nvme {

/// The answer to an admin command. `data` has what goes to the host with it.
struct FeatureAnswer {
  u16 status = status::success;
  u32 dw0 = 0;
  std::span<const u8> data = {};
};

class Features {
 public:
  /// `cache`: there is a volatile write cache. `vectors`: interrupt vectors.
  Features(bool cache, u32 vectors) : cache_(cache), vectors_(vectors) { reset(); }

  void reset();
  /// `queues`: dword 0 of Number of Queues, which the admin queue keeps.
  [[nodiscard]] FeatureAnswer get(const Sqe& e, u32 queues);
  /// Bytes that Set Features takes from the host; 0: none, or the command is refused anyhow.
  [[nodiscard]] static u32 data_bytes(const Sqe& e);
  /// All but Number of Queues.
  [[nodiscard]] u16 set(const Sqe& e, std::span<const u8> data);
  /// The status of a Set Features of any kind, before its value is looked at.
  [[nodiscard]] u16 check_set(const Sqe& e) const;

  [[nodiscard]] bool supported(u8 id) const;
  /// Its entry in the log of feature identifiers and their effects; 0: it is not supported.
  [[nodiscard]] u32 effects(u8 id) const;

  /// Kelvin; an event is due above the one and below the other.
  [[nodiscard]] u16 over_temperature() const { return over_; }
  [[nodiscard]] u16 under_temperature() const { return under_; }
  /// The bits of SMART's critical warning for which the host wants events.
  [[nodiscard]] u8 wanted_warnings() const { return static_cast<u8>(values_[feature::events]); }
  [[nodiscard]] bool write_cache() const { return cache_ && values_[feature::write_cache] != 0; }

  static constexpr u16 kWarningTemperature = 343, kCriticalTemperature = 353;  ///< kelvin

 private:
  [[nodiscard]] FeatureAnswer current(const Sqe& e, u32 queues);
  [[nodiscard]] FeatureAnswer defaults(const Sqe& e, u32 queues);
  /// A copy that stays until the next answer.
  [[nodiscard]] std::span<const u8> with_data(const void* from, std::size_t n);
  [[nodiscard]] u16 set_temperature(u32 value);
  [[nodiscard]] u64 timestamp_now() const;

  bool cache_;
  u32 vectors_;
  std::array<u32, 256> values_{};
  u16 over_ = 0;
  u16 under_ = 0;
  std::map<u16, bool> coalescing_disabled_;
  std::array<u8, 512> host_behavior_{};
  std::array<u8, 16> host_id_{};
  std::array<u8, 512> answer_{};
  u64 timestamp_ms_ = 0;
  u64 timestamp_set_ns_ = 0;
  bool timestamp_by_host_ = false;
};

}  // namespace doorbell::nvme
