// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// UC and UD, shared receive queues, memory windows, completion queues, paths that are full.
#include <gtest/gtest.h>

#include <cerrno>

#include "rdma/roce/fake_wire.hpp"

namespace doorbell::roce::test {
namespace {

TEST(RoceUc, LosesWholeMessagesAndNothingElse) {
  for (const WrOpcode opcode : {WrOpcode::send, WrOpcode::write_immediate}) {
    for (u32 lost = 0; lost < 12; ++lost) {
      Pair pair(Service::uc);
      ASSERT_EQ(pair.error, 0);
      for (std::size_t i = 0; i < pair.a.memory.size(); ++i) pair.a.memory[i] = static_cast<u8>(1 + i % 200);
      u32 seen = 0;
      pair.wire.fate = [&](Endpoint, std::span<const u8>) {
        return seen++ == lost ? Fate::drop : Fate::pass;
      };
      for (u64 i = 0; i < 4; ++i) {
        ASSERT_EQ(pair.b_pair->post_receive(i, std::vector{pair.b.sge(i * 4096, 1000)}), 0);
        SendRequest request = request_of(pair, opcode, i);
        request.remote_address = pair.b.address(i * 4096);
        ASSERT_EQ(pair.a_pair->post(request, std::vector{pair.a.sge(i * 10, 700)}), 0);
      }
      pair.run_for(2'000'000);
      EXPECT_EQ(pair.a.poll().size(), 4U);
      const auto received = pair.b.poll();
      ASSERT_EQ(received.size(), 3U) << "packet " << lost;
      std::size_t place = 0;
      for (u64 i = 0; i < 4; ++i) {
        if (i == lost / 3) continue;
        EXPECT_EQ(received[place].status, Status::success);
        EXPECT_EQ(received[place].bytes, 700U);
        EXPECT_EQ(received[place].id, place) << "receives are taken in their order";
        const std::size_t at = (opcode == WrOpcode::send ? place : i) * 4096;
        EXPECT_TRUE(std::equal(&pair.b.memory[at], &pair.b.memory[at + 700], &pair.a.memory[i * 10]));
        ++place;
      }
      EXPECT_EQ(pair.b_pair->state(), State::rts);
    }
  }
}

TEST(RoceUc, WhatIsNotAllowedIsDroppedWithoutAWord) {
  Pair pair(Service::uc);
  SendRequest wrong = request_of(pair, WrOpcode::write);
  wrong.remote_key += 1;
  const Bytes before = pair.b.memory;
  pair.a.memory[0] = 1;
  ASSERT_EQ(pair.a_pair->post(wrong, std::vector{pair.a.sge(0, 700)}), 0);
  EXPECT_EQ(pair.next(pair.a).status, Status::success);
  pair.run_for(1'000'000);
  EXPECT_TRUE(before == pair.b.memory);
  EXPECT_EQ(pair.b_pair->state(), State::rts);
  EXPECT_EQ(pair.b.nic->counters().packets_sent, 0U);
  EXPECT_EQ(pair.b.nic->counters().dropped, 3U);
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::send), std::vector{pair.a.sge(0, 1)}), 0);
  EXPECT_EQ(pair.next(pair.a).status, Status::success);
  pair.run_for(1'000'000);
  EXPECT_EQ(pair.b.nic->counters().dropped_no_receive, 1U);
  EXPECT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::read), std::vector{pair.a.sge(0, 1)}), EINVAL);
}

