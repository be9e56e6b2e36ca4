// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "model/copier.hpp"

#include <algorithm>

namespace doorbell::model {

namespace {
// Each copy is compared with every open one; a commit of so many copies has paid for its round trip.
constexpr u32 kOpenCopies = 128;

bool overlap(const u8* a, const u8* b, u64 a_bytes, u64 b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

bool Copier::is_open(const u8* to, const u8* from, u64 bytes) const {
  return std::ranges::any_of(open_,
                             [&](const Open& c) { return c.to == to && c.from == from && c.bytes == bytes; });
}

/// Copies of one commit happen in any order, so one that meets what another reads or writes waits for it. The
/// same copy once more does not: whichever comes last, the same bytes are there.
bool Copier::order(const u8* to, const u8* from, u64 bytes) {
  if (is_open(to, from, bytes)) return true;
  const auto meets = [&](const Open& c) {
    return overlap(to, c.to, bytes, c.bytes) || overlap(to, c.from, bytes, c.bytes) ||
           overlap(from, c.to, bytes, c.bytes);
  };
  if (open_.size() < kOpenCopies && std::ranges::none_of(open_, meets)) return true;
  return settle();
}

bool Copier::copy_gpu(const DmaPlace& to, const DmaPlace& from, u64 bytes) {
  if (!order(to.address, from.address, bytes)) return false;
  if (!dma_.copy(to, from, bytes)) return false;
  if (!is_open(to.address, from.address, bytes)) open_.push_back({to.address, from.address, bytes});
  return true;
}

}  // namespace doorbell::model
