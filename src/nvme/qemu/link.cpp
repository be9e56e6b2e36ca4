// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/qemu/link.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "system/clock.hpp"
#include "system/passed_files.hpp"

namespace doorbell::nvme {

namespace {

enum Command : u32 { share_memory_map = 0, config_write = 2, config_read = 3, bar_write = 4, bar_read = 5 };

constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kReplyBytes = kHeaderBytes + 8;
/// Unread replies fill the socket at about 550; QEMU then stops answering.
constexpr u64 kUnreadLimit = 128;
/// Waking a sleeping thread costs more than a reply usually takes: look this long before sleeping.
constexpr u64 kReceiveSpinNs = 50'000;

template <class T>
void put(std::span<u8> payload, std::size_t at, T value) {
  std::memcpy(payload.data() + at, &value, sizeof value);
}

std::array<u8, 24> bar_access(u64 address, u64 value, u32 bytes) {
  std::array<u8, 24> p{};
  put(p, 0, address);
  put(p, 8, value);
  put(p, 16, bytes);
  p[20] = 1;  // memory space, not I/O ports
  return p;
}

std::array<u8, 12> config_access(u32 offset, u32 value, u32 bytes) {
  std::array<u8, 12> p{};
  put(p, 0, offset);
  put(p, 4, value);
  put(p, 8, bytes);
  return p;
}

}  // namespace

QemuLink::QemuLink(int socket, double timeout_s)
    : socket_(socket), timeout_ns_(static_cast<u64>(timeout_s * 1e9)) {
  // A peer that has stopped lets its socket fill up: sending must not wait for ever either.
  timeval t{};
  t.tv_sec = static_cast<time_t>(timeout_ns_ / 1'000'000'000);
  t.tv_usec = static_cast<suseconds_t>(timeout_ns_ % 1'000'000'000 / 1000);
  setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

QemuLink::~QemuLink() {
  close(socket_);
}

void QemuLink::send(u32 command, std::span<const u8> payload, int fd) {
  if (gone_) return;
  std::array<u8, kHeaderBytes + 192> message{};
  put<u32>(message, 0, command);
  put<u64>(message, 8, payload.size());
  std::memcpy(message.data() + kHeaderBytes, payload.data(), payload.size());
  iovec part = {message.data(), kHeaderBytes + payload.size()};
  msghdr m{};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  alignas(cmsghdr) std::array<u8, CMSG_SPACE(sizeof(int))> control{};
  pass_files(m, std::span(&fd, fd >= 0 ? 1 : 0), control);
  while (part.iov_len > 0) {
    const ssize_t n = sendmsg(socket_, &m, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      gone_ = true;
      return;
    }
    part.iov_base = static_cast<u8*>(part.iov_base) + n;
    part.iov_len -= static_cast<std::size_t>(n);
    m.msg_control = nullptr;
    m.msg_controllen = 0;
  }
  ++sent_;
}

u64 QemuLink::request(u32 command, std::span<const u8> payload) {
  send(command, payload);
  return ++asked_;
}

void QemuLink::receive(bool wait) {
  std::array<u8, kReplyBytes * 64> buffer;
  for (;;) {
    const ssize_t n = recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait) return;
      pollfd p = {socket_, POLLIN, 0};
      if (poll(&p, 1, 100) <= 0) return;
      wait = false;
      continue;
    }
    if (n <= 0) {
      gone_ = true;
      return;
    }
    partial_.insert(partial_.end(), buffer.begin(), buffer.begin() + n);
    std::size_t at = 0;
    for (; partial_.size() - at >= kReplyBytes; at += kReplyBytes) {
      std::memcpy(&last_value_, partial_.data() + at + kHeaderBytes, sizeof last_value_);
      if (++answered_ == reading_) {
        on_read_(static_cast<u32>(last_value_));
        reading_ = 0;
      }
    }
    partial_.erase(partial_.begin(), partial_.begin() + static_cast<std::ptrdiff_t>(at));
    return;
  }
}

u64 QemuLink::await(u64 number) {
  const u64 begin = wall_ns();
  while (answered_ < number && !gone_) {
    const u64 waited = wall_ns() - begin;
    if (waited > timeout_ns_) gone_ = true;
    else receive(waited > kReceiveSpinNs);
  }
  return gone_ ? ~u64{0} : last_value_;
}

void QemuLink::share_memory(int fd, u64 base, u64 bytes) {
  const std::scoped_lock lock(mutex_);
  std::array<u8, 192> p{};
  put(p, 0, base);
  put(p, 64, bytes);
  put<u64>(p, 128, 0);
  send(share_memory_map, p, fd);
}

u32 QemuLink::read_config(u32 offset, u32 bytes) {
  const std::scoped_lock lock(mutex_);
  return static_cast<u32>(await(request(config_read, config_access(offset, 0, bytes))));
}

void QemuLink::write_config(u32 offset, u32 value, u32 bytes) {
  const std::scoped_lock lock(mutex_);
  (void)await(request(config_write, config_access(offset, value, bytes)));
}

u64 QemuLink::read(u64 address, u32 bytes) {
  const std::scoped_lock lock(mutex_);
  return await(request(bar_read, bar_access(address, 0, bytes)));
}

void QemuLink::write(u64 address, u32 value) {
  const std::scoped_lock lock(mutex_);
  (void)await(request(bar_write, bar_access(address, value, 4)));
}

void QemuLink::post_write(u64 address, u32 value) {
  const std::scoped_lock lock(mutex_);
  (void)request(bar_write, bar_access(address, value, 4));
  if (asked_ - answered_ > kUnreadLimit) receive(false);
  if (asked_ - answered_ > 2 * kUnreadLimit) (void)await(asked_ - kUnreadLimit);
}

void QemuLink::post_read(u64 address, std::function<void(u32)> done) {
  const std::scoped_lock lock(mutex_);
  if (reading_ != 0) return;
  on_read_ = std::move(done);
  reading_ = request(bar_read, bar_access(address, 0, 4));
}

void QemuLink::take_replies() {
  const std::scoped_lock lock(mutex_);
  receive(false);
}

bool QemuLink::gone() const {
  const std::scoped_lock lock(mutex_);
  return gone_;
}

u64 QemuLink::messages() const {
  const std::scoped_lock lock(mutex_);
  return sent_;
}

}  // namespace doorbell::nvme
