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
class DueHeap {
 public:
  void push(u64 due_ns, const T& what) {
    items_.push_back({due_ns, pushed_++, what});
    std::ranges::push_heap(items_, later);
  }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] bool due(u64 now_ns) const { return !items_.empty() && items_.front().due_ns <= now_ns; }
  /// Removes and returns the earliest entry; there must be one.
  [[nodiscard]] T pop() {
    std::ranges::pop_heap(items_, later);
    T what = items_.back().what;
    items_.pop_back();
    return what;
  }
  template <class Predicate>
  void erase_if(Predicate&& drop) {
    std::erase_if(items_, [&](const Item& i) { return drop(i.what); });
    std::ranges::make_heap(items_, later);
  }
  void clear() { items_.clear(); }

 private:
  struct Item {
    u64 due_ns;
    u64 serial;
    T what;
  };
  static bool later(const Item& a, const Item& b) {
    return a.due_ns != b.due_ns ? a.due_ns > b.due_ns : a.serial > b.serial;
  }
  std::vector<Item> items_;
  u64 pushed_ = 0;
};

}  // namespace doorbell::model
