// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A network device in memory. Sending copies a frame, headers included, into a slot of a ring; what the
// frame's bytes say and the flow rules decide which receive queue finds it there.

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "model/config.hpp"
#include "net/raw/engines.hpp"
#include "net/raw/event.hpp"
#include "net/raw/flows.hpp"
#include "net/raw/rx_slots.hpp"
#include "net/raw/spsc_ring.hpp"
#include "net/raw/tx_frames.hpp"
#include "net/settings.hpp"
#include "options/spec.hpp"
#include "system/clock.hpp"

namespace doorbell::net::raw {

namespace {

/// Frames that one hand-over from sender to receiver carries.
constexpr u32 kRingBatch = 64;

struct RingConfig {
  u32 depth = 1024;
  bool drop = false;  ///< what finds the ring full is dropped
};

RingConfig parse_ring(const std::string& spec, const std::string& title) {
  const options::Options o = options::parse_spec(title, ring_keys(), spec);
  RingConfig c;
  o.read_into(c);
  if (!std::has_single_bit(c.depth))
    throw Error(title + ": depth", fmt::format("{} is not a power of two", c.depth));
  return c;
}

/// From one send queue to the receive queue that its packets go to.
struct Channel {
  Channel(const StreamRequest& request, u32 depth, u16 queue, Event& receiver)
      : ring(depth), slots(request, depth), rx_queue(queue), arrived(receiver) {}
  SpscRing<u32> ring;  ///< payload lengths; the payload is in the slot of the same place
  RxSlots slots;
  u16 rx_queue;
  Event& arrived;  ///< the receive queue's
  Event released;
  // Counted by the sending thread, which does what the device would do.
  std::atomic<u64> dropped{0}, unmatched{0};
};

class RingTx final : public TxQueue {
 public:
  RingTx(TxFrames frames, const FlowTable& flows, Channel& channel, bool drop)
      : frames_(std::move(frames)), flows_(flows), channel_(channel), drop_(drop) {}

  [[nodiscard]] TxSlots slots() const override { return frames_.slots(); }

  u32 send(u64 first, u32 count, u32 bytes) override {
    if (bytes > frames_.max_payload()) return 0;
    u32 accepted = 0;
    while (accepted < count) {
      const u32 batch = std::min(count - accepted, kRingBatch);
      const u32 n = send_batch(first + accepted, batch, bytes);
      accepted += n;
      if (n < batch) break;
    }
    accepted_ = first + accepted;
    return accepted;
  }

  [[nodiscard]] u64 completed() override { return accepted_; }
  void wait(u64 limit_ns) override {
    if (drop_) return;  // there is always room
    channel_.released.wait(limit_ns, [this] { return channel_.ring.space(1) > 0; });
  }

 private:
  u32 send_batch(u64 first, u32 count, u32 bytes);

  /// Frames of one flow and length have the same headers: the decision about the last one holds again.
  const Decoded& look_at(const u8* frame, u32 frame_bytes) {
    // UDP's checksum is the end of the headers and decides nothing; a bare frame's flow lies behind them.
    const u32 headers = frames_.header_bytes(), compared = headers - (headers > kEthernetBytes ? 2 : 0);
    u16 flow;
    std::memcpy(&flow, frame + headers + kFlowOffset, sizeof flow);
    if (frame_bytes != seen_bytes_ || flow != seen_flow_ || std::memcmp(frame, seen_, compared) != 0) {
      std::memcpy(seen_, frame, compared);
      seen_bytes_ = frame_bytes;
      seen_flow_ = flow;
      decoded_ = decode(frame, frame_bytes);
      const FlowDecision d = flows_.decide(decoded_, frame);
      accepted_by_flow_ = d.kind == FlowDecision::Kind::queue && d.queue == channel_.rx_queue;
    }
    return decoded_;
  }

