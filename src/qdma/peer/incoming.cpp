// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/peer/incoming.hpp"

#include <algorithm>
#include <cerrno>

#include "service/message.hpp"
#include "system/passed_files.hpp"

namespace doorbell::qdma {

namespace {

void keep(Incoming& in, Descriptor file) {
  if (in.descriptor_count < in.descriptors.size()) in.descriptors[in.descriptor_count++] = std::move(file);
}

}  // namespace

void take_descriptors(const msghdr& m, Incoming& in) {
  take_files(m, [&](Descriptor file) { keep(in, std::move(file)); });
}

Incoming receive_message(int socket) {
  Incoming in;
  int flags = 0;
  const ssize_t n =
      service::receive(socket, in.bytes, flags, [&](Descriptor file) { keep(in, std::move(file)); });
  if (n == -EAGAIN) return in;
  in.status = n <= 0 ? Incoming::Status::closed : Incoming::Status::message;
  in.length = static_cast<u32>(std::max<ssize_t>(n, 0));
  in.truncated = (flags & MSG_TRUNC) != 0;
  return in;
}

}  // namespace doorbell::qdma
