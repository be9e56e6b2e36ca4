// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's buffers: card memory, host memory, and whose they are.
#include "qdma/daemon_rig.hpp"

namespace doorbell::qdma::daemon {
namespace {

using DaemonBuffers = DaemonRig;

TEST_F(DaemonBuffers, BuffersComeFromTheirMemoryFirstFit) {
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

TEST_F(DaemonBuffers, ABufferIsClosedByItsOwnerOnly) {
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

TEST_F(DaemonBuffers, TheHolderOfARangeIsTold) {
  const SocketId owner = client(kPlain), asker = client(kEverything);
  const auto buffer = open_buffer(owner).first;
  const auto holder = [&](SocketId id, u64 base, u64 bytes) {
    return ask(id, Opcode::holder, HolderRequest{.base = base, .bytes = bytes}).as<HolderReply>();
  };
  for (const u64 base : {buffer.address, buffer.address + buffer.size - 1, buffer.address - 4096}) {
    const HolderReply reply = holder(asker, base, 8192);
    EXPECT_EQ(reply.buffers, 1u);
    EXPECT_EQ(reply.user, kPlain);
    EXPECT_EQ(reply.connection, owner);
    EXPECT_EQ(reply.base, buffer.address);
    EXPECT_EQ(reply.bytes, buffer.size);
  }
  EXPECT_EQ(holder(asker, buffer.address + buffer.size, 4096).buffers, 0u);
  EXPECT_EQ(holder(asker, buffer.address - 4096, 4096).buffers, 0u);
  EXPECT_EQ(holder(asker, 0, ~u64{0}).buffers, 1u);
  // One's own buffers are no others'.
  const auto own = open_buffer(asker).first;
  EXPECT_EQ(holder(asker, own.address, own.size).buffers, 0u);
  EXPECT_EQ(ask(owner, Opcode::holder, HolderRequest{.base = own.address, .bytes = 1}).error, EPERM);
  EXPECT_EQ(ask(asker, Opcode::holder, HolderRequest{.base = kDdrBase, .bytes = 0}).error, EINVAL);
  EXPECT_EQ(ask(asker, Opcode::holder, HolderRequest{.base = ~u64{0}, .bytes = 2}).error, EINVAL);
  EXPECT_EQ(ask(owner, Opcode::buffer_close, BufferCloseRequest{0, buffer.address, buffer.size}).code,
            Code::ok);
  EXPECT_EQ(holder(asker, buffer.address, 8192).buffers, 0u);
}

TEST_F(DaemonBuffers, HostBuffersOfADescriptorCountUntilItIsClosed) {
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

TEST_F(DaemonBuffers, HostBuffersAreCountedWhileTheyAreBeingMadeToo) {
  ServiceOptions options;
  options.quotas.host_buffers = 2;
  start(options);
  const SocketId c = client(), other = client(kEverything);
  const SocketId descriptor = open_buffer(c).second, of_other = open_buffer(other).second;
  const BufCreate create{.length = 4096};
  for (u64 i = 1; i <= 3; ++i) send_wire(descriptor, kCallBufCreate, i, bytes_of(create));
  EXPECT_EQ(next_wire(descriptor).result, -EDQUOT);
  workers.run_all();
  EXPECT_EQ(next_wire(descriptor).result, 0);
  EXPECT_EQ(next_wire(descriptor).result, 0);
  EXPECT_EQ(ask(c, Opcode::host_buffer, HostBufferRequest{.create = create}).error, EDQUOT);
  send_wire(of_other, kCallBufCreate, 9, bytes_of(create));
  workers.run_all();
  EXPECT_EQ(next_wire(of_other).result, 0);
  service->closed(descriptor);
  EXPECT_EQ(ask(c, Opcode::host_buffer, HostBufferRequest{.create = create}).code, Code::ok);
}

TEST_F(DaemonBuffers, AHostBufferWhoseAskerHasGoneIsNotMade) {
  const SocketId c = client(), other = client();
  const auto descriptor = open_buffer(other).second;
  const BufCreate create{.length = 4096};
  card->calls.clear();
  // One that has not begun, on either kind of socket.
  send(c, Opcode::host_buffer, HostBufferRequest{.create = create});
  send_wire(descriptor, kCallBufCreate, 1, bytes_of(create));
  service->closed(c);
  service->closed(other);
  EXPECT_EQ(card->cancelled.size(), 2u);
  workers.run_all();
  EXPECT_EQ(card->calls[kCallBufCreate], 0u);
  service->closed(descriptor);
  expect_nothing_held();
}

TEST_F(DaemonBuffers, AHostBufferThatIsBeingMadeIsGivenUpWithItsAsker) {
  const SocketId c = client();
  card->during = [&](u32 number, const CallOptions& options) {
    if (number != kCallBufCreate) return;
    service->closed(c);
    ASSERT_NE(options.cancelled, nullptr);
    EXPECT_TRUE(*options.cancelled);
    EXPECT_EQ(card->cancelled, std::vector{options.tag});
  };
  send(c, Opcode::host_buffer, HostBufferRequest{.create = {.length = 4096}});
  workers.run_all();
  EXPECT_EQ(card->cancelled.size(), 1u);
  expect_nothing_held();
}

TEST_F(DaemonBuffers, HostBuffersThatAreBeingMadeHoldUpNoOtherRequest) {
  const SocketId c = client(), other = client(), third = client();
  const auto descriptor = open_buffer(c).second;
  for (u64 i = 1; i <= 16; ++i) send_wire(descriptor, kCallBufCreate, i, bytes_of(BufCreate{.length = 4096}));
  EXPECT_EQ(workers.jobs.size(), 1u);  // a client's are made one after the other
  send(other, Opcode::host_buffer, HostBufferRequest{.create = {.length = 4096}});
  EXPECT_EQ(workers.jobs.size(), 2u);
  send(third, Opcode::queue_pair_add, QueuePairAddRequest{});
  EXPECT_EQ(workers.jobs.size(), 3u);
  workers.run_all();
}

TEST_F(DaemonBuffers, ChargesOfNothingAreKeptApart) {
  const SocketId c = client();
  const auto descriptor = open_buffer(c).second;
  send_wire(descriptor, kCallBufCreate, 1, bytes_of(BufCreate{.length = 0}));
  service->closed(c);
  send_wire(descriptor, kCallBufCreate, 2, bytes_of(BufCreate{.length = 0}));
  service->closed(descriptor);
  expect_nothing_held();
}

}  // namespace
}  // namespace doorbell::qdma::daemon
