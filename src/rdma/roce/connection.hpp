// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One queue pair as its requester and its responder see it: where packets leave, whose memory is meant, where
// completions go, and the time.
#pragma once

#include <doorbell/config.hpp>

#include <optional>

#include "rdma/roce/carrier.hpp"
#include "rdma/roce/completion_queue.hpp"
#include "rdma/roce/counting.hpp"
#include "rdma/roce/keys.hpp"
#include "rdma/roce/nic.hpp"
#include "rdma/roce/wire.hpp"

namespace doorbell::roce {

/// The time of a round. `ran_ns` leaves out what a NIC cannot have noticed because its process was stopped;
/// deadlines are times of it.
struct Clock {
  u64 wall_ns = 0;
  u64 ran_ns = 0;
};

struct Connection {
  Connection(KeyTable& all_keys, Carrier& all_paths, const Clock& time)
      : keys(all_keys), carrier(all_paths), clock(time) {}

  KeyTable& keys;
  Carrier& carrier;
  const Clock& clock;
  Service service = Service::rc;
  Half half = Half::both;
  u32 xrc_domain = 0;
  u32 number = 0;
  u32 protection_domain = 0;
  bool signal_all = false;
  State state = State::reset;
  QueuePairAttributes attributes;
  Path* path = nullptr;                           ///< RC and UC: to the peer
  CompletionRing* send_completions = nullptr;     ///< not of XRC's responder
  CompletionRing* receive_completions = nullptr;  ///< not of XRC, whose shared receive queues have them
  Counters counters;
  CompletionFaultDraws* faults = nullptr;  ///< none are injected

  /// The queue pair's next step; set by requester and responder.
  enum class Trouble : u8 { none, send_queue, queue_pair };
  Trouble trouble = Trouble::none;
  std::optional<Event> event;

  void fail(Trouble what, std::optional<Event> told = std::nullopt) {
    if (what > trouble) trouble = what;
    if (told && !event) event = told;
  }
  void complete(CompletionRing& ring, Completion& completion, bool solicited) {
    completion.queue_pair = number;
    completion.time_ns = clock.wall_ns;
    const bool bad = completion.status != Status::success;
    count(bad ? counters.error_completions : counters.completions);
    if (ring.push(completion, solicited || bad)) return;
    count(counters.overruns);
    if (state != State::error) fail(Trouble::queue_pair, Event::qp_fatal);
  }
};

/// Starts a packet: its headers are written, its padding too, and `payload` is where `bytes` of payload go.
/// False: the path is full.
struct Packet {
  u8* payload = nullptr;
  std::size_t size = 0;

  bool begin(Path& path, const Headers& headers, std::size_t bytes) {
    const std::size_t before = header_bytes(shape_of(headers.service, headers.operation));
    size = before + bytes + pad_bytes(bytes);
    u8* start = path.room(size);
    if (start == nullptr) return false;
    encode(headers, bytes, start);
    payload = start + before;
    for (std::size_t i = before + bytes; i < size; ++i) start[i] = 0;
    return true;
  }
  void end(Path& path, Counters& counters) const {
    path.sent(size);
    count(counters.packets_sent);
  }
};

}  // namespace doorbell::roce
