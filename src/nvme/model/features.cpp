// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/model/features.hpp"

#include <algorithm>

#include "system/clock.hpp"

namespace doorbell::nvme {

namespace {

struct Feature {
  u8 id;
  u32 standard;  // the value after a reset
  u32 mask;      // the bits of cdw11 that are kept
  bool changeable = true;
  bool of_namespace = false;
};

constexpr Feature kFeatures[] = {
    {feature::arbitration, 0x07, 0xffffff07},  // round robin without a limit
    {feature::power, 0, 0xff},
    {feature::temperature, 0, 0},
    {feature::error_recovery, 0, 0xffff, true, true},
    {feature::write_cache, 1, 1},
    {feature::queues, 0, 0},
    {feature::coalescing, 0, 0xffff},
    {feature::vector, 0, 0},
    {feature::write_atomicity, 0, 1},
    {feature::events, 0, 0xff},
    {feature::timestamp, 0, 0},
    {feature::keep_alive, 0, 0, false},
    {feature::host_behavior, 0, 0},
    {feature::host_id, 0, 0},
};

const Feature* find(u8 id) {
  const auto* const it = std::ranges::find(kFeatures, id, &Feature::id);
  return it == std::end(kFeatures) ? nullptr : it;
}

constexpr u32 kTimestampBytes = 8, kHostBehaviorBytes = 512;
constexpr u32 kCompositeSensor = 0, kAllSensors = 0xf;
constexpr u64 kTimestampMask = (u64{1} << 48) - 1;

u32 host_id_bytes(const Sqe& e) {
  return (e.cdw11 & 1) != 0 ? 16 : 8;  // EXHID
}

}  // namespace

void Features::reset() {
  for (const Feature& f : kFeatures) values_[f.id] = f.standard;
  over_ = kWarningTemperature;
  under_ = 0;
  coalescing_disabled_.clear();
  host_behavior_.fill(0);
  host_id_.fill(0);
  timestamp_ms_ = 0;
  timestamp_set_ns_ = wall_ns();
  timestamp_by_host_ = false;
}

bool Features::supported(u8 id) const {
  return find(id) != nullptr && (id != feature::write_cache || cache_);
}

u32 Features::effects(u8 id) const {
  constexpr u32 kSupported = 1, kNamespaceScope = 1u << 20, kControllerScope = 1u << 21;
  if (!supported(id)) return 0;
  return kSupported | (find(id)->of_namespace ? kNamespaceScope : kControllerScope);
}

u64 Features::timestamp_now() const {
  return (timestamp_ms_ + (wall_ns() - timestamp_set_ns_) / 1'000'000) & kTimestampMask;
}

FeatureAnswer Features::get(const Sqe& e, u32 queues) {
  const u8 id = static_cast<u8>(e.cdw10);
  const u32 select = e.cdw10 >> 8 & 7;
  if (!supported(id) || select > 3) return {status::invalid_field};
  const Feature& f = *find(id);
  if (f.of_namespace && e.nsid > 1 && e.nsid != kAllNamespaces) return {status::invalid_namespace};
  if (select == 3)  // what can be done with it: not saveable
    return {status::success, (f.changeable ? 1u << 2 : 0u) | (f.of_namespace ? 1u << 1 : 0u), {}};
  // A feature that is not saved has its default as the saved value.
  return select == 0 ? current(e, queues) : defaults(e, queues);
}

FeatureAnswer Features::defaults(const Sqe& e, u32 queues) {
  // Those of a controller that was just reset.
  Features fresh(cache_, vectors_);
  const FeatureAnswer a = fresh.current(e, queues);
  return {a.status, a.dw0, with_data(a.data.data(), a.data.size())};
}

std::span<const u8> Features::with_data(const void* from, std::size_t n) {
  if (n != 0) std::memcpy(answer_.data(), from, n);
  return std::span(answer_).first(n);
}

FeatureAnswer Features::current(const Sqe& e, u32 queues) {
  const u8 id = static_cast<u8>(e.cdw10);
  switch (id) {
    case feature::temperature: {
      if ((e.cdw11 >> 16 & 0xf) != kCompositeSensor) return {status::invalid_field};
      const u32 which = e.cdw11 >> 20 & 3;
      if (which > 1) return {status::invalid_field};
      return {status::success, which == 0 ? over_ : under_, {}};
    }
    case feature::queues:
      return {status::success, queues, {}};
    case feature::vector: {
      const auto v = static_cast<u16>(e.cdw11);
      if (v >= std::max(vectors_, 1u)) return {status::invalid_field};
      const auto it = coalescing_disabled_.find(v);
      const bool disabled = it != coalescing_disabled_.end() && it->second;
      return {status::success, (disabled ? 1u << 16 : 0u) | v, {}};
    }
    case feature::timestamp: {
      const u64 now = timestamp_now() | u64{timestamp_by_host_ ? 2u : 0u} << 48;
      return {status::success, 0, with_data(&now, sizeof now)};
    }
    case feature::host_behavior:
      return {status::success, 0, with_data(host_behavior_.data(), host_behavior_.size())};
    case feature::host_id:
      return {status::success, e.cdw11 & 1, with_data(host_id_.data(), host_id_bytes(e))};
    default:
      return {status::success, values_[id], {}};
  }
}

u32 Features::data_bytes(const Sqe& e) {
  switch (static_cast<u8>(e.cdw10)) {
    case feature::timestamp:
      return kTimestampBytes;
    case feature::host_behavior:
      return kHostBehaviorBytes;
    case feature::host_id:
      return host_id_bytes(e);
    default:
      return 0;
  }
}

u16 Features::check_set(const Sqe& e) const {
  const u8 id = static_cast<u8>(e.cdw10);
  if (!supported(id)) return status::invalid_field;
  if ((e.cdw10 >> 31) != 0) return status::feature_not_saveable;
  const Feature& f = *find(id);
  if (f.of_namespace && e.nsid > 1 && e.nsid != kAllNamespaces) return status::invalid_namespace;
  if (!f.of_namespace && e.nsid != 0 && e.nsid != kAllNamespaces) return status::feature_not_per_namespace;
  if (!f.changeable && e.cdw11 != 0) return status::feature_not_changeable;
  return status::success;
}

u16 Features::set_temperature(u32 value) {
  const u32 sensor = value >> 16 & 0xf, which = value >> 20 & 3;
  if ((sensor != kCompositeSensor && sensor != kAllSensors) || which > 1) return status::invalid_field;
  (which == 0 ? over_ : under_) = static_cast<u16>(value);
  return status::success;
}

u16 Features::set(const Sqe& e, std::span<const u8> data) {
  const u8 id = static_cast<u8>(e.cdw10);
  switch (id) {
    case feature::power:
      if ((e.cdw11 & 0x1f) != 0) return status::invalid_field;  // there is power state 0 alone
      break;
    case feature::temperature:
      return set_temperature(e.cdw11);
    case feature::error_recovery:
      if ((e.cdw11 >> 16 & 1) != 0) return status::invalid_field;  // DULBE needs NSFEAT bit 2
      break;
    case feature::vector: {
      const auto v = static_cast<u16>(e.cdw11);
      if (v >= std::max(vectors_, 1u)) return status::invalid_field;
      coalescing_disabled_[v] = (e.cdw11 >> 16 & 1) != 0;
      return status::success;
    }
    case feature::timestamp:
      std::memcpy(&timestamp_ms_, data.data(), kTimestampBytes);
      timestamp_ms_ &= kTimestampMask;
      timestamp_set_ns_ = wall_ns();
      timestamp_by_host_ = true;
      return status::success;
    case feature::host_behavior:
      std::ranges::copy(data, host_behavior_.begin());
      return status::success;
    case feature::host_id:
      host_id_.fill(0);
      std::ranges::copy(data, host_id_.begin());
      return status::success;
    default:
      break;
  }
  values_[id] = e.cdw11 & find(id)->mask;
  return status::success;
}

}  // namespace doorbell::nvme
