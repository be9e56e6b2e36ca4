// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/faulty_carrier.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "rdma/roce/damage.hpp"
#include "rdma/roce/names.hpp"
#include "rdma/roce/wire.hpp"
#include "system/clock.hpp"

namespace doorbell::roce {

namespace {

/// When a full path is tried again.
constexpr u64 kTryAgainNs = 100'000;

u32 size_of(const u8* record) {
  u32 n = 0;
  std::memcpy(&n, record, sizeof n);
  return n;
}

}  // namespace

FaultyPath::FaultyPath(Endpoint peer, FaultyCarrier& carrier, Path& below)
    : Path(peer),
      carrier_(carrier),
      below_(below),
      staged_(std::make_unique_for_overwrite<u8[]>(kStaged)),
      begin_(staged_.get()) {
  at_ = begin_;
  end_ = begin_ + kStaged;
}

bool FaultyPath::refill(std::size_t bytes) {
  if (bytes > kStaged) return false;
  flush();
  return static_cast<std::size_t>(end_ - at_) >= bytes;
}

void FaultyPath::flush() {
  while (begin_ != at_) {
    const u32 n = size_of(begin_);
    if (!forward(begin_ + kRecordHeader, n)) break;
    begin_ += record_bytes(n);
    ++place_;
  }
  if (begin_ == at_) begin_ = at_ = staged_.get();
  below_.flush();
}

/// False when the path below is full: the packet's fault is the same the next time.
bool FaultyPath::forward(const u8* packet, std::size_t bytes) {
  const WireDraw draw = draw_wire_fault(carrier_.faults_, carrier_.seed_, carrier_.self(), peer(), place_);
  const auto hold = [&](u64 ns, u64 packets) {
    held_.push_back({.due_ns = wall_ns() + ns, .after = packets, .packet = {packet, packet + bytes}});
  };
  std::string detail;
  if (!draw.fault) {
    if (!pass_on(packet, bytes)) return false;
  } else {
    switch (draw.kind) {
      case WireFault::drop:
        break;
      case WireFault::corrupt: {
        u32 bit = static_cast<u32>(draw.random % (8 * (bytes + kIcrcBytes)));
        if (bit / 8 == 4) bit += 8;  // no ICRC covers this byte of BTH
        if (!pass_on(packet, bytes, bit + 1)) return false;
        detail = "bit " + std::to_string(bit);
        break;
      }
      case WireFault::duplicate: {
        // Both need room, or the first would go twice.
        if (below_.room(2 * record_bytes(bytes)) == nullptr) return false;
        pass_on(packet, bytes);
        pass_on(packet, bytes);
        break;
      }
      case WireFault::reorder: {
        const u64 packets = 1 + draw.random % 4;
        hold(kReorderNs, place_ + packets);
        detail = "behind " + std::to_string(packets);
        break;
      }
      case WireFault::delay:
        hold(carrier_.faults_.delay_ns, kNever);
        detail = std::to_string(carrier_.faults_.delay_ns) + " ns";
        break;
    }
    carrier_.count(draw.kind, peer(), place_, packet, detail);
  }
  // The packet that overtook those is on its way.
  if (!held_.empty())
    std::erase_if(
        held_, [&](const Held& h) { return h.after <= place_ && pass_on(h.packet.data(), h.packet.size()); });
  return true;
}

bool FaultyPath::pass_on(const u8* packet, std::size_t bytes, u32 damaged_bit_plus_one) {
  u8* const room = below_.room(bytes);
  if (room == nullptr) return false;
  std::memcpy(room, packet, bytes);
  ask_for_damage(room, damaged_bit_plus_one);
  below_.sent(bytes);
  return true;
}

u64 FaultyPath::release(u64 now_ns) {
  u64 next = kNever;
  std::erase_if(held_, [&](Held& h) {
    if (h.due_ns <= now_ns) {
      if (pass_on(h.packet.data(), h.packet.size())) return true;
      h.due_ns = now_ns + kTryAgainNs;
    }
    next = std::min(next, h.due_ns);
    return false;
  });
  return next;
}

FaultyCarrier::FaultyCarrier(std::unique_ptr<Carrier> below, const WireFaults& faults, u64 seed,
                             const std::string& log)
    : below_(std::move(below)), faults_(faults), seed_(seed), log_(log) {}

Path& FaultyCarrier::path(Endpoint peer) {
  std::unique_ptr<FaultyPath>& path = paths_[u64{peer.address} << 16 | peer.port];
  if (!path) path = std::make_unique<FaultyPath>(peer, *this, below_->path(peer));
  return *path;
}

void FaultyCarrier::flush() {
  next_due_ns_ = kNever;
  const u64 now = wall_ns();
  for (const auto& [key, path] : paths_) {
    path->flush();
    next_due_ns_ = std::min(next_due_ns_, path->release(now));
  }
  below_->flush();
  next_due_ns_ = std::min(next_due_ns_, below_->next_due_ns());
}

CarrierCounters FaultyCarrier::counters() const {
  CarrierCounters c = below_->counters();
  for (std::size_t i = 0; i < kWireFaults; ++i) c.faults[i] = counts_[i].get();
  return c;
}

void FaultyCarrier::count(WireFault kind, Endpoint to, u64 place, const u8* packet,
                          const std::string& detail) {
  counts_[static_cast<std::size_t>(kind)].add();
  if (!log_.on()) return;
  const std::string_view name = kWireFaultNames[static_cast<std::size_t>(kind)];
  const unsigned psn = static_cast<unsigned>(packet[9] << 16 | packet[10] << 8 | packet[11]);
  const unsigned queue_pair = static_cast<unsigned>(packet[5] << 16 | packet[6] << 8 | packet[7]);
  std::array<char, 256> line;
  const int n =
      std::snprintf(line.data(), line.size(), "%s to %s packet %llu: opcode 0x%02x qp 0x%06x psn 0x%06x%s%s",
                    name.data(), name_of(to).c_str(), static_cast<unsigned long long>(place), packet[0],
                    queue_pair, psn, detail.empty() ? "" : ": ", detail.c_str());
  log_.line({line.data(), std::min(static_cast<std::size_t>(n), line.size() - 1)});
}

}  // namespace doorbell::roce