TEST(RoceUd, DeliversWithAGlobalHeader) {
  Pair pair(Service::ud);
  ASSERT_EQ(pair.error, 0);
  pair.a.memory[3] = 42;
  ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 50), pair.b.sge(500, 1000)}), 0);
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::send_immediate), std::vector{pair.a.sge(3, 999)}),
            0);
  EXPECT_EQ(pair.next(pair.a).status, Status::success);
  const Completion got = pair.next(pair.b);
  EXPECT_EQ(got.id, 5U);
  EXPECT_EQ(got.bytes, 1039U);
  EXPECT_EQ(got.flags, kHasGrh | kHasImmediate);
  EXPECT_EQ(got.immediate_or_key, 0x12345678U);
  EXPECT_EQ(got.source_queue_pair, pair.a_pair->number());
  EXPECT_EQ(pair.b.memory[40], 42);
  // IPv4's header in the second half: version, addresses, and a checksum that adds up.
  const u8* ip = &pair.b.memory[20];
  EXPECT_EQ(ip[0], 0x45);
  EXPECT_EQ(ip[9], 17);
  EXPECT_EQ(u32{ip[2]} << 8 | ip[3], 20U + 8 + 24 + 999 + 1 + 4);
  EXPECT_EQ(u32{ip[12]} << 24 | u32{ip[13]} << 16 | u32{ip[14]} << 8 | ip[15], pair.a.at.address);
  EXPECT_EQ(u32{ip[16]} << 24 | u32{ip[17]} << 16 | u32{ip[18]} << 8 | ip[19], pair.b.at.address);
  u32 sum = 0;
  for (u32 i = 0; i < 20; i += 2) sum += u32{ip[i]} << 8 | ip[i + 1];
  EXPECT_EQ((sum & 0xFFFF) + (sum >> 16), 0xFFFFU);
}

TEST(RoceUd, DropsWhatHasNoPlaceOrKey) {
  Pair pair(Service::ud);
  const auto send = [&](const SendRequest& request, u32 bytes) {
    ASSERT_EQ(pair.a_pair->post(request, std::vector{pair.a.sge(0, bytes)}), 0);
    EXPECT_EQ(pair.next(pair.a).status, Status::success);
    pair.run_for(1'000'000);
  };
  send(request_of(pair, WrOpcode::send), 10);
  EXPECT_EQ(pair.b.nic->counters().dropped_no_receive, 1U);
  ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 100)}), 0);
  SendRequest wrong = request_of(pair, WrOpcode::send);
  wrong.queue_key = 0x1112;
  send(wrong, 10);
  EXPECT_EQ(pair.b.nic->counters().dropped_queue_key, 1U);
  SendRequest own = request_of(pair, WrOpcode::send);
  own.to_queue_pair ^= 1;
  send(own, 10);
  EXPECT_EQ(pair.b.nic->counters().dropped, 1U);
  send(request_of(pair, WrOpcode::send), 61);
  EXPECT_EQ(pair.b.nic->counters().dropped, 2U);
  EXPECT_TRUE(pair.b.poll().empty());
  // The receive is still there; a Q_Key with the top bit means the queue pair's own.
  SendRequest own_key = request_of(pair, WrOpcode::send);
  own_key.queue_key = 1U << 31;
  send(own_key, 60);
  const auto got = pair.b.poll();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].bytes, 100U);
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::send), std::vector{pair.a.sge(0, 4097)}), 0);
  EXPECT_EQ(pair.next(pair.a).status, Status::local_length);
}

