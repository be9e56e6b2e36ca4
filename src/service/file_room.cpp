// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/file_room.hpp"

#include <algorithm>

#include "system/open_files.hpp"

namespace doorbell::service {

namespace {

/// Messages after which it is counted again although there should be room: the limit may be another one.
constexpr u32 kAgain = 256;

}  // namespace

bool FileRoom::has(u32 files) {
  if (left_ >= files && --asked_ > 0) return true;
  asked_ = kAgain;
  const u64 most = open_file_limit();
  // Where it cannot be counted, for want of a descriptor most likely, there is no room.
  const u64 open = open_file_count().value_or(most);
  // Threads of the card and the workers may open as many as come here before the next count.
  left_ = (most - std::min(open, most)) / 2;
  return left_ >= files;
}

}  // namespace doorbell::service
