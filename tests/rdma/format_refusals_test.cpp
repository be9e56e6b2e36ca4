// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Requests that no RDMA wire format can express are refused.

#include <doorbell/rdma/bnxt.hpp>
#include <doorbell/rdma/ernic.hpp>
#include <doorbell/rdma/ionic.hpp>
#include <doorbell/rdma/mlx5.hpp>
#include <gtest/gtest.h>

#include "wqes.hpp"

namespace doorbell::rdma {
namespace {

/// A valid request of one unit, with one dword replaced.
template <class F>
bool valid_with(const WorkRequest& wr, u32 part, u32 dword, u32 value) {
  std::vector<Word16> ring(4 * F::kUnitParts);
  build_wqe<F>(ring, wr, {}, {});
  const PartReader read = reader_of(ring, 0);
  EXPECT_TRUE(F::decode_wqe(read, 0).valid);
  ring[part].w[dword] = value;
  return F::decode_wqe(read, 0).valid;
}

TEST(Mlx5Format, MalformedRequestsAreRefused) {
  const WorkRequest write = with_bytes(Op::write, 64);
  const auto control = [&](u32 opcode, u32 count) {
    std::vector<Word16> ring(16);
    build_wqe<Mlx5>(ring, write, {}, {});
    ring[0].w[0] = be32(opcode);
    ring[0].w[1] = be32(count);
    return Mlx5::decode_wqe(reader_of(ring, 0), 0).valid;
  };
  EXPECT_TRUE(control(0x08, 3));
  EXPECT_TRUE(control(0x08, 2)) << "no bytes";
  EXPECT_FALSE(control(0x00, 3)) << "NOP";
  EXPECT_FALSE(control(0x01, 3)) << "SEND with invalidate";
  EXPECT_FALSE(control(0x13, 3));
  EXPECT_FALSE(control(0x01000008, 3)) << "a modifier";
  EXPECT_FALSE(control(0x08, 0));
  EXPECT_FALSE(control(0x08, 1)) << "without remote address";
  EXPECT_FALSE(control(0x08, 4)) << "an empty buffer stands for 2 GiB";
  EXPECT_FALSE(control(0x08, 17)) << "longer than the ring";
  EXPECT_FALSE(control(0x08, 63));
  EXPECT_FALSE(valid_with<Mlx5>(write, 2, 0, be32(0x80000040))) << "inlined, beyond the segments";
  EXPECT_TRUE(valid_with<Mlx5>(write, 2, 0, be32(0x8000000c)));
  EXPECT_FALSE(valid_with<Mlx5>(write, 2, 0, be32(0x80000000)));
  EXPECT_FALSE(valid_with<Mlx5>(write, 2, 0, be32(0x8000040c))) << "bits beyond the length";
  EXPECT_FALSE(valid_with<Mlx5>(with_bytes(Op::read, 12), 2, 0, be32(0x8000000c))) << "an inlined READ";
  EXPECT_FALSE(valid_with<Mlx5>(with_bytes(Op::fetch_add, 8), 3, 0, be32(16)));
}

TEST(Mlx5Format, BuffersAreCounted) {
  std::vector<Word16> ring(16);
  WorkRequest wr = with_bytes(Op::send, 64);
  build_wqe<Mlx5>(ring, wr, {}, {});
  for (u32 n = 1; n <= 5; ++n) {
    ring[n] = ring[1];
    ring[0].w[1] = be32(1 + n);
    const DecodedWqe d = Mlx5::decode_wqe(reader_of(ring, 0), 0);
    EXPECT_EQ(d.valid, n <= DecodedWqe::kMaxSges);
    if (!d.valid) continue;
    EXPECT_EQ(d.sges, n);
    EXPECT_EQ(d.request.bytes, 64 * n);
  }
  for (u32 n = 1; n <= 3; ++n) ring[n].w[0] = be32(kMaxMessage);
  ring[0].w[1] = be32(1 + 3);
  EXPECT_FALSE(Mlx5::decode_wqe(reader_of(ring, 0), 0).valid) << "the sum overflows";
}

TEST(BnxtFormat, MalformedRequestsAreRefused) {
  const WorkRequest write = with_bytes(Op::write, 64);
  EXPECT_TRUE(valid_with<Bnxt>(with_bytes(Op::write, 0), 0, 0, 0x020104));
  for (const u32 slots : {0u, 1u, 5u, 255u})
    EXPECT_FALSE(valid_with<Bnxt>(with_bytes(Op::write, 0), 0, 0, slots << 16 | 0x0104))
        << slots << " slots of 4";
  for (const u32 type : {0x02u, 0x03u, 0x07u, 0x0cu, 0x0eu, 0x80u, 0xffu})
    EXPECT_FALSE(valid_with<Bnxt>(write, 0, 0, 0x030100 | type)) << type;
  EXPECT_FALSE(valid_with<Bnxt>(write, 0, 2, 65)) << "another length than the buffer's";
  EXPECT_FALSE(valid_with<Bnxt>(write, 2, 3, 63));
  EXPECT_FALSE(valid_with<Bnxt>(write, 0, 0, 0x031104)) << "64 inlined bytes in one slot";
  EXPECT_FALSE(valid_with<Bnxt>(with_bytes(Op::read, 16), 0, 0, 0x031106)) << "an inlined READ";
  EXPECT_FALSE(valid_with<Bnxt>(with_bytes(Op::compare_swap, 8), 2, 3, 4));
}

TEST(IonicFormat, MalformedRequestsAreRefused) {
  const WorkRequest write = with_bytes(Op::write, 64);
  const auto header = [](u32 opcode, u32 sges, u32 flags) { return be32(opcode << 24 | sges << 16 | flags); };
  EXPECT_TRUE(valid_with<Ionic>(write, 0, 2, header(4, 1, 0x18)));
  EXPECT_FALSE(valid_with<Ionic>(write, 0, 2, header(8, 1, 0x18))) << "REG_MR";
  EXPECT_FALSE(valid_with<Ionic>(write, 0, 2, header(0x21, 1, 0x18))) << "the other version's WRITE";
  EXPECT_FALSE(valid_with<Ionic>(write, 0, 2, header(4, 0, 0x18))) << "no buffer for 64 bytes";
  EXPECT_FALSE(valid_with<Ionic>(write, 0, 2, header(4, 3, 0x18))) << "three buffers";
  EXPECT_FALSE(valid_with<Ionic>(write, 0, 2, header(4, 1, 0x1018))) << "the format for many buffers";
  EXPECT_FALSE(valid_with<Ionic>(write, 0, 2, header(4, 0, 0x1c))) << "64 inlined bytes";
  EXPECT_FALSE(valid_with<Ionic>(with_bytes(Op::write, 32), 0, 2, header(4, 1, 0x1c)))
      << "inlined and a buffer";
  EXPECT_TRUE(valid_with<Ionic>(with_bytes(Op::write, 32), 0, 2, header(4, 0, 0x1c)));
  EXPECT_FALSE(valid_with<Ionic>(with_bytes(Op::read, 32), 0, 2, header(3, 0, 0x1c))) << "an inlined READ";
  EXPECT_FALSE(valid_with<Ionic>(write, 1, 3, be32(65))) << "another length than the buffer's";
}

TEST(ErnicFormat, MalformedRequestsAreRefused) {
  const WorkRequest write = with_bytes(Op::write, 64);
  EXPECT_FALSE(valid_with<Ernic>(write, 1, 0, 7)) << "an opcode beyond the last";
  EXPECT_FALSE(valid_with<Ernic>(write, 1, 0, 0x100)) << "one that ends like a known one";
  EXPECT_TRUE(valid_with<Ernic>(write, 0, 2, 3));
  EXPECT_FALSE(valid_with<Ernic>(write, 0, 2, 4)) << "more buffers than the slot holds";
  EXPECT_FALSE(valid_with<Ernic>(write, 0, 2, 0xffffffff));
  EXPECT_FALSE(valid_with<Ernic>(with_bytes(Op::fetch_add, 8), 0, 2, 0));
  EXPECT_FALSE(valid_with<Ernic>(with_bytes(Op::read, 8), 1, 1, 8)) << "an inlined READ";
}

}  // namespace
}  // namespace doorbell::rdma
