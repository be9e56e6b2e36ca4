// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/server/message.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "system/passed_files.hpp"

namespace doorbell::qdma {

void take_descriptors(const msghdr& m, Incoming& in) {
  take_files(m, [&](Descriptor file) {
    if (in.descriptor_count < in.descriptors.size()) in.descriptors[in.descriptor_count++] = std::move(file);
    else in.surplus.push_back(std::move(file)), in.lost = true;
  });
}

Incoming receive_message(int socket) {
  Incoming in;
  iovec io{in.bytes.data(), in.bytes.size()};
  DescriptorSpace control;
  msghdr m{};
  m.msg_iov = &io;
  m.msg_iovlen = 1;
  m.msg_control = control.bytes.data();
  m.msg_controllen = control.bytes.size();
  ssize_t n = 0;
  do {
    n = recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) {
    in.status = errno == EAGAIN ? Incoming::Status::none : Incoming::Status::closed;
    return in;
  }
  take_descriptors(m, in);
  in.status = n == 0 ? Incoming::Status::closed : Incoming::Status::message;
  in.length = static_cast<u32>(n);
  in.truncated = (m.msg_flags & MSG_TRUNC) != 0;
  in.lost = in.lost || (m.msg_flags & MSG_CTRUNC) != 0;
  return in;
}

int send_message(int socket, std::span<const u8> bytes, int descriptor) {
  iovec io{const_cast<u8*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr m{};
  m.msg_iov = &io;
  m.msg_iovlen = 1;
  pass_files(m, std::span(&descriptor, descriptor >= 0 ? 1 : 0), control);
  ssize_t n = 0;
  do {
    n = sendmsg(socket, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n < 0 ? errno : 0;
}

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

int check_request(const Incoming& message, wire::RequestHeader& header) {
  header = {};
  if (message.length < sizeof header) return EPROTO;
  std::memcpy(&header, message.bytes.data(), sizeof header);
  if (header.magic != wire::kMagic || message.truncated || header.descriptors > wire::kMaxDescriptors ||
      header.bytes != message.length - sizeof header)
    return EPROTO;
  if (message.descriptor_count == header.descriptors) return message.lost ? EPROTO : 0;
  return message.lost && message.descriptor_count < header.descriptors ? EMFILE : EPROTO;
}

}  // namespace doorbell::qdma
