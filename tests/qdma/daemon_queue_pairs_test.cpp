// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's queue pairs: their ids, and how they are deleted.
#include "qdma/daemon_rig.hpp"

namespace doorbell::qdma::daemon {
namespace {

using DaemonQueuePairs = DaemonRig;

TEST_F(DaemonQueuePairs, IdsOfOthersAndOldOnesReachNothing) {
  const SocketId c = client(), other = client();
  const u32 old = add_queue_pair(c);
  const auto operate = [&](SocketId id, u32 qid, u32 op) {
    return ask(id, Opcode::queue_pair_op, QueuePairRequest{0, qid, op}).error;
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

TEST_F(DaemonQueuePairs, TheChannelThatTheDriverChoseIsInTheReply) {
  const SocketId c = client();
  const auto added = [&](u32 channel) {
    return ask(c, Opcode::queue_pair_add, QueuePairAddRequest{.add = {.mm_channel = channel}}).as<QpairAdd>();
  };
  // The card's ids are 0, 1, 2; the daemon's say nothing of them.
  EXPECT_EQ(added(kChannelAuto).mm_channel, kChannel0);
  EXPECT_EQ(added(kChannelAuto).mm_channel, kChannel1);
  EXPECT_EQ(added(kChannel1).mm_channel, kChannel1);
}

TEST_F(DaemonQueuePairs, AQueuePairIsDeletedAfterItsTransfersOnly) {
  const SocketId c = client();
  const auto [buffer, descriptor] = open_buffer(c);
  send_transfer(descriptor, to_card(buffer.address, 4096), 1);
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

TEST_F(DaemonQueuePairs, CardMemoryOfAQueuePairThatIsNotDeletedStaysReserved) {
  const SocketId c = client();
  const auto buffer = open_buffer(c).first;
  card->fail_delete = EIO;
  EXPECT_EQ(ask(c, Opcode::buffer_close, BufferCloseRequest{0, buffer.address, buffer.size}).error, EIO);
  EXPECT_EQ(service->gauges().card_memory_used, buffer.size);
  EXPECT_EQ(service->metrics().retire_failures, 2u);
  card->fail_delete = 0;
  EXPECT_EQ(open_buffer(c).first.address, buffer.address + kAllocationUnit);
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
