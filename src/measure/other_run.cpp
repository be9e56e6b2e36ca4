// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/other_run.hpp"

#include <fmt/format.h>

namespace doorbell::measure {

std::optional<pattern::Identity> writer_of(const u32* unit) {
  const pattern::Identity id = pattern::claimed(unit);
  if (unit[0] != pattern::kMagic || !pattern::same_unit(unit, id)) return {};
  return id;
}

void OtherRun::found(const std::string& place, u64 at, const pattern::Identity& writer, u64 next) {
  if (known() || (writer.seed == seed_ && writer.sequence >= first_ && writer.sequence < next)) return;
  text_ = fmt::format(
      "byte {} of {} holds a unit of another run (seed {}, sequence {:#x}): one before this, or one that "
      "writes there at the same time",
      at, place, writer.seed, writer.sequence);
}

}  // namespace doorbell::measure
