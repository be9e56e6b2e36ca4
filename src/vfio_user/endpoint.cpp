// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "vfio_user/endpoint.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "system/clock.hpp"
#include "system/passed_files.hpp"

namespace doorbell::vfio_user {

namespace {

constexpr std::size_t kRoom = 253;  // what a kernel lets one message have

}  // namespace

Endpoint::Endpoint(Descriptor socket, u64 timeout_ns) : socket_(std::move(socket)), timeout_ns_(timeout_ns) {}

int Endpoint::send(std::span<const u8> message, std::span<const int> files) {
  const std::lock_guard lock(sending_);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostFiles)> control{};
  const u64 end = wall_ns() + timeout_ns_;
  for (std::size_t sent = 0; sent < message.size();) {
    iovec part{const_cast<u8*>(message.data()) + sent, message.size() - sent};
    msghdr m{};
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    if (sent == 0) pass_files(m, files.first(std::min<std::size_t>(files.size(), kMostFiles)), control);
    const ssize_t n = ::sendmsg(socket_.get(), &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) return errno;
    const u64 now = wall_ns();
    if (now >= end) return ETIMEDOUT;
    pollfd p{socket_.get(), POLLOUT, 0};
    (void)::poll(&p, 1, static_cast<int>(std::min<u64>((end - now) / 1'000'000 + 1, 1000)));
  }
  return 0;
}

int Endpoint::fill(std::span<u8> space, std::vector<Descriptor>& files) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kRoom)> control;
  for (std::size_t have = 0; have < space.size();) {
    iovec part{space.data() + have, space.size() - have};
    msghdr m{};
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    m.msg_control = control.data();
    m.msg_controllen = control.size();
    const ssize_t n = ::recvmsg(socket_.get(), &m, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd p{socket_.get(), POLLIN, 0};
      (void)::poll(&p, 1, -1);
      continue;
    }
    if (n <= 0) return ECONNRESET;
    take_files(m, [&](Descriptor file) { files.push_back(std::move(file)); });
    if ((m.msg_flags & MSG_CTRUNC) != 0) return ENOBUFS;
    have += static_cast<std::size_t>(n);
  }
  return 0;
}

int Endpoint::receive(Incoming& out) {
  out = {};
  std::array<u8, kHeaderBytes> header{};
  if (const int error = fill(header, out.files); error != 0) return error;
  const std::size_t length = length_of(header, kLongest);
  if (length == 0) return EPROTO;
  out.header = *first_of<Header>(header);
  out.payload.resize(length - kHeaderBytes);
  return fill(out.payload, out.files);
}

void Endpoint::shut() {
  (void)::shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace doorbell::vfio_user
