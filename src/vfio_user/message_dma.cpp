// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "vfio_user/message_dma.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace doorbell::vfio_user {

namespace {
/// Between two looks at what else the thread has to do while it waits.
constexpr std::chrono::milliseconds kLook{1};
}  // namespace

void MessageDma::open(u64 session, u64 most) {
  const std::lock_guard lock(mutex_);
  session_ = session;
  most_ = std::clamp<u64>(most, 1, kMostData);
}

void MessageDma::close() {
  {
    const std::lock_guard lock(mutex_);
    most_ = 0;
    end_all();
  }
  answered_.notify_all();
}

void MessageDma::refuse(bool on) {
  {
    const std::lock_guard lock(mutex_);
    paused_ += on ? 1 : ~u32{0};
    if (on) end_all();
  }
  if (on) answered_.notify_all();
}

void MessageDma::end_all() {
  for (auto& [id, request] : waiting_) request->done = true;
  waiting_.clear();
}

bool MessageDma::ask(Request& request, std::span<const u8> data, const std::function<void()>& meanwhile) {
  std::unique_lock lock(mutex_);
  if (most_ == 0 || paused_ != 0) return false;
  while (waiting_.contains(next_id_)) ++next_id_;  // there are as many as device threads at most
  const u16 id = next_id_++;
  const u64 session = session_;
  waiting_[id] = &request;
  send_(session, command(id, request.command, bytes_of(request.access), data));
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(limit_ns_);
  const auto done = [&] { return request.done; };
  bool in_time = true;
  while (in_time && !answered_.wait_for(lock, kLook, done)) {
    in_time = std::chrono::steady_clock::now() < end;
    if (!meanwhile) continue;
    lock.unlock();
    meanwhile();
    lock.lock();
  }
  if (!request.done) {
    waiting_.erase(id);
    if (session_ == session) most_ = 0;
    lock.unlock();
    give_up_(session);
    return false;
  }
  return request.good;
}

bool MessageDma::read(Iova from, void* to, u64 bytes, const std::function<void()>& meanwhile) {
  for (u64 done = 0; done < bytes;) {
    u64 most = 0;
    {
      const std::lock_guard lock(mutex_);
      most = most_;
    }
    if (most == 0) return false;
    const u64 n = std::min({bytes - done, most, kMostRead});
    Request r{.command = Command::dma_read,
              .access = {.address = from + done, .count = n},
              .to = static_cast<u8*>(to) + done};
    reads_.fetch_add(1, std::memory_order_relaxed);
    if (!ask(r, {}, meanwhile)) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    done += n;
  }
  return true;
}

bool MessageDma::write(Iova to, const void* from, u64 bytes, const std::function<void()>& meanwhile) {
  for (u64 done = 0; done < bytes;) {
    u64 most = 0;
    {
      const std::lock_guard lock(mutex_);
      most = most_;
    }
    if (most == 0) return false;
    const u64 n = std::min(bytes - done, most);
    Request r{.command = Command::dma_write, .access = {.address = to + done, .count = n}};
    writes_.fetch_add(1, std::memory_order_relaxed);
    if (!ask(r, {static_cast<const u8*>(from) + done, n}, meanwhile)) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    done += n;
  }
  return true;
}

bool MessageDma::answer(u64 session, const Header& header, std::span<const u8> payload) {
  bool fits = false;
  {
    const std::lock_guard lock(mutex_);
    const auto at = waiting_.find(header.id);
    if (session != session_ || at == waiting_.end() ||
        static_cast<u16>(at->second->command) != header.command)
      return false;
    Request& r = *at->second;
    waiting_.erase(at);
    r.done = true;
    const auto echo = first_of<DmaAccess>(payload);
    const bool same = echo && echo->address == r.access.address && echo->count == r.access.count;
    if (header.failed()) {
      fits = true;  // an answer that says no
    } else if (r.command == Command::dma_write) {
      // Older clients answer with a header alone.
      fits = r.good = payload.empty() || (same && payload.size() == sizeof *echo);
    } else {
      fits = r.good = same && payload.size() - sizeof *echo == r.access.count;
      if (r.good) std::memcpy(r.to, payload.data() + sizeof *echo, r.access.count);
    }
  }
  answered_.notify_all();
  return fits;
}

}  // namespace doorbell::vfio_user
