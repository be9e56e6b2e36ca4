// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/flow/headers.hpp"

#include <doorbell/net/packet.hpp>

#include "net/flow/crc32c_instruction.hpp"

namespace doorbell::net {

namespace {

/// A header: mark; stream and sequence; time; the CRC of the data and, in the upper half, that of what is
/// before. In registers from one end to the other: words that are stored and then loaded by larger or smaller
/// ones are waited for until they, and all that was stored before them, are in the cache.
struct Words {
  u64 w0, w1, w2, w3;
};
static_assert(sizeof(Words) == kHeaderBytes);

void put_word(u8* p, u64 w) {
  std::memcpy(p, &w, 8);
}

struct Plain {
  static u32 crc(const Words& w) { return crc32c(&w, kHeaderBytes - 4); }
};

#if defined(__x86_64__)

struct Instruction {
  __attribute__((target("sse4.2"))) static u32 crc(const Words& w) {
    const u64 c = _mm_crc32_u64(_mm_crc32_u64(_mm_crc32_u64(~0u, w.w0), w.w1), w.w2);
    return ~_mm_crc32_u32(static_cast<u32>(c), static_cast<u32>(w.w3));
  }
};

#endif

template <class Crc>
inline __attribute__((always_inline)) void write_all(const HeaderRun& run, const TxSlots& slots, u64 first,
                                                     const u32* data_crcs) {
  // One division a burst, and none a packet.
  u64 slot = first % slots.count;
  u8* to = slots.base + slot * slots.stride;
  // A store might change any of these, as far as the compiler knows; locals are not read again for it.
  const auto [mark, begin, tx_time_ns, count, tx_step_ns, left_ns] = run;
  const TxSlots all = slots;
  const u64 stream = begin & ~kSequenceMask;
  u64 time_ns = tx_time_ns;
  for (u32 i = 0; i < count; ++i) {
    const u64 time = left_ns == 0 ? time_ns : DueTime{time_ns, left_ns}.word();
    const Words w = {mark, stream | ((begin + i) & kSequenceMask), time, data_crcs[slot]};
    time_ns += tx_step_ns;
    const u64 crc = Crc::crc(w);
    put_word(to, w.w0);
    put_word(to + 8, w.w1);
    put_word(to + 16, w.w2);
    put_word(to + 24, w.w3 | crc << 32);
    to += all.stride;
    if (++slot == all.count) slot = 0, to = all.base;
  }
}

template <class Crc>
inline __attribute__((always_inline)) void crcs_of_all(const u8* const* packets, const u32* bytes, u32 count,
                                                       u32* crcs) {
  for (u32 i = 0; i < count; ++i) {
    if (bytes[i] < kHeaderBytes) continue;
    const u8* const p = packets[i];
    crcs[i] = Crc::crc({word_at(p, 0), word_at(p, 8), word_at(p, 16), word_at(p, 24)});
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
  if (kHasCrc32c) return write_by_instruction(run, slots, first, data_crcs);
#endif
  write_all<Plain>(run, slots, first, data_crcs);
}

void header_crcs(const u8* const* packets, const u32* bytes, u32 count, u32* crcs) {
#if defined(__x86_64__)
  if (kHasCrc32c) return crcs_by_instruction(packets, bytes, count, crcs);
#endif
  crcs_of_all<Plain>(packets, bytes, count, crcs);
}

}  // namespace doorbell::net
