// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A bounded ring between one producing and one consuming thread. Host code only.
//
// Each side keeps its position on a cache line of its own together with its last look at the other's, and
// looks again only when that is not enough. Elements are handed over in bulk: one release a call, whatever it
// carries.
#pragma once

#include <doorbell/config.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <stdexcept>
#include <type_traits>

namespace doorbell::net {

/// `Index` counts elements and may overflow. No call blocks or throws, except the constructor.
template <class T, class Index = u64>
class SpscRing {
  static_assert(std::is_trivially_copyable_v<T>);
  static_assert(std::is_unsigned_v<Index> && std::atomic<Index>::is_always_lock_free);

 public:
  /// `capacity` is a power of two, at most half of what an Index counts. Positions begin at `start`: for
  /// tests of their overflow.
  explicit SpscRing(u32 capacity, Index start = 0) : mask_(capacity - 1) {
    if (!std::has_single_bit(capacity) ||
        capacity > std::min<u64>(1u << 30, u64{1} << (sizeof(Index) * 8 - 1)))
      throw std::invalid_argument("the capacity of a ring is a power of two, at most 2^30 or half an Index");
    elements_ = std::make_unique<T[]>(capacity);
    producer_.own.store(start, std::memory_order_relaxed);
    consumer_.own.store(start, std::memory_order_relaxed);
    producer_.other = consumer_.other = consumer_.taken = start;
  }

  [[nodiscard]] u32 capacity() const { return mask_ + 1; }

  // The producing thread's part.

  /// How many elements push() would accept now, at most `want`.
  [[nodiscard]] u32 space(u32 want) {
    const Index own = producer_.own.load(std::memory_order_relaxed);
    u32 free = capacity() - static_cast<u32>(static_cast<Index>(own - producer_.other));
    if (free < want) {
      // Pairs with the release in release(): the consumer has read the elements that are overwritten next.
      producer_.other = consumer_.own.load(std::memory_order_acquire);
      free = capacity() - static_cast<u32>(static_cast<Index>(own - producer_.other));
    }
    return std::min(free, want);
  }
  /// The place, 0 to capacity() - 1, that the i-th of the elements pushed next will have.
  [[nodiscard]] u32 place(u32 i) const {
    return static_cast<u32>(producer_.own.load(std::memory_order_relaxed) + i) & mask_;
  }
  /// Hands over as many of `n` elements as there is room for, and returns how many.
  u32 push(const T* from, u32 n) {
    n = space(n);
    if (n == 0) return 0;
    const Index own = producer_.own.load(std::memory_order_relaxed);
    const u32 at = static_cast<u32>(own) & mask_, first = std::min(n, capacity() - at);
    std::copy_n(from, first, elements_.get() + at);
    std::copy_n(from + first, n - first, elements_.get());
    // Pairs with the acquire in take(): the consumer sees the elements, and what was written before them.
    producer_.own.store(static_cast<Index>(own + n), std::memory_order_release);
    return n;
  }

  // The consuming thread's part.

  /// Copies out up to `n` elements that are there, and returns how many. Their room, and memory of the same
  /// place, stays the consumer's until release().
  u32 take(T* to, u32 n) {
    n = available(n);
    const u32 at = static_cast<u32>(consumer_.taken) & mask_, first = std::min(n, capacity() - at);
    std::copy_n(elements_.get() + at, first, to);
    std::copy_n(elements_.get(), n - first, to + first);
    consumer_.taken = static_cast<Index>(consumer_.taken + n);
    return n;
  }
  /// The place of the i-th of the elements taken next.
  [[nodiscard]] u32 next_place(u32 i) const { return static_cast<u32>(consumer_.taken + i) & mask_; }
  /// How many elements take() would return now, at most `want`.
  [[nodiscard]] u32 available(u32 want) {
    u32 there = static_cast<u32>(static_cast<Index>(consumer_.other - consumer_.taken));
    if (there < want) {
      consumer_.other = producer_.own.load(std::memory_order_acquire);
      there = static_cast<u32>(static_cast<Index>(consumer_.other - consumer_.taken));
    }
    return std::min(there, want);
  }
  /// Gives the room of the `n` oldest elements taken back to the producer.
  void release(u32 n) {
    const Index own = consumer_.own.load(std::memory_order_relaxed);
    consumer_.own.store(static_cast<Index>(own + n), std::memory_order_release);
  }
  /// take() and release() in one.
  u32 pop(T* to, u32 n) {
    n = take(to, n);
    if (n > 0) release(n);
    return n;
  }

 private:
  /// One side's line. `other` is the last look at the other side's position.
  struct alignas(64) Producer {
    std::atomic<Index> own{0};
    Index other = 0;
  };
  struct alignas(64) Consumer {
    std::atomic<Index> own{0};
    Index other = 0;
    Index taken = 0;  ///< elements before it have been copied out; own <= taken <= other
  };

  std::unique_ptr<T[]> elements_;
  u32 mask_;
  Producer producer_;
  Consumer consumer_;
};

}  // namespace doorbell::net
