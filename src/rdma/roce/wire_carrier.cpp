// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/wire_carrier.hpp"

#include <arpa/inet.h>
#include <doorbell/error.hpp>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "rdma/roce/damage.hpp"
#include "rdma/roce/faults.hpp"
#include "rdma/roce/faulty_carrier.hpp"
#include "rdma/roce/icrc.hpp"
#include "rdma/roce/names.hpp"
#include "system/clock.hpp"
#include "system/interface_of.hpp"

namespace doorbell::roce {

namespace {

// How many rounds pass until sockets are looked at that have had nothing, because a system call costs as much
// as many looks at a ring.
constexpr u32 kRoundsWithRings = 64, kRoundsWithout = 16;

/// The largest path MTU whose packets the interface with that address takes whole.
u32 mtu_of(u32 address) {
  const std::string name = interface_of(address);
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int mtu = !name.empty() && ioctl(socket.get(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
  const std::size_t headers = kOuterHeaders + kLongestHeaders + kIcrcBytes;
  u32 fits = 256;
  for (u32 candidate = 512; candidate <= kLargestMtu; candidate *= 2)
    if (candidate + headers <= static_cast<std::size_t>(std::max(mtu, 0))) fits = candidate;
  return fits;
}

u64 key_of(Endpoint e) {
  return u64{e.address} << 16 | e.port;
}

}  // namespace

std::unique_ptr<Carrier> make_carrier(const CarrierOptions& options) {
  const WireFaults faults = parse_faults(options.faults).wire;
  if (!faults.any()) return std::make_unique<WireCarrier>(WireCarrier::Options{options});
  return std::make_unique<FaultyCarrier>(
      std::make_unique<WireCarrier>(WireCarrier::Options{options, faults.of(WireFault::corrupt) > 0}), faults,
      options.seed, options.fault_log);
}

WireCarrier::WireCarrier(const Options& options) : options_(options), self_(options.self) {
  const std::string what = "address " + name_of(options.self);
  if (self_.address == 0)
    throw Error(what, "a NIC needs an address of its own", "any of 127.0.0.0/8 will do");
  if (!std::has_single_bit(options.ring_bytes) || options.ring_bytes < RingMemory::kLeastBytes ||
      options.ring_bytes > RingMemory::kMostBytes)
    throw Error("a ring of " + std::to_string(options.ring_bytes) + " bytes",
                "it must be a power of two from 65536 to 67108864");
  if (!options.trace.empty()) trace_ = std::make_unique<Trace>(options.trace, options.name);
  options_.ring_icrc = options.ring_icrc || options.damage || trace_ != nullptr;
  if (options.kind != CarrierKind::ring) {
    udp_.emplace(self_, UdpSocket::Options{options.segmentation, options.damage}, counts_, trace_.get());
    self_ = udp_->self();
    if (!descriptors_.add(udp_->descriptor())) throw Error(what, "too many descriptors");
    largest_mtu_ = mtu_of(self_.address);
  }
  links_.emplace(RingLinks::Options{.self = self_,
                                    .ring_bytes = options.ring_bytes,
                                    .icrc = options_.ring_icrc,
                                    .listen = options.kind != CarrierKind::udp},
                 descriptors_);
  if (udp_) links_->watch(udp_->descriptor());
  arrivals_.reserve(1024);
}

WireCarrier::~WireCarrier() {
  flush();
}

Path& WireCarrier::path(Endpoint peer) {
  std::unique_ptr<WirePath>& path = paths_[key_of(peer)];
  if (!path) path = std::make_unique<WirePath>(peer, *this);
  return *path;
}

void WireCarrier::flush() {
  const std::size_t count = unflushed_.size();
  for (std::size_t i = 0; i < count; ++i) {
    unflushed_[i]->listed_ = false;
    unflushed_[i]->flush();  // lists itself again, behind those, if it could not send everything
  }
  unflushed_.erase(unflushed_.begin(), unflushed_.begin() + static_cast<std::ptrdiff_t>(count));
  if (!udp_) return;
  const bool waiting = !unflushed_.empty();
  if (waiting != watching_writable_) links_->watch_writable(udp_->descriptor(), waiting);
  watching_writable_ = waiting;
}

void WireCarrier::arm() {
  asleep_.store(true, std::memory_order_relaxed);
  arm_requests_.fetch_add(1, std::memory_order_release);
}

void WireCarrier::woken() {
  asleep_.store(false, std::memory_order_relaxed);
  look_now_.store(true, std::memory_order_relaxed);
}

std::span<const Arrival> WireCarrier::receive() {
  arrivals_.clear();
  for (const auto& ring : links_->incoming())
    if (ring->reader.release()) links_->wake_writer(*ring);
  links_->forget();

  const u32 arm = arm_requests_.load(std::memory_order_acquire);
  const bool arming = arm != armed_;
  bool look = arming;
  if (look_now_.load(std::memory_order_relaxed)) {
    look_now_.store(false, std::memory_order_relaxed);
    look = true;
  }
  const bool rings = !links_->incoming().empty();
  if (++since_look_ >= (rings ? kRoundsWithRings : kRoundsWithout)) look = true;
  if (look) {
    since_look_ = 0;
    links_->look(asleep_.load(std::memory_order_relaxed));
    if (links_->watched_is_readable()) udp_soon_ = kRoundsWithRings;
  }
  if (arming) {
    armed_ = arm;
    if (trace_) trace_->flush();
    for (const auto& ring : links_->incoming()) ring->reader.ask_for_wake();
  }
  read_rings();
  if (udp_ && (!rings || udp_soon_ != 0)) {
    const std::size_t before = arrivals_.size();
    udp_->receive(arrivals_);
    if (arrivals_.size() != before) udp_soon_ = kRoundsWithRings;
    else if (udp_soon_ != 0) --udp_soon_;
  }
  return arrivals_;
}

void WireCarrier::read_rings() {
  const auto rings = links_->incoming();
  if (rings.empty()) return;
  if (++first_ring_ >= rings.size()) first_ring_ = 0;
  for (std::size_t i = 0; i < rings.size() && arrivals_.size() < kBurst; ++i) {
    const std::size_t k = first_ring_ + i;
    RingLinks::Incoming& ring = *rings[k < rings.size() ? k : k - rings.size()];
    const std::size_t most = std::min(kBurstOfRing, kBurst - arrivals_.size());
    std::size_t taken = 0;
    const bool right = ring.reader.read(most, [&](std::span<const u8> packet) {
      ++taken;
      take(ring, packet);
    });
    if (!right) {
      counts_.malformed.add();
      links_->close(ring, true);
    } else if (taken == 0 && ring.closed()) {
      links_->close(ring, true);
    }
  }
}

void WireCarrier::take(const RingLinks::Incoming& ring, std::span<const u8> packet) {
  if (ring.icrc || trace_) {
    const Route route{.source = ring.source, .destination = self_};
    const u32 right = icrc(route, packet);
    u32 stored = right;
    if (ring.icrc) std::memcpy(&stored, packet.data() + packet.size(), sizeof stored);
    if (trace_) trace_->packet(route, packet, stored, 0, Trace::Direction::in);
    if (stored != right) return counts_.bad_icrc.add();
  }
  counts_.packets_received.add();
  arrivals_.push_back({.source = ring.source, .bytes = packet});
}

CarrierCounters WireCarrier::counters() const {
  const RingCounts& r = links_->counts();
  return {.packets_sent = counts_.packets_sent.get(),
          .packets_received = counts_.packets_received.get(),
          .flushes = counts_.flushes.get(),
          .bad_icrc = counts_.bad_icrc.get(),
          .malformed = counts_.malformed.get(),
          .unsent = counts_.unsent.get(),
          .untraced = trace_ ? trace_->lost() : 0,
          .rings_opened = r.opened.get(),
          .rings_accepted = r.accepted.get(),
          .rings_refused = r.refused.get(),
          .rings_closed = r.closed.get(),
          .wakes = r.wakes.get()};
}

bool WirePath::refill(std::size_t bytes) {
  if (bytes > 4 * record_bytes(kMostPacket)) return false;
  if (!listed_) {
    listed_ = true;
    carrier_.unflushed_.push_back(this);
  }
  if (way_ == Way::ring) {
    flush_ring();
    if (ring_ != nullptr && ring_->gone) leave_ring();
  } else if (way_ != Way::none) {
    flush_staged();
    if (begin_ != at_) {  // the socket is full; there may be room behind what waits
      end_ = staged_.get() + kStaged;
      return static_cast<std::size_t>(end_ - at_) >= bytes;
    }
  }
  if (way_ != Way::ring) choose();
  if (way_ == Way::ring) return refill_ring(bytes);
  stage();
  return true;
}

/// With nothing left to send.
void WirePath::choose() {
  const CarrierKind kind = carrier_.options_.kind;
  if (kind != CarrierKind::udp) {
    const u64 now = wall_ns();
    if (now >= retry_at_ns_ && connect(now)) return;
  }
  way_ = kind == CarrierKind::ring ? Way::nowhere : Way::udp;
}

bool WirePath::connect(u64 now_ns) {
  ring_ = carrier_.links_->connect(peer());
  retry_at_ns_ = now_ns + retry_ns_;
  if (ring_ == nullptr) return false;
  way_ = Way::ring;
  begin_ = at_ = end_ = nullptr;
  return true;
}

void WirePath::leave_ring() {
  // Nothing was taken: the peer has refused the ring, and will again.
  retry_ns_ = ring_->writer.was_read() ? kRetryNs : std::min(2 * retry_ns_, kLongestRetryNs);
  carrier_.links_->disconnect(*ring_);
  ring_ = nullptr;
  way_ = Way::none;
  begin_ = at_ = end_ = nullptr;
  retry_at_ns_ = wall_ns() + retry_ns_;
}

bool WirePath::refill_ring(std::size_t bytes) {
  const std::span<u8> room = ring_->writer.room(bytes);
  begin_ = at_ = room.data();
  end_ = room.data() + room.size();
  return !room.empty();
}

void WirePath::stage() {
  if (!staged_) staged_ = std::make_unique_for_overwrite<u8[]>(kStaged);
  begin_ = at_ = staged_.get();
  end_ = at_ + kStaged;
}

void WirePath::flush() {
  if (way_ == Way::ring) flush_ring();
  else flush_staged();
  if (begin_ == at_) {
    begin_ = at_ = end_ = nullptr;  // so that the next packet calls refill()
  } else if (!listed_) {
    listed_ = true;
    carrier_.unflushed_.push_back(this);
  }
}

void WirePath::flush_ring() {
  RingWriter& writer = ring_->writer;
  writer.wrote(static_cast<std::size_t>(at_ - begin_));
  begin_ = at_;
  if (!writer.has_unpublished()) return;
  const WireCarrier::Options& o = carrier_.options_;
  const Route route{.source = carrier_.self_, .destination = peer()};
  u64 packets = 0;
  const bool right = writer.unpublished([&](std::size_t n, u8* packet) {
    ++packets;
    if (!o.ring_icrc) return;
    u32 check = icrc(route, {packet, n});
    std::memcpy(packet + n, &check, sizeof check);
    if (carrier_.trace_) carrier_.trace_->packet(route, {packet, n}, check, 0, Trace::Direction::out);
    if (o.damage) damage(packet, n + sizeof check);
  });
  if (!right) {  // the reader has written where it should read
    ring_->gone = true;
    carrier_.counts_.malformed.add();
    return;
  }
  carrier_.counts_.packets_sent.add(packets);
  carrier_.counts_.flushes.add();
  if (writer.publish()) carrier_.links_->wake_reader(*ring_);
}

void WirePath::flush_staged() {
  if (begin_ == at_) return;
  if (way_ == Way::udp) {
    begin_ = carrier_.udp_->send(peer(), begin_, at_);
    return;
  }
  while (begin_ != at_) {
    u32 n = 0;
    std::memcpy(&n, begin_, sizeof n);
    begin_ += record_bytes(n);
    carrier_.counts_.unsent.add();
  }
}

}  // namespace doorbell::roce
