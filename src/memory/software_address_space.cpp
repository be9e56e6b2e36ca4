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
  Table next = *table_;
  next.push_back(r);  // IOVAs only grow, so the table stays sorted
  publish(std::move(next));
  return r.begin;
}

void SoftwareAddressSpace::map_at(const Range& range) {
  const std::scoped_lock lock(mutex_);
  const auto after = std::ranges::upper_bound(*table_, range.begin, {}, &Range::begin);
  Table next;
  next.reserve(table_->size() + 1);
  next.insert(next.end(), table_->begin(), after);
  next.push_back(range);
  next.insert(next.end(), after, table_->end());
  publish(std::move(next));
}

void SoftwareAddressSpace::unmap(Iova iova) noexcept {
  unmap_all(std::span(&iova, 1));
}

void SoftwareAddressSpace::unmap_all(std::span<const Iova> begins) noexcept {
  const std::scoped_lock lock(mutex_);
  Table next = *table_;
  std::erase_if(next, [&](const Range& r) { return std::ranges::binary_search(begins, r.begin); });
  publish(std::move(next));
}

void SoftwareAddressSpace::publish(Table next) {
  {
    auto table = std::make_shared<const Table>(std::move(next));
    const std::scoped_lock lock(table_mutex_);
    table_ = std::move(table);
    published_.fetch_add(1, std::memory_order_release);
  }
  if (follow_) follow_(*table_);
}

void SoftwareAddressSpace::on_change(std::function<void(std::span<const Range>)> follow) {
  const std::scoped_lock lock(mutex_);
  follow_ = std::move(follow);
  if (follow_) follow_(*table_);
}

const SoftwareAddressSpace::Range* SoftwareAddressSpace::search(std::span<const Range> ranges, Iova iova) {
  auto after = std::upper_bound(ranges.begin(), ranges.end(), iova,
                                [](Iova at, const Range& r) { return at < r.begin; });
  return after == ranges.begin() ? nullptr : &*std::prev(after);
}

}  // namespace doorbell
