// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "qdma/daemon_fakes.hpp"

namespace doorbell::qdma::daemon {
namespace {

constexpr uid_t kEverything = 0, kPlain = 1000, kBuffersOnly = 2000, kNobody = 3000;
constexpr u64 kMiB = 1 << 20;

Roles test_roles() {
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

class DaemonService : public testing::Test {
 protected:
  DaemonService() { start({}); }
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
  void tell(SocketId id, Opcode o, const T& body) {
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
    tell(id, o, body);
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

  void tell_descriptor(SocketId s, const SubXfer& x, u64 seq, u64 deadline_ns = 0) {
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
    for (u32 i = 0; i < descriptors; ++i) m.descriptors.emplace_back(kNoFile);
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
    tell_descriptor(s, x, ++sequence);
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

SubXfer to_card(u64 address, u64 bytes) {
  return {.direction = kDirH2C, .dev_addr = address, .length = bytes};
}
SubXfer from_card(u64 address, u64 bytes) {
  return {.direction = kDirC2H, .dev_addr = address, .length = bytes};
}

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
  // The log has no more of it than is useful.
  EXPECT_LT(log.entries.size(), 30u);
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
  EXPECT_TRUE(refused(nobody, Opcode::queue_pair_op, QueuePairOpRequest{}));
  EXPECT_TRUE(refused(nobody, Opcode::queue_pair_descriptor, QueuePairDescriptorRequest{}));
  EXPECT_TRUE(refused(nobody, Opcode::descriptor, DescriptorRequest{}));
  EXPECT_TRUE(refused(nobody, Opcode::host_buffer, HostBufferRequest{}));
  EXPECT_TRUE(refused(nobody, Opcode::buffer_open, BufferOpenRequest{.size = 1}));
  EXPECT_TRUE(refused(nobody, Opcode::buffer_close, BufferCloseRequest{}));
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
  // What has been closed counts no more.
  EXPECT_EQ(ask(a, Opcode::buffer_close, BufferCloseRequest{0, first.address, first.size}).code, Code::ok);
  static_cast<void>(open_buffer(b, {.channel = 1, .size = 1}));
  for (const SocketId id : {a, b, other}) service->closed(id);
  for (const SocketId id : outlet.pairs) service->closed(id);
  expect_nothing_held();
}

TEST_F(DaemonService, BuffersComeFromTheirMemoryFirstFit) {
  const SocketId c = client(kEverything);
  const auto ddr = open_buffer(c).first;
  EXPECT_EQ(ddr.address, kDdrBase);
  EXPECT_EQ(ddr.size, kAllocationUnit);
  const auto next_one = open_buffer(c, {.size = 65 * kMiB}).first;
  EXPECT_EQ(next_one.address, kDdrBase + kAllocationUnit);
  EXPECT_EQ(next_one.size, 2 * kAllocationUnit);
  // It does not fit into what is left of the first region.
  EXPECT_EQ(open_buffer(c, {.size = 512 * kMiB}).first.address, kDdrBase + kRegionBytes);
  EXPECT_EQ(open_buffer(c, {.type = 1, .argument = 12, .size = 1}).first.address,
            kHbmBase + 12 * kRegionBytes);
  EXPECT_EQ(open_buffer(c, {.type = 2, .size = 1}).first.address, kHbmBase);
  EXPECT_EQ(open_buffer(c, {.type = 1, .argument = 0, .size = 448 * kMiB}).first.address,
            kHbmBase + kAllocationUnit);
  EXPECT_EQ(ask(c, Opcode::buffer_open, BufferOpenRequest{.type = 1, .argument = 0, .size = 1}).error,
            ENOMEM);
  EXPECT_EQ(ask(c, Opcode::buffer_close, BufferCloseRequest{0, ddr.address, ddr.size}).code, Code::ok);
  EXPECT_EQ(open_buffer(c).first.address, kDdrBase);

  const BufferOpenRequest wrong[] = {{.type = 3, .size = 1},
                                     {.direction = 3, .size = 1},
                                     {.channel = 3, .size = 1},
                                     {.size = 0},
                                     {.size = 512 * kMiB + 1},
                                     {.size = ~u64{0}},
                                     {.type = 1, .argument = 64, .size = 1},
                                     {.type = 1, .argument = u64{1} << 32, .size = 1}};
  for (const BufferOpenRequest& r : wrong) EXPECT_EQ(ask(c, Opcode::buffer_open, r).error, EINVAL);
}

TEST_F(DaemonService, ABufferIsClosedByItsOwnerOnly) {
  const SocketId owner = client(kEverything), other = client(kEverything);
  const auto buffer = open_buffer(owner).first;
  const auto close = [&](SocketId id, u64 address, u64 size) {
    return ask(id, Opcode::buffer_close, BufferCloseRequest{0, address, size}).code;
  };
  EXPECT_EQ(close(other, buffer.address, buffer.size), Code::auth_error);
  EXPECT_EQ(close(owner, buffer.address, buffer.size + 1), Code::invalid_argument);
  EXPECT_EQ(close(owner, buffer.address + 1, buffer.size), Code::noexist);
  EXPECT_EQ(close(owner, buffer.address, buffer.size), Code::ok);
  EXPECT_EQ(close(owner, buffer.address, buffer.size), Code::noexist);

  // Raw buffers may share an address; each has its owner.
  const BufferOpenRawRequest raw{.address = kDdrBase, .size = 4096};
  EXPECT_EQ(ask(owner, Opcode::buffer_open_raw, raw).as<u32>(), 2u);
  EXPECT_EQ(ask(other, Opcode::buffer_open_raw, raw).as<u32>(), 2u);
  EXPECT_EQ(close(other, kDdrBase, 4096), Code::ok);
  EXPECT_EQ(close(other, kDdrBase, 4096), Code::auth_error);
  EXPECT_EQ(close(owner, kDdrBase, 4096), Code::ok);
  EXPECT_EQ(service->gauges().card_memory_used, 0u);
}

TEST_F(DaemonService, ADescriptorReachesItsBufferInItsDirections) {
  const SocketId c = client();
  const auto [buffer, descriptor] = open_buffer(c, {.direction = 1, .size = kMiB});
  const u64 end = buffer.address + buffer.size;
  EXPECT_EQ(transfer(descriptor, to_card(buffer.address, buffer.size)), static_cast<i64>(buffer.size));
  EXPECT_EQ(transfer(descriptor, to_card(end - 1, 1)), 1);
  EXPECT_EQ(transfer(descriptor, to_card(end - 1, 2)), -EACCES);
  EXPECT_EQ(transfer(descriptor, to_card(buffer.address - 1, 2)), -EACCES);
  EXPECT_EQ(transfer(descriptor, to_card(kHbmBase, 1)), -EACCES);
  EXPECT_EQ(transfer(descriptor, from_card(buffer.address, 4096)), -ENODEV);
  EXPECT_EQ(transfer(descriptor, to_card(~u64{0}, 2)), -EINVAL);
  EXPECT_EQ(transfer(descriptor, to_card(buffer.address, 0)), -EINVAL);
  EXPECT_EQ(transfer(descriptor, to_card(buffer.address, u64{1} << 32)), -EINVAL);
  SubXfer third_pair = to_card(buffer.address, 1);
  third_pair.qpair_index = 2;
  EXPECT_EQ(transfer(descriptor, third_pair), -EINVAL);
  SubXfer no_direction = to_card(buffer.address, 1);
  no_direction.direction = 3;
  EXPECT_EQ(transfer(descriptor, no_direction), -EINVAL);
  EXPECT_EQ(card->transfers.size(), 2u);

  // A refused second half is a refused whole.
  Transfer both{.count = 2};
  both.xfers = {to_card(buffer.address, 4096), to_card(end, 4096)};
  both.xfers[0].buf_fd = both.xfers[1].buf_fd = 0;
  send_wire(descriptor, kCallTransfer, 99, bytes_of(both), 1);
  EXPECT_EQ(next_wire(descriptor).result, -EACCES);
  // Without the descriptor that it names.
  send_wire(descriptor, kCallTransfer, 100, bytes_of(both), 0);
  EXPECT_EQ(next_wire(descriptor).result, -EBADF);
  both.count = 3;
  send_wire(descriptor, kCallTransfer, 101, bytes_of(both), 1);
  EXPECT_EQ(next_wire(descriptor).result, -EINVAL);
  both.size = 4;
  send_wire(descriptor, kCallTransfer, 102, bytes_of(both), 1);
  EXPECT_EQ(next_wire(descriptor).result, -EINVAL);
  std::vector<u8> longer(120, 1);
  const u32 size = 120;
  std::memcpy(longer.data(), &size, sizeof size);
  send_wire(descriptor, kCallTransfer, 103, longer, 1);
  EXPECT_EQ(next_wire(descriptor).result, -E2BIG);
  send_wire(descriptor, kCallInfo, 104, bytes_of(Info{}));
  EXPECT_EQ(next_wire(descriptor).result, -ENOTTY);
  EXPECT_EQ(service->metrics().bytes_to_card, buffer.size + 1);
}

TEST_F(DaemonService, AClientWithoutRawAccessReachesOnlyItsBuffers) {
  const SocketId c = client(kPlain), raw = client(kEverything), stranger = client(kPlain);
  const u32 pair = add_queue_pair(c), raw_pair = add_queue_pair(raw);
  EXPECT_EQ(ask(c, Opcode::queue_pair_descriptor, QueuePairDescriptorRequest{0, pair, 0}).code, Code::ok);
  const SocketId mine = outlet.pairs.back();
  EXPECT_EQ(ask(raw, Opcode::descriptor, DescriptorRequest{.ids = {raw_pair}}).code, Code::ok);
  const SocketId everywhere = outlet.pairs.back();
  EXPECT_EQ(transfer(everywhere, to_card(kHbmBase, 4096)), 4096);
  EXPECT_EQ(transfer(mine, to_card(kDdrBase, 4096)), -EACCES);
  const auto buffer = open_buffer(c).first;
  const auto foreign = open_buffer(stranger).first;
  EXPECT_EQ(transfer(mine, to_card(buffer.address, 4096)), 4096);
  EXPECT_EQ(transfer(mine, to_card(foreign.address, 4096)), -EACCES);
  EXPECT_EQ(transfer(mine, to_card(buffer.address + buffer.size - 1, 2)), -EACCES);
  EXPECT_EQ(ask(c, Opcode::buffer_close, BufferCloseRequest{0, buffer.address, buffer.size}).code, Code::ok);
  EXPECT_EQ(transfer(mine, to_card(buffer.address, 4096)), -EACCES);
  // A window and a direction of the client's choice.
  EXPECT_EQ(ask(raw, Opcode::descriptor,
                DescriptorRequest{
                    .ids = {raw_pair}, .directions = kDirC2H, .window_base = 4096, .window_bytes = 10})
                .code,
            Code::ok);
  const SocketId narrow = outlet.pairs.back();
  EXPECT_EQ(transfer(narrow, from_card(4096, 10)), 10);
  EXPECT_EQ(transfer(narrow, from_card(4096, 11)), -EACCES);
  EXPECT_EQ(transfer(narrow, to_card(4096, 10)), -ENODEV);
  // Memory of a buffer stays reserved while a transfer through another descriptor is on its way.
  const auto again = open_buffer(c).first;
  tell_descriptor(mine, to_card(again.address, 4096), 500);
  tell(c, Opcode::buffer_close, BufferCloseRequest{0, again.address, again.size});
  auto late = std::move(workers.jobs.front());
  workers.jobs.pop_front();
  workers.run_all();
  EXPECT_EQ(service->gauges().card_memory_used, again.size + foreign.size);
  late.first(), late.second();
  EXPECT_EQ(service->gauges().card_memory_used, foreign.size);
}

TEST_F(DaemonService, IdsOfOthersAndOldOnesReachNothing) {
  const SocketId c = client(), other = client();
  const u32 old = add_queue_pair(c);
  const auto operate = [&](SocketId id, u32 qid, u32 op) {
    return ask(id, Opcode::queue_pair_op, QueuePairOpRequest{0, qid, op}).error;
  };
  EXPECT_EQ(operate(c, old, 0), 0);
  EXPECT_EQ(operate(c, old, 0), EINVAL);  // the card's own answer
  EXPECT_EQ(operate(c, old, 3), EINVAL);
  EXPECT_EQ(operate(other, old, 1), EACCES);
  EXPECT_EQ(operate(c, old + 1, 1), ENOENT);
  EXPECT_EQ(ask(other, Opcode::descriptor, DescriptorRequest{.ids = {old}}).error, EACCES);
  EXPECT_EQ(ask(c, Opcode::descriptor, DescriptorRequest{.ids = {old}}).code, Code::ok);
  const SocketId descriptor = outlet.pairs.back();
  EXPECT_EQ(operate(c, old, 2), 0);
  // The card gives its id to the next one; the daemon's ids and descriptors know better.
  const u32 fresh = add_queue_pair(other);
  EXPECT_NE(fresh, old);
  EXPECT_EQ(operate(c, old, 0), ESTALE);
  EXPECT_EQ(ask(c, Opcode::descriptor, DescriptorRequest{.ids = {old}}).error, ESTALE);
  EXPECT_EQ(transfer(descriptor, to_card(kDdrBase, 1)), -ESTALE);
  EXPECT_EQ(operate(other, fresh, 0), 0);
  const DescriptorRequest wrong[] = {{.flags = 1, .ids = {fresh}},
                                     {.count = 0, .ids = {fresh}},
                                     {.count = 3, .ids = {fresh}},
                                     {.count = 2, .ids = {fresh, fresh}},
                                     {.ids = {fresh}, .directions = 4},
                                     {.ids = {fresh}, .window_base = 1},
                                     {.ids = {fresh}, .window_base = 2, .window_bytes = ~u64{0}}};
  for (const DescriptorRequest& r : wrong) EXPECT_EQ(ask(other, Opcode::descriptor, r).error, EINVAL);
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
    tell(c, Opcode::buffer_open, BufferOpenRequest{.size = 1});
    for (u32 i = 0; i < steps && !workers.jobs.empty(); ++i) workers.run_one();
    service->closed(c);
    workers.run_all();
    for (const SocketId s : outlet.pairs) service->closed(s);
    expect_nothing_held();
  }
  // Also in the middle of a deletion.
  const SocketId c = client(kEverything);
  const u32 pair = add_queue_pair(c);
  tell(c, Opcode::queue_pair_op, QueuePairOpRequest{0, pair, 2});
  service->closed(c);
  expect_nothing_held();
}

TEST_F(DaemonService, OldRevokedDescriptorsAreClosed) {
  ServiceOptions options;
  options.max_revoked = 3;
  start(options);
  const SocketId c = client(kEverything);
  for (u32 i = 0; i < 8; ++i) static_cast<void>(open_buffer(c));
  service->closed(c);
  workers.run_all();
  EXPECT_EQ(service->gauges().revoked_descriptors, 3u);
  EXPECT_EQ(outlet.closed.size(), 5u);
}

TEST_F(DaemonService, AQueuePairIsDeletedAfterItsTransfersOnly) {
  const SocketId c = client();
  const auto [buffer, descriptor] = open_buffer(c);
  tell_descriptor(descriptor, to_card(buffer.address, 4096), 1);
  auto on_its_way = std::move(workers.jobs.front());  // a worker has it in hand
  workers.jobs.pop_front();
  service->closed(c);
  workers.run_all();
  EXPECT_EQ(card->stopped.size(), 2u);
  EXPECT_TRUE(card->deleted.empty());
  EXPECT_EQ(service->gauges().card_memory_used, buffer.size);
  on_its_way.first(), on_its_way.second();
  EXPECT_EQ(next_wire(descriptor).sequence, 1u);
  service->closed(descriptor);
  expect_nothing_held();
}

TEST_F(DaemonService, CardMemoryOfAQueuePairThatIsNotDeletedStaysReserved) {
  const SocketId c = client();
  const auto buffer = open_buffer(c).first;
  card->fail_delete = EIO;
  EXPECT_EQ(ask(c, Opcode::buffer_close, BufferCloseRequest{0, buffer.address, buffer.size}).error, EIO);
  EXPECT_EQ(service->gauges().card_memory_used, buffer.size);
  EXPECT_EQ(service->metrics().retire_failures, 2u);
  card->fail_delete = 0;
  EXPECT_EQ(open_buffer(c).first.address, buffer.address + kAllocationUnit);
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

TEST_F(DaemonService, TransfersWaitTheirTurnAndCanBeGivenUp) {
  ServiceOptions options;
  options.limits = {.control = 2, .transfers = 3, .transfers_per_client = 2};
  start(options);
  const SocketId a = client(), b = client();
  const auto [buffer_a, da] = open_buffer(a);
  const auto [buffer_b, db] = open_buffer(b);
  for (u64 i = 1; i <= 5; ++i) tell_descriptor(da, to_card(buffer_a.address, 100), i);
  tell_descriptor(db, to_card(buffer_b.address, 200), 1);
  // Two of a's are in hand and b's one: it does not wait for the others of a.
  EXPECT_EQ(workers.jobs.size(), 3u);
  EXPECT_EQ(service->gauges().waiting, 3u);
  send_wire(da, wire::kCancel, 90, bytes_of(wire::Cancel{4}));
  EXPECT_EQ(next_wire(da).result, -ECANCELED);
  EXPECT_EQ(next_wire(da).result, 0);
  send_wire(da, wire::kCancel, 91, bytes_of(wire::Cancel{77}));
  EXPECT_EQ(next_wire(da).result, -ENOENT);
  // A number that is in use.
  tell_descriptor(da, to_card(buffer_a.address, 100), 5);
  EXPECT_EQ(next_wire(da).result, -EINVAL);
  // Closing the buffer ends what has not begun.
  tell(a, Opcode::buffer_close, BufferCloseRequest{0, buffer_a.address, buffer_a.size});
  EXPECT_EQ(next_wire(da).result, -ESTALE);
  EXPECT_EQ(next_wire(da).result, -ESTALE);
  workers.run_all();
  EXPECT_EQ(next_wire(da).result, 100);
  EXPECT_EQ(next_wire(da).result, 100);
  EXPECT_EQ(next_wire(db).result, 200);
  EXPECT_EQ(next(a).code, Code::ok);
  for (const SocketId s : {a, b, da, db}) service->closed(s);
  expect_nothing_held();
}

TEST_F(DaemonService, MoreTransfersThanADescriptorTakesAreRefused) {
  const SocketId c = client();
  const auto [buffer, descriptor] = open_buffer(c);
  for (u64 i = 1; i <= wire::kMaxInFlight; ++i) tell_descriptor(descriptor, to_card(buffer.address, 1), i);
  tell_descriptor(descriptor, to_card(buffer.address, 1), 10000);
  EXPECT_EQ(next_wire(descriptor).result, -EAGAIN);
  // Its user goes: what has not begun is forgotten.
  service->closed(descriptor);
  EXPECT_EQ(service->gauges().waiting, 0u);
  service->closed(c);
  expect_nothing_held();
}

TEST_F(DaemonService, DeadlinesAreBoundedAndCountFromTheArrival) {
  ServiceOptions options;
  options.max_transfer_ns = 1'000'000'000;
  start(options);
  const SocketId c = client();
  const auto [buffer, descriptor] = open_buffer(c);
  tell_descriptor(descriptor, to_card(buffer.address, 1), 1);
  tell_descriptor(descriptor, to_card(buffer.address, 1), 2, ~u64{0});
  tell_descriptor(descriptor, to_card(buffer.address, 1), 3, 1);  // it has passed when its turn comes
  workers.run_all();
  EXPECT_EQ(next_wire(descriptor).result, 1);
  EXPECT_EQ(next_wire(descriptor).result, 1);
  EXPECT_EQ(next_wire(descriptor).result, -ETIMEDOUT);
  ASSERT_EQ(card->deadlines.size(), 2u);
  for (const u64 ns : card->deadlines) EXPECT_LE(ns, options.max_transfer_ns);
}

TEST_F(DaemonService, WhoDoesNotSpeakOnADescriptorLosesIt) {
  const SocketId c = client();
  const auto descriptor = open_buffer(c).second;
  const std::vector<u8> junk(50, 3);
  service->message(descriptor, {.bytes = junk});
  EXPECT_EQ(next_wire(descriptor).result, -EPROTO);
  EXPECT_TRUE(outlet.closed.contains(descriptor));
  EXPECT_EQ(ask(c, Opcode::num_devices, Zero{}).code, Code::ok);
}

TEST_F(DaemonService, HostBuffersOfADescriptorCountUntilItIsClosed) {
  const SocketId c = client();
  const auto descriptor = open_buffer(c).second;
  send_wire(descriptor, kCallBufCreate, 1, bytes_of(BufCreate{.length = 8192}));
  workers.run_all();
  EXPECT_EQ(outlet.sent[descriptor].front().with, true);
  const auto reply = next_wire(descriptor);
  EXPECT_EQ(reply.result, 0);
  EXPECT_EQ(reply.bytes, sizeof(BufCreate));
  EXPECT_EQ(service->gauges().held.host_bytes, 8192u);
  send_wire(descriptor, kCallBufCreate, 2, bytes_of(BufCreate{.length = u64{1} << 60}));
  EXPECT_EQ(next_wire(descriptor).result, -EDQUOT);
  send_wire(descriptor, kCallBufCreate, 3, bytes_of(BufCreate{.length = 100}));
  workers.run_all();
  EXPECT_EQ(next_wire(descriptor).result, -EINVAL);
  service->closed(descriptor);
  EXPECT_EQ(service->gauges().held.host_bytes, 0u);
}

TEST_F(DaemonService, ChargesOfNothingAreKeptApart) {
  const SocketId c = client();
  const auto descriptor = open_buffer(c).second;
  send_wire(descriptor, kCallBufCreate, 1, bytes_of(BufCreate{.length = 0}));
  service->closed(c);
  send_wire(descriptor, kCallBufCreate, 2, bytes_of(BufCreate{.length = 0}));
  service->closed(descriptor);
  expect_nothing_held();
}

TEST_F(DaemonService, ATransferInHandIsCancelledByTheCard) {
  const SocketId c = client();
  const auto [buffer, descriptor] = open_buffer(c);
  tell_descriptor(descriptor, to_card(buffer.address, 4096), 1);
  auto in_hand = std::move(workers.jobs.front());
  workers.jobs.pop_front();
  send_wire(descriptor, wire::kCancel, 2, bytes_of(wire::Cancel{1}));
  EXPECT_EQ(next_wire(descriptor).result, 0);
  EXPECT_EQ(card->cancelled.size(), 1u);
  // So is one whose user has gone.
  tell_descriptor(descriptor, to_card(buffer.address, 4096), 3);
  auto another = std::move(workers.jobs.front());
  workers.jobs.pop_front();
  service->closed(descriptor);
  EXPECT_EQ(card->cancelled.size(), 3u);
  EXPECT_NE(card->cancelled[0], card->cancelled[2]);
  in_hand.first(), in_hand.second(), another.first(), another.second();
  service->closed(c);
  expect_nothing_held();
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

TEST(DaemonIds, AnOldIdIsStaleUntilItsSlotHasBeenUsedAMillionTimes) {
  IdTable<int> table;
  using Found = IdTable<int>::Found;
  const u32 first = *table.add(5);
  EXPECT_EQ(table.look(first), Found::here);
  EXPECT_EQ(table.look(first + 1), Found::unknown);
  EXPECT_EQ(table.look(first + IdTable<int>::kMaxSlots), Found::unknown);  // a generation to come
  table.remove(first);
  table.remove(first);
  for (u32 i = 0; i < 1000; ++i) {
    const u32 id = *table.add(6);
    EXPECT_EQ(table.look(first), Found::stale);
    table.remove(id);
  }
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.find(first), nullptr);
}

}  // namespace
}  // namespace doorbell::qdma::daemon