TEST(RoceShared, ReceivesServeSeveralQueuePairs) {
  Pair pair;
  std::unique_ptr<SharedReceiveQueue> shared;
  ASSERT_EQ(pair.b.nic->make_shared_receive_queue(
                {.protection_domain = Host::kDomain, .requests = 8, .sges = 2}, shared),
            0);
  QueuePairOptions options;
  options.shared_receives = shared.get();
  options.send_requests = 4;
  std::vector<std::unique_ptr<QueuePair>> senders, receivers;
  for (u32 i = 0; i < 2; ++i) {
    senders.push_back(pair.a.make({.send_requests = 8}));
    receivers.push_back(pair.b.make(options));
    ASSERT_EQ(bring_up(*senders[i], Service::rc, connected_attributes(pair.b.at, receivers[i]->number())), 0);
    ASSERT_EQ(bring_up(*receivers[i], Service::rc, connected_attributes(pair.a.at, senders[i]->number())), 0);
  }
  EXPECT_EQ(receivers[0]->post_receive(1, {}), EINVAL);
  for (u64 i = 0; i < 8; ++i) ASSERT_EQ(shared->post(i, std::vector{pair.b.sge(i * 4096, 1000)}), 0);
  EXPECT_EQ(shared->post(8, std::vector{pair.b.sge(0, 1000)}), ENOMEM);
  EXPECT_EQ(shared->set_limit(9), EINVAL);
  ASSERT_EQ(shared->set_limit(7), 0);
  EXPECT_FALSE(pair.b.was_told(Event::srq_limit));
  for (u32 i = 0; i < 6; ++i)
    ASSERT_EQ(senders[i % 2]->post(request_of(pair, WrOpcode::send), std::vector{pair.a.sge(0, 1000)}), 0);
  pair.run_for(5'000'000);
  const auto got = pair.b.poll();
  ASSERT_EQ(got.size(), 6U);
  u64 ids = 0;
  u32 of_first = 0;
  for (const Completion& one : got) {
    ids |= u64{1} << one.id;
    of_first += one.queue_pair == receivers[0]->number() ? 1 : 0;
    EXPECT_EQ(one.status, Status::success);
  }
  EXPECT_EQ(ids, 0x3FU);
  EXPECT_EQ(of_first, 3U);
  EXPECT_EQ(std::count_if(pair.b.told.begin(), pair.b.told.end(),
                          [](const Told& one) { return one.event == Event::srq_limit; }),
            1);
  EXPECT_EQ(shared->limit(), 0U);
  // One queue pair's end leaves the receives to the others.
  QueuePairAttributes error;
  error.state = State::error;
  ASSERT_EQ(receivers[0]->modify(error, kSetState), 0);
  EXPECT_TRUE(pair.b.was_told(Event::last_wqe_reached));
  EXPECT_TRUE(pair.b.poll().empty());
  ASSERT_EQ(senders[1]->post(request_of(pair, WrOpcode::send), std::vector{pair.a.sge(0, 10)}), 0);
  EXPECT_EQ(pair.next(pair.b).status, Status::success);
}

/// Binds a window of the second NIC's memory, by a request of its queue pair.
Status bind(Pair& pair, u32 window, u32 new_key, u64 offset, u64 bytes, u32 access) {
  SendRequest request;
  request.id = 50;
  request.opcode = WrOpcode::bind_window;
  request.flags = kSignaled;
  request.window = window;
  request.bind = {.region_key = pair.b.keys.local_key,
                  .new_key = new_key,
                  .address = pair.b.address(offset),
                  .length = bytes,
                  .access = access};
  if (pair.b_pair->post(request, {}) != 0) return static_cast<Status>(255);
  return pair.next(pair.b).status;
}
Status write_by(Pair& pair, u32 key, u64 address, u32 bytes) {
  SendRequest request = request_of(pair, WrOpcode::write);
  request.remote_key = key;
  request.remote_address = address;
  if (pair.a_pair->post(request, std::vector{pair.a.sge(0, bytes)}) != 0) return static_cast<Status>(255);
  return pair.next(pair.a).status;
}

TEST(RoceWindows, ShowPartsOfARegionUntilTheyAreBoundElsewhere) {
  for (const u8 type : {u8{1}, u8{2}}) {
    Pair pair;
    u32 window = 0;
    ASSERT_EQ(pair.b.nic->make_window(Host::kDomain, type, window), 0);
    const u32 key = window + 1;
    EXPECT_EQ(bind(pair, window, key, 4096, 100, kRemoteWrite), Status::success);
    EXPECT_EQ(write_by(pair, key, pair.b.address(4096), 100), Status::success);
    EXPECT_EQ(pair.b.nic->deregister_memory(pair.b.keys.local_key), EBUSY);
    if (type == 2) {
      SendRequest invalidate;
      invalidate.id = 51;
      invalidate.opcode = WrOpcode::local_invalidate;
      invalidate.flags = kSignaled;
      invalidate.immediate_or_key = key;
      ASSERT_EQ(pair.b_pair->post(invalidate, {}), 0);
      EXPECT_EQ(pair.next(pair.b).status, Status::success);
    }
    // Zero bytes show nothing of type 1; type 2 is bound anew after its invalidation.
    EXPECT_EQ(bind(pair, key, key + 1, 8192, type == 1 ? 0 : 50, kRemoteWrite), Status::success);
    if (type == 2) {
      EXPECT_EQ(write_by(pair, key + 1, pair.b.address(8192), 50), Status::success);
    }
    EXPECT_EQ(write_by(pair, key, pair.b.address(4096), 1), Status::remote_access);
    EXPECT_EQ(pair.b.nic->free_window(key + 1), 0);
    EXPECT_EQ(pair.b.nic->deregister_memory(pair.b.keys.local_key), 0);
  }
}

