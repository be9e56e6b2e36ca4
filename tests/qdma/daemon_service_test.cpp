// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Clients of the daemon: what they are told, their rights and quotas, and what they leave.
#include "qdma/daemon_rig.hpp"
#include "system/clock.hpp"

namespace doorbell::qdma::daemon {
namespace {

using DaemonService = DaemonRig;

TEST_F(DaemonService, TellsWhatItServes) {
  const SocketId c = client();
  EXPECT_EQ(ask(c, Opcode::num_devices, Zero{}).as<u32>(), 1u);
  const auto info = ask(c, Opcode::device_info, DeviceRequest{}).as<DeviceInfoReply>();
  EXPECT_STREQ(info.bdf.data(), "0000:65:00.1");
  EXPECT_STREQ(info.name.data(), "doorbelld: fake");
  EXPECT_STREQ(ask(c, Opcode::qdma_info, DeviceRequest{}).as<Info>().bdf.data(), "0000:65:00.1");
  EXPECT_EQ(ask(c, Opcode::device_info, DeviceRequest{1}).error, ENOENT);
  const auto find = [&](const char* text) {
    BdfRequest r;
    std::strcpy(r.bdf.data(), text);
    return ask(c, Opcode::device_by_bdf, r).code;
  };
  EXPECT_EQ(find("0000:65:00.1"), Code::ok);
  EXPECT_EQ(find("65:00.0"), Code::ok);
  EXPECT_EQ(find("0000:66:00.1"), Code::noexist);
  BdfRequest endless;
  endless.bdf.fill('a');
  EXPECT_EQ(ask(c, Opcode::device_by_bdf, endless).error, EINVAL);
}

TEST_F(DaemonService, AClientWithoutHelloIsServedWithCodesAlone) {
  const SocketId c = client(kPlain, false);
  const auto [buffer, descriptor] = open_buffer(c);
  EXPECT_EQ(buffer.queue_pairs, 2u);
  EXPECT_EQ(transfer(descriptor, to_card(buffer.address, 4096)), 4096);
  const ControlReply refused = ask(c, Opcode::buffer_close, BufferCloseRequest{.address = 5});
  EXPECT_EQ(refused.code, Code::noexist);
  EXPECT_TRUE(refused.body.empty());
  EXPECT_EQ(ask(c, Opcode::buffer_close, BufferCloseRequest{0, buffer.address, buffer.size}).code, Code::ok);
  service->closed(c);
  service->closed(descriptor);
  expect_nothing_held();
}

TEST_F(DaemonService, AnUnknownVersionIsRefusedAndTheConnectionGoesOn) {
  const SocketId c = client(kPlain, false);
  const ControlReply refused = ask(c, Opcode::hello, Hello{.version = 9});
  EXPECT_EQ(refused.error, EPROTONOSUPPORT);
  EXPECT_NE(refused.text.find("this daemon speaks version 1"), std::string::npos) << refused.text;
  const auto hello = ask(c, Opcode::hello, Hello{}).as<HelloReply>();
  EXPECT_EQ(hello.max_queue_pairs, 64u);
}

TEST_F(DaemonService, MalformedMessagesDisturbNobody) {
  const SocketId bad = client(), good = client();
  for (std::size_t length = 0; length < 64; ++length) {
    const std::vector<u8> junk(length, 0xff);
    service->message(bad, {.bytes = junk});
    EXPECT_EQ(next(bad).code, Code::bad_request);
  }
  const std::vector<u8> unknown = request_message(Opcode{9}, 77, std::vector<u8>(8));
  service->message(bad, {.bytes = unknown});
  const ControlReply refused = next(bad);
  EXPECT_EQ(refused.error, ENOTTY);
  EXPECT_EQ(refused.sequence, 77u);
  EXPECT_EQ(service->metrics().malformed, 65u);
  EXPECT_EQ(ask(good, Opcode::num_devices, Zero{}).as<u32>(), 1u);
  // The log knows who causes such entries, and limits them.
  for (const LogEntry& entry : log.entries) EXPECT_TRUE(entry.user);
}

TEST_F(DaemonService, AClientThatSendsNoRequestInTimeIsDisconnected) {
  constexpr u64 kLimitNs = 1'000'000'000'000;  // longer than any test: only this one's times count
  start({.first_request_ns = kLimitNs});
  const SocketId asks = client(kPlain, false), greets = client(), silent = client(kPlain, false),
                 beginner = client(kPlain, false);
  EXPECT_EQ(ask(asks, Opcode::num_devices, Zero{}).code, Code::ok);
  // Half of a request is none.
  const std::vector<u8> request = request_message(Opcode::hello, 1, bytes_of(Hello{}));
  service->message(beginner, {.bytes = std::span(request).first(request.size() / 2)});
  EXPECT_EQ(next(beginner).code, Code::bad_request);
  const u64 due = service->end_silent(wall_ns());
  EXPECT_GT(due, wall_ns()) << "they still have time";
  EXPECT_TRUE(outlet.closed.empty());
  const SocketId later = client(kPlain, false), slow = client(kPlain, false);
  EXPECT_EQ(service->end_silent(due + kLimitNs / 2), due + kLimitNs / 2);
  EXPECT_TRUE(outlet.closed.empty()) << "a request may have come that was not taken yet";
  EXPECT_EQ(ask(slow, Opcode::num_devices, Zero{}).code, Code::ok);
  EXPECT_EQ(service->end_silent(due + kLimitNs / 2), 0u) << "all that are silent have been disconnected";
  EXPECT_EQ(outlet.closed, (std::set<SocketId>{silent, beginner, later}));
  for (const SocketId id : {silent, beginner, later}) {
    const ControlReply refused = next(id);
    EXPECT_EQ(refused.sequence, 0u);
    EXPECT_EQ(refused.error, ETIMEDOUT);
    EXPECT_EQ(refused.text, "no request within 1000 s");
  }
  EXPECT_EQ(service->metrics().refused_connections.at("silent"), 3u);
  EXPECT_EQ(service->gauges().held.connections, 3u);
  EXPECT_EQ(ask(asks, Opcode::num_devices, Zero{}).code, Code::ok);
  EXPECT_EQ(ask(greets, Opcode::num_devices, Zero{}).code, Code::ok);
}

TEST_F(DaemonService, EveryRequestNeedsItsRight) {
  const SocketId nobody = client(kNobody), buffers = client(kBuffersOnly), plain = client(kPlain);
  const auto refused = [&](SocketId id, Opcode o, const auto& body) {
    return ask(id, o, body).error == EPERM;
  };
  EXPECT_TRUE(refused(nobody, Opcode::num_devices, Zero{}));
  EXPECT_TRUE(refused(nobody, Opcode::device_info, DeviceRequest{}));
  EXPECT_TRUE(refused(nobody, Opcode::qdma_info, DeviceRequest{}));
  EXPECT_TRUE(refused(nobody, Opcode::device_by_bdf, BdfRequest{}));
  EXPECT_TRUE(refused(nobody, Opcode::queue_pair_add, QueuePairAddRequest{}));
  EXPECT_TRUE(refused(nobody, Opcode::queue_pair_op, QueuePairRequest{}));
  EXPECT_TRUE(refused(nobody, Opcode::queue_pair_descriptor, QueuePairRequest{}));
  EXPECT_TRUE(refused(nobody, Opcode::descriptor, DescriptorRequest{}));
  EXPECT_TRUE(refused(nobody, Opcode::host_buffer, HostBufferRequest{}));
  EXPECT_TRUE(refused(nobody, Opcode::buffer_open, BufferOpenRequest{.size = 1}));
  // A client may give back what it has: it has none.
  EXPECT_EQ(ask(nobody, Opcode::buffer_close, BufferCloseRequest{}).error, ENOENT);
  EXPECT_TRUE(refused(nobody, Opcode::buffer_open_raw, BufferOpenRawRequest{.size = 1}));
  EXPECT_TRUE(refused(buffers, Opcode::queue_pair_add, QueuePairAddRequest{}));
  EXPECT_TRUE(refused(plain, Opcode::buffer_open_raw, BufferOpenRawRequest{.size = 1}));
  // Addresses wrap in an aperture: no window could be checked.
  EXPECT_TRUE(refused(plain, Opcode::queue_pair_add, QueuePairAddRequest{.add = {.aperture_size = 65536}}));
  EXPECT_EQ(card->calls[kCallQpairAdd], 0u);
  EXPECT_EQ(service->metrics().requests.at({"buffer-open-raw", "auth-error"}), 2u);
}

TEST_F(DaemonService, NewRolesCountFromTheNextRequestOn) {
  const SocketId c = client(kPlain);
  static_cast<void>(add_queue_pair(c));
  service->set_roles(Roles::parse("roles", "[role:a]\nrights = query-devices\n[user:*]\nroles = a\n", {}));
  EXPECT_EQ(ask(c, Opcode::queue_pair_add, QueuePairAddRequest{}).error, EPERM);
  EXPECT_EQ(ask(c, Opcode::num_devices, Zero{}).code, Code::ok);
}

TEST_F(DaemonService, EverybodyTogetherLeavesRoomForThoseWithRights) {
  ServiceOptions options;
  options.max_connections = 16;
  options.quotas.connections = 16;
  start(options);
  const auto connect = [&](uid_t uid) {
    return service->connect(service->next_socket(), {.pid = 1, .uid = uid, .groups = {}});
  };
  for (u32 i = 0; i < 14; ++i) EXPECT_EQ(connect(kNobody + i), 0);
  EXPECT_EQ(connect(kNobody), EBUSY);
  EXPECT_EQ(connect(kPlain), 0);
  EXPECT_EQ(connect(0), 0);
  EXPECT_EQ(connect(0), EBUSY);
}

TEST_F(DaemonService, QuotasAreAUsersAndNotAConnections) {
  ServiceOptions options;
  options.quotas = {.connections = 2,
                    .queue_pairs = 4,
                    .buffers = 2,
                    .descriptors = 4,
                    .card_bytes = 192 * kMiB,
                    .host_bytes = 8192};
  start(options);
  const SocketId a = client(), b = client();
  EXPECT_EQ(service->connect(service->next_socket(), {.pid = 1, .uid = kPlain, .groups = {}}), EDQUOT);
  const SocketId other = client(kEverything);
  const auto [first, descriptor] = open_buffer(a);
  EXPECT_EQ(ask(b, Opcode::buffer_open, BufferOpenRequest{.size = 129 * kMiB}).error, EDQUOT);
  static_cast<void>(open_buffer(b, {.channel = kChannel1, .size = 128 * kMiB}));
  const ControlReply third = ask(a, Opcode::buffer_open, BufferOpenRequest{.channel = 1, .size = 1});
  EXPECT_EQ(third.error, EDQUOT);
  EXPECT_NE(third.text.find("user 1000 holds 2 buffers of 2"), std::string::npos) << third.text;
  const u32 pair = add_queue_pair(a);
  EXPECT_EQ(ask(b, Opcode::queue_pair_add, QueuePairAddRequest{}).error, EDQUOT);
  EXPECT_EQ(ask(a, Opcode::descriptor, DescriptorRequest{.ids = {pair}}).code, Code::ok);
  EXPECT_EQ(ask(a, Opcode::descriptor, DescriptorRequest{.ids = {pair}}).code, Code::ok);
  EXPECT_EQ(ask(a, Opcode::descriptor, DescriptorRequest{.ids = {pair}}).error, EDQUOT);
  const HostBufferRequest host{.create = {.length = 8192}};
  EXPECT_EQ(ask(a, Opcode::host_buffer, host).code, Code::ok);
  EXPECT_EQ(ask(b, Opcode::host_buffer, host).error, EDQUOT);
  // Others have quotas of their own.
  static_cast<void>(open_buffer(other));
  EXPECT_EQ(ask(other, Opcode::host_buffer, host).code, Code::ok);
  // A buffer that has been closed counts no more.
  EXPECT_EQ(ask(a, Opcode::buffer_close, BufferCloseRequest{0, first.address, first.size}).code, Code::ok);
  static_cast<void>(open_buffer(b, {.channel = 1, .size = 1}));
  for (const SocketId id : {a, b, other}) service->closed(id);
  for (const SocketId id : outlet.pairs) service->closed(id);
  expect_nothing_held();
}

TEST_F(DaemonService, ADisconnectedClientLeavesNothing) {
  const SocketId c = client(kEverything);
  for (u32 i = 0; i < 5; ++i) static_cast<void>(open_buffer(c));
  const u32 pair = add_queue_pair(c);
  EXPECT_EQ(ask(c, Opcode::descriptor, DescriptorRequest{.ids = {pair}}).code, Code::ok);
  const std::vector<SocketId> descriptors = outlet.pairs;
  service->closed(c);
  workers.run_all();
  EXPECT_EQ(card->deleted.size(), 11u);
  // Whoever has been given a descriptor learns that it is old.
  for (const SocketId s : descriptors) EXPECT_EQ(transfer(s, to_card(kDdrBase, 1)), -ESTALE);
  expect_nothing_held();
  EXPECT_EQ(service->gauges().revoked_descriptors, 6u);
  for (const SocketId s : descriptors) service->closed(s);
  EXPECT_EQ(service->gauges().revoked_descriptors, 0u);
}

TEST_F(DaemonService, AClientThatGoesDuringItsRequestLeavesNothing) {
  for (u32 steps = 0; steps < 3; ++steps) {
    const SocketId c = client(kEverything);
    static_cast<void>(add_queue_pair(c));
    send(c, Opcode::buffer_open, BufferOpenRequest{.size = 1});
    for (u32 i = 0; i < steps && !workers.jobs.empty(); ++i) workers.run_one();
    service->closed(c);
    workers.run_all();
    for (const SocketId s : outlet.pairs) service->closed(s);
    expect_nothing_held();
  }
  // Also in the middle of a deletion.
  const SocketId c = client(kEverything);
  const u32 pair = add_queue_pair(c);
  send(c, Opcode::queue_pair_op, QueuePairRequest{0, pair, 2});
  service->closed(c);
  expect_nothing_held();
}

TEST_F(DaemonService, WhatTheCardRefusesIsRefusedAndTakenBack) {
  const SocketId c = client(kEverything);
  card->fail[kCallQpairGetFd] = EMFILE;
  EXPECT_EQ(ask(c, Opcode::buffer_open, BufferOpenRequest{.size = 1}).error, EMFILE);
  card->fail.clear();
  card->fail[kCallQpairOp] = EIO;
  EXPECT_EQ(ask(c, Opcode::buffer_open, BufferOpenRequest{.size = 1}).error, EIO);
  card->fail.clear();
  outlet.no_sockets = true;
  EXPECT_EQ(ask(c, Opcode::buffer_open, BufferOpenRequest{.size = 1}).error, EMFILE);
  const u32 pair = add_queue_pair(c);
  EXPECT_EQ(ask(c, Opcode::descriptor, DescriptorRequest{.ids = {pair}}).error, EMFILE);
  EXPECT_EQ(ask(c, Opcode::queue_pair_add, QueuePairAddRequest{.add = {.dir_mask = 0}}).error, EINVAL);
  EXPECT_EQ(ask(c, Opcode::host_buffer, HostBufferRequest{.create = {.length = 100}}).error, EINVAL);
  EXPECT_EQ(service->gauges().held.host_bytes, 0u);
  service->closed(c);
  workers.run_all();
  EXPECT_EQ(service->gauges().held, Holdings{});
}

TEST_F(DaemonService, TheMetricsAreInPrometheusText) {
  const SocketId c = client();
  const auto [buffer, descriptor] = open_buffer(c);
  EXPECT_EQ(transfer(descriptor, to_card(buffer.address, 64)), 64);
  EXPECT_EQ(transfer(descriptor, to_card(0, 64)), -EACCES);
  const std::string text = prometheus_text(service->metrics(), service->gauges());
  for (const char* line :
       {"doorbelld_connections 1\n", "doorbelld_queue_pairs 2\n", "doorbelld_buffers 1\n",
        "doorbelld_card_memory_bytes 67108864\n",
        "doorbelld_requests_total{opcode=\"buffer-open\",code=\"ok\"} 1\n",
        "doorbelld_transfers_total{outcome=\"EACCES\"} 1\n", "doorbelld_transfers_total{outcome=\"ok\"} 1\n",
        "doorbelld_transfer_bytes_total{direction=\"host_to_card\"} 64\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

}  // namespace
}  // namespace doorbell::qdma::daemon
