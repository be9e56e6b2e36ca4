// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's transfer descriptors: what they reach, and when they end.
#include "qdma/daemon_rig.hpp"

namespace doorbell::qdma::daemon {
namespace {

using DaemonDescriptors = DaemonRig;

TEST_F(DaemonDescriptors, ADescriptorReachesItsBufferInItsDirections) {
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

TEST_F(DaemonDescriptors, AClientWithoutRawAccessReachesOnlyItsBuffers) {
  const SocketId c = client(kPlain), raw = client(kEverything), stranger = client(kPlain);
  const u32 pair = add_queue_pair(c), raw_pair = add_queue_pair(raw);
  EXPECT_EQ(ask(c, Opcode::queue_pair_descriptor, QueuePairRequest{0, pair, 0}).code, Code::ok);
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
  send_transfer(mine, to_card(again.address, 4096), 500);
  send(c, Opcode::buffer_close, BufferCloseRequest{0, again.address, again.size});
  auto late = std::move(workers.jobs.front());
  workers.jobs.pop_front();
  workers.run_all();
  EXPECT_EQ(service->gauges().card_memory_used, again.size + foreign.size);
  late.first(), late.second();
  EXPECT_EQ(service->gauges().card_memory_used, foreign.size);
}

TEST_F(DaemonDescriptors, OldRevokedDescriptorsAreClosed) {
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

TEST_F(DaemonDescriptors, WhoDoesNotSpeakOnADescriptorLosesIt) {
  const SocketId c = client();
  const auto descriptor = open_buffer(c).second;
  const std::vector<u8> junk(50, 3);
  service->message(descriptor, {.bytes = junk});
  EXPECT_EQ(next_wire(descriptor).result, -EPROTO);
  EXPECT_TRUE(outlet.closed.contains(descriptor));
  EXPECT_EQ(ask(c, Opcode::num_devices, Zero{}).code, Code::ok);
}

}  // namespace
}  // namespace doorbell::qdma::daemon
