// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The work of a GPU on packets and windows, a warp for each packet or slot: putting data where it belongs,
// zeroing what is missing, checking what is there. Sources may be GPU memory or pinned host memory.
//
// Each function is the part of one warp out of `warps`; it works through the items warp, warp + warps, ...
#pragma once

#include <doorbell/net/packet.hpp>

#include "net/assembly/convert.hpp"

namespace doorbell::net {

/// Adds to a counter that many warps use; the value before.
DOORBELL_INLINE u32 add_shared(u32* p, u32 v) {
#if defined(DOORBELL_ON_GPU)
  return atomicAdd(p, v);
#else
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
#endif
}
/// Sets bits of a word that many warps use; the word before.
DOORBELL_INLINE u64 set_shared(u64* p, u64 bits) {
#if defined(DOORBELL_ON_GPU)
  return atomicOr(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(bits));
#else
  return __atomic_fetch_or(p, bits, __ATOMIC_RELAXED);
#endif
}

/// Collective: copies words of 16 bytes.
template <class Warp>
DOORBELL_INLINE void copy_words(const Warp& warp, const Word16* in, Word16* out, u64 words) {
  const u64 lane = warp.lane();
  if (words <= Warp::size) {
    if (lane < words) store16(out + lane, load16(in + lane));
    return;
  }
  // Memory behind PCIe is read in lines of 128 bytes, so the warp's loads begin at one; and four loads of a
  // lane are in flight together.
  constexpr u64 kLine = 128;
  const u64 to_line = (kLine - reinterpret_cast<u64>(in) % kLine) % kLine / 16;
  const u64 head = Warp::size * 16 < kLine ? 0 : to_line;
  Word16 first{};
  if (lane < head) first = load16(in + lane);
  DOORBELL_NO_UNROLL
  for (u64 i = head + lane; i < words; i += 4 * Warp::size) {
    const bool two = i + Warp::size < words, three = i + 2 * Warp::size < words,
               four = i + 3 * Warp::size < words;
    const Word16 a = load16(in + i);
    Word16 b{}, c{}, d{};
    if (two) b = load16(in + i + Warp::size);
    if (three) c = load16(in + i + 2 * Warp::size);
    if (four) d = load16(in + i + 3 * Warp::size);
    store16(out + i, a);
    if (two) store16(out + i + Warp::size, b);
    if (three) store16(out + i + 2 * Warp::size, c);
    if (four) store16(out + i + 3 * Warp::size, d);
  }
  if (lane < head) store16(out + lane, first);
}

/// Collective: copies with the widest words that both addresses allow.
template <class Warp>
DOORBELL_INLINE void copy_bytes(const Warp& warp, const u8* from, u8* to, u64 bytes) {
  const u64 low = reinterpret_cast<u64>(from) | reinterpret_cast<u64>(to);
  u64 done = 0;
  if ((low & 15) == 0) {
    const u64 words = bytes / 16;
    copy_words(warp, reinterpret_cast<const Word16*>(from), reinterpret_cast<Word16*>(to), words);
    done = words * 16;
  } else if ((low & 7) == 0) {
    for (u64 i = warp.lane(); i < bytes / 8; i += Warp::size)
      memcpy(__builtin_assume_aligned(to + i * 8, 8), __builtin_assume_aligned(from + i * 8, 8), 8);
    done = bytes / 8 * 8;
  } else if ((low & 3) == 0) {
    for (u64 i = warp.lane(); i < bytes / 4; i += Warp::size)
      memcpy(__builtin_assume_aligned(to + i * 4, 4), __builtin_assume_aligned(from + i * 4, 4), 4);
    done = bytes / 4 * 4;
  }
  for (u64 i = done + warp.lane(); i < bytes; i += Warp::size) to[i] = from[i];
}

/// Collective: writes zeros.
template <class Warp>
DOORBELL_INLINE void zero_bytes(const Warp& warp, u8* to, u64 bytes) {
  u64 head = (16 - (reinterpret_cast<u64>(to) & 15)) & 15;
  if (head > bytes) head = bytes;
  const u64 words = (bytes - head) / 16;
  for (u64 i = warp.lane(); i < head; i += Warp::size) to[i] = 0;
  for (u64 i = warp.lane(); i < words; i += Warp::size)
    store16(reinterpret_cast<Word16*>(to + head) + i, Word16{{0, 0, 0, 0}});
  for (u64 i = head + words * 16 + warp.lane(); i < bytes; i += Warp::size) to[i] = 0;
}

/// How data gets into its slot. `converts` says whether `conversion` counts.
struct DataForm {
  Conversion conversion;
  u32 converts = 0;
};

template <class Warp>
DOORBELL_INLINE void put_data(const Warp& warp, const DataForm& form, const u8* from, u32 bytes, u8* to) {
  if (form.converts != 0) convert(warp, form.conversion, from, bytes, to);
  else copy_bytes(warp, from, to, bytes);
}

// --- packets whose places a CPU has chosen ------------------------------------------------------------

/// Addresses for the GPU.
struct GatherItem {
  u64 from;  ///< data, without a header
  u64 to;
  u64 bytes;
};

struct GatherJob {
  const GatherItem* items;
  u32 count;
  DataForm form;
};

template <class Warp>
DOORBELL_INLINE void gather(const Warp& lanes, const GatherJob& job, u32 warp, u32 warps) {
  for (u32 i = warp; i < job.count; i += warps) {
    // The list lies in host memory: one lane reads an item, and all have it.
    GatherItem item = {};
    if (lanes.lane() == 0) item = job.items[i];
    item.from = lanes.shfl(item.from, 0);
    item.to = lanes.shfl(item.to, 0);
    item.bytes = lanes.shfl(item.bytes, 0);
    put_data(lanes, job.form, reinterpret_cast<const u8*>(item.from), static_cast<u32>(item.bytes),
             reinterpret_cast<u8*>(item.to));
  }
}

// --- packets whose headers only the GPU reads ---------------------------------------------------------

struct PlaceCounts {
  u32 placed;
  u32 duplicate;
  u32 outside;  ///< of another window, of another length, or without this stream's header
};

struct PlaceJob {
  const u64* packets;  ///< addresses of payloads, which begin with a header and are aligned to 8 bytes
  u32 count;
  u32 window_packets;
  u8* window;
  u64* arrived;  ///< the window's bitmap: bit i is set for slot i
  PlaceCounts* counts;
  u64 first_sequence;  ///< of slot 0
  u32 data_bytes;
  u16 run_tag;
  u16 stream;
  u64 slot_bytes;
  DataForm form;
};

/// Puts the packets that belong to one window into it. The header's CRC has been checked, or is not to be.
template <class Warp>
DOORBELL_INLINE void place(const Warp& lanes, const PlaceJob& job, u32 warp, u32 warps) {
  constexpr u32 kOutside = ~0u, kDuplicate = ~0u - 1;
  // One lane's. Warps that all added to the same words for each packet would wait for each other.
  u32 placed = 0, duplicate = 0, outside = 0;
  for (u32 i = warp; i < job.count; i += warps) {
    u64 address = 0;
    u32 slot = kOutside;
    if (lanes.lane() == 0) {
      address = job.packets[i];
      // Magic, version, tag and length in one word, stream and sequence in the next: read once a packet.
      u64 words[2];
      memcpy(words, __builtin_assume_aligned(reinterpret_cast<const u8*>(address), 8), 16);
      const bool ours = (words[0] & 0x0f'ffu) == (u64{kVersion} << 8 | kMagic) &&
                        static_cast<u16>(words[0] >> 16) == job.run_tag && words[0] >> 32 == job.data_bytes &&
                        words[1] >> 48 == job.stream;
      const u64 ahead = (words[1] - job.first_sequence) & kSequenceMask;
      if (ours && ahead < job.window_packets) {
        slot = static_cast<u32>(ahead);
        const u64 bit = u64{1} << (slot % 64);
        if ((set_shared(&job.arrived[slot / 64], bit) & bit) != 0) slot = kDuplicate;
      }
      ++(slot == kOutside ? outside : slot == kDuplicate ? duplicate : placed);
    }
    slot = lanes.shfl(slot, 0);
    address = lanes.shfl(address, 0);
    if (slot >= kDuplicate) continue;
    put_data(lanes, job.form, reinterpret_cast<const u8*>(address) + kHeaderBytes, job.data_bytes,
             job.window + slot * job.slot_bytes);
  }
  if (placed != 0) add_shared(&job.counts->placed, placed);
  if (duplicate != 0) add_shared(&job.counts->duplicate, duplicate);
  if (outside != 0) add_shared(&job.counts->outside, outside);
}

// --- windows ------------------------------------------------------------------------------------------

struct ZeroJob {
  u8* window;
  const u32* slots;
  u32 count;
  u64 slot_bytes;
};

template <class Warp>
DOORBELL_INLINE void zero_slots(const Warp& lanes, const ZeroJob& job, u32 warp, u32 warps) {
  for (u32 i = warp; i < job.count; i += warps) {
    u32 slot = 0;
    if (lanes.lane() == 0) slot = job.slots[i];
    zero_bytes(lanes, job.window + lanes.shfl(slot, 0) * job.slot_bytes, job.slot_bytes);
  }
}

inline constexpr u32 kWrongSlotsKept = 8;

struct CheckCounts {
  u32 checked;
  u32 wrong;
  u32 slots[kWrongSlotsKept];  ///< the first ones that were found wrong, in no order
};

struct CheckJob {
  const u8* window;
  const u64* arrived;  ///< only slots whose bit is set are checked; null: all
  CheckCounts* counts;
  u64 first_packet;  ///< of slot 0, counted from the stream's first, which has template 0
  u64 seed;
  u32 packets;
  u32 data_bytes;
  Fill fill;
  u16 stream;
};

/// Collective: whether `bytes` bytes are those that data_word() makes.
template <class Warp>
DOORBELL_INLINE bool data_same(const Warp& lanes, const CheckJob& job, const u8* data, u32 tmpl) {
  bool same = true;
  const bool aligned = (reinterpret_cast<u64>(data) & 7) == 0;
  for (u64 i = lanes.lane(); i < (job.data_bytes + 7) / 8; i += Warp::size) {
    u64 want = data_word(job.fill, job.seed, job.stream, tmpl, i);
    u64 got = 0;
    const u64 left = job.data_bytes - i * 8;
    if (aligned && left >= 8) {
      memcpy(&got, __builtin_assume_aligned(data + i * 8, 8), 8);
    } else {
      const u32 n = left < 8 ? static_cast<u32>(left) : 8;
      for (u32 b = 0; b < n; ++b) got |= static_cast<u64>(data[i * 8 + b]) << (8 * b);
      if (n < 8) want &= (u64{1} << (8 * n)) - 1;
    }
    same = same && got == want;
  }
  return lanes.ballot(!same) == 0;
}

template <class Warp>
DOORBELL_INLINE void check_slots(const Warp& lanes, const CheckJob& job, u32 warp, u32 warps) {
  for (u32 slot = warp; slot < job.packets; slot += warps) {
    u64 word = ~u64{0};
    if (job.arrived != nullptr && lanes.lane() == 0) word = job.arrived[slot / 64];
    if ((lanes.shfl(word, 0) >> (slot % 64) & 1) == 0) continue;
    const auto tmpl = static_cast<u32>((job.first_packet + slot) % kTemplates);
    const bool same = data_same(lanes, job, job.window + u64{slot} * job.data_bytes, tmpl);
    if (lanes.lane() != 0) continue;
    add_shared(&job.counts->checked, 1);
    if (same) continue;
    const u32 n = add_shared(&job.counts->wrong, 1);
    if (n < kWrongSlotsKept) job.counts->slots[n] = slot;
  }
}

}  // namespace doorbell::net
