// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Fields of Cassini's structures. Each field is declared once. A structure has kWords and a static
// visit(self, field) that names the place of every member. Writing, reading and the set of used bits are
// derived from it.
#pragma once

#include <doorbell/words.hpp>

namespace doorbell::cxi {

/// `kWidth` bits, which start at bit `kBit` of byte `kByte`. No field crosses a word of 8 bytes.
template <u32 kByte, u32 kBit, u32 kWidth>
struct Bits {
  static constexpr u32 kWord = kByte / 8;
  static constexpr u32 kShift = kByte % 8 * 8 + kBit;
  static constexpr u64 kMask = kWidth == 64 ? ~u64{0} : (u64{1} << kWidth % 64) - 1;
  static_assert(kWidth >= 1 && kShift + kWidth <= 64);
};

/// The memory image of a structure.
template <u32 kCount>
struct Words {
  static constexpr u32 kParts = (kCount + 1) / 2;
  u64 w[kCount] = {};

  /// Bytes 16p..16p+15. Has no variable index into `w`, so that a GPU keeps `w` in registers.
  [[nodiscard]] DOORBELL_INLINE Word16 part(u32 p) const {
    Word16 v = words(w[0], kCount > 1 ? w[kCount > 1 ? 1 : 0] : 0);
    DOORBELL_UNROLL
    for (u32 k = 1; k < kCount / 2; ++k) v = pick(p == k, words(w[2 * k], w[2 * k + 1]), v);
    return v;
  }
};

/// The three operations that use visit().
struct FieldWriter {
  u64* words;
  template <class Place, class T>
  DOORBELL_INLINE void operator()(Place, const T& value) const {
    words[Place::kWord] |= (static_cast<u64>(value) & Place::kMask) << Place::kShift;
  }
};
struct FieldReader {
  const u64* words;
  template <class Place, class T>
  DOORBELL_INLINE void operator()(Place, T& value) const {
    value = static_cast<T>(words[Place::kWord] >> Place::kShift & Place::kMask);
  }
};
struct FieldMarker {
  u64* words;
  template <class Place, class T>
  DOORBELL_INLINE void operator()(Place, const T&) const {
    words[Place::kWord] |= Place::kMask << Place::kShift;
  }
};

/// Values that are too wide lose their upper bits and never change a neighbouring field.
template <class T>
[[nodiscard]] DOORBELL_INLINE Words<T::kWords> pack(const T& value) {
  Words<T::kWords> out;
  T::visit(value, FieldWriter{out.w});
  return out;
}

/// Ignores bits that belong to no field.
template <class T>
[[nodiscard]] DOORBELL_INLINE T unpack(const u64* words) {
  T out;
  T::visit(out, FieldReader{words});
  return out;
}

/// The bits that belong to fields.
template <class T>
[[nodiscard]] DOORBELL_INLINE Words<T::kWords> used_bits() {
  Words<T::kWords> out;
  const T any{};
  T::visit(any, FieldMarker{out.w});
  return out;
}

}  // namespace doorbell::cxi
