// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Asynchronous events: requests that wait for one, and events that wait for a request. After an event of a
// type there is no other of this type until the host has read the log page that the event names.
#pragma once

#include <doorbell/config.hpp>

#include <algorithm>
#include <deque>
#include <optional>

#include "nvme/model/admin_wire.hpp"

namespace doorbell::nvme {

struct AsyncEvent {
  enum class Type : u8 { error = 0, smart = 1, command_set = 6 };
  Type type = Type::error;
  u8 information = 0;

  // Of errors.
  static constexpr u8 kUnknownDoorbell = 0, kBadDoorbellValue = 1;
  // Of SMART.
  static constexpr u8 kReliability = 0, kTemperature = 1;
  // Of the command set.
  static constexpr u8 kSanitized = 1;

  [[nodiscard]] u8 log_page() const {
    return type == Type::error ? log::errors : type == Type::smart ? log::smart : log::sanitize;
  }
  /// Dword 0 of the completion that reports it.
  [[nodiscard]] u32 result() const {
    return u32{log_page()} << 16 | u32{information} << 8 | static_cast<u32>(type);
  }
  bool operator==(const AsyncEvent&) const = default;
};

class AsyncEvents {
 public:
  static constexpr u32 kRequests = 4;  ///< AERL + 1

  struct Report {
    u16 cid = 0;
    AsyncEvent event;
  };

  /// False: there are as many as may wait.
  [[nodiscard]] bool request(u16 cid) {
    if (requests_.size() >= kRequests) return false;
    requests_.push_back(cid);
    return true;
  }
  /// True if a request had this cid; it waits no more.
  [[nodiscard]] bool cancel(u16 cid) { return std::erase(requests_, cid) != 0; }
  /// One event of each kind is kept until the host asks.
  void raise(AsyncEvent e) {
    if (std::ranges::find(pending_, e) == pending_.end()) pending_.push_back(e);
  }
  /// An event that can be reported now, with the request that it ends.
  [[nodiscard]] std::optional<Report> next() {
    if (requests_.empty()) return {};
    const auto it = std::ranges::find_if(
        pending_, [this](const AsyncEvent& e) { return (held_ >> static_cast<u32>(e.type) & 1) == 0; });
    if (it == pending_.end()) return {};
    const Report r{requests_.front(), *it};
    held_ |= 1u << static_cast<u32>(it->type);
    pending_.erase(it);
    requests_.pop_front();
    return r;
  }
  /// The host has read this page, and may be told of more of its type.
  void page_was_read(u8 page) {
    using enum AsyncEvent::Type;
    for (const AsyncEvent::Type t : {error, smart, command_set})
      if (AsyncEvent{t, 0}.log_page() == page) held_ &= ~(1u << static_cast<u32>(t));
  }
  void clear() { *this = {}; }

 private:
  std::deque<u16> requests_;
  std::deque<AsyncEvent> pending_;
  u32 held_ = 0;  // a bit for each type
};

}  // namespace doorbell::nvme
