// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/dpdk/plugin/tx_queue.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <rte_errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "net/dpdk/plugin/eal.hpp"

namespace doorbell::net::dpdk {

namespace {

/// Of a payload in its slot. A frame that is copied is itself aligned: DPDK copies from one aligned place to
/// another in half the time.
u32 payload_offset(const TxConfig& config) {
  return config.driver_copies ? raw::header_bytes(config.address.encapsulation) : raw::kPayloadOffset;
}
u64 stride_of(const TxConfig& config) {
  return (payload_offset(config) + config.max_payload + 63u) / 64 * 64;
}

/// Slots that a driver copies are free again at once: a burst has enough of them, and they and their mbufs
/// stay in a core's own cache. A prime, so that their data never aligns with a window of packets.
constexpr u32 kCopiedSlots = 67;
u32 slots_of(const TxConfig& config) {
  return config.driver_copies ? kCopiedSlots : kTemplates;
}

}  // namespace

DpdkTxQueue::DpdkTxQueue(Port& port, const TxConfig& config, const OpenRequest& request)
    : port_(port),
      config_(config),
      header_bytes_(raw::header_bytes(config.address.encapsulation)),
      mbufs_(slots_of(config)) {
  allocate(config, request);
  const u32 before = payload_offset(config) - header_bytes_;
  for (u32 slot = 0; slot < slots_.count; ++slot)
    mbufs_.attach(slot, slots_.payload(slot) - header_bytes_,
                  iova_ == RTE_BAD_IOVA ? iova_ : iova_ + slot * slots_.stride + before,
                  static_cast<u16>(header_bytes_ + config_.max_payload));
}

void DpdkTxQueue::allocate(const TxConfig& config, const OpenRequest& request) {
  const u64 stride = stride_of(config);
  const u64 bytes = stride * mbufs_.all().size();
  u8* base = nullptr;
  if (config.in_dpdk_memory) {
    zone_.reset(rte_memzone_reserve_aligned(unique_name("db_tx_").c_str(), bytes, SOCKET_ID_ANY,
                                            RTE_MEMZONE_IOVA_CONTIG, 64));
    if (zone_ == nullptr)
      dpdk_failed(fmt::format("{} bytes to send from", bytes), rte_errno,
                  "reserve more huge pages, or use fewer flows");
    base = static_cast<u8*>(zone_->addr);
    iova_ = zone_->iova;
  } else {
    memory_ = request.allocate(config.place, bytes);
    base = memory_.host;
  }
  slots_ = {base + payload_offset(config), stride, static_cast<u32>(mbufs_.all().size())};
}

rte_mbuf* DpdkTxQueue::prepare(u32 slot, u32 bytes) {
  rte_mbuf* const m = mbufs_.all()[slot];
  u8* const frame = slots_.base + slot * slots_.stride - header_bytes_;
  if (m->data_len != header_bytes_ + bytes) {
    raw::encode(config_.address, bytes, frame);
    m->data_len = static_cast<u16>(header_bytes_ + bytes);
    m->pkt_len = m->data_len;
  }
  if (config_.address.encapsulation == Encapsulation::udp6) raw::checksum_udp6(frame, bytes);
  return m;
}

u32 DpdkTxQueue::send(u64 first, u32 count, u32 bytes) {
  use_thread();
  u32 sent = 0;
  while (sent < count) {
    const u32 want = std::min(count - sent, kBurst);
    std::array<rte_mbuf*, kBurst> burst;
    u32 slot = static_cast<u32>((first + sent) % slots_.count);
    for (u32 i = 0; i < want; ++i) {
      burst[i] = prepare(slot, bytes);
      if (++slot == slots_.count) slot = 0;
    }
    const u32 taken = rte_eth_tx_burst(port_.id(), config_.queue, burst.data(), static_cast<u16>(want));
    accepted_ += taken;
    sent += taken;
    if (taken < want) break;
  }
  return sent;
}

u64 DpdkTxQueue::completed() {
  u64 done = completed_;
  u32 slot = oldest_slot_;
  for (; done < accepted_ && mbufs_.returned(slot, lap_ + 1); ++done)
    if (++slot == slots_.count) slot = 0, ++lap_;
  completed_ = done, oldest_slot_ = slot;
  return done;
}

void DpdkTxQueue::wait(u64 limit_ns) {
  nap(limit_ns);
}

bool DpdkTxQueue::broken() {
  return config_.can_break && !port_.link_up();
}

bool DpdkTxQueue::finish() {
  // The driver tells the kernel of its frames once a burst, and the kernel may have had no room then.
  bool left = true;
  for (const int fd : port_.sockets()) left = sendto(fd, nullptr, 0, MSG_DONTWAIT, nullptr, 0) == 0 && left;
  if (completed() == accepted_) return left;
  if (!config_.frees_late) return false;
  static_cast<void>(rte_eth_tx_done_cleanup(port_.id(), config_.queue, 0));
  if (completed() == accepted_) return true;
  return config_.queue < RTE_ETHDEV_QUEUE_STAT_CNTRS && port_.stats().q_opackets[config_.queue] >= accepted_;
}

}  // namespace doorbell::net::dpdk
