// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// NICs on a wire in memory, with a clock of their own: a test sees each packet, and says what becomes of it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "rdma/roce/carrier.hpp"
#include "rdma/roce/engine.hpp"
#include "system/clock.hpp"

namespace doorbell::roce::test {

using Bytes = std::vector<u8>;

/// The fate of one packet.
enum class Fate { pass, drop, duplicate, swap };  // swap: it leaves behind the next one of its direction

class FakeCarrier;

class FakeWire {
 public:
  /// Asked for each packet of each direction.
  std::function<Fate(Endpoint from, std::span<const u8> packet)> fate;
  std::map<Endpoint, FakeCarrier*> carriers;
  std::map<std::pair<Endpoint, Endpoint>, Bytes> held;
  bool lossless = false;

  void send(Endpoint from, Endpoint to, Bytes packet);
  /// Packets that were to leave behind another one that does not come.
  bool release();
};

class FakePath final : public Path {
 public:
  FakePath(FakeWire& wire, Endpoint self, Endpoint peer) : Path(peer), wire_(wire), self_(self) {}
  void flush() override {
    u8* at = memory_.data();
    while (at != nullptr && at_ != nullptr && at < at_) {
      u32 size = 0;
      std::memcpy(&size, at, sizeof size);
      wire_.send(self_, peer(), Bytes(at + kRecordHeader, at + kRecordHeader + size));
      at += record_bytes(size);
      ++unread_;
    }
    at_ = memory_.data();
  }
  [[nodiscard]] bool lossless() const override { return wire_.lossless; }
  /// 0: any number may be under way.
  u32 most_under_way = 0;
  void drained() { unread_ = 0; }

 protected:
  bool refill(std::size_t bytes) override {
    flush();
    if (most_under_way != 0 && unread_ >= most_under_way) {
      end_ = at_;
      return false;
    }
    memory_.resize(bytes);
    at_ = memory_.data();
    end_ = at_ + bytes;
    return true;
  }

 private:
  FakeWire& wire_;
  Endpoint self_;
  Bytes memory_;
  u32 unread_ = 0;
};

class FakeCarrier final : public Carrier {
 public:
  FakeCarrier(FakeWire& wire, Endpoint self) : wire_(wire), self_(self) { wire.carriers[self] = this; }
  [[nodiscard]] Endpoint self() const override { return self_; }
  [[nodiscard]] Path& path(Endpoint peer) override {
    auto& path = paths_[peer];
    if (!path) path = std::make_unique<FakePath>(wire_, self_, peer);
    return *path;
  }
  [[nodiscard]] std::span<const Arrival> receive() override {
    packets_.clear();
    arrivals_.clear();
    while (!inbox.empty()) {
      packets_.push_back(std::move(inbox.front()));
      inbox.pop_front();
    }
    for (const auto& [source, bytes] : packets_) arrivals_.push_back({source, bytes});
    // A sender's room is what has been read.
    for (const auto& [source, bytes] : packets_)
      if (const auto from = wire_.carriers.find(source); from != wire_.carriers.end())
        if (const auto path = from->second->paths_.find(self_); path != from->second->paths_.end())
          path->second->drained();
    return arrivals_;
  }
  void flush() override {
    for (auto& [peer, path] : paths_) path->flush();
  }
  [[nodiscard]] u64 next_due_ns() const override { return ~u64{0}; }
  [[nodiscard]] FakePath& fake_path(Endpoint peer) { return static_cast<FakePath&>(path(peer)); }

  std::deque<std::pair<Endpoint, Bytes>> inbox;

 private:
  FakeWire& wire_;
  Endpoint self_;
  std::map<Endpoint, std::unique_ptr<FakePath>> paths_;
  std::vector<std::pair<Endpoint, Bytes>> packets_;
  std::vector<Arrival> arrivals_;
};

inline void FakeWire::send(Endpoint from, Endpoint to, Bytes packet) {
  const Fate now = fate ? fate(from, packet) : Fate::pass;
  const auto target = carriers.find(to);
  if (now == Fate::drop || target == carriers.end()) return;
  auto& inbox = target->second->inbox;
  if (now == Fate::swap) {
    held[{from, to}] = std::move(packet);
    return;
  }
  inbox.emplace_back(from, packet);
  if (now == Fate::duplicate) inbox.emplace_back(from, packet);
  if (const auto late = held.find({from, to}); late != held.end()) {
    inbox.emplace_back(from, std::move(late->second));
    held.erase(late);
  }
}

inline bool FakeWire::release() {
  const bool any = !held.empty();
  for (auto& [way, packet] : held) carriers.at(way.second)->inbox.emplace_back(way.first, std::move(packet));
  held.clear();
  return any;
}

/// An event, as a listener got it.
struct Told {
  const void* who = nullptr;
  Event event{};
};

/// A NIC with a completion queue and memory.
struct Host {
  static constexpr u32 kDomain = 7;
  static constexpr u32 kEveryRight = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kBindWindow;

