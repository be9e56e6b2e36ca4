// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/dpdk/plugin/rx_queue.hpp"

#include <linux/if_packet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <utility>

#include "net/dpdk/plugin/eal.hpp"
#include "system/clock.hpp"

namespace doorbell::net::dpdk {

namespace {

/// Drivers with vector code take at most so many in one call.
constexpr u32 kCallBurst = 64;

rte_mbuf* mbuf_of(u64 token) {
  return reinterpret_cast<rte_mbuf*>(token);
}

}  // namespace

DpdkRxQueue::DpdkRxQueue(Port& port, RxConfig config, std::unique_ptr<Pool> buffers,
                         std::unique_ptr<Pool> data, std::unique_ptr<Pool> whole)
    : port_(port),
      config_(std::move(config)),
      header_bytes_(raw::header_bytes(config_.encapsulation)),
      buffers_(std::move(buffers)),
      data_(std::move(data)),
      whole_(std::move(whole)),
      found_(config_.burst),
      at_start_(port.stats()) {
  // Until it was bound to its interface a socket has taken, and dropped, what came over any.
  read_socket_drops();
  socket_drops_ = 0;
}

u32 DpdkRxQueue::poll(u32 most) {
  u32 n = 0;
  // Begins where it stopped, so that a busy queue does not starve the others.
  for (std::size_t round = 0; round < config_.device_queues.size() && n < most; ++round) {
    const u16 queue = config_.device_queues[next_queue_];
    for (u32 taken = kCallBurst; taken == kCallBurst && n < most; n += taken) {
      const u32 want = std::min(most - n, kCallBurst);
      taken = rte_eth_rx_burst(port_.id(), queue, &found_[n], static_cast<u16>(want));
    }
    if (n == most) break;
    next_queue_ = (next_queue_ + 1) % config_.device_queues.size();
  }
  return n;
}

bool DpdkRxQueue::describe(rte_mbuf* m, Burst& burst, u32 i) {
  u8* const frame = rte_pktmbuf_mtod(m, u8*);
  const u32 first = m->data_len;
  if (first < header_bytes_) return false;
  if (!decoder_.same(frame, m->pkt_len)) last_is_ours_ = is_ours(decoder_.decode(frame, m->pkt_len));
  const raw::Decoded& d = decoder_.last();
  if (!last_is_ours_ || d.payload_offset > first) return false;
  // Split packets may lie where this program cannot read it.
  if (!config_.split && !raw::checksum_good(frame, d)) return false;
  const u32 here = std::min(d.payload_bytes, first - d.payload_offset);
  burst.data[i] = frame + d.payload_offset;
  burst.length[i] = here;
  burst.token[i] = reinterpret_cast<u64>(m);
  if (!config_.split) return true;
  burst.body[i] = m->next != nullptr ? rte_pktmbuf_mtod(m->next, u8*) : nullptr;
  burst.body_length[i] = d.payload_bytes - here;
  return burst.body_length[i] == 0 || (m->next != nullptr && m->next->data_len >= burst.body_length[i]);
}

bool DpdkRxQueue::is_ours(const raw::Decoded& d) const {
  if (!d.is(config_.encapsulation) || d.payload_bytes > config_.max_payload) return false;
  return config_.encapsulation == Encapsulation::bare ||
         (d.destination_port >= config_.first_port &&
          d.destination_port < config_.first_port + config_.flows);
}

rte_mbuf* DpdkRxQueue::join(rte_mbuf* m) {
  rte_mbuf* const whole = whole_ != nullptr ? rte_pktmbuf_alloc(whole_->get()) : nullptr;
  if (whole == nullptr) {
    ++no_whole_;
  } else if (char* const to = rte_pktmbuf_append(whole, static_cast<u16>(std::min(m->pkt_len, 65535u)));
             to != nullptr) {
    u32 at = 0;
    for (const rte_mbuf* part = m; part != nullptr; part = part->next) {
      std::memcpy(to + at, rte_pktmbuf_mtod(part, const u8*), part->data_len);
      at += part->data_len;
    }
    ++joined_;
    rte_pktmbuf_free(m);
    return whole;
  } else {
    // Longer than any of the stream's.
    rte_pktmbuf_free(whole);
    ++unmatched_;
  }
  rte_pktmbuf_free(m);
  return nullptr;
}

u32 DpdkRxQueue::receive(Burst& burst) {
  use_thread();
  const u32 n = poll(std::min(burst.capacity(), static_cast<u32>(found_.size())));
  burst.queue = config_.number;
  burst.split = config_.split;
  burst.rx_time_ns = n > 0 ? wall_ns() : 0;
  u32 count = 0;
  for (u32 i = 0; i < n; ++i) {
    rte_mbuf* m = found_[i];
    if (m->nb_segs > 1 && !config_.split && (m = join(m)) == nullptr) continue;
    if (describe(m, burst, count)) {
      ++count;
    } else {
      ++unmatched_;
      rte_pktmbuf_free(m);
    }
  }
  burst.count = count;
  return count;
}

void DpdkRxQueue::release(Burst& burst) {
  std::array<rte_mbuf*, kCallBurst> some;
  for (u32 done = 0; done < burst.count;) {
    const u32 n = std::min(burst.count - done, kCallBurst);
    for (u32 i = 0; i < n; ++i) some[i] = mbuf_of(burst.token[done + i]);
    // The driver has just taken them from there, and nobody else has a reference.
    if (config_.own_buffers && joined_ == 0)
      rte_mempool_put_bulk(buffers_->get(), reinterpret_cast<void* const*>(some.data()), n);
    else rte_pktmbuf_free_bulk(some.data(), n);
    done += n;
  }
  burst.count = 0;
}

void DpdkRxQueue::wait(u64 limit_ns) {
  if (!port_.sockets().empty()) {
    pollfd p = {.fd = port_.sockets().front(), .events = POLLIN, .revents = 0};
    const timespec limit = {static_cast<time_t>(limit_ns / 1'000'000'000),
                            static_cast<long>(limit_ns % 1'000'000'000)};
    static_cast<void>(ppoll(&p, 1, &limit, nullptr));
    return;
  }
  nap(limit_ns);
}

bool DpdkRxQueue::ended() {
  if (!config_.can_end) return false;
  const bool up = port_.link_up();
  was_up_ = was_up_ || up;
  return was_up_ && !up;
}

void DpdkRxQueue::read_socket_drops() {
  for (const int fd : port_.sockets()) {
    tpacket_stats s{};
    socklen_t bytes = sizeof s;
    // Reading resets the kernel's counters.
    if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &s, &bytes) == 0) socket_drops_ += s.tp_drops;
  }
}

Drops DpdkRxQueue::drops() {
  Drops d;
  d.application = no_whole_;
  if (!config_.counts_port) return d;
  read_socket_drops();
  const rte_eth_stats now = port_.stats();
  d.ring = socket_drops_ + (now.imissed - at_start_.imissed);
  d.application += now.rx_nombuf - at_start_.rx_nombuf;
  // A device that drops all packets does so on purpose.
  if (config_.drops_all) d.relay = now.opackets - at_start_.opackets;
  d.interface = now.ierrors - at_start_.ierrors;
  return d;
}

}  // namespace doorbell::net::dpdk
