// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/raw/af_packet_rx.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>

#include "system/clock.hpp"

namespace doorbell::net::raw {

namespace {

constexpr u64 kBlockBytes = 256u << 10;
constexpr u64 kFewestBlocks = 4, kMostBlocks = 4096;
/// Puts the payload on 8 bytes, which is what the kernel's distances between packets keep: what follows
/// Ethernet's header begins at a multiple of 16.
constexpr u32 reserve(Encapsulation e) {
  return (8 - (header_bytes(e) - kEthernetBytes) % 8) % 8;
}
/// Packets that have been copied and not been released.
constexpr u32 kCopies = 4096;

}  // namespace

PacketRx::PacketRx(const std::string& title, const std::string& interface, const StreamRequest& request,
                   u16 queue)
    : queue_(queue), encapsulation_(request.encapsulation), max_payload_(request.payload_bytes) {
  // Without a protocol nothing arrives until it is bound: no packet gets past the filter.
  socket_ = Descriptor(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  const int fd = socket_.get();
  require(fd >= 0, title, "a packet socket");
  std::vector<sock_filter> steps =
      socket_filter({request.port, request.flows, request.rx_queues, queue, encapsulation_});
  const sock_fprog filter = {static_cast<u16>(steps.size()), steps.data()};
  set_option(fd, SOL_SOCKET, SO_ATTACH_FILTER, filter, title, "SO_ATTACH_FILTER");
  set_option(fd, SOL_PACKET, PACKET_VERSION, int{TPACKET_V3}, title, "TPACKET_V3");
  set_option(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, int{1}, title, "PACKET_IGNORE_OUTGOING");
  set_option(fd, SOL_PACKET, PACKET_RESERVE, reserve(encapsulation_), title, "PACKET_RESERVE");

  tpacket_req3 ring{};
  ring.tp_block_size = static_cast<u32>(kBlockBytes);
  ring.tp_block_nr =
      static_cast<u32>(std::clamp(request.socket_bytes / kBlockBytes, kFewestBlocks, kMostBlocks));
  // Packets of any length share a block; the kernel only checks this size.
  ring.tp_frame_size = 2048;
  ring.tp_frame_nr = ring.tp_block_size / ring.tp_frame_size * ring.tp_block_nr;
  // A block goes to the receiver when it is full or this old, whichever comes first.
  ring.tp_retire_blk_tov = request.block_timeout_ms;
  set_option(fd, SOL_PACKET, PACKET_RX_RING, ring, title, "a receive ring");
  block_bytes_ = ring.tp_block_size;
  memory_ = Mapping(title, fd, 0, u64{ring.tp_block_size} * ring.tp_block_nr);
  blocks_.resize(ring.tp_block_nr);
  if (request.split || request.place != Place::pageable) copies_.emplace(request, kCopies);

  sockaddr_ll at{};
  at.sll_family = AF_PACKET;
  at.sll_protocol = htons(encapsulation_ == Encapsulation::udp4   ? ETH_P_IP
                          : encapsulation_ == Encapsulation::udp6 ? ETH_P_IPV6
                                                                  : kBareType);
  at.sll_ifindex = static_cast<int>(interface_index(interface, title));
  require(bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0, title, "binding to " + interface);
}

bool PacketRx::ready(u32 i) const {
  // Pairs with the kernel's release: what it wrote into the block is there.
  return (__atomic_load_n(&block(i)->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER) != 0;
}

u32 PacketRx::receive(Burst& burst) {
  burst.count = 0;
  burst.queue = queue_;
  burst.split = copies_ && copies_->split();
  while (burst.count < burst.capacity()) {
    if (next_packet_ == nullptr) {
      if (blocks_[current_].walked || !ready(current_)) break;
      const tpacket_hdr_v1& h = block(current_)->hdr.bh1;
      left_ = h.num_pkts;
      next_packet_ = reinterpret_cast<u8*>(block(current_)) + h.offset_to_first_pkt;
    }
    while (left_ > 0 && burst.count < burst.capacity()) {
      if (copies_ && taken_ - released_ == copies_->count()) break;
      take(burst);
    }
    if (left_ > 0) break;
    end_block();
  }
  if (copies_) copies_->flush();
  if (burst.count > 0) burst.rx_time_ns = wall_ns();
  return burst.count;
}

void PacketRx::take(Burst& burst) {
  const auto& h = *reinterpret_cast<const tpacket3_hdr*>(next_packet_);
  const u8* const frame = next_packet_ + h.tp_mac;
  --left_;
  next_packet_ += h.tp_next_offset;
  const Decoded& d = decoder_.decode(frame, h.tp_snaplen);
  const bool tagged = (h.tp_status & TP_STATUS_VLAN_VALID) != 0 && (h.hv1.tp_vlan_tci & 0xfff) != 0;
  // The kernel has taken a tag out of the frame; another network's packets are not ours.
  if (!d.is(encapsulation_) || h.tp_snaplen != h.tp_len || tagged || d.payload_bytes > max_payload_ ||
      !checksum_good(frame, d)) {
    ++unmatched_;
    return;
  }
  const u32 i = burst.count++;
  u8* const payload = const_cast<u8*>(frame) + d.payload_offset;
  if (copies_) {
    const u32 slot = static_cast<u32>(taken_++ % copies_->count());
    copies_->write(slot, payload, d.payload_bytes);
    copies_->describe(slot, d.payload_bytes, burst, i);
    return;
  }
  burst.data[i] = payload;
  burst.length[i] = d.payload_bytes;
  burst.token[i] = current_;
  ++blocks_[current_].held;
}

void PacketRx::end_block() {
  if (copies_) copies_->flush();  // copies to a GPU read the block until then
  blocks_[current_].walked = true;
  if (blocks_[current_].held == 0) give_back(current_);
  next_packet_ = nullptr;
  if (++current_ == blocks_.size()) current_ = 0;
}

void PacketRx::give_back(u32 i) {
  blocks_[i].walked = false;
  // The kernel overwrites the block behind this store.
  __atomic_store_n(&block(i)->hdr.bh1.block_status, u32{TP_STATUS_KERNEL}, __ATOMIC_RELEASE);
}

void PacketRx::release(Burst& burst) {
  if (copies_) {
    released_ += burst.count;
    return;
  }
  for (u32 i = 0; i < burst.count; ++i) {
    const u32 b = static_cast<u32>(burst.token[i]);
    if (--blocks_[b].held == 0 && blocks_[b].walked) give_back(b);
  }
}

void PacketRx::wait(u64 limit_ns) {
  if (next_packet_ != nullptr || (!blocks_[current_].walked && ready(current_))) return;
  poll_socket(socket_.get(), POLLIN, limit_ns);
}

Drops PacketRx::drops() {
  tpacket_stats_v3 since{};
  socklen_t n = sizeof since;
  // Each call begins the kernel's counts anew.
  if (getsockopt(socket_.get(), SOL_PACKET, PACKET_STATISTICS, &since, &n) == 0) dropped_ += since.tp_drops;
  Drops d;
  d.ring = dropped_;
  return d;
}

}  // namespace doorbell::net::raw
