// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The test pattern for buffers of any length: whole 512-byte units (pattern.hpp), then a tail.
//
// A tail of 64 bytes and more is the beginning of a unit, header included. A shorter one has no room for
// a header: its parts 0 to 3 are made as a unit's others are, so that even one byte depends on seed, address
// and sequence. Whether such a tail is stale or misplaced is found by trying the identities it could have.
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

/// 16-byte part `p` of a tail of `bytes` bytes; `id` and `start` are those of the tail's unit.
DOORBELL_INLINE Word16 tail_part(const Identity& id, u32 start, u32 bytes, u32 p) {
  if (bytes >= kHeaderTail) return pattern::make_part(id, start, p);
  return pattern::payload_part(start, p);
}
DOORBELL_INLINE Word16 tail_part(const Identity& id, u32 bytes, u32 p) {
  return tail_part(id, pattern::start_of(id), bytes, p);
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

/// The lanes of a warp over the parts of many payloads: a step goes through Warp::size parts in a row, and
/// each lane hashes the starts of some payloads for all.
template <class Warp>
class PartsOfMany {
 public:
  /// Collective. `n` is 1 to kManyAtMost, `bytes` 1 to 511; id(i) is payload i's identity.
  template <class Id>
  DOORBELL_INLINE PartsOfMany(const Warp& warp, u32 n, u32 bytes, Id id)
      : parts_(parts_of(bytes)),
        per_part_(kOne / parts_ + 1),
        total_(n * parts_),
        rounds_((n - 1) / Warp::size + 1) {
    DOORBELL_UNROLL
    for (u32 r = 0; r < kRounds; ++r) {
      const u32 i = r * Warp::size + warp.lane();
      if (i < n) starts_[r] = pattern::start_of(id(i));
    }
  }
  [[nodiscard]] DOORBELL_INLINE u32 total() const { return total_; }
  /// The payload that part `k` of all belongs to. The product is exact enough: `total` is at most 2^11.
  [[nodiscard]] DOORBELL_INLINE u32 payload_of(u32 k) const { return k * per_part_ / kOne; }
  [[nodiscard]] DOORBELL_INLINE u32 part_of(u32 k, u32 payload) const { return k - payload * parts_; }
  /// Collective: the start of the payload that this lane names.
  [[nodiscard]] DOORBELL_INLINE u32 start(const Warp& warp, u32 payload) const {
    u32 start = 0;
    DOORBELL_UNROLL
    for (u32 r = 0; r < kRounds; ++r) {
      if (r >= rounds_) break;
      const u32 its = warp.shfl(starts_[r], payload % Warp::size);
      if (payload / Warp::size == r) start = its;
    }
    return start;
  }

 private:
  static constexpr u32 kOne = 1 << 16;
  static constexpr u32 kRounds = (kManyAtMost + Warp::size - 1) / Warp::size;
  u32 parts_;
  u32 per_part_;  ///< 1 / parts in units of 1 / kOne, rounded up
  u32 total_;
  u32 rounds_;
  u32 starts_[kRounds] = {};
};

/// Collective, for `n` <= kManyAtMost payloads of `bytes` < 512 each: id(i) and at(i) give payload i's
/// identity and memory (16-byte aligned). The lanes share out all parts of all payloads.
template <class Warp, class Id, class At>
DOORBELL_INLINE void fill_many(const Warp& warp, u32 n, u32 bytes, Id id, At at) {
  if (n == 0 || bytes == 0) return;
  if constexpr (Warp::size == 1) {
    for (u32 i = warp.lane(); i < n; i += Warp::size) {
      const Identity its = id(i);
      const u32 start = pattern::start_of(its);
      u8* const to = at(i);
      for (u32 p = 0; p < parts_of(bytes); ++p)
        store_part(to + p * kPartBytes, tail_part(its, start, bytes, p), bytes - p * kPartBytes);
    }
  } else {
    const PartsOfMany<Warp> all(warp, n, bytes, id);
    DOORBELL_NO_UNROLL
    for (u32 base = 0; base < all.total(); base += Warp::size) {
      const u32 k = base + warp.lane();
      const u32 i = all.payload_of(k);
      const u32 start = all.start(warp, i);
      if (k >= all.total()) continue;
      const u32 p = all.part_of(k, i);
      store_part(at(i) + p * kPartBytes, tail_part(id(i), start, bytes, p), bytes - p * kPartBytes);
    }
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

/// The first `bytes` <= 16 bytes of a part, and no others.
[[nodiscard]] DOORBELL_INLINE Word16 load_ragged(const u8* from, u32 bytes) {
  if (bytes >= kPartBytes) return load16(reinterpret_cast<const Word16*>(from));
  Word16 seen = {};
  for (u32 b = 0; b < bytes; ++b) seen.w[b / 4] |= static_cast<u32>(from[b]) << (b % 4 * 8);
  return seen;
}

/// Collective: bit i of the result is set when payload i is not what it should be.
template <class Warp, class Id, class At>
DOORBELL_INLINE u64 check_many(const Warp& warp, u32 n, u32 bytes, Id id, At at) {
  if (n == 0 || bytes == 0) return 0;
  u64 wrong = 0;
  if constexpr (Warp::size == 1) {
    for (u32 i = warp.lane(); i < n; i += Warp::size) {
      const Identity its = id(i);
      const u32 start = pattern::start_of(its);
      const u8* const from = at(i);
      bool differ = false;
      for (u32 p = 0; p < parts_of(bytes); ++p) {
        const u32 here = bytes - p * kPartBytes;
        differ |= differs(load_ragged(from + p * kPartBytes, here), tail_part(its, start, bytes, p), here);
      }
      if (differ) wrong |= u64{1} << i;
    }
    return wrong;
  } else {
    constexpr u32 kTogether = 4;  // loads in flight
    const PartsOfMany<Warp> all(warp, n, bytes, id);
    DOORBELL_NO_UNROLL
    for (u32 base = 0; base < all.total(); base += kTogether * Warp::size) {
      Word16 seen[kTogether] = {};
      DOORBELL_UNROLL
      for (u32 t = 0; t < kTogether; ++t) {
        const u32 k = base + t * Warp::size + warp.lane();
        const u32 i = all.payload_of(k);
        // A slot is a whole number of parts, so a whole part may be read where a part of it counts.
        if (k < all.total())
          seen[t] = load16(reinterpret_cast<const Word16*>(at(i) + all.part_of(k, i) * kPartBytes));
      }
      DOORBELL_UNROLL
      for (u32 t = 0; t < kTogether; ++t) {
        const u32 k = base + t * Warp::size + warp.lane();
        const u32 i = all.payload_of(k);
        const u32 start = all.start(warp, i);
        if (k >= all.total()) continue;
        const u32 p = all.part_of(k, i);
        if (differs(seen[t], tail_part(id(i), start, bytes, p), bytes - p * kPartBytes)) wrong |= u64{1} << i;
      }
    }
    if (warp.ballot(wrong != 0) == 0) return 0;
    return reduce(warp, wrong, [](u64 a, u64 b) { return a | b; });
  }
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
  const u32 start = pattern::start_of(id);
  for (u32 p = 0; p < parts_of(bytes); ++p) {
    const Word16 want = tail_part(id, start, bytes, p);
    for (u32 b = 0; b < kPartBytes && p * kPartBytes + b < bytes; ++b)
      if (data[p * kPartBytes + b] != static_cast<u8>(want.w[b / 4] >> (b % 4 * 8))) return false;
  }
  return true;
}

/// The data that a tail without a header could be instead: the buffer's earlier contents, and those of its
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
  // Never written, as a whole unit of zeros is. A shorter tail may be zeros by chance.
  bool zeros = bytes >= kPartBytes;
  for (u32 b = 0; b < bytes && zeros; ++b) zeros = data[b] == 0;
  if (zeros) return Verdict::stale;
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
