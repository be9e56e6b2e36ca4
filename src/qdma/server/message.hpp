// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Sending and receiving messages of wire.hpp.
#pragma once

#include <sys/socket.h>

#include <array>
#include <span>
#include <vector>

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
  bool lost = false;       ///< descriptors did not arrive: too many, or this process can have no more
  std::array<Descriptor, wire::kMaxDescriptors> descriptors;
  u32 descriptor_count = 0;
  std::vector<Descriptor> surplus;  ///< those that came beyond these
};

/// Room for the descriptors of any message.
union DescriptorSpace {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int) * wire::kMaxSentDescriptors)> bytes;
};

/// Makes the descriptors that came with `m` those of `in`.
void take_descriptors(const msghdr& m, Incoming& in);
/// Takes a message, without waiting.
[[nodiscard]] Incoming receive_message(int socket);
/// Sends a message, with `descriptor` unless it is negative, without waiting. 0, EAGAIN, or another errno.
[[nodiscard]] int send_message(int socket, std::span<const u8> bytes, int descriptor);

/// A reply's header and what follows it.
[[nodiscard]] std::vector<u8> encode_reply(const wire::ReplyHeader& header, std::span<const u8> structure,
                                           std::span<const wire::SubReply> parts);

/// The errno for a request that is wrong, or 0: EPROTO, or EMFILE if its descriptors found no place here.
/// `header` is filled as far as the message goes.
[[nodiscard]] int check_request(const Incoming& message, wire::RequestHeader& header);

}  // namespace doorbell::qdma
