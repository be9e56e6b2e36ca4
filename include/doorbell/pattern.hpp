// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The test pattern: what every 512-byte unit of payload holds, made and checked on CPU and GPU.
//
// A unit says who it is (seed, byte address, sequence) in a 32-byte header and fills the rest with a
// 32-bit Galois LFSR (x^32 + x^22 + x^2 + x + 1, one step a word) started from a hash of the three.
// So any unit is made and checked on its own, in parallel, and a unit that is wrong still tells
// whether it is damaged, belongs to another address, or is an older generation.
//
//   bytes 0..3 magic, 4..7 LFSR start, 8..15 seed, 16..23 address, 24..31 sequence, 32..511 LFSR words
#pragma once

#include <doorbell/config.hpp>
#include <doorbell/memory_order.hpp>
#include <doorbell/warp.hpp>

namespace doorbell::pattern {

inline constexpr u32 kUnitBytes = 512;
inline constexpr u32 kUnitWords = kUnitBytes / 4;
inline constexpr u32 kParts = kUnitBytes / 16;  ///< 16-byte parts; a 32-lane warp holds one a lane
inline constexpr u32 kHeaderWords = 8;
inline constexpr u32 kMagic = 0x314c4244;  // "DBL1"
/// Fills the first 16 bytes of a unit that a device is about to write: if they are still there, the
/// data never arrived.
inline constexpr u32 kPoison = 0xdb0ddead;

/// Who a unit is. `address` is a byte address on the device; `sequence` grows with each rewrite.
struct Identity {
  u64 seed = 0;
  u64 address = 0;
  u64 sequence = 0;
  friend DOORBELL_INLINE bool operator==(const Identity& a, const Identity& b) {
    return a.seed == b.seed && a.address == b.address && a.sequence == b.sequence;
  }
};

/// What a check found. The order is the severity in which an I/O of several units is classified.
enum class Verdict : u32 {
  ok = 0,
  unverifiable,  ///< nothing known of what should be here
  stale,         ///< an older generation, or never written although a write was acknowledged
  misplaced,     ///< a good unit of another address
  missing,       ///< the buffer is as it was before the transfer
  corrupt,       ///< none of the above
};

/// A finalising 64-bit mix (the constants are those of MurmurHash3's fmix64).
DOORBELL_INLINE u64 mix64(u64 x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  x ^= x >> 33;
  return x;
}

/// Whether operation `index` is among those that are checked: a share of (below + 1) / 2^32, everything at
/// ~0.
DOORBELL_INLINE bool sampled(u64 index, u64 seed, u32 below) {
  return below == ~0u || static_cast<u32>(mix64(index ^ seed)) <= below;
}

/// The LFSR state that a unit starts from; never 0, the one state that an LFSR cannot leave.
DOORBELL_INLINE u32 start_state(const Identity& id) {
  const u64 h = mix64(id.seed ^ mix64(id.address ^ mix64(id.sequence)));
  const u32 s = static_cast<u32>(h ^ (h >> 32));
  return s != 0 ? s : 1;
}

/// N steps at once, N <= 10: the fed-back bits t = s >> (32 - N) reach at most bit 22 + N - 1 < 32,
/// so one carry-less multiplication by the polynomial's tail needs no second reduction.
template <u32 N>
DOORBELL_INLINE u32 steps(u32 s) {
  static_assert(N >= 1 && N <= 10);
  const u32 t = s >> (32 - N);
  return (s << N) ^ (t << 22) ^ (t << 2) ^ (t << 1) ^ t;
}

DOORBELL_INLINE u32 advance(u32 s, u32 n) {
  DOORBELL_NO_UNROLL
  for (; n >= 8; n -= 8) s = steps<8>(s);
  for (; n > 0; --n) s = steps<1>(s);
  return s;
}

/// The first two parts of a unit: its header.
DOORBELL_INLINE Word16 header_part(const Identity& id, u32 start, u32 part) {
  const u64 hi = part == 0 ? id.seed : id.sequence;
  const u64 lo = part == 0 ? (u64{start} << 32) | kMagic : id.address;
  return {
      {static_cast<u32>(lo), static_cast<u32>(lo >> 32), static_cast<u32>(hi), static_cast<u32>(hi >> 32)}};
}

/// Four payload words, given the state before the first of them.
DOORBELL_INLINE Word16 payload_part(u32 before) {
  return {{steps<1>(before), steps<2>(before), steps<3>(before), steps<4>(before)}};
}

/// Part `part` (0..31) of a unit: what a lane that holds one part makes.
DOORBELL_INLINE Word16 make_part(const Identity& id, u32 part) {
  const u32 start = start_state(id);
  if (part < 2) return header_part(id, start, part);
  return payload_part(advance(start, (part - 2) * 4));
}

/// A whole unit by one lane. The eight states that advance by eight each are what a CPU vectorises.
DOORBELL_INLINE void make_unit(u32* out, const Identity& id) {
  const u32 start = start_state(id);
  for (u32 p = 0; p < 2; ++p) {
    const Word16 h = header_part(id, start, p);
    for (u32 i = 0; i < 4; ++i) out[p * 4 + i] = h.w[i];
  }
  u32 lanes[8];
  u32 s = start;
  for (u32& lane : lanes) lane = s = steps<1>(s);
#if defined(DOORBELL_ON_GPU)
  DOORBELL_NO_UNROLL
#endif
  for (u32 w = kHeaderWords; w < kUnitWords; w += 8)
    for (u32 i = 0; i < 8; ++i) {
      out[w + i] = lanes[i];
      lanes[i] = steps<8>(lanes[i]);
    }
}

/// Compares a unit with what `id` makes, one lane; true when every byte is the same.
DOORBELL_INLINE bool same_unit(const u32* unit, const Identity& id) {
  u32 want[kUnitWords];
  make_unit(want, id);
  u32 wrong = 0;
#if defined(DOORBELL_ON_GPU)
  DOORBELL_NO_UNROLL
#endif
  for (u32 i = 0; i < kUnitWords; ++i) wrong |= want[i] ^ unit[i];
  return wrong == 0;
}

/// The identity that a unit's header claims.
DOORBELL_INLINE Identity claimed(const u32* unit) {
  const auto u64_at = [&](u32 word) { return (u64{unit[word + 1]} << 32) | unit[word]; };
  return {u64_at(2), u64_at(4), u64_at(6)};
}

/// The address in units that are written where nothing is checked: test data of no particular place.
inline constexpr u64 kNoAddress = ~u64{0};

/// What the checker knows of a unit.
struct Expect {
  Identity id;
  bool written = true;  ///< false: this run did not write it, so only its own header can vouch for it
  bool strict = false;  ///< of those: something must have been written there, so that nothing is no excuse
};

/// Classifies a unit that is not what `expect.id` makes (or whose writer is unknown). One lane; the
/// slow path of a check.
DOORBELL_NOINLINE Verdict classify(const u32* unit, Expect expect) {
  if (unit[0] == kPoison && unit[1] == kPoison && unit[2] == kPoison && unit[3] == kPoison)
    return Verdict::missing;
  const Identity id = claimed(unit);
  const bool good = unit[0] == kMagic && same_unit(unit, id);
  if (good && id.address == kNoAddress)
    return expect.written || expect.strict ? Verdict::stale : Verdict::unverifiable;
  if (!expect.written) {
    if (good) return id.address == expect.id.address ? Verdict::ok : Verdict::misplaced;
    if (!expect.strict) return unit[0] != kMagic ? Verdict::unverifiable : Verdict::corrupt;
  } else if (good) {
    if (id == expect.id) return Verdict::ok;
    return id.address != expect.id.address ? Verdict::misplaced : Verdict::stale;
  }
  u32 any = 0;
  for (u32 i = 0; i < kUnitWords; ++i) any |= unit[i];
  return any == 0 ? Verdict::stale : Verdict::corrupt;
}

/// Collective: writes the units of [data, data + bytes) for addresses id.address onwards.
/// `bytes` is a multiple of 512, `data` aligned to 16.
template <class Warp>
DOORBELL_INLINE void fill(const Warp& warp, void* data, u64 bytes, Identity id) {
  auto* unit = static_cast<u32*>(data);
  for (u64 done = 0; done < bytes; done += kUnitBytes, unit += kUnitWords, id.address += kUnitBytes) {
    if constexpr (Warp::size == 1) {
      make_unit(unit, id);
    } else {
      for (u32 p = warp.lane(); p < kParts; p += Warp::size)
        store16(reinterpret_cast<Word16*>(unit) + p, make_part(id, p));
    }
  }
}

/// Collective: marks every unit as not yet arrived.
template <class Warp>
DOORBELL_INLINE void poison(const Warp& warp, void* data, u64 bytes) {
  auto* part = static_cast<Word16*>(data);
  for (u64 u = warp.lane(); u < bytes / kUnitBytes; u += Warp::size)
    store16(part + u * kParts, Word16{{kPoison, kPoison, kPoison, kPoison}});
}

struct Checked {
  Verdict verdict = Verdict::ok;
  u64 address = 0;  ///< of the first unit that is not ok
};

/// How many units a warp compares at once: their loads are in flight together, so that the way across
/// PCIe is paid once for all.
inline constexpr u32 kTogether = 4;

/// Collective: compares `n` <= kTogether units with what their identities make. Bit i of the result is
/// set when this lane sees a difference in unit i.
template <class Warp>
DOORBELL_INLINE u32 differences(const Warp& warp, const u32* const (&units)[kTogether],
                                const Identity (&ids)[kTogether], u32 n) {
  u32 wrong = 0;
  if constexpr (Warp::size == 1) {
    for (u32 i = 0; i < n; ++i)
      if (!same_unit(units[i], ids[i])) wrong |= 1u << i;
  } else {
    for (u32 p = warp.lane(); p < kParts; p += Warp::size) {
      Word16 seen[kTogether] = {};
      DOORBELL_UNROLL
      for (u32 i = 0; i < kTogether; ++i)
        if (i < n) seen[i] = load16(reinterpret_cast<const Word16*>(units[i]) + p);
      DOORBELL_UNROLL
      for (u32 i = 0; i < kTogether; ++i)
        if (i < n && !(seen[i] == make_part(ids[i], p))) wrong |= 1u << i;
    }
  }
  return wrong;
}

/// Collective: checks the units of [data, data + bytes); the worst verdict, the same on every lane.
template <class Warp>
DOORBELL_INLINE Checked check(const Warp& warp, const void* data, u64 bytes, Expect expect) {
  const auto* unit = static_cast<const u32*>(data);
  Checked worst;
  DOORBELL_NO_UNROLL
  for (u64 left = bytes / kUnitBytes; left > 0;) {
    const u32 n = left < kTogether ? static_cast<u32>(left) : kTogether;
    u32 wrong = ~0u;
    if (expect.written) {
      const u32* units[kTogether];
      Identity ids[kTogether];
      for (u32 i = 0; i < kTogether; ++i) {
        units[i] = unit + i * kUnitWords;
        ids[i] = expect.id;
        ids[i].address += u64{i} * kUnitBytes;
      }
      wrong = differences(warp, units, ids, n);
    }
    DOORBELL_NO_UNROLL
    for (u32 i = 0; i < n; ++i) {
      if (warp.ballot((wrong >> i & 1) != 0) == 0) continue;
      Expect one = expect;
      one.id.address += u64{i} * kUnitBytes;
      u32 verdict = 0;
      if (warp.lane() == 0) verdict = static_cast<u32>(classify(unit + i * kUnitWords, one));
      const auto v = static_cast<Verdict>(warp.shfl(verdict, 0));
      if (v > worst.verdict) worst = {v, one.id.address};
    }
    unit += n * kUnitWords;
    expect.id.address += u64{n} * kUnitBytes;
    left -= n;
  }
  return worst;
}

}  // namespace doorbell::pattern
