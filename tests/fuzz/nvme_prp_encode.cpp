// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Any buffer becomes PRPs that a walk turns back into the buffer.

#include <doorbell/nvme/wire.hpp>

#include <vector>

#include "fuzz/fuzz.hpp"

using namespace doorbell;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  FuzzedDataProvider in(data, size);
  const u64 page = u64{4096} << in.ConsumeIntegralInRange<u32>(0, 4);
  const u64 iova = in.ConsumeIntegralInRange<u64>(0, u64{1} << 56) & ~u64{3};
  const u64 bytes = in.ConsumeIntegralInRange<u64>(1, 64u << 20);
  const u64 list_iova = (in.ConsumeIntegralInRange<u64>(0, u64{1} << 56) | (u64{1} << 57)) & ~(page - 1);
  const nvme::PrpPair prp = nvme::prp_pair(iova, bytes, page, list_iova);
  require(prp.list_qwords == nvme::prp_list_qwords(iova & (page - 1), bytes, page));
  std::vector<u64> list(prp.list_qwords);
  if (prp.list_qwords > 0) nvme::write_prp_list(list.data(), iova, bytes, page, list_iova);
  u64 next = iova;
  const u16 st = nvme::walk_prps(
      prp.prp1, prp.prp2, bytes, page,
      [&](u64 from, u32 n, u64* out) {
        require(from >= list_iova && from + n * 8 <= list_iova + list.size() * 8);
        for (u32 i = 0; i < n; ++i) out[i] = list[(from - list_iova) / 8 + i];
        return true;
      },
      [&](u64 at, u64 n) {
        require(at == next && n > 0);
        next += n;
        return true;
      });
  require(st == nvme::status::success && next == iova + bytes);
  return 0;
}
