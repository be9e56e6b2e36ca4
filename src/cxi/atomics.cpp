// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/atomics.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <type_traits>

namespace doorbell::cxi {

namespace {

using U128 = std::array<u64, 2>;

template <class T>
constexpr bool kComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

template <class T>
T operand(const u64 (&words)[2]) {
  T value;
  std::memcpy(static_cast<void*>(&value), words, sizeof value);
  return value;
}

template <class T>
bool swaps(SwapIf when, const T& second, const T& memory) {
  if (when == SwapIf::equal) return second == memory;
  if (when == SwapIf::not_equal) return !(second == memory);
  if constexpr (std::is_arithmetic_v<T>) {
    switch (when) {
      case SwapIf::less_equal:
        return second <= memory;
      case SwapIf::less:
        return second < memory;
      case SwapIf::greater_equal:
        return second >= memory;
      default:
        return second > memory;
    }
  }
  return false;
}

template <class T>
T result(const Atomic& a, const T& memory) {
  const T first = operand<T>(a.first);
  if (a.op == AtomicOp::swap) return first;
  if (a.op == AtomicOp::compare_swap) return swaps(a.swap_if, operand<T>(a.second), memory) ? first : memory;
  if constexpr (std::is_arithmetic_v<T>) {
    if (a.op == AtomicOp::min) return std::min(memory, first);
    if (a.op == AtomicOp::max) return std::max(memory, first);
  }
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    const U m = static_cast<U>(memory), f = static_cast<U>(first), s = static_cast<U>(operand<T>(a.second));
    switch (a.op) {
      case AtomicOp::sum:
        return static_cast<T>(static_cast<U>(m + f));  // wraps
      case AtomicOp::logical_or:
        return memory != 0 || first != 0 ? 1 : 0;
      case AtomicOp::logical_and:
        return memory != 0 && first != 0 ? 1 : 0;
      case AtomicOp::logical_xor:
        return (memory != 0) != (first != 0) ? 1 : 0;
      case AtomicOp::bit_or:
        return static_cast<T>(m | f);
      case AtomicOp::bit_and:
        return static_cast<T>(m & f);
      case AtomicOp::bit_xor:
        return static_cast<T>(m ^ f);
      case AtomicOp::and_xor:
        return static_cast<T>((m & s) ^ f);
      default:
        return memory;
    }
  } else if constexpr (std::is_floating_point_v<T> || kComplex<T>) {
    if (a.op == AtomicOp::sum) return memory + first;
  }
  return memory;
}

/// `Word`: what the CPU exchanges at once.
template <class T, class Word>
void apply(const Atomic& a, u8* memory, u8* old) {
  static_assert(sizeof(T) == sizeof(Word));
  auto* const word = reinterpret_cast<Word*>(memory);
  Word before = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  for (;;) {
    T value;
    std::memcpy(static_cast<void*>(&value), &before, sizeof value);
    const T made = result<T>(a, value);
    Word after;
    std::memcpy(&after, static_cast<const void*>(&made), sizeof after);
    // Acquire and release: the operation comes behind the data before it, as a put does.
    if (__atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) break;
  }
  std::memcpy(old, &before, sizeof before);
}

/// Of 16 bytes: the device's other operations come before or behind it, a CPU's in between.
template <class T>
void apply_wide(const Atomic& a, u8* memory, u8* old) {
  T value;
  std::memcpy(static_cast<void*>(&value), memory, sizeof value);
  std::memcpy(old, static_cast<const void*>(&value), sizeof value);
  const T made = result<T>(a, value);
  std::memcpy(memory, static_cast<const void*>(&made), sizeof made);
}

}  // namespace

bool is_atomic(const Atomic& a) {
  const bool bits = (a.op >= AtomicOp::logical_or && a.op <= AtomicOp::bit_xor) || a.op == AtomicOp::and_xor;
  if (a.op > AtomicOp::and_xor || static_cast<u32>(a.op) == 3 || a.swap_if > SwapIf::greater) return false;
  switch (a.type) {
    case AtomicType::f32:
    case AtomicType::f64:
      return !bits;
    case AtomicType::f32_complex:
    case AtomicType::f64_complex:
      return a.op == AtomicOp::sum || a.op == AtomicOp::swap ||
             (a.op == AtomicOp::compare_swap && a.swap_if <= SwapIf::not_equal);
    case AtomicType::u128:
      return a.op == AtomicOp::compare_swap && a.swap_if == SwapIf::equal;
    default:
      return atomic_bytes(a.type) != 0;
  }
}

void apply_atomic(const Atomic& a, u8* memory, u8* old) {
  switch (a.type) {
    case AtomicType::i8:
      return apply<std::int8_t, u8>(a, memory, old);
    case AtomicType::u8:
      return apply<u8, u8>(a, memory, old);
    case AtomicType::i16:
      return apply<std::int16_t, u16>(a, memory, old);
    case AtomicType::u16:
      return apply<u16, u16>(a, memory, old);
    case AtomicType::i32:
      return apply<std::int32_t, u32>(a, memory, old);
    case AtomicType::u32:
      return apply<u32, u32>(a, memory, old);
    case AtomicType::i64:
      return apply<std::int64_t, u64>(a, memory, old);
    case AtomicType::u64:
      return apply<u64, u64>(a, memory, old);
    case AtomicType::f32:
      return apply<float, u32>(a, memory, old);
    case AtomicType::f32_complex:
      return apply<std::complex<float>, u64>(a, memory, old);
    case AtomicType::f64:
      return apply<double, u64>(a, memory, old);
    case AtomicType::f64_complex:
      return apply_wide<std::complex<double>>(a, memory, old);
    case AtomicType::u128:
      return apply_wide<U128>(a, memory, old);
  }
}

}  // namespace doorbell::cxi
