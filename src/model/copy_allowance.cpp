// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "model/copy_allowance.hpp"

#include <doorbell/region.hpp>

#include <algorithm>
#include <cstring>

#include "system/clock.hpp"

namespace doorbell::model {

double first_copy_rate() {
  constexpr u64 kBytes = u64{4} << 20;
  constexpr u32 kTimes = 3;
  const Region source(Place::pageable, kBytes);
  std::memset(source.host(), 1, kBytes);
  double lowest = 0;
  for (u32 i = 0; i < kTimes; ++i) {
    const Region target(Place::pageable, kBytes);
    const u64 begin = wall_ns();
    std::memcpy(target.host(), source.host(), kBytes);
    const double rate =
        static_cast<double>(kBytes) * 1e9 / static_cast<double>(std::max<u64>(wall_ns() - begin, 1));
    lowest = i == 0 ? rate : std::min(lowest, rate);
  }
  return lowest;
}

CopyAllowance CopyAllowance::measured(u64 most, double model_bytes_per_s) {
  if (most < kLarge) return {};
  const double host = first_copy_rate();
  return CopyAllowance(model_bytes_per_s > 0 ? std::min(host, model_bytes_per_s) : host);
}

void CopyAllowance::saw(u64 bytes, double seconds) {
  if (bytes_per_s_ <= 0 || bytes < kLarge || seconds <= 0) return;
  bytes_per_s_ = std::min(bytes_per_s_, static_cast<double>(bytes) / seconds);
}

double CopyAllowance::seconds(u64 bytes_under_way) const {
  if (bytes_per_s_ <= 0 || bytes_under_way < kLarge) return 0;
  return kSlack * static_cast<double>(bytes_under_way) / bytes_per_s_;
}

}  // namespace doorbell::model