  TxFrames frames_;
  const FlowTable& flows_;
  Channel& channel_;
  bool drop_;
  u64 accepted_ = 0;
  u8 seen_[kPayloadOffset] = {};
  u16 seen_flow_ = 0;
  u32 seen_bytes_ = 0;
  Decoded decoded_;
  bool accepted_by_flow_ = false;
};

u32 RingTx::send_batch(u64 first, u32 count, u32 bytes) {
  frames_.finish(first, count, bytes);
  u32 lengths[kRingBatch];
  const u32 room = channel_.ring.space(count);
  u32 used = 0, taken = 0, dropped = 0, unmatched = 0;
  for (; taken < count; ++taken) {
    const u8* const frame = frames_.frame(first + taken);
    const Decoded& d = look_at(frame, frames_.header_bytes() + bytes);
    if (!accepted_by_flow_) {
      ++unmatched;
    } else if (used < room) {
      channel_.slots.write(channel_.ring.place(used), frame + d.payload_offset, d.payload_bytes,
                           std::min(d.payload_offset, kPayloadOffset));
      lengths[used++] = d.payload_bytes;
    } else if (drop_) {
      ++dropped;
    } else {
      break;
    }
  }
  if (unmatched > 0) channel_.unmatched.fetch_add(unmatched, std::memory_order_relaxed);
  if (dropped > 0) channel_.dropped.fetch_add(dropped, std::memory_order_relaxed);
  if (used > 0) {
    channel_.slots.flush();
    channel_.ring.push(lengths, used);
    channel_.arrived.notify();
  }
  return taken;
}

class RingRx final : public RxQueue {
 public:
  RingRx(std::vector<Channel*> channels, Event& arrived, u16 queue)
      : channels_(std::move(channels)), arrived_(arrived), queue_(queue) {}

  u32 receive(Burst& burst) override {
    burst.count = 0;
    burst.queue = queue_;
    burst.split = split();
    for (u32 i = 0; i < channels_.size() && burst.count < burst.capacity(); ++i) {
      take_from(next_, burst);
      next_ = next_ + 1 == channels_.size() ? 0 : next_ + 1;
    }
    if (burst.count > 0) burst.rx_time_ns = wall_ns();
    return burst.count;
  }

  void release(Burst& burst) override {
    for (u32 i = 0; i < burst.count;) {
      const u64 channel = burst.token[i];
      u32 run = 1;
      while (i + run < burst.count && burst.token[i + run] == channel) ++run;
      channels_[channel]->ring.release(run);
      channels_[channel]->released.notify();
      i += run;
    }
  }

  void wait(u64 limit_ns) override {
    arrived_.wait(limit_ns, [this] {
      return std::ranges::any_of(channels_, [](Channel* c) { return c->ring.available(1) > 0; });
    });
  }

  [[nodiscard]] Drops drops() override {
    Drops d;
    for (const Channel* c : channels_) d.ring += c->dropped.load(std::memory_order_relaxed);
    return d;
  }
  [[nodiscard]] u64 unmatched() override {
    u64 n = 0;
    for (const Channel* c : channels_) n += c->unmatched.load(std::memory_order_relaxed);
    return n;
  }

 private:
  [[nodiscard]] bool split() const { return !channels_.empty() && channels_[0]->slots.split(); }

  void take_from(u32 channel, Burst& burst) {
    Channel& c = *channels_[channel];
    const u32 first = c.ring.next_place(0), mask = c.ring.capacity() - 1;
    const u32 n = c.ring.take(burst.length.data() + burst.count, burst.capacity() - burst.count);
    for (u32 i = 0; i < n; ++i) {
      const u32 at = burst.count + i;
      burst.token[at] = channel;
      c.slots.describe((first + i) & mask, burst.length[at], burst, at);
    }
    burst.count += n;
  }

