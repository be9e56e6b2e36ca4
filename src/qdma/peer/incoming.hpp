// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A message of wire.hpp as the end that has asked takes it.
#pragma once

#include <sys/socket.h>

#include <array>

#include "qdma/peer/wire.hpp"
#include "system/descriptor.hpp"

namespace doorbell::qdma {

/// A message that came, and the descriptors that came with it.
struct Incoming {
  enum class Status {
    message,
    none,    ///< nothing has come yet
    closed,  ///< the other end has gone
  };
  Status status = Status::none;
  std::array<u8, wire::kMaxMessage> bytes{};
  u32 length = 0;
  bool truncated = false;  ///< it was longer than wire::kMaxMessage
  std::array<Descriptor, wire::kMaxDescriptors> descriptors;
  u32 descriptor_count = 0;
};

/// Makes the descriptors that came with `m` those of `in`; what are too many are closed.
void take_descriptors(const msghdr& m, Incoming& in);
/// Takes a message, without waiting.
[[nodiscard]] Incoming receive_message(int socket);

}  // namespace doorbell::qdma
