// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "exchange/fields.hpp"
#include "net/roce/rx.hpp"
#include "net/roce/tx.hpp"
#include "net/settings.hpp"
#include "rdma/swap.hpp"
#include "system/available_memory.hpp"
#include "system/clock.hpp"

namespace doorbell::net {

namespace {

using Json = nlohmann::ordered_json;
using exchange::Exchange;

constexpr exchange::RunKind kConnections{"net --stream roce", 0};
constexpr double kMeetS = 30;  ///< how long two processes wait for each other

rdma::DeviceRequest device_request(const StreamRequest& r) {
  return {.spec = r.device,
          .provider = rdma::provider_named(r.provider),
          .gpu = r.gpu,
          .use = {.gpu_memory = r.place == Place::gpu, .queues = r.flows, .initiator_threads = 2}};
}

/// The counters of retried messages, as models and drivers name them.
struct NotReady {
  u64 events = 0;
  u64 ns = 0;
};
NotReady not_ready(const Json& counters) {
  const auto of = [&](const char* key) {
    const auto it = counters.is_object() ? counters.find(key) : counters.end();
    return counters.is_object() && it != counters.end() && it->is_number_integer() ? it->get<u64>() : 0;
  };
  if (counters.is_object() && counters.contains("rnr_wait_ns")) return {of("rnr_naks"), of("rnr_wait_ns")};
  // Requesters' counters: those of mlx5 and of soft-RoCE. Drivers count no time; each event takes at least
  // that of the timer, 0.64 ms.
  const u64 events = of("rnr_nak_retry_err") + of("rcvd_rnr_err");
  return {events, events * 640'000};
}

class RoceStream final : public Stream {
 public:
  RoceStream(const StreamRequest& request, Link& link, std::shared_ptr<rdma::NicDevice> nic);
  ~RoceStream() override {
    // Before the NIC on which they are.
    tx.clear();
    rx.clear();
  }
  Json facts() override;
  [[nodiscard]] Framing framing(u64) const override {
    return {.frames_per_packet =
                static_cast<double>(rdma::packets_of(shape_.payload_bytes, nic_->limits().active_mtu))};
  }

 private:
  void connect_here();
  void meet(const StreamRequest& request, Link& link);
  void broke(u32 flow);

  std::shared_ptr<rdma::NicDevice> nic_;
  RoceShape shape_;
  Place place_;
  std::mutex breaking_;  ///< queue pairs are changed by one thread at a time
  std::vector<RoceTx*> senders_;
  std::vector<RoceRx*> receivers_;
  std::vector<rdma::QueuePairObject*> sending_, receiving_;  ///< one a flow
};

RoceStream::RoceStream(const StreamRequest& r, Link& link, std::shared_ptr<rdma::NicDevice> nic)
    : nic_(std::move(nic)), shape_(roce_shape(r)), place_(r.place) {
  if (r.flows < 1 || r.rx_queues < 1 || r.rx_queues > r.flows)
    throw Error(setting::flows, fmt::format("{} flows cannot arrive at {} queues", r.flows, r.rx_queues));
  if (const rdma::NicLimits l = nic_->limits(); r.payload_bytes > l.max_message)
    throw Error(setting::payload, fmt::format("{} takes 1..{} bytes a message", nic_->name(), l.max_message));
  if (r.split && r.place != Place::gpu)
    throw Error(setting::split, "a NIC writes a RoCE message to one place", "leave it out");
  const u64 slots = r.has_tx ? shape_.slots : 0;
  const u64 receives = r.has_rx && r.place != Place::gpu ? shape_.rx_depth : 0;
  require_memory(r.flows * (slots + receives) * shape_.stride,
                 fmt::format("{}, depth of receive queues, {}", setting::flows, setting::payload),
                 fmt::format("{} flows x ({} slots + {} receives) x {} bytes", r.flows, slots, receives,
                             shape_.payload_bytes));
  // Receives are posted before their sender is connected.
  const rdma::ConnectionOptions options;
  for (u32 q = 0; r.has_rx && q < r.rx_queues; ++q) {
    auto queue = std::make_unique<RoceRx>(*nic_, static_cast<u16>(q), r, shape_);
    receivers_.push_back(queue.get());
    rx.push_back(std::move(queue));
  }
  for (u32 f = 0; f < r.flows; ++f) {
    if (r.has_rx) {
      RoceRx& to = *receivers_[f % r.rx_queues];
      receiving_.push_back(&to.add());
      receiving_.back()->initialise(options);
      to.post();
    }
    if (!r.has_tx) continue;
    auto queue = std::make_unique<RoceTx>(*nic_, shape_);
    sending_.push_back(&queue->queue_pair());
    sending_.back()->initialise(options);
    senders_.push_back(queue.get());
    tx.push_back(std::move(queue));
  }
  if (r.has_tx && r.has_rx) connect_here();
  else meet(r, link);
  for (u32 f = 0; f < senders_.size(); ++f) senders_[f]->begin(*nic_, [this, f] { broke(f); });
}

void RoceStream::connect_here() {
  const rdma::ConnectionOptions options;
  for (std::size_t f = 0; f < sending_.size(); ++f) {
    receiving_[f]->connect(sending_[f]->address(), options);
    sending_[f]->connect(receiving_[f]->address(), options);
  }
}

/// To the process of the other end, where nothing else connects the two: the receiving one listens.
Exchange meet_at(const StreamRequest& r, Link& link) {
  std::optional<Exchange> x;
  if (r.has_rx) {
    link.in(End::rx, [&] {
      exchange::Listener listener(kConnections, {link.ip(End::rx), r.port});
      x.emplace(listener.accept(kMeetS, kMeetS));
    });
  } else {
    link.in(End::tx, [&] {
      const u64 until = wall_ns() + static_cast<u64>(kMeetS * 1e9);
      while (!x) {
        try {
          x.emplace(
              Exchange::connect(kConnections, {link.ip(End::rx), r.port}, kMeetS, nullptr, setting::connect));
        } catch (const Error&) {
          // The receiver may not listen yet.
          if (wall_ns() > until) throw;
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
      }
    });
  }
  return std::move(*x);
}

/// The receives are posted, so the sender may send as soon as it is connected.
void RoceStream::meet(const StreamRequest& r, Link& link) {
  std::optional<Exchange> own;
  Exchange* x = link.other_process();
  if (x == nullptr) x = &own.emplace(meet_at(r, link));
  x->send("roce", {{"payload_bytes", shape_.payload_bytes}});
  const u32 theirs = exchange::small(x->receive("roce"), "payload_bytes", 1, rdma::kMaxMessage);
  if (theirs != shape_.payload_bytes)
    throw Error(exchange::kOtherEnd, fmt::format("its messages have {} bytes, those of this end {}", theirs,
                                                 shape_.payload_bytes));
  const auto& mine = r.has_rx ? receiving_ : sending_;
  std::vector<rdma::QueuePairAddress> addresses;
  for (const rdma::QueuePairObject* q : mine) addresses.push_back(q->address());
  const auto peers = rdma::swap(*x, addresses);
  for (std::size_t f = 0; f < mine.size(); ++f) mine[f]->connect(peers[f], {});
  x->barrier("connected");
}

/// A receiver is not notified of its sender's failure, so its receives are flushed here.
void RoceStream::broke(u32 flow) {
  const std::scoped_lock lock(breaking_);
  const u32* const alive = nic_->alive(Initiator::cpu);
  if (alive != nullptr && load_acquire(alive) == 0) return;
  for (auto* const side : {&sending_, &receiving_}) {
    if (side->empty()) continue;
    try {
      (*side)[flow]->fail();
    } catch (const Error&) {
      // The receiver's own deadlines end its phase then.
    }
  }
}

Json RoceStream::facts() {
  Statuses sent, received;
  rdma::BurstQueue::Odd odd;
  const auto add = [&odd](const rdma::BurstQueue::Odd& o) {
    odd.duplicated += o.duplicated, odd.skipped += o.skipped, odd.protocol += o.protocol;
  };
  u64 broken = 0, timed_out = 0;
  bool removed = false;
  for (RoceTx* const t : senders_) {
    sent += t->statuses();
    add(t->odd());
    broken += t->broken() ? 1 : 0;
    timed_out += t->timed_out() ? 1 : 0;
    removed = removed || t->removed();
  }
  u64 broken_receiving = 0;
  for (const RoceRx* const q : receivers_) {
    received += q->statuses();
    add(q->odd());
    broken_receiving += q->broken_flows();
    removed = removed || q->removed();
  }
  const Json counters = nic_->counters();
  const NotReady rnr = not_ready(counters);
  const u32 mtu = nic_->limits().active_mtu;
  const u32 packets = rdma::packets_of(shape_.payload_bytes, mtu);
  return {{"device", nic_->name()},
          {"device_kind", nic_->kind()},
          {"provider", rdma::name(nic_->provider())},
          {"tx_depth", shape_.tx_depth},
          {"rx_depth", shape_.rx_depth},
          {"window", shape_.window},
          {"signal_every", shape_.signal_every},
          {"slots", shape_.slots},
          {"receive_memory", name(place_)},
          {"mtu_bytes", mtu},
          {"packets_per_message", packets},
          {"wire_bytes_per_message", shape_.payload_bytes + u64{packets} * kRoceOverhead},
          {"rnr_events", rnr.events},
          {"rnr_time_ns", rnr.ns},
          {"broken_senders", broken},
          {"broken_receivers", broken_receiving},
          {"timed_out", timed_out},
          {"removed", removed},
          {"send_errors", sent.errors()},
          {"receive_errors", received.errors()},
          {"completions_duplicated", odd.duplicated},
          {"completions_skipped", odd.skipped},
          {"completions_unexpected", odd.protocol},
          {"device_counters", counters}};
}

}  // namespace

std::unique_ptr<Stream> open_roce(const StreamRequest& request, Link& link,
                                  std::shared_ptr<rdma::NicDevice> nic) {
  return std::make_unique<RoceStream>(request, link, std::move(nic));
}

const StreamKind& roce_stream() {
  static const StreamKind kind = {
      .name = "roce",
      .rdma = true,
      .unit = "message",
      .overhead_bytes = kRoceOverhead,
      .usual_cell = {.payload = 8'000'000, .batch = 1},
      .usual_grid = {{8'000'000, 1'048'576, 65'536, 8'192, 4'096}, {1}},
      .status =
          [] {
            return BackendStatus{true, fmt::format("messages by RDMA SEND: a software NIC with the queues of "
                                                   "{}, or an RDMA device",
                                                   rdma::vendors_text("or"))};
          },
      .max_payload = [](const Link&) -> u64 { return rdma::kMaxMessage; },
      .open = [](const StreamRequest& r, Link& link) -> std::unique_ptr<Stream> {
        (void)roce_shape(r);
        const rdma::DeviceRequest device = device_request(r);
        const rdma::Backend& backend = rdma::backend_of(device.provider, device.spec);
        if (backend.kind == "model" && !(r.has_tx && r.has_rx))
          throw Error(setting::device, "a model is a device of one process: it reaches no other process",
                      fmt::format("give {} verbs and the name of an RDMA device", setting::provider));
        return open_roce(r, link, backend.open(device));
      }};
  return kind;
}

}  // namespace doorbell::net
