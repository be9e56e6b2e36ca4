// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The test pattern: what every 512-byte unit of payload holds, made and checked on CPU and GPU.
//
// A unit says who it is (seed, byte address, sequence) in a 32-byte header and fills the rest with words that
// depend on all three (pattern_unit.hpp). So any unit is made and checked on its own, in parallel, and a unit
// that is wrong still tells whether it is damaged, belongs to another address, or is an older generation.
#pragma once

#include <doorbell/pattern_unit.hpp>
#include <doorbell/warp.hpp>

namespace doorbell::pattern {

/// Fills the first 16 bytes of a unit that a device is about to write: if they are still there, the
/// data never arrived.
inline constexpr u32 kPoison = 0xdb0ddead;

/// The result of a check. The order is the severity in which an I/O of several units is classified.
enum class Verdict : u32 {
  ok = 0,        ///< as it was written
  old_version,   ///< right, but a unit of an earlier version of the pattern: no failure
  unverifiable,  ///< nothing known of what should be here
  stale,         ///< an older generation, or never written although a write was acknowledged
  misplaced,     ///< a good unit of another address
  missing,       ///< the buffer is as it was before the transfer
  corrupt,       ///< none of the above
};

/// Whether operation `index` is among those that are checked: a share of (below + 1) / 2^32, everything at
/// ~0.
DOORBELL_INLINE bool sampled(u64 index, u64 seed, u32 below) {
  return below == ~0u || static_cast<u32>(mix64(index ^ seed)) <= below;
}

/// A whole unit by one lane.
DOORBELL_INLINE void make_unit(u32* out, const Identity& id) {
#if defined(DOORBELL_CPU_VECTORS)
  cpu::fill(out, 1, id);
#else
  const u32 start = start_of(id);
  DOORBELL_NO_UNROLL
  for (u32 p = 0; p < kParts; ++p) {
    const Word16 part = make_part(id, start, p);
    for (u32 i = 0; i < 4; ++i) out[p * 4 + i] = part.w[i];
  }
#endif
}

/// Compares a unit with what `id` makes, one lane; true when every byte is the same.
DOORBELL_INLINE bool same_unit(const u32* unit, const Identity& id) {
#if defined(DOORBELL_CPU_VECTORS)
  return cpu::same(unit, 1, id) == 1;
#else
  const u32 start = start_of(id);
  u32 wrong = 0;
  DOORBELL_NO_UNROLL
  for (u32 p = 0; p < kParts; ++p) {
    const Word16 part = make_part(id, start, p);
    for (u32 i = 0; i < 4; ++i) wrong |= part.w[i] ^ unit[p * 4 + i];
  }
  return wrong == 0;
#endif
}

/// The checker's knowledge of a unit.
struct Expect {
  Identity id;          ///< of the first unit; addresses count up from there
  bool written = true;  ///< false: this run did not write it, so only its own header can vouch for it
  bool strict = false;  ///< of those: something must have been written there, so that nothing is no excuse
  /// Of those: all units have the seed and the sequence of `id`, because one write made them. Others are
  /// stale where `strict`, else nothing says which of them are right.
  bool one_write = false;
};

/// True for a damaged unit, whatever its damage has left of the header: two of its parts, one after the
/// other, are the LFSR's and have the same start, which no other data has. One lane.
DOORBELL_INLINE bool is_remnant(const u32* unit) {
  bool before = false;
  u32 start_before = 0;
  DOORBELL_NO_UNROLL
  for (u32 p = kHeaderParts; p < kParts; ++p) {
    const u32* const w = unit + p * 4;
    const bool here = w[0] > 1 && w[1] == step(w[0]) && w[2] == step(w[1]) && w[3] == step(w[2]);
    const u32 start = here ? forget(w[0], p * kSpread) : 0;
    if (here && before && start == start_before) return true;
    before = here;
    start_before = start;
  }
  return false;
}

/// Classifies a unit that is not what `expect.id` makes (or whose writer is unknown). One lane; the
/// slow path of a check.
DOORBELL_NOINLINE Verdict classify(const u32* unit, Expect expect) {
  if (unit[0] == kPoison && unit[1] == kPoison && unit[2] == kPoison && unit[3] == kPoison)
    return Verdict::missing;
  const Identity id = claimed(unit);
  const bool old = version1::is_unit(unit);
  const bool good = old || (unit[0] == kMagic && same_unit(unit, id));
  if (good && id.address == kNoAddress)
    return expect.written || expect.strict ? Verdict::stale : Verdict::unverifiable;
  if (good && id.address != expect.id.address) return Verdict::misplaced;
  if (good && expect.one_write && !(id.seed == expect.id.seed && id.sequence == expect.id.sequence))
    return expect.strict ? Verdict::stale : Verdict::unverifiable;
  if (good && !expect.written) return old ? Verdict::old_version : Verdict::ok;
  if (good) return id == expect.id && !old ? Verdict::ok : Verdict::stale;
  if (!expect.written && !expect.strict)
    return unit[0] == kMagic || unit[0] == version1::kMagic || is_remnant(unit) || version1::is_remnant(unit)
               ? Verdict::corrupt
               : Verdict::unverifiable;
  u32 any = 0;
  for (u32 i = 0; i < kUnitWords; ++i) any |= unit[i];
  return any == 0 ? Verdict::stale : Verdict::corrupt;
}

/// Each lane hashes the start of one unit for all: that of unit `base` + its number, counted from `first`.
template <class Warp>
DOORBELL_INLINE u32 start_by_lane(const Warp& warp, Identity first, u64 base) {
  first.address += (base + warp.lane()) * kUnitBytes;
  return start_of(first);
}

/// Collective: writes the units of [data, data + bytes) for addresses id.address onwards.
/// `bytes` is a multiple of 512, `data` aligned to 16.
template <class Warp>
DOORBELL_INLINE void fill(const Warp& warp, void* data, u64 bytes, Identity id) {
#if defined(DOORBELL_CPU_VECTORS)
  if constexpr (Warp::size == 1) {
    cpu::fill(static_cast<u32*>(data), bytes / kUnitBytes, id);
    return;
  }
#endif
  auto* parts = static_cast<Word16*>(data);
  const u64 n = bytes / kUnitBytes;
  u32 starts = 0;
  DOORBELL_NO_UNROLL
  for (u64 i = 0; i < n; ++i, parts += kParts) {
    if (i % Warp::size == 0) starts = start_by_lane(warp, id, i);
    Identity here = id;
    here.address += i * kUnitBytes;
    const u32 start = warp.shfl(starts, i % Warp::size);
    for (u32 p = warp.lane(); p < kParts; p += Warp::size) store16(parts + p, make_part(here, start, p));
  }
}

/// Collective: marks every unit as not yet arrived.
template <class Warp>
DOORBELL_INLINE void poison(const Warp& warp, void* data, u64 bytes) {
  auto* part = static_cast<Word16*>(data);
  for (u64 u = warp.lane(); u < bytes / kUnitBytes; u += Warp::size)
    store16(part + u * kParts, Word16{{kPoison, kPoison, kPoison, kPoison}});
}

/// The outcome of check().
struct Checked {
  Verdict verdict = Verdict::ok;  ///< the worst of all units
  u64 address = 0;                ///< of the first unit that is not ok
};

/// How many units a warp compares at once: their loads are in flight together, so that the way across
/// PCIe is paid once for all.
inline constexpr u32 kTogether = 4;

/// Collective: compares `n` <= InFlight units with what their identities and starts make. Bit i of the result
/// is set when this lane sees a difference in unit i.
template <u32 InFlight, class Warp>
DOORBELL_INLINE u32 differences(const Warp& warp, const u32* const (&units)[InFlight],
                                const Identity (&ids)[InFlight], const u32 (&starts)[InFlight], u32 n) {
  u32 wrong = 0;
  for (u32 p = warp.lane(); p < kParts; p += Warp::size) {
    Word16 seen[InFlight] = {};
    DOORBELL_UNROLL
    for (u32 i = 0; i < InFlight; ++i)
      if (i < n) seen[i] = load16(reinterpret_cast<const Word16*>(units[i]) + p);
    DOORBELL_UNROLL
    for (u32 i = 0; i < InFlight; ++i)
      if (i < n && !(seen[i] == make_part(ids[i], starts[i], p))) wrong |= 1u << i;
  }
  return wrong;
}

/// The same for units whose starts are not known yet.
template <class Warp>
DOORBELL_INLINE u32 differences(const Warp& warp, const u32* const (&units)[kTogether],
                                const Identity (&ids)[kTogether], u32 n) {
  if constexpr (Warp::size == 1) {
    u32 wrong = 0;
    for (u32 i = 0; i < n; ++i)
      if (!same_unit(units[i], ids[i])) wrong |= 1u << i;
    return wrong;
  } else {
    u32 starts[kTogether];
    DOORBELL_UNROLL
    for (u32 i = 0; i < kTogether; ++i) starts[i] = start_of(ids[i]);
    return differences(warp, units, ids, starts, n);
  }
}

/// Looks closer at one unit that differs, and keeps the worst verdict. Collective.
template <class Warp>
DOORBELL_INLINE void look_closer(const Warp& warp, const u32* unit, const Expect& expect, Checked& worst) {
  u32 verdict = 0;
  if (warp.lane() == 0) verdict = static_cast<u32>(classify(unit, expect));
  const auto v = static_cast<Verdict>(warp.shfl(verdict, 0));
  if (v > worst.verdict) worst = {v, expect.id.address};
}

/// Collective: checks the units of [data, data + bytes); the worst verdict, the same on every lane. A warp
/// has the loads of InFlight units on their way together.
template <u32 InFlight = kTogether, class Warp>
DOORBELL_INLINE Checked check(const Warp& warp, const void* data, u64 bytes, Expect expect) {
  const auto* unit = static_cast<const u32*>(data);
  const u64 n = bytes / kUnitBytes;
  Checked worst;
  const auto closer = [&](u64 i) {
    Expect one = expect;
    one.id.address += i * kUnitBytes;
    look_closer(warp, unit + i * kUnitWords, one, worst);
  };
  if (!expect.written) {
    DOORBELL_NO_UNROLL
    for (u64 i = 0; i < n; ++i) closer(i);
    return worst;
  }
#if defined(DOORBELL_CPU_VECTORS)
  if constexpr (Warp::size == 1) {
    for (u64 i = 0;; ++i) {
      Identity id = expect.id;
      id.address += i * kUnitBytes;
      i += cpu::same(unit + i * kUnitWords, n - i, id);
      if (i >= n) return worst;
      closer(i);
    }
  }
#endif
  DOORBELL_NO_UNROLL
  for (u64 base = 0; base < n; base += Warp::size) {
    const u32 start = start_by_lane(warp, expect.id, base);
    const u32 here = n - base < Warp::size ? static_cast<u32>(n - base) : Warp::size;
    DOORBELL_NO_UNROLL
    for (u32 first = 0; first < here; first += InFlight) {
      const u32* units[InFlight];
      Identity ids[InFlight];
      u32 starts[InFlight];
      DOORBELL_UNROLL
      for (u32 i = 0; i < InFlight; ++i) {
        units[i] = unit + (base + first + i) * kUnitWords;
        ids[i] = expect.id;
        ids[i].address += (base + first + i) * kUnitBytes;
        starts[i] = warp.shfl(start, (first + i) % Warp::size);
      }
      const u32 wrong = differences(warp, units, ids, starts, here - first);
      if (warp.ballot(wrong != 0) == 0) continue;
      DOORBELL_NO_UNROLL
      for (u32 i = 0; i < InFlight; ++i)
        if (warp.ballot((wrong >> i & 1) != 0) != 0) closer(base + first + i);
    }
  }
  return worst;
}

}  // namespace doorbell::pattern
