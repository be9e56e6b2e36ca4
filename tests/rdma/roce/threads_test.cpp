// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Programs with several threads: they post, poll and set up at once, while the NIC's own thread works, too.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "rdma/roce/attendant.hpp"
#include "rdma/roce/carrier_rig.hpp"
#include "rdma/roce/carriers.hpp"
#include "rdma/roce/fake_wire.hpp"

namespace doorbell::roce::test {
namespace {

constexpr u32 kThreads = 3;
constexpr u64 kMessages = 1200;  // of each thread
constexpr u32 kBytes = 64;

struct Side {
  explicit Side(CarrierKind kind) : wire(carrier(kind)), nic(Nic::make(*wire, {})), attendant(*nic, *wire) {
    EXPECT_EQ(nic->make_completion_queue(4096, completions), 0);
    EXPECT_EQ(nic->register_memory(1, memory.data(), memory.size(), 0,
                                   kLocalWrite | kRemoteWrite | kRemoteAtomic, keys),
              0);
  }
  std::unique_ptr<QueuePair> make() {
    QueuePairOptions options;
    options.protection_domain = 1;
    options.send_completions = options.receive_completions = completions.get();
    options.send_requests = options.receive_requests = 64;
    std::unique_ptr<QueuePair> made;
    EXPECT_EQ(nic->make_queue_pair(options, made), 0);
    return made;
  }
  std::vector<u8> memory = std::vector<u8>(1 << 16);
  std::unique_ptr<Carrier> wire;
  std::unique_ptr<Nic> nic;
  Attendant attendant;
  std::unique_ptr<CompletionQueue> completions;
  RegisteredMemory keys;
};

class RoceThreads : public testing::TestWithParam<CarrierKind> {};

TEST_P(RoceThreads, PostAndPollAndSetUpAtOnce) {
  Side a(GetParam()), b(GetParam());
  std::vector<std::unique_ptr<QueuePair>> senders, receivers;
  for (u32 i = 0; i < kThreads; ++i) {
    senders.push_back(a.make());
    receivers.push_back(b.make());
    auto to_b = connected_attributes(b.wire->self(), receivers[i]->number());
    auto to_a = connected_attributes(a.wire->self(), senders[i]->number());
    to_b.timeout = to_a.timeout = 16;
    to_b.mtu = to_a.mtu = 1024;
    ASSERT_EQ(bring_up(*senders[i], Service::rc, to_b), 0);
    ASSERT_EQ(bring_up(*receivers[i], Service::rc, to_a), 0);
    for (u32 r = 0; r < 64; ++r)
      ASSERT_EQ(receivers[i]->post_receive(
                    i, std::vector<Sge>{{.address = 0, .length = kBytes, .key = b.keys.local_key}}),
                0);
  }
  std::atomic<u64> sent = 0, received = 0, bad = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (u32 i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (u64 n = 0; n < kMessages && bad == 0;) {
        SendRequest request;
        request.id = n;
        request.flags = n % 8 == 7 ? kSignaled : 0;
        // Three sends, then an addition to the word of this thread.
        if (n % 4 == 3) {
          request.opcode = WrOpcode::fetch_add;
          request.flags = kSignaled;
          request.remote_address = 1024 + i * 8;
          request.remote_key = b.keys.remote_key;
          request.compare_or_add = 1;
        }
        const u32 bytes = n % 4 == 3 ? 8 : kBytes;
        const Errno refused = senders[i]->post(
            request, std::vector<Sge>{{.address = 4096 + i * 64, .length = bytes, .key = a.keys.local_key}});
        if (refused == 0) ++n;
        if (refused != 0 || n % 3 == 0) a.attendant.on_post();
        if (refused != 0) std::this_thread::yield();
      }
    });
  // Two that poll the shared queue of the sending side, one of the receiving side.
  for (u32 i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      Completion all[16];
      while (!stop) {
        const std::size_t got = a.completions->poll(all);
        for (std::size_t n = 0; n < got; ++n) bad += all[n].status != Status::success ? 1 : 0;
        sent += got;
        if (got == 0) a.attendant.on_empty_poll();
      }
    });
  threads.emplace_back([&] {
    Completion all[16];
    while (!stop) {
      const std::size_t got = b.completions->poll(all);
      for (std::size_t n = 0; n < got; ++n) {
        bad += all[n].status != Status::success ? 1 : 0;
        if (receivers[all[n].id]->post_receive(
                all[n].id, std::vector<Sge>{{.address = 0, .length = kBytes, .key = b.keys.local_key}}) != 0)
          ++bad;
      }
      received += got;
      if (got == 0) b.attendant.on_empty_poll();
    }
  });
  // Set-up calls in between, on both NICs.
  threads.emplace_back([&] {
    while (!stop) {
      for (Side* side : {&a, &b}) {
        RegisteredMemory keys;
        if (side->nic->register_memory(2, side->memory.data(), 8, 0, 0, keys) != 0 ||
            side->nic->deregister_memory(keys.local_key) != 0)
          ++bad;
        const auto made = side->make();
        (void)side->nic->counters();
      }
      std::this_thread::yield();
    }
  });
  constexpr u64 kAdds = kMessages / 4, kSends = kMessages - kAdds;
  EXPECT_TRUE(doorbell::test::eventually([&] {
    return bad != 0 || (sent == kThreads * kAdds && received == kThreads * kSends);
  })) << sent
      << " and " << received;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 0U);
  const auto engine = b.nic->counters();
  for (u32 i = 0; i < kThreads; ++i) {
    u64 word = 0;
    std::memcpy(&word, &b.memory[1024 + i * 8], 8);
    EXPECT_EQ(word, kAdds);
  }
  EXPECT_EQ(engine.dropped, 0U);
}

INSTANTIATE_TEST_SUITE_P(Carriers, RoceThreads, testing::Values(CarrierKind::ring, CarrierKind::udp),
                         [](const auto& kind) { return std::string(test::name_of(kind.param)); });

}  // namespace
}  // namespace doorbell::roce::test
