// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// State that the objects of one open card share.
#pragma once

#include <doorbell/qdma/card.hpp>

#include <atomic>
#include <memory>
#include <string>

#include "qdma/driver.hpp"

namespace doorbell::qdma {

struct CardState {
  std::shared_ptr<Driver> driver;
  std::string name;
  /// Bytes of this process's transfers that have not ended, by direction (host to card, card to host) and
  /// channel.
  std::array<std::array<std::atomic<u64>, 2>, 2> queued{};

  /// Issues a call on the control node, or on `fd`. Throws CardError.
  template <class T>
  i64 call(int fd, u32 number, T& structure, const char* what) {
    const CallResult r =
        driver->call(fd, number, std::span(reinterpret_cast<u8*>(&structure), sizeof structure));
    if (r.result < 0) fail(what, static_cast<int>(-r.result));
    return r.result;
  }
  [[noreturn]] void fail(const char* what, int number) const;
};

[[nodiscard]] Card card_with(std::shared_ptr<CardState> state);
[[nodiscard]] const std::shared_ptr<CardState>& state_of(const Card& card);

}  // namespace doorbell::qdma
