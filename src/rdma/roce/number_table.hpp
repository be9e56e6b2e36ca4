// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Objects by numbers of 24 bits that mostly lie in a row. Used by whoever has the engine.
#pragma once

#include <doorbell/config.hpp>

#include <vector>

#include "rdma/roce/wire.hpp"

namespace doorbell::roce {

template <class Object>
class NumberTable {
 public:
  /// Numbers begin behind `first`.
  NumberTable(std::size_t places, u32 first) : places_(places), last_(first & kMask24) {}

  [[nodiscard]] Object* find(u32 number) const {
    Object* found = places_[number & (places_.size() - 1)];
    return found != nullptr && found->number() == number ? found : nullptr;
  }
  /// One that add() can take.
  [[nodiscard]] u32 free_number() {
    if (count_ * 2 >= places_.size()) grow();
    for (;;) {
      last_ = psn_after(last_, 1);
      // Of queue pairs 0 and 1 are for management, and the last one is for multicast.
      if (last_ <= 1 || last_ == kMask24) continue;
      if (place(last_) == nullptr) return last_;
    }
  }
  void add(Object& object) {
    place(object.number()) = &object;
    ++count_;
  }
  void remove(const Object& object) {
    place(object.number()) = nullptr;
    --count_;
  }
  [[nodiscard]] std::size_t places() const { return places_.size(); }
  template <class Call>
  void each(Call call) const {
    for (Object* object : places_)
      if (object != nullptr) call(*object);
  }

 private:
  [[nodiscard]] Object*& place(u32 number) { return places_[number & (places_.size() - 1)]; }
  void grow() {
    // Twice as many places as objects find a free one at once. Two that share a place in the smaller table
    // never share one in the larger.
    std::vector<Object*> larger(places_.size() * 2);
    for (Object* object : places_)
      if (object != nullptr) larger[object->number() & (larger.size() - 1)] = object;
    places_ = std::move(larger);
  }

  std::vector<Object*> places_;  ///< by the low bits of the number; a power of two
  std::size_t count_ = 0;
  u32 last_;
};

}  // namespace doorbell::roce