  Host(FakeWire& wire, u32 address, std::size_t memory_bytes = 1 << 17, const CompletionFaults& faults = {},
       const std::string& fault_log = {})
      : at{.address = address, .port = kPort}, carrier(wire, at), memory(memory_bytes) {
    Listener listener;
    listener.completion = [this](CompletionQueue&) {
      ++reports;
      if (on_completion) on_completion();
    };
    listener.queue_pair = [this](QueuePair& queue_pair, Event event) {
      told.push_back({&queue_pair, event});
    };
    listener.completion_queue = [this](CompletionQueue& queue, Event event) {
      told.push_back({&queue, event});
    };
    listener.shared_receive_queue = [this](SharedReceiveQueue& queue, Event event) {
      told.push_back({&queue, event});
    };
    nic = std::make_unique<NicEngine>(carrier, listener, Limits{}, faults, fault_log);
    nic->make_completion_queue(1024, completions);
    nic->register_memory(kDomain, memory.data(), memory.size(), reinterpret_cast<u64>(memory.data()),
                         kEveryRight, keys);
  }

  [[nodiscard]] Sge sge(std::size_t offset, u32 length) const {
    return {
        .address = reinterpret_cast<u64>(memory.data()) + offset, .length = length, .key = keys.local_key};
  }
  [[nodiscard]] u64 address(std::size_t offset) const {
    return reinterpret_cast<u64>(memory.data()) + offset;
  }
  [[nodiscard]] std::unique_ptr<QueuePair> make(QueuePairOptions options) {
    options.protection_domain = kDomain;
    if (options.half != Half::responder) options.send_completions = completions.get();
    if (options.half == Half::both) options.receive_completions = completions.get();
    std::unique_ptr<QueuePair> made;
    if (nic->make_queue_pair(options, made) != 0) return nullptr;
    return made;
  }
  /// Of XRC; its receives complete in this NIC's queue.
  [[nodiscard]] std::unique_ptr<SharedReceiveQueue> make_receives(u32 xrc_domain, u32 domain = kDomain) {
    std::unique_ptr<SharedReceiveQueue> made;
    if (nic->make_shared_receive_queue({.protection_domain = domain,
                                        .requests = 32,
                                        .sges = 4,
                                        .completions = completions.get(),
                                        .xrc_domain = xrc_domain},
                                       made) != 0)
      return nullptr;
    return made;
  }
  std::vector<Completion> poll(std::size_t most = 64) {
    std::vector<Completion> all(most);
    all.resize(completions->poll(all));
    return all;
  }
  [[nodiscard]] bool was_told(Event event) const {
    return std::any_of(told.begin(), told.end(), [event](const Told& one) { return one.event == event; });
  }

  Endpoint at;
  FakeCarrier carrier;
  Bytes memory;
  std::unique_ptr<NicEngine> nic;
  std::unique_ptr<CompletionQueue> completions;
  RegisteredMemory keys;
  std::vector<Told> told;
  u32 reports = 0;
  std::function<void()> on_completion;  ///< with the queue armed; as a program that waits in another thread
};

constexpr u32 kMtu = 256;
constexpr u32 kFirstPsn = 0xFF'FFFC;  // wraps soon

inline QueuePairAttributes connected_attributes(Endpoint peer, u32 destination) {
  QueuePairAttributes a;
  a.mtu = kMtu;
  a.queue_key = 0x1111;
  a.receive_psn = a.send_psn = kFirstPsn;
  a.destination = destination;
  a.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
  a.peer = peer;
  a.reads_as_requester = a.reads_as_responder = 4;
  a.rnr_timer = 12;  // 0.64 ms
  a.timeout = 10;    // 4.2 ms
  a.retries = 7;
  a.rnr_retries = 7;
  return a;
}

/// RESET to RTS; the errno of the first step that refuses.
inline Errno bring_up(QueuePair& queue_pair, Service service, QueuePairAttributes a, Half half = Half::both) {
  const bool ud = service == Service::ud;
  const bool answers = reliable(service) && half != Half::requester;
  const bool asks = reliable(service) && half != Half::responder;
  a.state = State::init;
  if (Errno e = queue_pair.modify(a, kSetState | kSetPartition | kSetPort | (ud ? kSetQueueKey : kSetAccess)))
    return e;
  a.state = State::rtr;
  const u32 peer = kSetPeer | kSetMtu | kSetDestination | kSetReceivePsn;
  if (Errno e = queue_pair.modify(
          a, kSetState | (ud ? 0 : peer) | (answers ? kSetReadsAsResponder | kSetRnrTimer : 0U)))
    return e;
  a.state = State::rts;
  return queue_pair.modify(a, kSetState | kSetSendPsn | (reliable(service) ? kSetTimeout : 0U) |
                                  (asks ? kSetRetries | kSetRnrRetries | kSetReadsAsRequester : 0U));
}

/// Two NICs and a connected queue pair on each; the first one is the requester in most tests, and always with
/// XRC, where the second has a shared receive queue.
struct Pair {
  static constexpr u32 kXrcDomain = 5;