TEST(RoceWindows, RefuseWhatTheyDoNotShow) {
  const auto refused = [](const std::function<Status(Pair&, u32)>& attempt, Status expected) {
    Pair pair;
    u32 window = 0;
    ASSERT_EQ(pair.b.nic->make_window(Host::kDomain, 2, window), 0);
    EXPECT_EQ(attempt(pair, window), expected);
  };
  using S = Status;
  refused([](Pair& p, u32 w) { return bind(p, w, w + 256, 0, 100, kRemoteWrite); }, S::window_bind);
  refused([](Pair& p, u32 w) { return bind(p, w + 1, w + 2, 0, 100, kRemoteWrite); }, S::window_bind);
  refused([](Pair& p, u32 w) { return bind(p, w, w + 1, 1 << 17, 1, kRemoteWrite); }, S::window_bind);
  refused([](Pair& p, u32 w) { return bind(p, w, w + 1, 0, 100, kLocalWrite); }, S::window_bind);
  refused([](Pair& p, u32 w) { return write_by(p, w, p.b.address(0), 1); }, S::remote_access);
  const auto bound = [](Pair& p, u32 w, u32 rights) {
    EXPECT_EQ(bind(p, w, w + 1, 512, 64, rights), S::success);
  };
  refused([&](Pair& p, u32 w) { return bound(p, w, kRemoteRead), write_by(p, w + 1, p.b.address(512), 1); },
          S::remote_access);
  refused([&](Pair& p, u32 w) { return bound(p, w, kRemoteWrite), write_by(p, w + 1, p.b.address(511), 2); },
          S::remote_access);
  refused([&](Pair& p, u32 w) { return bound(p, w, kRemoteWrite), write_by(p, w + 1, p.b.address(512), 65); },
          S::remote_access);
  refused(
      [&](Pair& p, u32 w) { return bound(p, w, kRemoteWrite), bind(p, w + 1, w + 2, 0, 1, kRemoteWrite); },
      S::window_bind);
  refused(
      [&](Pair& p, u32 w) {
        bound(p, w, kRemoteWrite | kZeroBased);
        EXPECT_EQ(write_by(p, w + 1, 0, 64), S::success);
        return write_by(p, w + 1, 1, 64);
      },
      S::remote_access);
}

TEST(RoceWindows, ASendInvalidates) {
  Pair pair;
  u32 window = 0;
  ASSERT_EQ(pair.b.nic->make_window(Host::kDomain, 2, window), 0);
  EXPECT_EQ(bind(pair, window, window + 1, 0, 100, kRemoteWrite), Status::success);
  ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 100)}), 0);
  SendRequest send = request_of(pair, WrOpcode::send_invalidate);
  send.immediate_or_key = window + 1;
  ASSERT_EQ(pair.a_pair->post(send, std::vector{pair.a.sge(0, 100)}), 0);
  const Completion got = pair.next(pair.b);
  EXPECT_EQ(got.flags, kHasInvalidated);
  EXPECT_EQ(got.immediate_or_key, window + 1);
  EXPECT_EQ(pair.next(pair.a).status, Status::success);
  EXPECT_EQ(write_by(pair, window + 1, pair.b.address(0), 1), Status::remote_access);
}

TEST(RoceCompletions, ReportOnceWhatIsAskedFor) {
  Pair pair;
  const auto send = [&](u8 flags) {
    ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 64)}), 0);
    SendRequest request = request_of(pair, WrOpcode::send);
    request.flags = static_cast<u8>(flags | kSignaled);
    ASSERT_EQ(pair.a_pair->post(request, std::vector{pair.a.sge(0, 64)}), 0);
    pair.run_for(1'000'000);
  };
  send(0);
  EXPECT_EQ(pair.b.reports, 0U);
  pair.b.completions->arm(true);
  send(0);
  EXPECT_EQ(pair.b.reports, 0U);
  send(kSolicited);
  EXPECT_EQ(pair.b.reports, 1U);
  send(kSolicited);
  EXPECT_EQ(pair.b.reports, 1U);
  pair.b.completions->arm(false);
  pair.b.completions->arm(true);  // weaker, and changes nothing
  send(0);
  EXPECT_EQ(pair.b.reports, 2U);
  pair.b.completions->arm(true);
  QueuePairAttributes error;
  error.state = State::error;
  ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 64)}), 0);
  ASSERT_EQ(pair.b_pair->modify(error, kSetState), 0);
  EXPECT_EQ(pair.b.reports, 3U);
}

