// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Rings that hold anything at all, as a NIC reads them, in all four formats: whatever is called valid keeps
// its promises and survives being written and read again.

#include <doorbell/rdma/bnxt.hpp>
#include <doorbell/rdma/ernic.hpp>
#include <doorbell/rdma/ionic.hpp>
#include <doorbell/rdma/mlx5.hpp>

#include <cstring>

#include "fuzz/fuzz.hpp"
#include "rdma/wqes.hpp"

using namespace doorbell;
using namespace doorbell::rdma;
using fuzz::require;

namespace {

/// A ring of exactly so many parts, so that an access beyond it is one beyond an allocation.
std::vector<Word16> ring_of(const std::vector<u8>& bytes, u32 parts) {
  std::vector<Word16> ring(parts);
  if (!bytes.empty()) std::memcpy(ring.data(), bytes.data(), std::min(bytes.size(), parts * sizeof(Word16)));
  return ring;
}

void check_buffers(const DecodedWqe& d) {
  u64 sum = 0;
  require(d.sges <= DecodedWqe::kMaxSges);
  for (u32 i = 0; i < d.sges; ++i) {
    require(d.sge[i].bytes != 0);
    sum += d.sge[i].bytes;
  }
  require(d.request.bytes <= kMaxMessage);
  if (d.sges != 0) {
    require(sum == d.request.bytes);
    require(d.request.local == d.sge[0].address && d.request.lkey == d.sge[0].lkey);
  } else {
    require(d.request.inlined || d.request.bytes == 0);
  }
}

template <class F>
void check_request(const DecodedWqe& d, const PartReader& read) {
  const WorkRequest& wr = d.request;
  check_buffers(d);
  require(d.units >= 1 && d.units * F::kUnitParts <= read.parts);
  if (is_atomic(wr.op)) require(d.sges == 1 && wr.bytes == kAtomicBytes);
  if (returns_data(wr.op)) require(!wr.inlined);
  std::vector<u8> payload = inlined_payload(d, read);
  if (!payload.empty())
    require(d.inline_part * 16 + d.inline_offset + wr.bytes <= d.units * F::kUnitParts * sizeof(Word16));
  if (d.sges > 1) return;

  WorkRequest again = wr;
  again.payload = payload.data();
  RingPosition at;
  at.units = read.parts / F::kUnitParts;
  at.slot = at.units - 1;
  if (F::units(again) > at.units) return;
  std::vector<Word16> ring(read.parts);
  build_wqe<F>(ring, again, at, {});
  const PartReader second = reader_of(ring, at.slot * F::kUnitParts);
  const DecodedWqe e = F::decode_wqe(second, 0);
  require(e.valid && e.owned);
  require(difference(again, e.request).empty());
  require(inlined_payload(e, second) == payload);
}

template <class F>
void check_receive(const DecodedWqe& d) {
  check_buffers(d);
  require(!d.request.inlined);
  if (d.sges > 1) return;
  std::vector<Word16> again(F::kReceiveParts);
  for (u32 p = 0; p < F::kReceiveParts; ++p)
    again[p] = F::receive_part({d.request.local, d.request.lkey, d.request.bytes}, {}, {}, p);
  const DecodedWqe e = F::decode_receive(reader_of(again, 0));
  require(e.valid && e.sges == d.sges && e.request.bytes == d.request.bytes &&
          e.request.local == d.request.local && e.request.lkey == d.request.lkey);
}

template <class F>
void check(FuzzedDataProvider& in) {
  const u32 units = in.ConsumeIntegralInRange<u32>(1, 24);
  const u32 slot = in.ConsumeIntegralInRange<u32>(0, units - 1);
  const u32 pass = in.ConsumeIntegral<u8>();
  // A ring that is no whole number of units never occurs, but reading it does no harm.
  const u32 cut = in.ConsumeIntegralInRange<u32>(0, F::kUnitParts - 1);
  const std::vector<u8> bytes = in.ConsumeRemainingBytes<u8>();

  const std::vector<Word16> ring = ring_of(bytes, units * F::kUnitParts);
  const PartReader read = reader_of(ring, slot * F::kUnitParts);
  const DecodedWqe d = F::decode_wqe(read, pass);
  require(d.units >= 1);
  if (d.valid) check_request<F>(d, read);

  const std::vector<Word16> receives = ring_of(bytes, units * F::kReceiveParts);
  const DecodedWqe r = F::decode_receive(reader_of(receives, slot * F::kReceiveParts));
  if (r.valid) check_receive<F>(r);

  const std::vector<Word16> broken = ring_of(bytes, units * F::kUnitParts - cut);
  (void)F::decode_wqe(reader_of(broken, 0), pass);
  (void)F::decode_receive(reader_of(broken, 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  FuzzedDataProvider in(data, size);
  switch (in.ConsumeIntegralInRange<u32>(0, 4)) {
    case 0:
      check<Mlx5>(in);
      break;
    case 1:
      check<Bnxt>(in);
      break;
    case 2:
      check<Ionic>(in);
      break;
    case 3:
      check<IonicV2>(in);
      break;
    default:
      check<Ernic>(in);
      break;
  }
  return 0;
}
