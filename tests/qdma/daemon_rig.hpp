// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's logic with clients that the test plays, for the tests of each of its nouns.
#pragma once

#include <gtest/gtest.h>

#include "qdma/daemon_fakes.hpp"

namespace doorbell::qdma::daemon {

inline constexpr uid_t kEverything = 0, kPlain = 1000, kBuffersOnly = 2000, kNobody = 3000;
inline constexpr u64 kMiB = 1 << 20;

inline Roles test_roles() {
  return Roles::parse("roles",
                      "[role:all]\nrights = query-devices qdma buffer raw-mem-access\n"
                      "[role:plain]\nrights = query-devices qdma buffer\n[role:buffers]\nrights = buffer\n"
                      "[user:0]\nroles = all\n[user:1000]\nroles = plain\n[user:2000]\nroles = buffers\n",
                      {});
}

struct ControlReply {
  Code code = Code::ok;
  u32 sequence = 0;
  std::vector<u8> body;
  bool with = false;
  int error = 0;
  std::string text;
  template <class T>
  [[nodiscard]] T as() const {
    T value{};
    EXPECT_EQ(body.size(), sizeof value);
    std::memcpy(static_cast<void*>(&value), body.data(), std::min(sizeof value, body.size()));
    return value;
  }
};

/// A service over a card, sockets and threads that only keep books.
class DaemonRig : public testing::Test {
 protected:
  DaemonRig() { start({}); }
  void start(const ServiceOptions& options) {
    service = nullptr;
    outlet = {};
    card = std::make_shared<FakeCard>();
    service = std::make_unique<Service>(card, options, test_roles(), outlet, workers, log);
  }
  SocketId client(uid_t uid = kPlain, bool hello = true) {
    const SocketId id = service->next_socket();
    EXPECT_EQ(service->connect(id, {.pid = 7, .uid = uid, .groups = {uid}}), 0);
    if (hello) {
      EXPECT_EQ(ask(id, Opcode::hello, Hello{}).code, Code::ok);
    }
    return id;
  }
  template <class T>
  void send(SocketId id, Opcode o, const T& body) {
    const std::vector<u8> message = request_message(o, ++sequence, bytes_of(body));
    service->message(id, {.bytes = message});
  }
  ControlReply next(SocketId id) {
    ControlReply reply;
    auto& sent = outlet.sent[id];
    if (sent.empty()) {
      ADD_FAILURE() << "no reply";
      return reply;
    }
    ReplyHeader header;
    std::memcpy(&header, sent.front().bytes.data(), sizeof header);
    reply.code = Code{header.code};
    reply.sequence = header.sequence;
    reply.with = sent.front().with;
    reply.body.assign(sent.front().bytes.begin() + sizeof header, sent.front().bytes.end());
    EXPECT_EQ(header.bytes, reply.body.size());
    if (reply.code != Code::ok && reply.body.size() >= sizeof(ErrorBody)) {
      ErrorBody error;
      std::memcpy(&error, reply.body.data(), sizeof error);
      reply.error = static_cast<int>(error.error);
      reply.text.assign(reply.body.begin() + sizeof error, reply.body.end());
    }
    sent.pop_front();
    return reply;
  }
  template <class T>
  ControlReply ask(SocketId id, Opcode o, const T& body) {
    send(id, o, body);
    workers.run_all();
    ControlReply reply = next(id);
    EXPECT_EQ(reply.sequence, sequence);
    EXPECT_FALSE(outlet.paused.contains(id));
    return reply;
  }
  u32 add_queue_pair(SocketId id) {
    const ControlReply reply = ask(id, Opcode::queue_pair_add, QueuePairAddRequest{});
    EXPECT_EQ(reply.code, Code::ok) << reply.text;
    return reply.as<QpairAdd>().qid;
  }
  /// A buffer, and the socket of its descriptor.
  std::pair<BufferOpenReply, SocketId> open_buffer(SocketId id, BufferOpenRequest r = {.size = kMiB}) {
    const ControlReply reply = ask(id, Opcode::buffer_open, r);
    EXPECT_EQ(reply.code, Code::ok) << reply.text;
    EXPECT_TRUE(reply.with);
    return {reply.as<BufferOpenReply>(), outlet.pairs.back()};
  }

  void send_transfer(SocketId s, const SubXfer& x, u64 seq, u64 deadline_ns = 0) {
    Transfer t{.count = 1};
    t.xfers[0] = x;
    t.xfers[0].buf_fd = 0;
    send_wire(s, kCallTransfer, seq, bytes_of(t), 1, deadline_ns);
  }
  void send_wire(SocketId s, u32 number, u64 seq, std::span<const u8> structure, u32 descriptors = 0,
                 u64 deadline_ns = 0) {
    const wire::RequestHeader header{.number = number,
                                     .sequence = seq,
                                     .deadline_ns = deadline_ns,
                                     .bytes = static_cast<u32>(structure.size()),
                                     .descriptors = descriptors};
    std::vector<u8> bytes(sizeof header);
    std::memcpy(bytes.data(), &header, sizeof header);
    bytes.insert(bytes.end(), structure.begin(), structure.end());
    Message m{.bytes = bytes};
    for (u32 i = 0; i < descriptors; ++i) m.files.emplace_back(Descriptor(kNoFile));
    service->message(s, std::move(m));
  }
  wire::ReplyHeader next_wire(SocketId s) {
    wire::ReplyHeader header;
    auto& sent = outlet.sent[s];
    if (sent.empty()) {
      ADD_FAILURE() << "no reply on the descriptor";
      return header;
    }
    std::memcpy(static_cast<void*>(&header), sent.front().bytes.data(), sizeof header);
    sent.pop_front();
    return header;
  }
  i64 transfer(SocketId s, const SubXfer& x) {
    send_transfer(s, x, ++sequence);
    workers.run_all();
    const wire::ReplyHeader reply = next_wire(s);
    EXPECT_EQ(reply.sequence, sequence);
    return reply.result;
  }
  /// Everybody gone: nothing may be left.
  void expect_nothing_held() {
    workers.run_all();
    const Gauges g = service->gauges();
    EXPECT_EQ(g.held, Holdings{});
    EXPECT_EQ(g.card_memory_used, 0u);
    EXPECT_EQ(g.queue_pairs, 0u);
    EXPECT_EQ(g.descriptors, 0u);
    EXPECT_TRUE(card->queues.empty());
    EXPECT_TRUE(service->idle());
  }

  FakeOutlet outlet;
  FakeWorkers workers;
  FakeLog log;
  std::shared_ptr<FakeCard> card;
  std::unique_ptr<Service> service;
  u32 sequence = 0;
};

inline SubXfer to_card(u64 address, u64 bytes) {
  return {.direction = kDirH2C, .dev_addr = address, .length = bytes};
}
inline SubXfer from_card(u64 address, u64 bytes) {
  return {.direction = kDirC2H, .dev_addr = address, .length = bytes};
}

}  // namespace doorbell::qdma::daemon
