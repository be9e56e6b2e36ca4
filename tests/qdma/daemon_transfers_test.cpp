// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Transfers through the daemon: their turn, their deadlines, and how they are given up.
#include "qdma/daemon_rig.hpp"

namespace doorbell::qdma::daemon {
namespace {

using DaemonTransfers = DaemonRig;

TEST_F(DaemonTransfers, TransfersWaitTheirTurnAndCanBeGivenUp) {
  ServiceOptions options;
  options.limits = {.control = 2, .transfers = 4, .transfers_per_client = 2};
  start(options);
  const SocketId a = client(), b = client();
  const auto [buffer_a, da] = open_buffer(a);
  const auto [buffer_b, db] = open_buffer(b);
  for (u64 i = 1; i <= 5; ++i) send_transfer(da, to_card(buffer_a.address, 100), i);
  send_transfer(db, to_card(buffer_b.address, 200), 1);
  // Two of a's are in hand and b's one: it does not wait for the others of a.
  EXPECT_EQ(workers.jobs.size(), 3u);
  EXPECT_EQ(service->gauges().waiting, 3u);
  send_wire(da, wire::kCancel, 90, bytes_of(wire::Cancel{4}));
  EXPECT_EQ(next_wire(da).result, -ECANCELED);
  EXPECT_EQ(next_wire(da).result, 0);
  send_wire(da, wire::kCancel, 91, bytes_of(wire::Cancel{77}));
  EXPECT_EQ(next_wire(da).result, -ENOENT);
  // A number that is in use.
  send_transfer(da, to_card(buffer_a.address, 100), 5);
  EXPECT_EQ(next_wire(da).result, -EINVAL);
  // Closing the buffer ends what has not begun.
  send(a, Opcode::buffer_close, BufferCloseRequest{0, buffer_a.address, buffer_a.size});
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

TEST_F(DaemonTransfers, MoreTransfersThanADescriptorTakesAreRefused) {
  const SocketId c = client();
  const auto [buffer, descriptor] = open_buffer(c);
  for (u64 i = 1; i <= wire::kMaxInFlight; ++i) send_transfer(descriptor, to_card(buffer.address, 1), i);
  send_transfer(descriptor, to_card(buffer.address, 1), 10000);
  EXPECT_EQ(next_wire(descriptor).result, -EAGAIN);
  // Its user goes: what has not begun is forgotten.
  service->closed(descriptor);
  EXPECT_EQ(service->gauges().waiting, 0u);
  service->closed(c);
  expect_nothing_held();
}

TEST_F(DaemonTransfers, DeadlinesAreBoundedAndCountFromTheArrival) {
  ServiceOptions options;
  options.max_transfer_ns = 1'000'000'000;
  start(options);
  const SocketId c = client();
  const auto [buffer, descriptor] = open_buffer(c);
  send_transfer(descriptor, to_card(buffer.address, 1), 1);
  send_transfer(descriptor, to_card(buffer.address, 1), 2, ~u64{0});
  send_transfer(descriptor, to_card(buffer.address, 1), 3, 1);  // it has passed when its turn comes
  workers.run_all();
  EXPECT_EQ(next_wire(descriptor).result, 1);
  EXPECT_EQ(next_wire(descriptor).result, 1);
  EXPECT_EQ(next_wire(descriptor).result, -ETIMEDOUT);
  ASSERT_EQ(card->deadlines.size(), 2u);
  for (const u64 ns : card->deadlines) EXPECT_LE(ns, options.max_transfer_ns);
}

TEST_F(DaemonTransfers, AUserHoldsSoManyDescriptorsOfTheDaemonOnly) {
  ServiceOptions options;
  options.quotas.sent_files = 3;
  start(options);
  const SocketId a = client(), b = client(), other = client(kEverything);
  const auto [buffer_a, da] = open_buffer(a);
  const auto [buffer_b, db] = open_buffer(b);
  const auto [buffer_other, d_other] = open_buffer(other);
  send_transfer(da, to_card(buffer_a.address, 1), 1);
  send_transfer(da, to_card(buffer_a.address, 1), 2);
  send_transfer(db, to_card(buffer_b.address, 1), 3);
  send_transfer(db, to_card(buffer_b.address, 1), 4);
  EXPECT_EQ(next_wire(db).result, -EDQUOT);
  send_transfer(d_other, to_card(buffer_other.address, 1), 5);
  EXPECT_EQ(service->gauges().held.sent_files, 4u);
  workers.run_all();
  EXPECT_EQ(next_wire(d_other).result, 1);
  EXPECT_EQ(service->gauges().held.sent_files, 0u);
  for (const SocketId s : {da, da, db}) EXPECT_EQ(next_wire(s).result, 1);
  EXPECT_EQ(transfer(da, to_card(buffer_a.address, 1)), 1);
  for (const SocketId s : {a, b, other, da, db, d_other}) service->closed(s);
  expect_nothing_held();
}

TEST_F(DaemonTransfers, NoDeadlineIsTheDriversLimitOrLess) {
  ServiceOptions options;
  options.max_transfer_ns = 3600 * u64{1'000'000'000};
  start(options);
  const SocketId c = client();
  const auto [buffer, descriptor] = open_buffer(c);
  EXPECT_EQ(transfer(descriptor, to_card(buffer.address, 1)), 1);
  // A client that gives no deadline waits no longer than this.
  EXPECT_LE(card->deadlines.at(0), wire::kDriverLimitNs);
}

TEST_F(DaemonTransfers, ATransferInHandIsCancelledByTheCard) {
  const SocketId c = client();
  const auto [buffer, descriptor] = open_buffer(c);
  send_transfer(descriptor, to_card(buffer.address, 4096), 1);
  auto in_hand = std::move(workers.jobs.front());
  workers.jobs.pop_front();
  send_wire(descriptor, wire::kCancel, 2, bytes_of(wire::Cancel{1}));
  EXPECT_EQ(next_wire(descriptor).result, 0);
  EXPECT_EQ(card->cancelled.size(), 1u);
  // So is one whose user has gone.
  send_transfer(descriptor, to_card(buffer.address, 4096), 3);
  auto another = std::move(workers.jobs.front());
  workers.jobs.pop_front();
  service->closed(descriptor);
  EXPECT_EQ(card->cancelled.size(), 3u);
  EXPECT_NE(card->cancelled[0], card->cancelled[2]);
  in_hand.first(), in_hand.second(), another.first(), another.second();
  service->closed(c);
  expect_nothing_held();
}

}  // namespace
}  // namespace doorbell::qdma::daemon
