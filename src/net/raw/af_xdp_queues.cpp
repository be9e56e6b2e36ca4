// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/raw/af_xdp_queues.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

namespace doorbell::net::raw {

namespace {

/// Frames that the kernel sends in one call.
constexpr u32 kKickFrames = 32;
/// There is no event when the kernel has completed a frame.
constexpr u64 kCompletionPauseNs = 20'000;
/// Packets that have been copied and not been released.
constexpr u32 kXdpCopies = 4096;
/// A frame's longest headers: two VLAN tags, IPv4 with all options, UDP. Nothing splits them.
constexpr u32 kLongestHeaders = 90;
constexpr u32 kMostSources = 64;

/// Distance of the slots: either a whole number of chunks, or one that divides a chunk.
u64 slot_stride(u32 max_payload) {
  const u64 bytes = u64{kPayloadOffset} + max_payload;
  return bytes <= kChunkBytes ? std::bit_ceil(bytes) : (bytes + kChunkBytes - 1) / kChunkBytes * kChunkBytes;
}

u32 chunks_of(const StreamRequest& request) {
  return static_cast<u32>(std::bit_floor(std::clamp<u64>(request.socket_bytes / kChunkBytes, 64, 16384)));
}

}  // namespace

u32 XdpTx::descriptors(u32 bytes) {
  return (kPayloadOffset + bytes + kChunkBytes - 1) / kChunkBytes;
}

XdpTx::XdpTx(const std::string& title, const std::string& interface, u32 index, u32 queue,
             const FlowAddress& address, u32 max_payload)
    : frames_(address, max_payload, {}, slot_stride(max_payload)),
      socket_(title, frames_.region().host(), frames_.region().bytes(), 0,
              {.tx = std::bit_ceil(kTemplates * descriptors(max_payload)),
               .completion = std::bit_ceil(kTemplates * descriptors(max_payload))}),
      in_flight_(kTemplates) {
  socket_.bind_to(interface, index, queue);
  if (descriptors(max_payload) > 1 && !socket_.segments)
    throw Error(
        title,
        fmt::format("a payload of {} bytes does not fit into one chunk of {}", max_payload, kChunkBytes),
        fmt::format("this kernel is older than 6.6; send at most {} bytes", kChunkBytes - kPayloadOffset));
}

u32 XdpTx::send(u64 first, u32 count, u32 bytes) {
  if (bytes > frames_.max_payload()) return 0;
  const u32 each = descriptors(bytes), frame_bytes = frames_.header_bytes() + bytes;
  // A slot whose last frame is still on its way cannot carry another.
  const u64 room = std::min<u64>(socket_.tx.space() / each, completed() + kTemplates - first);
  count = static_cast<u32>(std::min<u64>(count, room));
  frames_.finish(first, count, bytes);
  const u8* const base = frames_.region().host();
  for (u32 i = 0; i < count; ++i) {
    u64 at = static_cast<u64>(frames_.frame(first + i) - base);
    for (u32 left = frame_bytes; left > 0;) {
      const u32 part = std::min(left, kChunkBytes - static_cast<u32>(at % kChunkBytes));
      socket_.tx.put({at, part, part < left ? kXdpContinued : 0});
      at += part, left -= part;
    }
    in_flight_[(first + i) % kTemplates] = static_cast<u8>(each);
  }
  if (count > 0) socket_.tx.publish();
  sent_ = first + count;
  kick();
  return count;
}

void XdpTx::kick() {
  for (u32 pending = socket_.tx.pending(), calls = pending / kKickFrames + 1; pending > 0 && calls > 0;
       --calls) {
    const ssize_t result = sendto(socket_.socket.get(), nullptr, 0, MSG_DONTWAIT, nullptr, 0);
    const int error = result < 0 ? errno : 0;
    // EAGAIN says either that there is more to send or that the kernel holds too many frames: what is left in
    // the ring then did not become less.
    broken_ = error != 0 && error != EAGAIN && error != EBUSY && error != ENOBUFS && error != EINTR;
    const u32 left = socket_.tx.pending();
    if (broken_ || left == pending) return;
    pending = left;
  }
}

u64 XdpTx::completed() {
  const u64 stride = frames_.slots().stride;
  const u32 n = socket_.completion.available();
  for (u32 i = 0; i < n; ++i) --in_flight_[socket_.completion.at(i) / stride];
  if (n > 0) socket_.completion.consume(n);
  while (completed_ < sent_ && in_flight_[completed_ % kTemplates] == 0) ++completed_;
  return completed_;
}

void XdpTx::wait(u64 limit_ns) {
  kick();
  poll_socket(-1, 0, std::min(limit_ns, kCompletionPauseNs));
}

bool XdpTx::flush() {
  kick();
  return broken_ || socket_.tx.pending() == 0;
}

bool XdpTx::finish() {
  kick();
  return completed() == sent_;
}

XdpRx::Source::Source(const std::string& title, u32 chunks, Encapsulation encapsulation)
    : memory(Place::pageable, u64{chunks} * kChunkBytes),
      // Room of its own in front of a frame aligns its payload, as in every other slot.
      socket(title, memory.host(), memory.bytes(), kPayloadOffset - header_bytes(encapsulation),
             {.rx = chunks, .fill = chunks}) {
  for (u64 i = 0; i < chunks; ++i) socket.fill.put(i * kChunkBytes);
  socket.fill.publish();
}

XdpRx::XdpRx(const std::string& title, const std::string& interface, u32 index,
             const std::vector<u32>& hardware_queues, const StreamRequest& request, u16 queue)
    : queue_(queue), encapsulation_(request.encapsulation), max_payload_(request.payload_bytes) {
  if (hardware_queues.size() > kMostSources)
    throw Error(title,
                fmt::format("{} queues of {} for one receive queue", hardware_queues.size(), interface),
                fmt::format("it takes {}: give the interface fewer (ethtool -L)", kMostSources));
  const u32 in_one = kChunkBytes - kXdpHeadroom - kPayloadOffset;
  for (const u32 q : hardware_queues) {
    sources_.push_back(std::make_unique<Source>(title, chunks_of(request), encapsulation_));
    XdpSocket& s = sources_.back()->socket;
    s.bind_to(interface, index, q);
    if (max_payload_ > in_one && !s.segments)
      throw Error(
          title,
          fmt::format("a payload of {} bytes does not fit into one chunk of {}", max_payload_, kChunkBytes),
          fmt::format("this kernel is older than 6.6; send at most {} bytes", in_one));
  }
  if (request.split || request.place != Place::pageable || max_payload_ > in_one)
    copies_.emplace(request, kXdpCopies);
}

u32 XdpRx::receive(Burst& burst) {
  burst.count = 0;
  burst.queue = queue_;
  burst.split = copies_ && copies_->split();
  for (u32 i = 0; i < sources_.size() && burst.count < burst.capacity(); ++i) {
    take_from(next_, burst);
    next_ = next_ + 1 == sources_.size() ? 0 : next_ + 1;
  }
  if (burst.count > 0) burst.rx_time_ns = wall_ns();
  return burst.count;
}

void XdpRx::take_from(u32 source, Burst& burst) {
  XdpSocket& s = sources_[source]->socket;
  u32 left = s.rx.available();
  bool filled = false;
  while (left > 0 && burst.count < burst.capacity()) {
    if (copies_ && taken_ - released_ == copies_->count()) break;
    u32 n = 1;
    while (n < left && (s.rx.at(n - 1).options & kXdpContinued) != 0) ++n;
    if ((s.rx.at(n - 1).options & kXdpContinued) != 0) break;  // the rest has not arrived
    if (!take(source, n, burst)) {
      // A copy to a GPU reads the chunks until the flush.
      for (u32 i = 0; i < n; ++i) s.fill.put(s.rx.at(i).addr / kChunkBytes * kChunkBytes);
      filled = true;
    }
    s.rx.consume(n);
    left -= n;
  }
  if (copies_) copies_->flush();
  if (filled) s.fill.publish();
}

bool XdpRx::take(u32 source, u32 n, Burst& burst) {
  const Source& s = *sources_[source];
  const auto part = [&](u32 i) { return s.memory.host() + s.socket.rx.at(i).addr; };
  u64 bytes = 0;
  for (u32 i = 0; i < n; ++i) bytes += s.socket.rx.at(i).len;
  if (n > 1) ++segmented_;
  const u32 first_bytes = s.socket.rx.at(0).len;
  Decoded d;
  if (n == 1 || first_bytes >= kLongestHeaders) d = decoder_.decode(part(0), bytes);
  const auto checksum_good = [&] {
    if (d.udp_checksum == 0) return true;
    UdpChecksum sum(part(0), d);
    for (u32 i = 0, done = 0; i < n && done < d.payload_bytes; ++i) {
      const u32 skip = i == 0 ? d.payload_offset : 0;
      const u32 now = std::min(s.socket.rx.at(i).len - skip, d.payload_bytes - done);
      sum.add(part(i) + skip, now);
      done += now;
    }
    return sum.good();
  };
  if (!d.is(encapsulation_) || d.payload_bytes > max_payload_ || (n > 1 && !copies_) || !checksum_good()) {
    ++unmatched_;
    return false;
  }
  const u32 entry = burst.count++;
  if (!copies_) {
    burst.data[entry] = part(0) + d.payload_offset;
    burst.length[entry] = d.payload_bytes;
    burst.token[entry] = u64{source} << 32 | s.socket.rx.at(0).addr / kChunkBytes;
    return true;
  }
  const u32 slot = static_cast<u32>(taken_++ % copies_->count());
  u32 done = 0;
  for (u32 i = 0; i < n && done < d.payload_bytes; ++i) {
    const u32 skip = i == 0 ? d.payload_offset : 0;
    const u32 now = std::min(s.socket.rx.at(i).len - skip, d.payload_bytes - done);
    copies_->write_part(slot, done, part(i) + skip, now);
    done += now;
  }
  copies_->describe(slot, d.payload_bytes, burst, entry);
  return false;
}

void XdpRx::release(Burst& burst) {
  if (copies_) {
    released_ += burst.count;
    return;
  }
  for (u32 i = 0; i < burst.count; ++i) {
    XdpSocket& s = sources_[burst.token[i] >> 32]->socket;
    s.fill.put((burst.token[i] & 0xffffffff) * kChunkBytes);
    const bool last = i + 1 == burst.count || burst.token[i + 1] >> 32 != burst.token[i] >> 32;
    if (last) s.fill.publish();
  }
}

void XdpRx::wait(u64 limit_ns) {
  std::array<pollfd, kMostSources> polled;
  for (u32 i = 0; i < sources_.size(); ++i) polled[i] = {socket(i), POLLIN, 0};
  const timespec limit = {static_cast<time_t>(limit_ns / 1'000'000'000),
                          static_cast<long>(limit_ns % 1'000'000'000)};
  static_cast<void>(ppoll(polled.data(), sources_.size(), &limit, nullptr));
}

Drops XdpRx::drops() {
  Drops d;
  for (const auto& s : sources_) {
    xdp_statistics n{};
    socklen_t size = sizeof n;
    // Of an empty fill ring the kernel counts the looks; the frames are among rx_dropped.
    if (getsockopt(s->socket.socket.get(), SOL_XDP, XDP_STATISTICS, &n, &size) == 0)
      d.ring += n.rx_dropped + n.rx_ring_full;
  }
  return d;
}

}  // namespace doorbell::net::raw
