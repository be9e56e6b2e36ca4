// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The codec of slash/wire.hpp's messages.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "qdma/slash/wire.hpp"
#include "service/message.hpp"

namespace doorbell::qdma::slash {

/// The reply to `request`: its header with the result, and what follows.
[[nodiscard]] std::vector<u8> encode_reply(const Header& request, std::int32_t result,
                                           std::span<const u8> structure);

/// The errno for a request that is wrong, or 0: EPROTO for what is no message, EMFILE if its descriptors
/// found no place here. `header` is filled as far as the message goes.
[[nodiscard]] int check_request(const service::Message& message, Header& header);

/// A call's structure, of which the whole must be there and which says so. Returns 0 or an errno.
template <class T>
[[nodiscard]] int read_whole(std::span<const u8> payload, T& out) {
  if (payload.size() < sizeof out) return EINVAL;
  std::memcpy(static_cast<void*>(&out), payload.data(), sizeof out);
  return out.size < sizeof out ? EINVAL : 0;
}

template <class T>
[[nodiscard]] std::span<const u8> bytes_of(const T& structure) {
  return {reinterpret_cast<const u8*>(&structure), sizeof structure};
}

}  // namespace doorbell::qdma::slash
