// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The walk of PRPs that a hostile host wrote: it ends, with a status, having touched no more than the
// transfer's length.

#include <doorbell/nvme/wire.hpp>

#include "fuzz/fuzz.hpp"

using namespace doorbell;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  FuzzedDataProvider in(data, size);
  const u64 page = u64{4096} << in.ConsumeIntegralInRange<u32>(0, 2);
  const u64 bytes = in.ConsumeIntegralInRange<u64>(1, 16u << 20);
  const u64 prp1 = in.ConsumeIntegral<u64>(), prp2 = in.ConsumeIntegral<u64>();
  u64 fetched = 0, moved = 0;
  const u16 st = nvme::walk_prps(
      prp1, prp2, bytes, page,
      [&](u64 from, u32 n, u64* out) {
        require(n >= 1 && n <= 64 && from % 8 == 0);
        require(from / page == (from + u64{n} * 8 - 1) / page);
        fetched += n;
        for (u32 i = 0; i < n; ++i) {
          // Page-aligned most of the time, or no list would be followed far.
          const u8 kind = in.ConsumeIntegral<u8>();
          const u64 entry = in.remaining_bytes() > 0 ? in.ConsumeIntegral<u64>() : prp2;
          out[i] = kind == 1 ? entry : entry & ~(page - 1);
        }
        return in.ConsumeIntegral<u8>() != 1;
      },
      [&](u64 at, u64 n) {
        require(n > 0 && n <= page && at / page == (at + (n - 1)) / page);
        moved += n;
        return in.ConsumeIntegral<u8>() != 1;
      });
  require(st == nvme::status::success || st == nvme::status::prp_offset_invalid ||
          st == nvme::status::data_transfer_error || (st == nvme::status::invalid_field && prp2 == 0));
  require(moved <= bytes);
  require(st != nvme::status::success || moved == bytes);
  // An entry a page, a pointer a list page, and one page more when the list begins at its last qword.
  require(fetched <= bytes / page + 2 + (bytes / page) / (page / 8 - 1) + 2);
  return 0;
}