  explicit Pair(Service with = Service::rc, const std::function<void(QueuePairAttributes&)>& change = {},
                QueuePairOptions options = {}, const CompletionFaults& faults = {},
                const std::string& fault_log = {})
      : service(with), a(wire, 0x7F4D0001, 1 << 17, faults, fault_log), b(wire, 0x7F4D0002) {
    options.service = with;
    options.send_requests = std::max(options.send_requests, 32U);
    options.receive_requests = std::max(options.receive_requests, 32U);
    options.send_sges = options.receive_sges = 4;
    options.inline_bytes = 64;
    const bool xrc = with == Service::xrc;
    const Half first = xrc ? Half::requester : Half::both, second = xrc ? Half::responder : Half::both;
    options.xrc_domain = xrc ? kXrcDomain : 0;
    options.half = first;
    a_pair = a.make(options);
    options.half = second;
    b_pair = b.make(options);
    if (xrc) receives = b.make_receives(kXrcDomain);
    auto to_b = connected_attributes(b.at, b_pair->number());
    auto to_a = connected_attributes(a.at, a_pair->number());
    if (change) {
      change(to_b);
      change(to_a);
    }
    error = bring_up(*a_pair, with, to_b, first);
    if (error == 0) error = bring_up(*b_pair, with, to_a, second);
  }

  /// A receive of the second one.
  Errno post_receive(u64 id, std::span<const Sge> sges) const {
    return receives != nullptr ? receives->post(id, sges) : b_pair->post_receive(id, sges);
  }

  /// Rounds of both until `done` or the time is over; the clock jumps to what is due when nothing moves.
  template <class Done>
  bool run(Done done, u64 for_ns = 2'000'000'000) {
    const u64 until = now + for_ns;
    while (!done()) {
      const bool did_a = a.nic->round_at(now), did_b = b.nic->round_at(now);
      if (did_a || did_b || wire.release()) continue;
      if (done()) return true;
      if (now >= until) return false;
      const u64 due = std::min(a.nic->next_due_ns(), b.nic->next_due_ns());
      now = std::clamp(due, now + 1000, std::min(now + 1'000'000, std::max(until, now + 1000)));
    }
    return true;
  }
  void run_for(u64 ns) {
    run([] { return false; }, ns);
  }
  /// The first completion of `host`; a status of 255 if none comes.
  Completion next(Host& host, u64 for_ns = 2'000'000'000) {
    std::vector<Completion> got;
    run([&] { return !(got = host.poll(1)).empty(); }, for_ns);
    if (!got.empty()) return got.front();
    Completion none;
    none.status = static_cast<Status>(255);
    return none;
  }

  Service service;
  FakeWire wire;
  u64 now = wall_ns();
  Host a, b;  ///< faults of completions are the first one's
  std::unique_ptr<QueuePair> a_pair, b_pair;
  std::unique_ptr<SharedReceiveQueue> receives;  ///< of XRC
  Errno error = 0;
};

/// A request of the first one that means the second one's memory, or its queue pair.
inline SendRequest request_of(const Pair& pair, WrOpcode opcode, u64 id = 1) {
  SendRequest request;
  request.id = id;
  request.opcode = opcode;
  request.flags = kSignaled;
  request.remote_address = pair.b.address(1024);
  request.remote_key = pair.b.keys.remote_key;
  request.to = pair.b.at;
  request.to_queue_pair = pair.b_pair->number();
  request.queue_key = 0x1111;
  request.immediate_or_key = 0x12345678;
  request.shared_receives = pair.receives != nullptr ? pair.receives->number() : 0;
  return request;
}

}  // namespace doorbell::roce::test
