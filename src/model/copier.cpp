// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "model/copier.hpp"

#include <algorithm>

namespace doorbell::model {

namespace {
// Each copy is compared with every open one, so their number is limited. A commit of this many copies makes
// its round trip worth while.
constexpr u32 kOpenCopies = 128;

}  // namespace

/// Host memory that the GPU cannot reach was read when its copy began, and may hold other bytes by now.
bool Copier::is_open(const DmaPlace& to, const DmaPlace& from, u64 bytes) const {
  if (!from.gpu && from.device == nullptr) return false;
  return std::ranges::any_of(open_, [&](const CopyJob& c) {
    return c.to == to.address && c.from == from.address && c.bytes == bytes;
  });
}

/// Copies of one commit happen in any order. A copy that touches what another one reads or writes therefore
/// waits for it. A repetition of the same copy need not wait: in either order, the same bytes result.
bool Copier::order(const DmaPlace& to, const DmaPlace& from, u64 bytes) {
  if (is_open(to, from, bytes)) return true;
  return fits({to.address, from.address, bytes}) || settle();
}

bool Copier::fits(const CopyJob& copy) const {
  return open_.size() < kOpenCopies &&
         std::ranges::none_of(open_, [&](const CopyJob& c) { return meet(copy, c); });
}

bool Copier::share(const DmaPlace& to, const DmaPlace& from, u64 bytes) {
  const CopyJob copy{to.address, from.address, bytes};
  if (overlap(to.address, bytes, from.address, bytes)) return copy_alone(to, from, bytes);
  if (!fits(copy) && !settle()) return false;
  crew_.add(to.address, from.address, bytes);
  open_.push_back(copy);
  return true;
}

bool Copier::copy_gpu(const DmaPlace& to, const DmaPlace& from, u64 bytes) {
  // Copies of the crew's come before those that the GPU makes, as copies made at once do.
  crew_.settle();
  if (!order(to, from, bytes)) return false;
  if (!dma_.copy(to, from, bytes)) return false;
  if (!is_open(to, from, bytes)) open_.push_back({to.address, from.address, bytes});
  return true;
}

}  // namespace doorbell::model
