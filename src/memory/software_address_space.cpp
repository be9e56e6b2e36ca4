// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "memory/software_address_space.hpp"

#include <doorbell/error.hpp>

#include <algorithm>

namespace doorbell {

namespace {
constexpr u64 kGap = u64{1} << 21;  // also the alignment of each range
}

Iova SoftwareAddressSpace::map(const Region& region, Access access) {
  if (region.bytes() == 0) throw Error("mapping a region", "it is empty");
  const std::scoped_lock lock(mutex_);
  Range r;
  r.begin = next_;
  r.end = next_ + region.bytes();
  r.gpu = region.place() == Place::gpu;
  r.base = r.gpu ? region.device() : region.host();
  r.device = region.device();
  r.access = access;
  next_ = (r.end + kGap + kGap - 1) / kGap * kGap;
  auto next = std::make_unique<Table>(*table_.load(std::memory_order_relaxed));
  next->push_back(r);  // IOVAs only grow, so the table stays sorted
  publish(std::move(next));
  return r.begin;
}

void SoftwareAddressSpace::unmap(Iova iova) noexcept {
  const std::scoped_lock lock(mutex_);
  auto next = std::make_unique<Table>(*table_.load(std::memory_order_relaxed));
  std::erase_if(*next, [&](const Range& r) { return r.begin == iova; });
  publish(std::move(next));
}

void SoftwareAddressSpace::publish(std::unique_ptr<Table> next) {
  // The release orders the table's contents before its address.
  table_.store(next.get(), std::memory_order_release);
  tables_.push_back(std::move(next));
  if (follow_) follow_(*tables_.back());
}

void SoftwareAddressSpace::on_change(std::function<void(std::span<const Range>)> follow) {
  const std::scoped_lock lock(mutex_);
  follow_ = std::move(follow);
  if (follow_) follow_(*table_.load(std::memory_order_relaxed));
}

const SoftwareAddressSpace::Range* SoftwareAddressSpace::search(const Table& table, Iova iova) {
  auto after = std::upper_bound(table.begin(), table.end(), iova,
                                [](Iova at, const Range& r) { return at < r.begin; });
  return after == table.begin() ? nullptr : &*std::prev(after);
}

}  // namespace doorbell
