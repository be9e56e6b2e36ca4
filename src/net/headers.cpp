// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/headers.hpp"

#include <doorbell/net/crc32c.hpp>
#include <doorbell/net/packet.hpp>

#include <array>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace doorbell::net {

namespace {

/// Mark; stream and sequence; time; the CRC of the data and, in the upper half, that of what is before.
using Words = std::array<u64, 4>;
static_assert(sizeof(Words) == kHeaderBytes);

struct Plain {
  static u32 crc(const Words& w) { return crc32c(w.data(), kHeaderBytes - 4); }
};

#if defined(__x86_64__)

struct Instruction {
  __attribute__((target("sse4.2"))) static u32 crc(const Words& w) {
    const u64 c = _mm_crc32_u64(_mm_crc32_u64(_mm_crc32_u64(~0u, w[0]), w[1]), w[2]);
    return ~_mm_crc32_u32(static_cast<u32>(c), static_cast<u32>(w[3]));
  }
};

const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;

#endif

template <class Crc>
inline __attribute__((always_inline)) void write_all(const HeaderRun& run, const TxSlots& slots, u64 first,
                                                     const u32* data_crcs) {
  // One division a burst, and none a packet.
  u64 slot = first % slots.count;
  u8* to = slots.base + slot * slots.stride;
  const u64 stream = run.stream_sequence & ~kSequenceMask;
  for (u32 i = 0; i < run.count; ++i) {
    Words w = {run.mark, stream | ((run.stream_sequence + i) & kSequenceMask), run.tx_time_ns,
               data_crcs[slot]};
    w[3] |= u64{Crc::crc(w)} << 32;
    std::memcpy(to, w.data(), kHeaderBytes);
    to += slots.stride;
    if (++slot == slots.count) slot = 0, to = slots.base;
  }
}

template <class Crc>
inline __attribute__((always_inline)) void crcs_of_all(const u8* const* packets, const u32* bytes, u32 count,
                                                       u32* crcs) {
  for (u32 i = 0; i < count; ++i) {
    if (bytes[i] < kHeaderBytes) continue;
    Words w;
    std::memcpy(w.data(), packets[i], kHeaderBytes);
    crcs[i] = Crc::crc(w);
  }
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) void write_by_instruction(const HeaderRun& run, const TxSlots& slots,
                                                            u64 first, const u32* data_crcs) {
  write_all<Instruction>(run, slots, first, data_crcs);
}
__attribute__((target("sse4.2"))) void crcs_by_instruction(const u8* const* packets, const u32* bytes,
                                                           u32 count, u32* crcs) {
  crcs_of_all<Instruction>(packets, bytes, count, crcs);
}

#endif

}  // namespace

void write_headers(const HeaderRun& run, const TxSlots& slots, u64 first, const u32* data_crcs) {
#if defined(__x86_64__)
  if (kHasInstruction) return write_by_instruction(run, slots, first, data_crcs);
#endif
  write_all<Plain>(run, slots, first, data_crcs);
}

void header_crcs(const u8* const* packets, const u32* bytes, u32 count, u32* crcs) {
#if defined(__x86_64__)
  if (kHasInstruction) return crcs_by_instruction(packets, bytes, count, crcs);
#endif
  crcs_of_all<Plain>(packets, bytes, count, crcs);
}

}  // namespace doorbell::net
