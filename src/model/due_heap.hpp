// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A heap for what a model reports later: the earliest time comes first, and with equal times the first put
// in.
#pragma once

#include <doorbell/config.hpp>

#include <algorithm>
#include <vector>

namespace doorbell::model {

template <class T>
struct DueItem {
  u64 due_ns;
  u64 serial;
  T what;
};

/// Items in memory of a fixed size, which its owner provides: for kernels.
template <class T>
struct FlatItems {
  using Item = DueItem<T>;
  Item* items = nullptr;
  u64 room = 0;
  u64 count = 0;
  [[nodiscard]] DOORBELL_INLINE u64 size() const { return count; }
  [[nodiscard]] DOORBELL_INLINE bool empty() const { return count == 0; }
  [[nodiscard]] DOORBELL_INLINE Item* begin() const { return items; }
  [[nodiscard]] DOORBELL_INLINE Item* end() const { return items + count; }
  [[nodiscard]] DOORBELL_INLINE const Item& front() const { return items[0]; }
  [[nodiscard]] DOORBELL_INLINE const Item& back() const { return items[count - 1]; }
  DOORBELL_INLINE void push_back(const Item& item) { items[count++] = item; }
  DOORBELL_INLINE void pop_back() { --count; }
};

template <class T, class Items = std::vector<DueItem<T>>>
class DueHeap {
 public:
  DueHeap() = default;
  DOORBELL_HD explicit DueHeap(const Items& items) : items_(items) {}

  /// True if `n` more find room.
  [[nodiscard]] DOORBELL_HD bool room_for(u64 n) const {
    if constexpr (requires { items_.room; }) return items_.room - items_.count >= n;
    else return true;
  }
  DOORBELL_HD void push(u64 due_ns, const T& what) {
    items_.push_back({due_ns, pushed_++, what});
    std::push_heap(items_.begin(), items_.end(), Later());
  }
  [[nodiscard]] DOORBELL_HD bool empty() const { return items_.empty(); }
  [[nodiscard]] DOORBELL_HD u64 size() const { return items_.size(); }
  [[nodiscard]] DOORBELL_HD bool due(u64 now_ns) const {
    return !items_.empty() && items_.front().due_ns <= now_ns;
  }
  /// Removes and returns the earliest entry; there must be one.
  [[nodiscard]] DOORBELL_HD T pop() {
    std::pop_heap(items_.begin(), items_.end(), Later());
    T what = items_.back().what;
    items_.pop_back();
    return what;
  }
  template <class Predicate>
  DOORBELL_HD void erase_if(Predicate&& drop) {
    auto kept = items_.begin();
    for (auto i = items_.begin(); i != items_.end(); ++i)
      if (!drop(i->what)) *kept++ = *i;
    while (items_.end() != kept) items_.pop_back();
    std::make_heap(items_.begin(), items_.end(), Later());
  }
  void clear() { items_.clear(); }

 private:
  struct Later {
    DOORBELL_HD bool operator()(const DueItem<T>& a, const DueItem<T>& b) const {
      return a.due_ns != b.due_ns ? a.due_ns > b.due_ns : a.serial > b.serial;
    }
  };
  Items items_;
  u64 pushed_ = 0;
};

}  // namespace doorbell::model
