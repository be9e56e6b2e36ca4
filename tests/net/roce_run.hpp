// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Both ends of a RoCE stream in one thread, with a message for every number that shows where it comes from.
#pragma once

#include <gtest/gtest.h>

#include <doorbell/net/packet.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

#include "eventually.hpp"
#include "model/faults.hpp"
#include "net/roce/roce.hpp"

namespace doorbell::net {

class NoLink final : public Link {
 public:
  [[nodiscard]] std::string name() const override { return "lo"; }
  [[nodiscard]] std::string kind() const override { return "model"; }
  [[nodiscard]] std::string ip(End) const override { return "127.0.0.1"; }
};

/// Message n of a flow, `bytes` long, at `to`: n, then a byte of its own.
inline void make_message(u8* to, u32 flow, u64 n, u32 bytes) {
  const u64 word = u64{flow} << 48 | n;
  std::memset(to, static_cast<int>(n * 31 + flow * 7 + 1) & 0xff, bytes);
  std::memcpy(to, &word, sizeof word);
}

/// Sends `count` messages of a flow, of which every other burst has shorter ones.
class MessageSource {
 public:
  MessageSource(TxQueue& queue, u32 flow, u64 count, u32 payload)
      : queue_(queue), slots_(queue.slots()), flow_(flow), count_(count), payload_(payload) {}

  /// Sends what there is room for; true when the flow's end has been acknowledged, or the queue is broken.
  bool step(u32 burst) {
    const u64 completed = queue_.completed();
    EXPECT_LE(completed, sent);
    EXPECT_GE(completed, acknowledged);
    acknowledged = completed;
    const u64 most = std::min<u64>({count_ - sent, completed + slots_.count - sent, burst});
    if (most == 0 || queue_.broken()) return (sent == count_ || queue_.broken()) && queue_.finish();
    const u32 bytes = bytes_of(sent);
    for (u64 n = sent; n < sent + most; ++n) make_message(slots_.payload(n), flow_, n, bytes);
    const u32 n = queue_.send(sent, static_cast<u32>(most), bytes);
    EXPECT_LE(n, most);
    for (u32 i = 0; i < n; ++i) lengths.push_back(bytes);
    sent += n;
    bursts_ += n > 0 ? 1 : 0;
    return false;
  }

  std::vector<u32> lengths;  ///< of the messages accepted
  u64 sent = 0;
  u64 acknowledged = 0;

 private:
  [[nodiscard]] u32 bytes_of(u64) const {
    return bursts_ % 2 == 0 ? payload_ : std::max(payload_ / 2 + 1, kHeaderBytes);
  }

  TxQueue& queue_;
  TxSlots slots_;
  u32 flow_;
  u64 count_;
  u32 payload_;
  u64 bursts_ = 0;
};

struct Received {
  u64 messages = 0;
  u64 changed = 0;  ///< not what was sent, though in its place
};

/// Checks the messages of one flow in their order.
class MessageCheck {
 public:
  explicit MessageCheck(u32 payload) : expected_(payload) {}

  void take(const u8* data, u32 bytes, u32 flow, const MessageSource& sender) {
    const u64 n = got.messages++;
    ASSERT_LT(n, sender.lengths.size());
    EXPECT_EQ(bytes, sender.lengths[n]) << "of message " << n;
    if (bytes > expected_.size()) return;
    make_message(expected_.data(), flow, n, bytes);
    got.changed += std::memcmp(data, expected_.data(), bytes) != 0 ? 1 : 0;
  }
  Received got;

 private:
  std::vector<u8> expected_;
};

inline StreamRequest small_request(const std::string& provider = "mlx5") {
  StreamRequest r;
  r.provider = provider;
  r.payload_bytes = 256;
  r.timeout_s = test::kWaitLimitS;
  return r;
}

/// A stream with both ends here, and what goes through it.
class RoceRun {
 public:
  RoceRun(const StreamRequest& request, u64 count)
      : request_(request), stream(roce_stream().open(request, link_)), burst_(request.burst) {
    begin(count);
  }
  /// Over a NIC that injects faults.
  RoceRun(const StreamRequest& request, u64 count, const model::FaultRates& faults)
      : request_(request), burst_(request.burst) {
    const auto& names = rdma::provider_names();
    const auto provider = std::ranges::find(names, request.provider) - names.begin();
    stream = open_roce(request, link_,
                       rdma::open_device({.spec = request.device,
                                          .provider = static_cast<rdma::Provider>(provider),
                                          .use = {.faults = faults}}));
    begin(count);
  }

  /// One round of every sender; true when all have ended.
  bool send() {
    bool all = true;
    for (MessageSource& s : senders) all = s.step(request_.burst) && all;
    return all;
  }
  /// One round of every receiver; true when all have ended.
  bool receive() {
    bool all = true;
    for (u32 q = 0; q < stream->rx.size(); ++q) {
      RxQueue& queue = *stream->rx[q];
      if (queue.receive(burst_) > 0) {
        EXPECT_EQ(burst_.queue, q);
        EXPECT_GT(burst_.rx_time_ns, 0u);
        for (u32 i = 0; i < burst_.count; ++i) check(i);
        queue.release(burst_);
      }
      all = queue.ended() && all;
    }
    return all;
  }
  /// Until both ends have ended; false if they do not.
  bool run() {
    return test::eventually([this] {
      const bool sent = send();
      return receive() && sent;
    });
  }
  void check(u32 i) {
    if (burst_.split) {
      EXPECT_EQ(burst_.length[i], kHeaderBytes);
      whole_.resize(u64{burst_.length[i]} + burst_.body_length[i]);
      std::memcpy(whole_.data(), burst_.data[i], burst_.length[i]);
      request_.gpu->copy(whole_.data() + burst_.length[i], burst_.body[i], burst_.body_length[i]);
      receivers[0].take(whole_.data(), static_cast<u32>(whole_.size()), 0, senders[0]);
      return;
    }
    // With several flows, a message says itself of which it is.
    u64 word = 0;
    std::memcpy(&word, burst_.data[i], sizeof word);
    const u32 flow = request_.flows == 1 ? 0 : static_cast<u32>(word >> 48);
    ASSERT_LT(flow, request_.flows);
    EXPECT_EQ(flow % request_.rx_queues, burst_.queue);
    receivers[flow].take(burst_.data[i], burst_.length[i], flow, senders[flow]);
  }
  [[nodiscard]] u64 fact(const char* key) { return stream->facts().at(key).get<u64>(); }
  [[nodiscard]] u64 injected(model::Fault f) {
    return stream->facts().at("device_counters").at("injected").at(std::string(name(f))).get<u64>();
  }

 private:
  void begin(u64 count) {
    for (u32 f = 0; f < request_.flows; ++f) {
      senders.emplace_back(*stream->tx.at(f), f, count, request_.payload_bytes);
      receivers.emplace_back(request_.payload_bytes);
    }
  }

  StreamRequest request_;
  NoLink link_;

 public:
  std::unique_ptr<Stream> stream;
  std::vector<MessageSource> senders;
  std::vector<MessageCheck> receivers;

 private:
  Burst burst_;
  std::vector<u8> whole_;  ///< a message in GPU memory, with its header
};

}  // namespace doorbell::net
