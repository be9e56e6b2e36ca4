// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/flow/relay.hpp"

#include <doorbell/error.hpp>
#include <doorbell/net/packet.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "net/settings.hpp"
#include "options/enumeration.hpp"
#include "system/clock.hpp"

namespace doorbell::net {

namespace {

using model::Fault;

constexpr std::array kFaults = {Fault::drop,     Fault::delay,     Fault::corrupt,
                                Fault::misplace, Fault::duplicate, Fault::reorder};
/// Those of packets' data, which the relay then copies or changes.
constexpr std::array kOfData = {Fault::delay, Fault::corrupt, Fault::duplicate, Fault::reorder};
constexpr u32 kHeld = 256;             // packets that may wait at a time
constexpr u64 kReorderBehind = 3;      // packets that go first
constexpr u64 kReorderNs = 5'000'000;  // where no three follow
constexpr u32 kBurstsAtOnce = 1024;    // taken in one call while nothing of them is handed out

/// Between two held packets: whole lines of PCIe, over which a GPU reads them.
u64 stride_of(u64 largest) {
  return (largest + 127) / 128 * 128;
}

/// Each packet in gives two out at most; what was held goes first while there is room for these. Where a
/// burst is one packet, the second one is held.
u32 inner_burst(u32 burst) {
  return std::max(burst / 2, 1u);
}

}  // namespace

std::span<const Fault> relay_faults() {
  return kFaults;
}

void check_relay(const model::FaultRates& rates, Place place) {
  for (u32 k = 0; k < model::kFaultKinds; ++k) {
    const auto fault = static_cast<Fault>(k);
    if (rates.of(fault) == 0 || std::ranges::find(kFaults, fault) != kFaults.end()) continue;
    std::vector<std::string> names;
    for (const Fault f : kFaults) names.emplace_back(model::name(f));
    throw Error(fmt::format("{} {}", setting::fault, model::name(fault)),
                "a relay of packets has no such fault", "it has " + options::enumeration(names, "and"));
  }
  for (const Fault f : kOfData)
    if (place == Place::gpu && rates.of(f) > 0)
      throw Error(fmt::format("{} {}", setting::fault, model::name(f)),
                  "a relay does not reach data in GPU memory", "receive into pinned memory");
}

Relay::Relay(const RelayOptions& options, std::unique_ptr<RxQueue> from, u32 burst, u64 largest)
    : o_(options),
      from_(std::move(from)),
      injector_(options.rates, options.seed, options.delay_ns),
      in_(inner_burst(burst)),
      largest_(largest),
      memory_(options.place == Place::gpu ? Place::pageable : options.place, kHeld * stride_of(largest),
              options.gpu),
      held_(kHeld) {
  check_relay(options.rates, options.place);
  for (u32 i = 0; i < kHeld; ++i) {
    held_[i].bytes = memory_.host() + i * stride_of(largest);
    free_.push_back(i);
  }
  waiting_.reserve(kHeld);
  passed_.reserve(kHeld);
}

u32 Relay::receive(Burst& out) {
  out.count = 0;
  // A burst is out, and there is one in_ and one list of what was passed on.
  if (took_ || !passed_.empty()) return 0;
  out.split = false;
  pass_held(out, wall_ns());
  out.rx_time_ns = out.count > 0 ? wall_ns() : 0;
  if (out.count + 2 * in_.capacity() > out.capacity() && out.count > 0) return out.count;
  // A burst of which nothing is passed on is not the caller's to release. The next one is taken at once: that
  // there are no packets must mean that none came.
  for (u32 bursts = 0; bursts < kBurstsAtOnce; ++bursts) {
    const u32 n = from_->receive(in_);
    if (n == 0) return out.count;
    took_ = true;
    out.queue = in_.queue;
    out.split = in_.split;
    // Behind the receiving: what arrives is not older than the time at which it does.
    const u64 now = wall_ns();
    out.rx_time_ns = now;
    for (u32 i = 0; i < n; ++i) apply(out, i, now);
    if (out.count > 0) return out.count;
    from_->release(in_);
    took_ = false;
  }
  return 0;
}

void Relay::apply(Burst& out, u32 i, u64 now) {
  // Shorter than a header: not of the run, so no fault is found in it.
  if (in_.length[i] < kHeaderBytes) return pass(out, in_, i);
  const model::InjectedFault injected = injector_.draw(o_.queue, serial_++, model::Direction::both);
  switch (injected.fault) {
    case Fault::drop:
      ++dropped_;
      injector_.count(Fault::drop);
      return;
    case Fault::delay:
    case Fault::reorder: {
      const bool late = injected.fault == Fault::delay;
      if (!hold(in_, i, now + (late ? o_.delay_ns : kReorderNs), late ? ~0ull : serial_ + kReorderBehind))
        break;
      injector_.count(injected.fault);
      return;
    }
    case Fault::corrupt: {
      // Without its first byte a packet is not known as ours at all.
      const u64 all = in_.length[i] + (in_.split ? in_.body_length[i] : 0);
      const bool in_head = !in_.split || injected.position(all - 1) + 1 < in_.length[i];
      if (in_head) injected.corrupt(in_.data[i] + 1, in_.length[i] - 1);
      else injected.corrupt(in_.body[i], in_.body_length[i]);
      injector_.count(Fault::corrupt);
      break;
    }
    case Fault::misplace: {
      Header h;
      std::memcpy(&h, in_.data[i], kHeaderBytes);
      h.stream_sequence ^= u64{0x8000} << 48;
      h.header_crc32c = crc32c(&h, kHeaderBytes - 4);
      std::memcpy(in_.data[i], &h, kHeaderBytes);
      injector_.count(Fault::misplace);
      break;
    }
    case Fault::duplicate: {
      const bool room = out.count + 2 <= out.capacity();
      if (room) pass(out, in_, i);
      if (room || hold(in_, i, now, 0)) injector_.count(Fault::duplicate);
      break;
    }
    default:
      break;
  }
  pass(out, in_, i);
}

void Relay::pass(Burst& out, const Burst& in, u32 i) {
  const u32 at = out.count++;
  out.data[at] = in.data[i];
  out.length[at] = in.length[i];
  out.body[at] = in.body[i];
  out.body_length[at] = in.body_length[i];
}

bool Relay::hold(const Burst& in, u32 i, u64 due_ns, u64 behind) {
  const u64 all = in.length[i] + (in.split ? in.body_length[i] : 0);
  if (free_.empty() || all > largest_) return false;
  const u32 slot = free_.back();
  free_.pop_back();
  Held& h = held_[slot];
  std::memcpy(h.bytes, in.data[i], in.length[i]);
  if (in.split) std::memcpy(h.bytes + in.length[i], in.body[i], in.body_length[i]);
  h.length = in.length[i];
  h.body_length = in.split ? in.body_length[i] : 0;
  h.due_ns = due_ns;
  h.behind = behind;
  waiting_.push_back(slot);
  return true;
}

void Relay::pass_held(Burst& out, u64 now) {
  std::size_t kept = 0;
  for (const u32 slot : waiting_) {
    const Held& h = held_[slot];
    if (out.count == out.capacity() || (now < h.due_ns && serial_ < h.behind)) {
      waiting_[kept++] = slot;
      continue;
    }
    const u32 at = out.count++;
    out.data[at] = h.bytes;
    out.length[at] = h.length;
    out.body[at] = h.bytes + h.length;
    out.body_length[at] = h.body_length;
    out.split = out.split || h.body_length > 0;
    passed_.push_back(slot);
  }
  waiting_.resize(kept);
}

void Relay::release(Burst& out) {
  out.count = 0;
  if (took_) from_->release(in_);
  took_ = false;
  for (const u32 slot : passed_) free_.push_back(slot);
  passed_.clear();
}

void Relay::wait(u64 limit_ns) {
  // Packets held back must leave on time.
  from_->wait(waiting_.empty() ? limit_ns : std::min<u64>(limit_ns, 1'000'000));
}

bool Relay::ended() {
  return waiting_.empty() && from_->ended();
}

Drops Relay::drops() {
  Drops d = from_->drops();
  d.relay += dropped_;
  return d;
}

}  // namespace doorbell::net
