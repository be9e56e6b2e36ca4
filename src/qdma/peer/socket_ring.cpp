// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/peer/socket_ring.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "qdma/peer/socket_channel.hpp"
#include "system/clock.hpp"
#include "system/passed_files.hpp"

namespace doorbell::qdma {

namespace {

constexpr u32 kSubmissionEntries = 64;  // submitted one by one; completions have a queue of their own
constexpr u32 kRingCompletions = 2 * wire::kMaxInFlight;
constexpr u64 kReceiveTag = 0;

bool open_ring(io_uring& ring) {
  io_uring_params p{};
  p.flags = IORING_SETUP_CQSIZE;
  p.cq_entries = kRingCompletions;
  if (io_uring_queue_init_params(kSubmissionEntries, &ring, &p) != 0) return false;
  // Waiting with a timeout must not need an entry, which other threads submit.
  bool good = (p.features & IORING_FEAT_EXT_ARG) != 0;
  if (io_uring_probe* const probe = io_uring_get_probe_ring(&ring); probe != nullptr) {
    good = good && io_uring_opcode_supported(probe, IORING_OP_SENDMSG) != 0 &&
           io_uring_opcode_supported(probe, IORING_OP_RECVMSG) != 0;
    io_uring_free_probe(probe);
  } else {
    good = false;
  }
  if (!good) io_uring_queue_exit(&ring);
  return good;
}

}  // namespace

bool socket_rings_work() {
  static const bool works = [] {
    io_uring ring{};
    if (!open_ring(ring)) return false;
    io_uring_queue_exit(&ring);
    return true;
  }();
  return works;
}

/// A message until the kernel has taken it.
struct SocketRing::Sending {
  std::vector<u8> bytes;
  iovec iov{};
  msghdr header{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(wire::kMaxDescriptors * sizeof(int))> control{};
};

SocketRing::SocketRing(int socket) : socket_(socket) {}

std::unique_ptr<SocketRing> SocketRing::make(int socket) {
  std::unique_ptr<SocketRing> r(new SocketRing(socket));
  if (!open_ring(r->ring_)) {
    r->ring_.ring_fd = -1;
    return nullptr;
  }
  return r;
}

SocketRing::~SocketRing() {
  if (ring_.ring_fd < 0) return;
  // The receive would go on writing to this object, and hold the socket open.
  io_uring_sync_cancel_reg all{};
  all.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL;
  all.timeout = {1, 0};
  static_cast<void>(io_uring_register_sync_cancel(&ring_, &all));
  io_uring_queue_exit(&ring_);
}

int SocketRing::send(std::span<const u8> bytes, std::span<const int> descriptors) {
  {
    const std::lock_guard lock(sent_mutex_);
    for (const u64 id : sent_) sending_.erase(id);
    sent_.clear();
  }
  io_uring_sqe* const e = io_uring_get_sqe(&ring_);
  if (e == nullptr) return EAGAIN;
  const u64 id = next_++;
  auto& s = sending_[id];
  s = std::make_unique<Sending>();
  s->bytes.assign(bytes.begin(), bytes.end());
  s->iov = {s->bytes.data(), s->bytes.size()};
  s->header.msg_iov = &s->iov;
  s->header.msg_iovlen = 1;
  pass_files(s->header, descriptors, s->control);
  io_uring_prep_sendmsg(e, socket_, &s->header, MSG_NOSIGNAL);
  io_uring_sqe_set_data64(e, id);
  const int error = submit(*e);
  if (error != 0) sending_.erase(id);
  return error;
}

int SocketRing::submit(io_uring_sqe& entry) {
  int submitted = 0;
  do {
    submitted = io_uring_submit(&ring_);
  } while (submitted == -EINTR);
  if (submitted >= 0) return 0;
  // The entry stays in the ring and goes with the next one, when its caller has given it up.
  io_uring_prep_nop(&entry);
  io_uring_sqe_set_data64(&entry, next_++);
  return -submitted;
}

std::vector<std::pair<u64, int>> SocketRing::take_unsent() {
  const std::lock_guard lock(sent_mutex_);
  std::vector<std::pair<u64, int>> out;
  for (const auto& [id, error] : unsent_) {
    sent_.push_back(id);
    wire::RequestHeader header;
    std::memcpy(&header, sending_.at(id)->bytes.data(), sizeof header);
    out.emplace_back(header.sequence, error);
  }
  unsent_.clear();
  return out;
}

void SocketRing::arm() {
  if (armed_) return;
  io_uring_sqe* const e = io_uring_get_sqe(&ring_);
  if (e == nullptr) return;
  iov_ = {bytes_.data(), bytes_.size()};
  header_ = {};
  header_.msg_iov = &iov_;
  header_.msg_iovlen = 1;
  header_.msg_control = control_.data();
  header_.msg_controllen = control_.size();
  io_uring_prep_recvmsg(e, socket_, &header_, MSG_CMSG_CLOEXEC);
  io_uring_sqe_set_data64(e, kReceiveTag);
  armed_ = submit(*e) == 0;
}

void SocketRing::take(Incoming& out, u64 until_ns) {
  for (;;) {
    io_uring_cqe* e = nullptr;
    if (io_uring_peek_cqe(&ring_, &e) != 0) {
      const u64 now = wall_ns();
      if (now >= until_ns) return;
      const u64 left = std::min<u64>(until_ns - now, 3'600'000'000'000);
      __kernel_timespec limit{static_cast<i64>(left / 1'000'000'000), static_cast<i64>(left % 1'000'000'000)};
      const int error = io_uring_wait_cqe_timeout(&ring_, &e, &limit);
      if (error == -ETIME) return;
      if (error != 0) continue;
    }
    const u64 tag = e->user_data;
    const i64 result = e->res;
    io_uring_cqe_seen(&ring_, e);
    if (tag != kReceiveTag) {
      const std::lock_guard lock(sent_mutex_);
      if (result >= 0) {
        sent_.push_back(tag);
        continue;
      }
      unsent_.emplace_back(tag, static_cast<int>(-result));
      return;
    }
    armed_ = false;
    // The thread that has armed it has ended.
    if (result == -ECANCELED || result == -EINTR || result == -EAGAIN) return;
    if (result <= 0) {
      out.status = Incoming::Status::closed;
      return;
    }
    out.status = Incoming::Status::message;
    out.length = static_cast<u32>(result);
    std::memcpy(out.bytes.data(), bytes_.data(), out.length);
    take_descriptors(header_, out);
    out.truncated = (header_.msg_flags & MSG_TRUNC) != 0;
    return;
  }
}

}  // namespace doorbell::qdma