TEST(RoceCompletions, ResizeKeepsWhatIsIn) {
  Pair pair;
  for (u64 id = 1; id <= 10; ++id)
    ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::write, id), std::vector{pair.a.sge(0, 8)}), 0);
  pair.run_for(1'000'000);
  EXPECT_EQ(pair.a.poll(3).size(), 3U);
  EXPECT_EQ(pair.a.completions->resize(6), EINVAL);
  EXPECT_EQ(pair.a.completions->resize((1U << 22) + 1), EINVAL);
  EXPECT_EQ(pair.a.completions->resize(7), 0);
  EXPECT_EQ(pair.a.completions->resize(3000), 0);
  EXPECT_EQ(pair.a.completions->entries(), 3000U);
  const auto rest = pair.a.poll();
  ASSERT_EQ(rest.size(), 7U);
  for (u64 i = 0; i < 7; ++i) EXPECT_EQ(rest[i].id, i + 4);
}

TEST(RoceCompletions, WithoutRoomEndTheQueuePair) {
  Pair pair;
  ASSERT_EQ(pair.a.completions->resize(2), 0);
  for (u64 id = 1; id <= 5; ++id)
    ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::write, id), std::vector{pair.a.sge(0, 8)}), 0);
  pair.run_for(1'000'000);
  EXPECT_EQ(pair.a.poll().size(), 2U);
  EXPECT_GE(pair.a.nic->counters().overruns, 1U);
  EXPECT_EQ(pair.a_pair->state(), State::error);
  EXPECT_EQ(std::count_if(pair.a.told.begin(), pair.a.told.end(),
                          [](const Told& one) { return one.event == Event::cq_error; }),
            1);
  EXPECT_TRUE(pair.a.was_told(Event::qp_fatal));
}

TEST(RocePaths, FullOnesHoldUpAndLoseNothing) {
  for (const bool lossless : {false, true}) {
    Pair pair;
    pair.wire.lossless = lossless;
    pair.a.carrier.fake_path(pair.b.at).most_under_way = 3;
    pair.b.carrier.fake_path(pair.a.at).most_under_way = 2;
    for (std::size_t i = 0; i < 60000; ++i) {
      pair.a.memory[i] = static_cast<u8>(i * 3);
      pair.b.memory[i] = static_cast<u8>(i * 5);
    }
    // Both ways at once: data, and answers to READs, in each direction.
    const auto post = [&](QueuePair& from, const Host& self, const Host& other, u64 id) {
      SendRequest request;
      request.id = id;
      request.flags = kSignaled;
      request.remote_key = other.keys.remote_key;
      request.opcode = WrOpcode::write;
      request.remote_address = other.address(60000);
      ASSERT_EQ(from.post(request, std::vector{self.sge(0, 20000)}), 0);
      request.opcode = WrOpcode::read;
      request.remote_address = other.address(20000);
      ASSERT_EQ(from.post(request, std::vector{self.sge(90000, 30000)}), 0);
    };
    post(*pair.a_pair, pair.a, pair.b, 1);
    post(*pair.b_pair, pair.b, pair.a, 2);
    for (Host* host : {&pair.a, &pair.b})
      for (u32 i = 0; i < 2; ++i) ASSERT_EQ(pair.next(*host).status, Status::success);
    EXPECT_TRUE(std::equal(&pair.a.memory[0], &pair.a.memory[20000], &pair.b.memory[60000]));
    EXPECT_TRUE(std::equal(&pair.b.memory[0], &pair.b.memory[20000], &pair.a.memory[60000]));
    EXPECT_TRUE(std::equal(&pair.b.memory[20000], &pair.b.memory[50000], &pair.a.memory[90000]));
    EXPECT_TRUE(std::equal(&pair.a.memory[20000], &pair.a.memory[50000], &pair.b.memory[90000]));
    EXPECT_EQ(pair.a.nic->counters().retransmitted_packets, 0U);
  }
}

