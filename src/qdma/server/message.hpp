// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The codec of wire.hpp's messages.
#pragma once

#include <span>
#include <vector>

#include "qdma/peer/wire.hpp"
#include "service/message.hpp"

namespace doorbell::qdma {

/// A reply's header and what follows it.
[[nodiscard]] std::vector<u8> encode_reply(const wire::ReplyHeader& header, std::span<const u8> structure,
                                           std::span<const wire::SubReply> parts);

/// The errno for a request that is wrong, or 0: EPROTO, or EMFILE if its descriptors found no place here.
/// `header` is filled as far as the message goes.
[[nodiscard]] int check_request(const service::Message& message, wire::RequestHeader& header);

}  // namespace doorbell::qdma
