// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/sockets/tcp_rx.hpp"

#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>

#include "system/clock.hpp"

namespace doorbell::net::sockets {

namespace {

/// A token: the connection's index, and its position behind the record.
constexpr u32 kPositionBits = 48;
constexpr u64 kPositionMask = (u64{1} << kPositionBits) - 1;
/// Of one call, however short the records are.
constexpr u64 kLeastReadBytes = u64{256} << 10;

/// Room for two bursts, within reason, and always for a few records.
u64 ring_bytes_of(const TcpRxQueue::Config& c) {
  const u64 bursts = std::clamp<u64>(u64{2} * c.burst * c.payload_bytes, u64{1} << 20, u64{64} << 20);
  return std::max(bursts, u64{4} * c.payload_bytes);
}

}  // namespace

TcpSource::TcpSource(Descriptor socket, MirroredRing ring, u32 payload_bytes)
    : socket_(std::move(socket)), ring_(std::move(ring)), parser_(payload_bytes) {}

void TcpSource::deliver(Burst& burst, u64 mark) {
  u32 n = burst.count;
  while (n < burst.capacity()) {
    u32 length = 0;
    u8* const at = ring_.base() + read_at_;
    state_ = parser_.next(at, received_ - delivered_, length);
    if (state_ != RecordParser::State::record) break;
    delivered_ += length;
    read_at_ += length;
    if (read_at_ >= ring_.bytes()) read_at_ -= ring_.bytes();
    burst.data[n] = at;
    burst.length[n] = length;
    burst.token[n] = mark | (delivered_ & kPositionMask);
    ++n;
  }
  burst.count = n;
  if (fresh_ && state_ == RecordParser::State::incomplete && received_ > delivered_) ++counts_.short_reads;
  fresh_ = false;
  if (state_ == RecordParser::State::broken && !closed_) refuse(parser_.why());
}

void TcpSource::fill(u64 bytes) {
  if (closed_) return;
  // An empty ring starts again at its first byte: a short way round stays in the caches.
  if (released_ == received_) write_at_ = read_at_ = 0;
  const u64 most = std::min(bytes, ring_.bytes() - (received_ - released_));
  if (most == 0) return;
  const ssize_t got = ::recv(socket_.get(), ring_.base() + write_at_, most, MSG_DONTWAIT);
  if (got > 0) {
    ++counts_.calls;
    received_ += static_cast<u64>(got);
    write_at_ += static_cast<u64>(got);
    if (write_at_ >= ring_.bytes()) write_at_ -= ring_.bytes();
    fresh_ = true;
    return;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) ++counts_.resets;
  closed_ = true;
  if (got == 0) {
    // The sender waits for this acknowledgement, which the kernel would delay by 40 ms.
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
  }
  if (received_ > delivered_) {
    ++counts_.broken;
    counts_.why = "the connection ended inside a record";
  }
}

void TcpSource::refuse(const char* why) {
  ++counts_.broken;
  counts_.why = why;
  closed_ = true;
  const linger at_once{1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket_.reset();
}

void TcpSource::release(u64 token) {
  released_ += (token - released_) & kPositionMask;
}

TcpRxQueue::TcpRxQueue(std::vector<Descriptor> sockets, const Config& c)
    : queue_(c.queue), payload_bytes_(c.payload_bytes) {
  sources_.reserve(sockets.size());
  for (Descriptor& s : sockets) {
    polls_.push_back({s.get(), POLLIN, 0});
    sources_.emplace_back(std::move(s), MirroredRing(c.place, ring_bytes_of(c), c.gpu), c.payload_bytes);
  }
}

u32 TcpRxQueue::receive(Burst& burst) {
  burst.count = 0;
  burst.queue = queue_;
  burst.split = false;
  burst.rx_time_ns = 0;
  for (std::size_t i = 0; i < sources_.size() && burst.count < burst.capacity(); ++i) {
    if (++turn_ >= sources_.size()) turn_ = 0;
    TcpSource& source = sources_[turn_];
    const u64 mark = u64{turn_} << kPositionBits;
    source.deliver(burst, mark);
    if (burst.count == burst.capacity()) break;
    source.fill(std::max(u64{burst.capacity() - burst.count} * payload_bytes_, kLeastReadBytes));
    source.deliver(burst, mark);
  }
  if (burst.count > 0) burst.rx_time_ns = wall_ns();
  return burst.count;
}

void TcpRxQueue::release(Burst& burst) {
  // A connection's records lie in a burst in their order, so that its last token is the one that counts.
  for (u32 i = sources_.size() == 1 && burst.count > 0 ? burst.count - 1 : 0; i < burst.count; ++i)
    sources_[burst.token[i] >> kPositionBits].release(burst.token[i] & kPositionMask);
  burst.count = 0;
}

void TcpRxQueue::wait(u64 limit_ns) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].has_more()) return;
    if (sources_[i].closed()) polls_[i].fd = -1;  // which poll(2) passes over
  }
  wait_for(polls_.data(), polls_.size(), limit_ns);
}

bool TcpRxQueue::ended() {
  return std::all_of(sources_.begin(), sources_.end(), [](const TcpSource& s) { return s.ended(); });
}

u64 TcpRxQueue::unmatched() {
  u64 sum = 0;
  for (const TcpSource& s : sources_) sum += s.counts().broken;
  return sum;
}

}  // namespace doorbell::net::sockets
