// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The test pattern for buffers of any length: whole 512-byte units (pattern.hpp), then a tail.
//
// A tail of 64 bytes and more is the beginning of a unit, header included. A shorter one has no room for
// a header: it is the unit's LFSR words alone, so that even one byte depends on seed, address and
// sequence. Whether such a tail is stale or misplaced is found by trying the identities it could have.
#pragma once

#include <doorbell/pattern.hpp>

namespace doorbell::payload {

using pattern::Identity;
using pattern::kUnitBytes;
using pattern::Verdict;

inline constexpr u32 kHeaderTail = 64;  ///< tails from here on begin with a unit's header
inline constexpr u32 kPartBytes = 16;
/// Small payloads are handled many at a time, at most so many.
inline constexpr u32 kManyAtMost = 64;

/// 16-byte part `p` of a tail of `bytes` bytes; `id` is that of the tail's unit.
DOORBELL_INLINE Word16 tail_part(const Identity& id, u32 bytes, u32 p) {
  if (bytes >= kHeaderTail) return pattern::make_part(id, p);
  return pattern::payload_part(pattern::advance(pattern::start_state(id), p * 4));
}

[[nodiscard]] DOORBELL_INLINE u32 parts_of(u32 bytes) {
  return (bytes + kPartBytes - 1) / kPartBytes;
}

/// The first `bytes` < 16 bytes of a part, the rest of memory untouched.
DOORBELL_INLINE void store_ragged(u8* to, const Word16& part, u32 bytes) {
  for (u32 i = 0; i < bytes; ++i) to[i] = static_cast<u8>(part.w[i / 4] >> (i % 4 * 8));
}
DOORBELL_INLINE void store_part(u8* to, const Word16& part, u32 bytes) {
  if (bytes >= kPartBytes) store16(reinterpret_cast<Word16*>(to), part);
  else store_ragged(to, part, bytes);
}
/// Bytes of `a` and `b` differ within the first `bytes`.
[[nodiscard]] DOORBELL_INLINE bool differs(const Word16& a, const Word16& b, u32 bytes) {
  if (bytes >= kPartBytes) return !(a == b);
  u32 wrong = 0;
  for (u32 i = 0; i < 4; ++i) {
    const u32 here = bytes > i * 4 ? bytes - i * 4 : 0;
    const u32 mask = here >= 4 ? ~0u : (1u << (here * 8)) - 1;
    wrong |= (a.w[i] ^ b.w[i]) & mask;
  }
  return wrong != 0;
}
DOORBELL_INLINE Word16 complement(const Word16& w) {
  return {{~w.w[0], ~w.w[1], ~w.w[2], ~w.w[3]}};
}

/// Collective, for `n` <= kManyAtMost payloads of `bytes` < 512 each: id(i) and at(i) give payload i's
/// identity and memory (16-byte aligned). The lanes share out all parts of all payloads.
template <class Warp, class Id, class At>
DOORBELL_INLINE void fill_many(const Warp& warp, u32 n, u32 bytes, Id id, At at) {
  const u32 parts = parts_of(bytes);
  DOORBELL_NO_UNROLL
  for (u32 k = warp.lane(); k < n * parts; k += Warp::size) {
    const u32 i = k / parts;
    const u32 p = k - i * parts;
    store_part(at(i) + p * kPartBytes, tail_part(id(i), bytes, p), bytes - p * kPartBytes);
  }
}

/// Collective: marks payloads as not yet arrived, with what no correct transfer leaves there.
template <class Warp, class Id, class At>
DOORBELL_INLINE void poison_many(const Warp& warp, u32 n, u32 bytes, Id id, At at) {
  if (bytes == 0) return;
  DOORBELL_NO_UNROLL
  for (u32 i = warp.lane(); i < n; i += Warp::size)
    store_part(at(i), complement(tail_part(id(i), bytes, 0)), bytes);
}

/// Collective: bit i of the result is set when payload i is not what it should be.
template <class Warp, class Id, class At>
DOORBELL_INLINE u64 check_many(const Warp& warp, u32 n, u32 bytes, Id id, At at) {
  constexpr u32 kTogether = Warp::size == 1 ? 1 : 4;  // loads in flight
  const u32 parts = parts_of(bytes);
  const u32 total = n * parts;
  u64 wrong = 0;
  DOORBELL_NO_UNROLL
  for (u32 base = 0; base < total; base += kTogether * Warp::size) {
    Word16 seen[kTogether] = {};
    u32 which[kTogether];
    DOORBELL_UNROLL
    for (u32 t = 0; t < kTogether; ++t) {
      const u32 k = base + t * Warp::size + warp.lane();
      which[t] = k / parts;
      if (k < total) {
        const u8* from = at(which[t]) + (k - which[t] * parts) * kPartBytes;
        if (bytes - (k - which[t] * parts) * kPartBytes >= kPartBytes || Warp::size > 1) {
          // A slot is a whole number of parts, so a whole part may be read where a part of it counts.
          seen[t] = load16(reinterpret_cast<const Word16*>(from));
        } else {
          for (u32 b = 0; b < bytes - (k - which[t] * parts) * kPartBytes; ++b)
            seen[t].w[b / 4] |= static_cast<u32>(from[b]) << (b % 4 * 8);
        }
      }
    }
    DOORBELL_UNROLL
    for (u32 t = 0; t < kTogether; ++t) {
      const u32 k = base + t * Warp::size + warp.lane();
      if (k >= total) continue;
      const u32 p = k - which[t] * parts;
      if (differs(seen[t], tail_part(id(which[t]), bytes, p), bytes - p * kPartBytes))
        wrong |= u64{1} << which[t];
    }
  }
  if constexpr (Warp::size > 1) {
    if (warp.ballot(wrong != 0) == 0) return 0;
    wrong = reduce(warp, wrong, [](u64 a, u64 b) { return a | b; });
  }
  return wrong;
}

/// Collective: one payload of any length.
template <class Warp>
DOORBELL_INLINE void fill(const Warp& warp, u8* data, u64 bytes, Identity id) {
  const u64 whole = bytes / kUnitBytes * kUnitBytes;
  pattern::fill(warp, data, whole, id);
  id.address += whole;
  fill_many(
      warp, 1, static_cast<u32>(bytes - whole), [&](u32) { return id; }, [&](u32) { return data + whole; });
}

template <class Warp>
DOORBELL_INLINE void poison(const Warp& warp, u8* data, u64 bytes, Identity id) {
  const u64 whole = bytes / kUnitBytes * kUnitBytes;
  pattern::poison(warp, data, whole);
  id.address += whole;
  poison_many(
      warp, 1, static_cast<u32>(bytes - whole), [&](u32) { return id; }, [&](u32) { return data + whole; });
}

/// One lane: `data` holds the tail that `id` makes.
DOORBELL_NOINLINE bool same_tail(const u8* data, u32 bytes, const Identity& id) {
  for (u32 p = 0; p < parts_of(bytes); ++p) {
    const Word16 want = tail_part(id, bytes, p);
    for (u32 b = 0; b < kPartBytes && p * kPartBytes + b < bytes; ++b)
      if (data[p * kPartBytes + b] != static_cast<u8>(want.w[b / 4] >> (b % 4 * 8))) return false;
  }
  return true;
}

/// What a tail without a header could be instead: the buffer's earlier contents, and those of its
/// neighbours. Buffers are used in turn: buffer i of `buffers` holds sequence `origin` + i, then that plus
/// `buffers`, and so on.
struct Others {
  u32 buffers = 0;
  u64 step = 0;           ///< bytes from one buffer's address to the next
  u64 first = 0;          ///< address of buffer 0
  u64 origin = 0;         ///< sequence of buffer 0's first contents
  u64 last_sequence = 0;  ///< the newest in use
};

/// One lane: what is wrong with a tail that differs from what `id` makes.
DOORBELL_NOINLINE Verdict classify_tail(const u8* data, u32 bytes, const Identity& id, const Others& others) {
  const Word16 want = tail_part(id, bytes, 0);
  bool untouched = true;
  for (u32 b = 0; b < kPartBytes && b < bytes; ++b)
    untouched = untouched && data[b] == static_cast<u8>(~want.w[b / 4] >> (b % 4 * 8));
  if (untouched) return Verdict::missing;
  Identity other = id;
  if (others.buffers != 0 && id.sequence >= others.origin + others.buffers) {
    other.sequence = id.sequence - others.buffers;
    if (same_tail(data, bytes, other)) return Verdict::stale;
  }
  const u64 newest = others.last_sequence - others.origin;
  const u64 within = others.buffers != 0 ? (id.address - others.first) % others.step : 0;
  for (u32 i = 0; i < others.buffers && i <= newest; ++i) {
    other.address = others.first + i * others.step + within;
    if (other.address == id.address) continue;
    // Its present contents, or those before.
    other.sequence = others.last_sequence - (newest - i) % others.buffers;
    if (same_tail(data, bytes, other)) return Verdict::misplaced;
    if (other.sequence < others.origin + others.buffers) continue;
    other.sequence -= others.buffers;
    if (same_tail(data, bytes, other)) return Verdict::misplaced;
  }
  return Verdict::corrupt;
}

/// Collective: the worst verdict of one payload of any length.
template <class Warp>
DOORBELL_INLINE pattern::Checked check(const Warp& warp, const u8* data, u64 bytes, Identity id,
                                       const Others& others) {
  const u64 whole = bytes / kUnitBytes * kUnitBytes;
  pattern::Checked worst;
  if (whole > 0) worst = pattern::check(warp, data, whole, {.id = id, .written = true});
  id.address += whole;
  const auto rest = static_cast<u32>(bytes - whole);
  const u64 wrong = check_many(
      warp, 1, rest, [&](u32) { return id; }, [&](u32) { return data + whole; });
  if (wrong == 0) return worst;
  u32 verdict = 0;
  if (warp.lane() == 0) verdict = static_cast<u32>(classify_tail(data + whole, rest, id, others));
  const auto v = static_cast<Verdict>(warp.shfl(verdict, 0));
  if (v > worst.verdict) worst = {v, id.address};
  return worst;
}

}  // namespace doorbell::payload
