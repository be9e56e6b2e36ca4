// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "net/assembly/window.hpp"

namespace doorbell::net {

WindowTracker::WindowTracker(const WindowShape& shape)
    : shape_(shape),
      words_((shape.packets + 63) / 64),
      span_(u64{shape.packets} * shape.open),
      oldest_sequence_(shape.first_sequence) {
  if (shape.packets < 1 || shape.packets > kMaxWindowPackets)
    throw Error(fmt::format("windows of {} packets", shape.packets),
                fmt::format("a window has 1 to {} packets", kMaxWindowPackets));
  if (shape.open < 1 || shape.open > kMaxOpenWindows)
    throw Error(fmt::format("{} open windows", shape.open),
                fmt::format("1 to {} windows can be open at a time", kMaxOpenWindows));
  if (shape.first_sequence > kSequenceMask)
    throw Error(fmt::format("a first sequence of {}", shape.first_sequence), "a sequence has 48 bits");
  entries_.resize(shape.open);
  bits_.resize(u64{words_} * shape.open);
}

u64 WindowTracker::next_timeout_ns() const {
  u64 next = ~u64{0};
  if (shape_.timeout_ns == 0) return next;
  for (const Entry& e : entries_)
    if (e.arrived != 0) next = std::min(next, e.first_ns + shape_.timeout_ns);
  return next;
}

void WindowTracker::count(const ClosedWindow& w) {
  ++counts_.windows;
  counts_.missing += w.missing();
  switch (w.why) {
    case Closing::full:
      ++counts_.full;
      return;
    case Closing::pushed_out:
      ++counts_.pushed_out;
      return;
    case Closing::timeout:
      ++counts_.timed_out;
      return;
    case Closing::end:
      ++counts_.at_end;
      return;
  }
}

}  // namespace doorbell::net
