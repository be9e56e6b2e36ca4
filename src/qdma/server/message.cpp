// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/server/message.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace doorbell::qdma {

std::vector<u8> encode_reply(const wire::ReplyHeader& header, std::span<const u8> structure,
                             std::span<const wire::SubReply> parts) {
  std::vector<u8> out(sizeof header + structure.size() + parts.size_bytes());
  u8* at = out.data();
  std::memcpy(at, &header, sizeof header);
  at += sizeof header;
  std::copy(structure.begin(), structure.end(), at);
  at += structure.size();
  if (!parts.empty()) std::memcpy(at, parts.data(), parts.size_bytes());
  return out;
}

int check_request(const service::Message& message, wire::RequestHeader& header) {
  header = {};
  if (message.bytes.size() < sizeof header) return EPROTO;
  std::memcpy(&header, message.bytes.data(), sizeof header);
  if (header.magic != wire::kMagic || message.truncated || header.descriptors > wire::kMaxDescriptors ||
      header.bytes != message.bytes.size() - sizeof header)
    return EPROTO;
  if (message.files.size() == header.descriptors) return message.lost ? EPROTO : 0;
  return message.lost && message.files.size() < header.descriptors ? EMFILE : EPROTO;
}

}  // namespace doorbell::qdma
