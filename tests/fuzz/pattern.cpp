// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A unit is ok exactly when it is, byte for byte, what its identity makes.

#include <doorbell/pattern.hpp>

#include <algorithm>
#include <cstring>

#include "fuzz/fuzz.hpp"

using namespace doorbell;
using namespace doorbell::pattern;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  FuzzedDataProvider in(data, size);
  Expect expect;
  expect.id = {in.ConsumeIntegral<u64>(), in.ConsumeIntegral<u64>() & ~u64{511}, in.ConsumeIntegral<u64>()};
  expect.written = in.ConsumeIntegral<u8>() != 0;
  alignas(16) u32 unit[kUnitWords] = {};
  alignas(16) u32 good[kUnitWords];
  make_unit(good, expect.id);
  switch (in.ConsumeIntegralInRange<u32>(0, 4)) {
    case 0:
      break;
    case 1:
      std::memcpy(unit, good, sizeof unit);
      break;
    case 2:
      make_unit(unit, {in.ConsumeIntegral<u64>(), in.ConsumeIntegral<u64>(), in.ConsumeIntegral<u64>()});
      break;
    case 3:
      version1::make_unit(
          unit, {expect.id.seed, in.ConsumeBool() ? expect.id.address : in.ConsumeIntegral<u64>(), 5});
      break;
    default:
      make_unit(unit, {expect.id.seed, in.ConsumeIntegral<u64>(), expect.id.sequence});
  }
  for (u32 n = in.ConsumeIntegralInRange<u32>(0, 8); n > 0; --n)
    unit[in.ConsumeIntegralInRange<u32>(0, kUnitWords - 1)] = in.ConsumeIntegral<u32>();
  const auto rest = in.ConsumeRemainingBytes<u8>();
  std::copy_n(rest.begin(), std::min(rest.size(), sizeof unit), reinterpret_cast<u8*>(unit));

  const Checked found = check(OneLane{}, unit, kUnitBytes, expect);
  const bool same = std::memcmp(unit, good, sizeof unit) == 0;
  require(cpu::same_plain(unit, 1, expect.id) == (same ? 1 : 0));
  require(cpu::same(unit, 1, expect.id) == (same ? 1 : 0));
  if (expect.written) {
    require((found.verdict == Verdict::ok) == same);
    require(found.verdict != Verdict::unverifiable && found.verdict != Verdict::old_version);
  } else if (found.verdict == Verdict::ok) {
    require(claimed(unit).address == expect.id.address);
  }
  require(found.verdict == Verdict::ok || found.address == expect.id.address);
  if (found.verdict == Verdict::old_version)
    require(version1::is_unit(unit) && claimed(unit).address == expect.id.address);
  if (found.verdict == Verdict::misplaced && version1::is_unit(unit)) return 0;
  if (found.verdict == Verdict::misplaced || (found.verdict == Verdict::ok && !expect.written))
    require(same_unit(unit, claimed(unit)));
  return 0;
}
