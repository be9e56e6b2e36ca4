// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/dpdk/plugin/tx_queue.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <rte_errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "net/dpdk/plugin/eal.hpp"

namespace doorbell::net::dpdk {

namespace {

void slot_freed(void*, void* slot) {
  // Releases what was read of the slot to the sender, which acquires it in completed().
  static_cast<std::atomic<bool>*>(slot)->store(true, std::memory_order_release);
}

}  // namespace

DpdkTxQueue::DpdkTxQueue(Port& port, const TxConfig& config, const OpenRequest& request)
    : port_(port),
      config_(config),
      header_bytes_(raw::header_bytes(config.address.encapsulation)),
      states_(std::make_unique<Slot[]>(kTemplates)) {
  allocate(config, request);
  for (u32 i = 0; i < kTemplates; ++i) {
    states_[i].shared.free_cb = slot_freed;
    states_[i].shared.fcb_opaque = &states_[i].free;
  }
  // One of each slot, those prepared, and what threads keep in their caches.
  pool_ = Pool::of_headers(kTemplates + kBurst + 4 * kPoolCache);
}

DpdkTxQueue::~DpdkTxQueue() {
  rte_pktmbuf_free_bulk(prepared_.data(), prepared_count_);
  pool_.reset();
  if (zone_ != nullptr) rte_memzone_free(zone_);
}

void DpdkTxQueue::allocate(const TxConfig& config, const OpenRequest& request) {
  const u64 stride = (raw::kPayloadOffset + config.max_payload + 63u) / 64 * 64;
  const u64 bytes = stride * kTemplates;
  u8* base = nullptr;
  if (config.in_dpdk_memory) {
    zone_ = rte_memzone_reserve_aligned(unique_name("db_tx_").c_str(), bytes, SOCKET_ID_ANY,
                                        RTE_MEMZONE_IOVA_CONTIG, 64);
    if (zone_ == nullptr)
      dpdk_failed(fmt::format("{} bytes to send from", bytes), rte_errno,
                  "reserve more huge pages, or use fewer flows");
    base = static_cast<u8*>(zone_->addr);
    iova_ = zone_->iova;
  } else {
    memory_ = request.allocate(config.place, bytes);
    base = memory_.host;
  }
  slots_ = {base + raw::kPayloadOffset, stride, kTemplates};
}

void DpdkTxQueue::prepare(u32 count) {
  if (prepared_count_ >= count) return;
  const u32 more = count - prepared_count_;
  if (rte_pktmbuf_alloc_bulk(pool_->get(), &prepared_[prepared_count_], more) != 0) return;
  for (u32 i = 0; i < more; ++i) {
    const u64 packet = accepted_ + prepared_count_ + i;
    const u64 slot = packet % kTemplates;
    Slot& s = states_[slot];
    s.free.store(false, std::memory_order_relaxed);
    rte_mbuf_ext_refcnt_set(&s.shared, 1);
    u8* const frame = slots_.payload(packet) - header_bytes_;
    const rte_iova_t iova = iova_ == RTE_BAD_IOVA
                                ? RTE_BAD_IOVA
                                : iova_ + slot * slots_.stride + raw::kPayloadOffset - header_bytes_;
    rte_mbuf* const m = prepared_[prepared_count_ + i];
    rte_pktmbuf_attach_extbuf(m, frame, iova, static_cast<u16>(header_bytes_ + config_.max_payload),
                              &s.shared);
    m->data_off = 0;
  }
  prepared_count_ += more;
}

void DpdkTxQueue::set_length(rte_mbuf* m, u64 packet, u32 bytes) {
  Slot& s = states_[packet % kTemplates];
  u8* const frame = slots_.payload(packet) - header_bytes_;
  if (s.payload_bytes != bytes) {
    raw::encode(config_.address, bytes, frame);
    s.payload_bytes = bytes;
  }
  if (config_.address.encapsulation == Encapsulation::udp6) raw::checksum_udp6(frame, bytes);
  m->data_len = static_cast<u16>(header_bytes_ + bytes);
  m->pkt_len = m->data_len;
}

u32 DpdkTxQueue::send(u64 first, u32 count, u32 bytes) {
  use_thread();
  u32 sent = 0;
  while (sent < count) {
    const u32 want = std::min(count - sent, kBurst);
    prepare(want);
    const u32 ready = std::min(want, prepared_count_);
    if (ready == 0) break;
    for (u32 i = 0; i < ready; ++i) set_length(prepared_[i], first + sent + i, bytes);
    const u32 taken = rte_eth_tx_burst(port_.id(), config_.queue, prepared_.data(), static_cast<u16>(ready));
    std::copy(prepared_.begin() + taken, prepared_.begin() + prepared_count_, prepared_.begin());
    prepared_count_ -= taken;
    accepted_ += taken;
    sent += taken;
    if (taken < want) break;
  }
  return sent;
}

u64 DpdkTxQueue::completed() {
  while (completed_ < accepted_ && states_[completed_ % kTemplates].free.load(std::memory_order_acquire))
    ++completed_;
  return completed_;
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
