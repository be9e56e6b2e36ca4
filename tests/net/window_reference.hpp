// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The rules of windows, written down plainly: sets and maps in place of bitmaps and rings, packet numbers in
// place of wrapping sequences. What WindowTracker is compared with.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "net/assembly/window.hpp"

namespace doorbell::net::test {

struct ReferenceWindow {
  u64 index;
  Closing why;
  u32 packets;
  std::set<u32> arrived;
  friend bool operator==(const ReferenceWindow&, const ReferenceWindow&) = default;
};

class ReferenceWindows {
 public:
  explicit ReferenceWindows(const WindowShape& shape) : shape_(shape) {}

  /// `n`: the packet's number in its stream, negative before the first.
  Placing place(i64 n, u64 now_ns) {
    if (n < 0) return Placing::misplaced;
    const u64 window = static_cast<u64>(n) / shape_.packets;
    const auto slot = static_cast<u32>(static_cast<u64>(n) % shape_.packets);
    if (window < oldest_) return Placing::late;
    if (window - oldest_ > kMaxWindowJump) return Placing::misplaced;
    bool pushed = false;
    while (window >= oldest_ + shape_.open) {
      close(Closing::pushed_out);
      pushed = true;
    }
    if (pushed) close_full();
    Open& open = open_[window];
    if (!open.arrived.insert(slot).second) return Placing::duplicate;
    if (open.arrived.size() == 1) open.first_ns = now_ns;
    end_ = std::max(end_, static_cast<u64>(n) + 1);
    close_full();
    return Placing::placed;
  }

  void expire(u64 now_ns) {
    std::optional<u64> last;
    for (const auto& [index, open] : open_)
      if (shape_.timeout_ns != 0 && now_ns >= open.first_ns + shape_.timeout_ns) last = index;
    if (!last) return;
    while (oldest_ <= *last) close(Closing::timeout);
    close_full();
  }

  void finish(u64 total) {
    end_ = std::max(end_, total);
    while (oldest_ * shape_.packets < end_) {
      const u64 left = end_ - oldest_ * shape_.packets;
      close(Closing::end, left < shape_.packets ? static_cast<u32>(left) : shape_.packets);
    }
  }

  std::vector<ReferenceWindow> closed;

 private:
  struct Open {
    std::set<u32> arrived;
    u64 first_ns = 0;
  };
  void close(Closing why, u32 packets = 0) {
    if (packets == 0) packets = shape_.packets;
    ReferenceWindow w{oldest_, why, packets, {}};
    if (const auto found = open_.find(oldest_); found != open_.end()) {
      w.arrived = found->second.arrived;
      open_.erase(found);
    }
    if (w.arrived.size() == shape_.packets) w.why = Closing::full;
    closed.push_back(std::move(w));
    ++oldest_;
  }
  void close_full() {
    for (;;) {
      const auto found = open_.find(oldest_);
      if (found == open_.end() || found->second.arrived.size() != shape_.packets) return;
      close(Closing::full);
    }
  }

  WindowShape shape_;
  std::map<u64, Open> open_;
  u64 oldest_ = 0;
  u64 end_ = 0;
};

}  // namespace doorbell::net::test