/// An atomic write of `bytes` bytes to the second one, as a packet.
void write_atomically(Pair& pair, u64 value, u32 number, std::size_t bytes = 8,
                      const std::function<void(Headers&)>& change = {}) {
  Headers h;
  h.operation = Operation::atomic_write;
  h.queue_pair = pair.b_pair->number();
  h.psn = psn_after(kFirstPsn, number);
  h.wants_ack = true;
  h.range = {
      .address = pair.b.address(1024), .key = pair.b.keys.remote_key, .length = static_cast<u32>(bytes)};
  if (change) change(h);
  Bytes packet(kLongestHeaders + 16);
  const std::size_t headers = encode(h, bytes, packet.data());
  std::memcpy(&packet[headers], &value, sizeof value);
  packet.resize(headers + bytes + pad_bytes(bytes));
  pair.b.carrier.inbox.emplace_back(pair.a.at, packet);
  pair.b.nic->round_at(pair.now);
}

TEST(RoceAtomicWrite, ADuplicateWritesNothing) {
  Pair pair;
  u64& word = *reinterpret_cast<u64*>(&pair.b.memory[1024]);
  write_atomically(pair, 5, 0);
  EXPECT_EQ(word, 5U);
  EXPECT_EQ(pair.b.nic->counters().packets_sent, 1U);
  word = 9;
  write_atomically(pair, 5, 0);
  EXPECT_EQ(word, 9U);
  EXPECT_EQ(pair.b.nic->counters().packets_sent, 2U);
  EXPECT_EQ(pair.b.nic->counters().replayed_atomics, 1U);
}

TEST(RoceAtomicWrite, WhatIsNoneIsRefused) {
  const auto refused = [](NakCode code, std::size_t bytes, const std::function<void(Headers&)>& change) {
    Pair pair;
    const Bytes before = pair.b.memory;
    write_atomically(pair, 5, 0, bytes, change);
    EXPECT_EQ(pair.b.nic->counters().naks_sent[static_cast<std::size_t>(code)], 1U);
    EXPECT_EQ(pair.b_pair->state(), State::error);
    EXPECT_TRUE(before == pair.b.memory);
  };
  refused(NakCode::invalid_request, 4, {});
  refused(NakCode::invalid_request, 8, [](Headers& h) { h.range.address += 4; });
  refused(NakCode::invalid_request, 8, [](Headers& h) { h.range.length = 16; });
  refused(NakCode::remote_access, 8, [](Headers& h) { h.range.key ^= 1; });
  refused(NakCode::remote_access, 8, [](Headers& h) { h.range.address += 1 << 20; });
  Pair pair(Service::rc, [](QueuePairAttributes& a) { a.access = kRemoteRead | kRemoteAtomic; });
  SendRequest request = request_of(pair, WrOpcode::atomic_write);
  ASSERT_EQ(pair.a_pair->post(request, {}), 0);
  EXPECT_EQ(pair.next(pair.a).status, Status::remote_access);
  Pair other;
  request = request_of(other, WrOpcode::atomic_write);
  EXPECT_EQ(other.a_pair->post(request, std::vector{other.a.sge(0, 8)}), EINVAL);
  request.remote_address += 1;
  EXPECT_EQ(other.a_pair->post(request, {}), EINVAL);
  Pair unreliable(Service::uc);
  EXPECT_EQ(unreliable.a_pair->post(request_of(unreliable, WrOpcode::atomic_write), {}), EINVAL);
}

TEST(RoceAtomicWrite, CompletesAsOne) {
  Pair pair;
  SendRequest request = request_of(pair, WrOpcode::atomic_write);
  request.swap = 0x1122334455667788;
  ASSERT_EQ(pair.a_pair->post(request, {}), 0);
  const Completion got = pair.next(pair.a);
  EXPECT_EQ(got.status, Status::success);
  EXPECT_EQ(got.opcode, WcOpcode::atomic_write);
  EXPECT_EQ(std::memcmp(&pair.b.memory[1024], &request.swap, sizeof request.swap), 0);
}

}  // namespace
}  // namespace doorbell::roce::test
