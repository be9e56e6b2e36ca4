// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An agenda: the work that a software card has to do, by time. The owner's lock guards it.
#pragma once

#include <doorbell/config.hpp>

#include <map>
#include <utility>

namespace doorbell::qdma {

template <class What>
class Agenda {
 public:
  /// Names an entry until it has been taken or cancelled.
  struct Key {
    u64 ns = 0;
    u64 order = 0;  ///< 0: no entry
    auto operator<=>(const Key&) const = default;
  };

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  /// When the first entry is due. Not of an empty agenda.
  [[nodiscard]] u64 first_ns() const { return entries_.begin()->first.ns; }

  /// Entries of one time are taken in the order in which they were added.
  [[nodiscard]] Key add(u64 ns, What what) {
    const Key key{ns, ++orders_};
    entries_.emplace(key, std::move(what));
    return key;
  }
  void cancel(Key& key) {
    if (key.order != 0) entries_.erase(key);
    key = {};
  }
  [[nodiscard]] What take_first() {
    What what = std::move(entries_.begin()->second);
    entries_.erase(entries_.begin());
    return what;
  }

 private:
  std::map<Key, What> entries_;
  u64 orders_ = 0;
};

}  // namespace doorbell::qdma