  std::vector<Channel*> channels_;
  Event& arrived_;
  u16 queue_;
  u32 next_ = 0;  ///< the channel that is asked first
};

/// Flow f has the UDP ports request.port + f, or its number in the payload. By rules each goes to its queue;
/// with RSS the hash chooses.
std::vector<FlowRule> rules_of(const StreamRequest& request) {
  const bool rss = request.steering == Steering::rss;
  std::vector<u16> all(request.rx_queues);
  for (u16 q = 0; q < all.size(); ++q) all[q] = q;
  std::vector<FlowRule> rules;
  for (u32 f = 0; f < request.flows; ++f) {
    FlowRule r;
    if (request.encapsulation == Encapsulation::bare)
      r.match.word = {.offset = kFlowOffset - 2, .mask = 0xffff, .value = (f & 0xff) << 8 | f >> 8};
    else r.match.source_port = r.match.destination_port = static_cast<u16>(request.port + f);
    r.queues = rss ? all : std::vector<u16>{static_cast<u16>(f % request.rx_queues)};
    rules.push_back(r);
  }
  return rules;
}

class RingStream final : public Stream {
 public:
  RingStream(const StreamRequest& request, const Link& link, const RingConfig& config)
      : config_(config),
        rss_(request.steering == Steering::rss),
        flows_(rules_of(request), request.rx_queues, kDefaultRssKey, request.rss_fields) {
    for (u32 q = 0; q < request.rx_queues; ++q) arrived_.push_back(std::make_unique<Event>());
    std::vector<std::vector<Channel*>> of_queue(request.rx_queues);
    for (u32 f = 0; f < request.flows; ++f) {
      TxFrames frames(flow_address(link, request, f), request.payload_bytes,
                      request.place == Place::gpu ? request.gpu : nullptr);
      const u8* const frame = frames.frame(0);
      const u16 q = flows_.decide(decode(frame, frames.header_bytes() + request.payload_bytes), frame).queue;
      channels_.push_back(std::make_unique<Channel>(request, config.depth, q, *arrived_[q]));
      of_queue[q].push_back(channels_.back().get());
      queue_of_flow.push_back(q);
      tx.push_back(std::make_unique<RingTx>(std::move(frames), flows_, *channels_.back(), config.drop));
    }
    for (u16 q = 0; q < request.rx_queues; ++q)
      rx.push_back(std::make_unique<RingRx>(of_queue[q], *arrived_[q], q));
  }
  ~RingStream() override { tx.clear(), rx.clear(); }

  [[nodiscard]] nlohmann::ordered_json facts() override {
    return {{"ring_depth", config_.depth},
            {"overflow", config_.drop ? "drop" : "wait"},
            {"steering", rss_ ? "rss" : "rule"},
            {"queue_of_flow", queue_of_flow}};
  }

 private:
  RingConfig config_;
  bool rss_;
  FlowTable flows_;
  std::vector<std::unique_ptr<Event>> arrived_;  ///< of each receive queue
  std::vector<std::unique_ptr<Channel>> channels_;
};

std::unique_ptr<Stream> open_ring(const StreamRequest& request, Link& link) {
  const std::string name = link.name();
  const std::string title = setting::link + " ring";
  if (name != "ring" && !name.starts_with("ring:"))
    throw Error(setting::engine + " ring",
                fmt::format("it is a device in memory and cannot use the link {}", name), title);
  const RingConfig config = parse_ring(name, title);
  if (!request.has_tx || !request.has_rx)
    throw Error(title, "its two ends are in one process", "use a link between two, such as veth");
  check_request(request, link, /*has_rss=*/true);
  return std::make_unique<RingStream>(request, link, config);
}

}  // namespace

}  // namespace doorbell::net::raw

namespace doorbell::net {

const options::OptionTable& ring_keys() {
  static const options::OptionTable table = [] {
    options::OptionTable t;
    t.add(model::whole_key("depth", "1024", 2, 65536, "frames that the ring of a flow holds; a power of two",
                           &raw::RingConfig::depth));
    t.add({.name = "overflow",
           .default_text = "wait",
           .choices = {"wait", "drop"},
           .help = "what happens to a frame that finds its ring full: the sender waits, or it is dropped",
           .into = {"drop", &raw::RingConfig::drop}});
    return t;
  }();
  return table;
}

const StreamKind& ring_engine() {
  static const StreamKind kind = raw::frames_kind({
      .name = "ring",
      .rss = true,
      .status =
          [] {
            return BackendStatus{true, "a device in this program's memory"};
          },
      .open = raw::open_ring,
  });
  return kind;
}

}  // namespace doorbell::net
