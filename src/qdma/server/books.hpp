// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The figures that all protocols of one card server share.
#pragma once

#include <doorbell/config.hpp>

#include <atomic>
#include <functional>

#include "qdma/server/card_server.hpp"

namespace doorbell::qdma {

/// Written by the loop's thread only.
struct ServerBooks {
  const ServerLimits limits = {};
  std::function<void()> buffer_made = {};  ///< a client has got one, and nothing reports its end
  u64 next_socket = 1;
  std::atomic<u64> connections{0}, descriptors{0};  ///< sockets of each kind, now
  std::atomic<u64> requests{0}, refused{0}, buffers{0};
};

}  // namespace doorbell::qdma
