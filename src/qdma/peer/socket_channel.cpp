// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/peer/socket_channel.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "qdma/peer/incoming.hpp"
#include "qdma/peer/socket_ring.hpp"
#include "system/clock.hpp"
#include "system/passed_files.hpp"

namespace doorbell::qdma {

namespace {

/// CLOCK_MONOTONIC is what steady_clock counts.
std::chrono::steady_clock::time_point steady_time(u64 ns) {
  constexpr u64 kFar = u64{1} << 62;
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(std::min(ns, kFar)));
}

/// False at `until_ns`.
bool wait_for(int fd, short events, u64 until_ns) {
  for (;;) {
    const u64 now = wall_ns();
    const u64 left = until_ns > now ? until_ns - now : 0;
    const timespec limit{static_cast<time_t>(std::min<u64>(left / 1'000'000'000, 3600)),
                         static_cast<long>(left % 1'000'000'000)};
    pollfd p{fd, events, 0};
    const int n = ppoll(&p, 1, &limit, nullptr);
    if (n > 0 || (n < 0 && errno != EINTR)) return true;
    if (now >= until_ns) return false;
  }
}

/// The other end of the socket.
bool is_gone(int error) {
  return error == EPIPE || error == ECONNRESET || error == ENOTCONN;
}

int send_once(int fd, std::span<const u8> bytes, std::span<const int> descriptors) {
  iovec io{const_cast<u8*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(wire::kMaxDescriptors * sizeof(int))> control{};
  msghdr m{};
  m.msg_iov = &io;
  m.msg_iovlen = 1;
  pass_files(m, descriptors, control);
  ssize_t n = 0;
  do {
    n = sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n < 0 ? errno : 0;
}

/// A request as a message, and the descriptors that go with it.
struct Outgoing {
  std::vector<u8> bytes;
  std::array<int, wire::kMaxDescriptors> descriptors{};
  u32 count = 0;

  Outgoing(const SocketChannel::Request& r) {
    wire::RequestHeader h{.number = r.number,
                          .sequence = r.sequence,
                          .deadline_ns = r.deadline_ns,
                          .bytes = static_cast<u32>(r.structure.size())};
    bytes.resize(sizeof h + r.structure.size());
    const auto body = std::span(bytes).subspan(sizeof h);
    std::copy(r.structure.begin(), r.structure.end(), body.begin());
    if (r.number == kCallTransfer) buffers_of(body);
    h.descriptors = count;
    std::memcpy(bytes.data(), &h, sizeof h);
  }

 private:
  /// A buffer's descriptor goes beside the message, and its position goes into it.
  void buffers_of(std::span<u8> transfer) {
    constexpr std::size_t kCount = 4, kFirst = 8, kBufFd = 8;
    u32 xfers = 0;
    if (transfer.size() >= kFirst) std::memcpy(&xfers, &transfer[kCount], sizeof xfers);
    for (u32 i = 0; i < std::min(xfers, kMaxSubTransfers); ++i) {
      const std::size_t at = kFirst + i * sizeof(SubXfer) + kBufFd;
      if (at + sizeof(int) > transfer.size()) return;
      int fd = -1;
      std::memcpy(&fd, &transfer[at], sizeof fd);
      int position = -1;
      if (fd >= 0) {
        const auto known = std::find(descriptors.begin(), descriptors.begin() + count, fd);
        position = static_cast<int>(known - descriptors.begin());
        if (static_cast<u32>(position) == count) descriptors[count++] = fd;
      }
      std::memcpy(&transfer[at], &position, sizeof position);
    }
  }
};

}  // namespace

SocketChannel::SocketChannel(int socket) : socket_(socket) {
  struct stat s {};
  if (fstat(socket_, &s) == 0) {
    device_ = s.st_dev;
    inode_ = s.st_ino;
  }
}

SocketChannel::~SocketChannel() = default;

bool SocketChannel::is_same_file() const {
  struct stat s {};
  return fstat(socket_, &s) == 0 && s.st_dev == device_ && s.st_ino == inode_;
}

void SocketChannel::want_ring() {
  const std::lock_guard lock(mutex_);
  ring_wanted_ = true;
  try_ring();
}

void SocketChannel::try_ring() {
  if (!ring_wanted_ || ring_ || reading_) return;  // who reads does so without a ring
  ring_ = SocketRing::make(socket_);
  ring_wanted_ = false;
}

int SocketChannel::send(std::span<const u8> bytes, std::span<const int> descriptors, u64 until_ns) {
  for (;;) {
    int error = 0;
    {
      const std::lock_guard lock(mutex_);
      if (dead_) return ENODEV;
      try_ring();
      error = ring_ ? ring_->send(bytes, descriptors) : send_once(socket_, bytes, descriptors);
    }
    if (is_gone(error)) return ENODEV;
    if (error != EAGAIN) return error;
    if (!wait_for(socket_, POLLOUT, until_ns)) return ETIMEDOUT;
  }
}

int SocketChannel::begin(Request& r, u64 until_ns) {
  r.done = false;
  {
    const std::lock_guard lock(mutex_);
    if (dead_) return ENODEV;
    r.sequence = next_++;
    waiting_.emplace(r.sequence, &r);
  }
  const u64 sequence = r.sequence;
  const Outgoing out(r);
  const int error = send(out.bytes, std::span(out.descriptors).first(out.count), until_ns);
  if (error == 0) return 0;
  const std::lock_guard lock(mutex_);
  // If it is no longer there, it has ended because the server has gone.
  return waiting_.erase(sequence) == 1 ? error : 0;
}

bool SocketChannel::forget(Request& r) {
  Lock lock(mutex_);
  if (waiting_.erase(r.sequence) == 1) return true;
  // The thread that ends all requests has it.
  if (r.ended == nullptr) changed_.wait(lock, [&] { return r.done; });
  return false;
}

void SocketChannel::fill(Request& r, Incoming& message) {
  wire::ReplyHeader h;
  std::memcpy(&h, message.bytes.data(), sizeof h);
  r.result.result = h.result;
  const u8* at = message.bytes.data() + sizeof h;
  std::copy_n(at, std::min<std::size_t>(h.bytes, r.structure.size()), r.structure.begin());
  at += h.bytes;
  r.result.parts = static_cast<u32>(std::min<std::size_t>(h.parts, r.parts.size()));
  for (u32 i = 0; i < r.result.parts; ++i) {
    wire::SubReply p;
    std::memcpy(&p, at + i * sizeof p, sizeof p);
    r.parts[i] = {.error = static_cast<int>(p.error), .bytes = p.bytes, .ns = p.ns, .known = true};
  }
  if (h.descriptors > 0) r.descriptor = std::move(message.descriptors[0]);
  // The reply says that there is a descriptor, and this process could not take one more.
  if (h.descriptors > 0 && r.descriptor.get() < 0) r.result.result = -EMFILE;
}

void SocketChannel::take(Incoming& message, Lock& lock) {
  wire::ReplyHeader h;
  bool good = message.length >= sizeof h && !message.truncated;
  if (good) {
    std::memcpy(&h, message.bytes.data(), sizeof h);
    good = h.magic == wire::kMagic && h.parts <= kMaxSubTransfers &&
           u64{message.length} == sizeof h + u64{h.bytes} + h.parts * sizeof(wire::SubReply);
  }
  if (!good) {
    end_all(lock);
    return;
  }
  ++taken_;
  const auto it = waiting_.find(h.sequence);
  if (it == waiting_.end()) return;  // no thread waits any more; a descriptor in it is closed
  Request& r = *it->second;
  waiting_.erase(it);
  fill(r, message);
  r.done = true;
  if (r.ended == nullptr) return;
  lock.unlock();
  r.ended(r);
  lock.lock();
}

void SocketChannel::end_all(Lock& lock) {
  dead_ = true;
  ++taken_;
  const auto all = std::exchange(waiting_, {});
  for (const auto& [sequence, r] : all) {
    r->result = {.result = -ENODEV, .parts = 0};
    // The waiting thread may take the request away as soon as it is done.
    const auto ended = r->ended;
    r->done = true;
    if (ended == nullptr) continue;
    lock.unlock();
    ended(*r);
    lock.lock();
  }
}

void SocketChannel::end_unsent(Lock& lock) {
  for (const auto& [sequence, error] : ring_->take_unsent()) {
    const auto it = waiting_.find(sequence);
    if (it == waiting_.end()) continue;
    ++taken_;
    Request& r = *it->second;
    waiting_.erase(it);
    r.result = {.result = is_gone(error) ? -ENODEV : -error, .parts = 0};
    const auto ended = r.ended;
    r.done = true;
    if (ended == nullptr) continue;
    lock.unlock();
    ended(r);
    lock.lock();
  }
}

void SocketChannel::lead(Lock& lock, u64 until_ns) {
  reading_ = true;
  Incoming message;
  if (ring_) {
    ring_->arm();
    lock.unlock();
    ring_->take(message, until_ns);
    lock.lock();
    end_unsent(lock);
  } else {
    lock.unlock();
    if (wait_for(socket_, POLLIN, until_ns)) message = receive_message(socket_);
    lock.lock();
  }
  if (message.status == Incoming::Status::message) take(message, lock);
  else if (message.status == Incoming::Status::closed) end_all(lock);
  reading_ = false;
  try_ring();
  changed_.notify_all();
}

bool SocketChannel::wait(Request& r, u64 until_ns) {
  Lock lock(mutex_);
  while (!r.done) {
    if (wall_ns() >= until_ns) return false;
    if (reading_) changed_.wait_until(lock, steady_time(until_ns));
    else lead(lock, until_ns);
  }
  return true;
}

void SocketChannel::drive(u64 until_ns) {
  Lock lock(mutex_);
  const u64 before = taken_;
  bool looked = false;
  while (taken_ == before && !dead_) {
    if (looked && wall_ns() >= until_ns) return;
    looked = true;
    if (reading_) changed_.wait_until(lock, steady_time(until_ns));
    else lead(lock, until_ns);
  }
}

void SocketChannel::cancel(u64 tag) {
  u64 sequence = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [s, r] : waiting_)
      if (tag != 0 && r->tag == tag) sequence = s;
  }
  if (sequence != 0) cancel_sequence(sequence);
}

void SocketChannel::cancel_sequence(u64 of) {
  wire::Cancel c{.sequence = of};
  u64 sequence = 0;
  {
    const std::lock_guard lock(mutex_);
    sequence = next_++;
  }
  Request r;
  r.number = wire::kCancel;
  r.sequence = sequence;
  r.structure = std::span(reinterpret_cast<u8*>(&c), sizeof c);
  const Outgoing out(r);
  constexpr u64 kLimitNs = 1'000'000'000;
  // Its reply is not awaited: the transfer's own reply has the result.
  static_cast<void>(send(out.bytes, {}, wall_ns() + kLimitNs));
}

}  // namespace doorbell::qdma
