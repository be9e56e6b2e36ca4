// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/slash/message.hpp"

#include <algorithm>
#include <cerrno>

namespace doorbell::qdma::slash {

std::vector<u8> encode_reply(const Header& request, std::int32_t result, std::span<const u8> structure) {
  const Header header{.number = request.number, .sequence = request.sequence, .result = result};
  std::vector<u8> out(sizeof header + structure.size());
  std::memcpy(out.data(), &header, sizeof header);
  std::ranges::copy(structure, out.begin() + sizeof header);
  return out;
}

int check_request(const service::Message& message, Header& header) {
  header = {};
  if (message.bytes.size() < sizeof header) return EPROTO;
  std::memcpy(&header, message.bytes.data(), sizeof header);
  if (message.truncated || message.files.size() > kMaxDescriptors) return EPROTO;
  return message.lost ? EMFILE : 0;
}

}  // namespace doorbell::qdma::slash
