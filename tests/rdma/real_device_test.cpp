// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The verbs back end on a real device or on the kernel's soft-RoCE: every operation with its data, every
// error with its status. The environment variable DOORBELL_TEST_RDMA names the device.

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "rdma/swap.hpp"
#include "rdma/verbs/library.hpp"
#include "rdma/verbs/nic.hpp"

namespace doorbell::rdma {
namespace {

constexpr u64 kHalf = 2u << 20;  // of the region: local below, remote above
constexpr OneLane kLane;

std::string spec() {
  const char* name = std::getenv("DOORBELL_TEST_RDMA");
  return name != nullptr && *name != '\0' ? "verbs:" + std::string(name) : "";
}

bool soft_roce() {
  return rdma_device_facts(parse_verbs_spec(spec()).device).driver == "rdma_rxe";
}

/// Byte `i` of what a message with this key carries.
u8 byte_of(u64 i, u32 key) {
  return static_cast<u8>((i * 2654435761u + key * 40503u) >> 13);
}

/// A queue pair of the device with the queue that drives it.
struct End {
  std::unique_ptr<VerbsQueuePairObject> object;
  std::optional<VerbsQueuePair> queue;

  End(VerbsNic& device, const QueuePairShape& shape) : object(device.create_verbs_queue_pair(shape)) {}
  void start() { queue.emplace(object->queue_state()); }

  void request(const WorkRequest& r) {
    ASSERT_GE(queue->room(), 1u);
    queue->post(kLane, 1, [&](u32) { return r; });
    EXPECT_EQ(queue->ring(kLane), 1u);
  }
  void receive(const ReceiveRequest& r) {
    ASSERT_GE(queue->receive_room(), 1u);
    queue->post_receives(kLane, 1, [&](u32) { return r; });
    EXPECT_EQ(queue->ring_receives(kLane), 1u);
  }
  template <class Poll>
  VerbsQueuePair::Polled wait(Poll poll) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < until) {
      const auto polled = poll();
      if (polled.count != 0) return polled;
    }
    ADD_FAILURE() << "no completion in 20 s";
    return {};
  }
  VerbsQueuePair::Polled finish() {
    return wait([&] { return queue->poll(kLane); });
  }
  VerbsQueuePair::Polled finish_receive() {
    return wait([&] { return queue->poll_receives(kLane); });
  }
  void expect_status(Status status) {
    EXPECT_EQ(static_cast<u32>(finish().mine.status), static_cast<u32>(status));
  }
};

class VerbsTest : public testing::Test {
 protected:
  VerbsTest()
      : device_(parse_verbs_spec(spec())),
        region_(device_.allocate(Place::pageable, 2 * kHalf)),
        mr_(device_.register_memory(region_, access::all)) {}

  u8* local(u64 at = 0) { return region_.host() + at; }
  u8* remote(u64 at = 0) { return region_.host() + kHalf + at; }

  WorkRequest make(Op op, u32 bytes) const {
    WorkRequest r;
    r.op = op;
    r.bytes = bytes;
    r.local = mr_->iova() + kPad;
    r.lkey = mr_->lkey();
    r.remote = mr_->iova() + kHalf + kPad;
    r.rkey = mr_->rkey();
    return r;
  }
  ReceiveRequest receive_at(u64 at, u32 bytes) const {
    return {mr_->iova() + kHalf + at, mr_->lkey(), bytes};
  }

  static void fill(u8* at, u64 bytes, u32 key) {
    for (u64 i = 0; i < bytes; ++i) at[i] = byte_of(i, key);
  }
  /// `bytes` at `at` are those of `key`, and what is around them is untouched poison.
  static void expect_data(const u8* at, u64 bytes, u32 key) {
    for (u64 i = 0; i < bytes; ++i) ASSERT_EQ(at[i], byte_of(i, key)) << "byte " << i << " of " << bytes;
    for (u64 i = 1; i <= kPad; ++i) {
      ASSERT_EQ(at[-static_cast<i64>(i)], kPoison) << i << " before";
      ASSERT_EQ(at[bytes + i - 1], kPoison) << i << " behind";
    }
  }
  void poison(u8* half) { std::memset(half, kPoison, kHalf); }

  static constexpr u64 kPad = 64;
  static constexpr u8 kPoison = 0xa5;
  static constexpr u32 kSizes[] = {0, 1, 31, 32, 33, 256, 1024, 4096, 65536, 1u << 20};

  VerbsNic device_;
  Region region_;
  std::unique_ptr<MemoryRegion> mr_;
  ConnectionOptions options_;
};

/// One queue pair connected to itself (false), or two to each other (true).
class VerbsTransfer : public VerbsTest, public testing::WithParamInterface<bool> {
 protected:
  VerbsTransfer() : a_(device_, shape()) {
    if (GetParam()) b_.emplace(device_, shape());
    connect();
  }
  static QueuePairShape shape() { return {.sq_requests = 64, .rq_requests = 64}; }
  End& peer() { return b_ ? *b_ : a_; }
  void connect() {
    a_.object->initialise(options_);
    if (b_) b_->object->initialise(options_);
    a_.object->connect(peer().object->address(), options_);
    if (b_) b_->object->connect(a_.object->address(), options_);
    a_.start();
    if (b_) b_->start();
  }
  void expect_clean() {
    for (End* end : {&a_, &peer()}) {
      EXPECT_EQ(end->queue->duplicated(), 0u);
      EXPECT_EQ(end->queue->skipped(), 0u);
      EXPECT_EQ(end->queue->protocol(), 0u);
    }
  }

  End a_;
  std::optional<End> b_;
};

TEST_P(VerbsTransfer, WritesAndReads) {
  u32 key = 1;
  for (const u32 bytes : kSizes) {
    SCOPED_TRACE(bytes);
    poison(local());
    poison(remote());
    fill(local(kPad), bytes, ++key);
    a_.request(make(Op::write, bytes));
    a_.expect_status(Status::ok);
    expect_data(remote(kPad), bytes, key);

    poison(local());
    a_.request(make(Op::read, bytes));
    a_.expect_status(Status::ok);
    expect_data(local(kPad), bytes, key);
  }
  EXPECT_EQ(a_.queue->completed(), 2 * std::size(kSizes));
  EXPECT_EQ(a_.queue->room(), 64u);
  expect_clean();
}

TEST_P(VerbsTransfer, WritesWithImmediateTakeAReceive) {
  u32 key = 100;
  for (const u32 bytes : kSizes) {
    SCOPED_TRACE(bytes);
    poison(remote());
    fill(local(kPad), bytes, ++key);
    peer().receive({});
    WorkRequest r = make(Op::write_imm, bytes);
    r.imm = 0x01020304 + key;
    a_.request(r);
    a_.expect_status(Status::ok);
    const auto got = peer().finish_receive();
    EXPECT_EQ(got.mine.status, Status::ok);
    EXPECT_TRUE(got.mine.receive && got.mine.with_imm);
    EXPECT_EQ(got.mine.imm, r.imm);
    EXPECT_EQ(got.mine.bytes, bytes);
    expect_data(remote(kPad), bytes, key);
  }
  expect_clean();
}

TEST_P(VerbsTransfer, SendsFillReceives) {
  u32 key = 200;
  for (const Op op : {Op::send, Op::send_imm}) {
    for (const u32 bytes : kSizes) {
      SCOPED_TRACE(testing::Message() << (op == Op::send ? "send " : "send_imm ") << bytes);
      poison(remote());
      fill(local(kPad), bytes, ++key);
      peer().receive(receive_at(kPad, bytes + 64));
      WorkRequest r = make(op, bytes);
      r.imm = key * 0x01010101;
      a_.request(r);
      a_.expect_status(Status::ok);
      const auto got = peer().finish_receive();
      EXPECT_EQ(got.mine.status, Status::ok);
      EXPECT_EQ(got.mine.with_imm, op == Op::send_imm);
      if (op == Op::send_imm) {
        EXPECT_EQ(got.mine.imm, r.imm);
      }
      EXPECT_EQ(got.mine.bytes, bytes);
      expect_data(remote(kPad), bytes, key);
    }
  }
  EXPECT_EQ(peer().queue->receives_completed(), 2 * std::size(kSizes));
  expect_clean();
}

TEST_P(VerbsTransfer, AtomicsReturnTheOldValue) {
  if (!device_.limits().atomics) GTEST_SKIP() << "the device has no atomics";
  const auto word = [](const u8* at) {
    u64 v;
    std::memcpy(&v, at, 8);
    return v;
  };
  u64 value = 0xfffffffffffffff0;
  poison(local());
  poison(remote());
  std::memcpy(remote(kPad), &value, 8);
  WorkRequest add = make(Op::fetch_add, kAtomicBytes);
  add.operand = 0x25;
  a_.request(add);
  a_.expect_status(Status::ok);
  EXPECT_EQ(word(local(kPad)), value);
  EXPECT_EQ(word(remote(kPad)), value + 0x25);

  WorkRequest swap = make(Op::compare_swap, kAtomicBytes);
  swap.compare = value;  // no longer so: nothing is stored
  swap.operand = 7;
  a_.request(swap);
  a_.expect_status(Status::ok);
  EXPECT_EQ(word(local(kPad)), 0x15u);
  EXPECT_EQ(word(remote(kPad)), 0x15u);

  swap.compare = 0x15;
  a_.request(swap);
  a_.expect_status(Status::ok);
  EXPECT_EQ(word(local(kPad)), 0x15u);
  EXPECT_EQ(word(remote(kPad)), 7u);
  EXPECT_EQ(remote(kPad)[8], kPoison);
  expect_clean();
}

TEST_P(VerbsTransfer, ABatchWithOneSignalCoversTheRest) {
  constexpr u32 kEach = 512;
  for (u32 round = 0; round < 8; ++round) {
    poison(remote());
    a_.queue->post(kLane, 32, [&](u32 i) {
      fill(local(kPad + i * kEach), kEach, 1000 + round * 32 + i);
      WorkRequest r = make(Op::write, kEach);
      r.local += i * kEach;
      r.remote += i * kEach;
      r.signalled = i == 31;
      return r;
    });
    EXPECT_EQ(a_.queue->room(), 32u);
    EXPECT_EQ(a_.queue->ring(kLane), 1u);
    EXPECT_EQ(a_.queue->ring(kLane), 0u);
    const auto done = a_.finish();
    EXPECT_EQ(done.mine.status, Status::ok);
    EXPECT_EQ(done.serial, 32 * (round + 1));
    EXPECT_EQ(a_.queue->room(), 64u);
    for (u32 i = 0; i < 32; ++i)
      for (u32 k = 0; k < kEach; ++k)
        ASSERT_EQ(remote(kPad + i * kEach)[k], byte_of(k, 1000 + round * 32 + i));
  }
  expect_clean();
}

TEST_P(VerbsTransfer, InlinedPayloadIsCopiedWhenPosted) {
  const u32 bytes = device_.limits().max_inline;
  if (bytes == 0) GTEST_SKIP() << "the device inlines nothing";
  QueuePairShape with_inline = shape();
  with_inline.max_inline = bytes;
  End end(device_, with_inline);
  EXPECT_GE(end.object->max_inline(), bytes);
  end.object->initialise(options_);
  end.object->connect(end.object->address(), options_);
  end.start();
  poison(remote());
  std::vector<u8> payload(bytes);
  fill(payload.data(), bytes, 5);
  WorkRequest r = make(Op::write, bytes);
  r.inlined = true;
  r.local = r.lkey = 0;
  r.payload = payload.data();
  end.request(r);
  std::fill(payload.begin(), payload.end(), u8{0});
  end.expect_status(Status::ok);
  expect_data(remote(kPad), bytes, 5);
}

/// Two queue pairs; each test breaks the connection in one way and makes it again.
class VerbsErrors : public VerbsTest {
 protected:
  VerbsErrors() : a_(device_, shape()), b_(device_, shape()) {
    options_.rnr_retry = 1;
    options_.retry_count = 2;
    connect();
  }
  static QueuePairShape shape() { return {.sq_requests = 16, .rq_requests = 16}; }
  void connect() {
    for (End* end : {&a_, &b_}) end->object->initialise(options_);
    a_.object->connect(b_.object->address(), options_);
    b_.object->connect(a_.object->address(), options_);
    a_.start();
    b_.start();
  }
  /// After an error, everything later is flushed, and a reset makes the pair usable again.
  void expect_recovery() {
    EXPECT_EQ(a_.object->state(), QpState::error);
    a_.request(make(Op::write, 64));
    a_.expect_status(Status::flushed);
    a_.object->reset();
    b_.object->reset();
    EXPECT_EQ(a_.object->state(), QpState::reset);
    connect();
    EXPECT_EQ(a_.object->state(), QpState::rts);
    poison(remote());
    fill(local(kPad), 4096, 77);
    a_.request(make(Op::write, 4096));
    a_.expect_status(Status::ok);
    expect_data(remote(kPad), 4096, 77);
    EXPECT_EQ(a_.queue->protocol() + a_.queue->duplicated() + a_.queue->skipped(), 0u);
  }
  void expect_refused(const WorkRequest& r, Status status) {
    poison(remote());
    a_.request(r);
    a_.expect_status(status);
    for (u64 i = 0; i < 4096; ++i) ASSERT_EQ(remote()[i], kPoison);
    expect_recovery();
  }

  End a_;
  End b_;
};

TEST_F(VerbsErrors, WrongRemoteKey) {
  WorkRequest r = make(Op::write, 256);
  r.rkey ^= 0x5500;
  expect_refused(r, Status::remote_access);
}

TEST_F(VerbsErrors, BeyondTheRemoteRegion) {
  WorkRequest r = make(Op::write, 256);
  r.remote = mr_->iova() + 2 * kHalf - 255;
  expect_refused(r, Status::remote_access);
}

TEST_F(VerbsErrors, RegionWithoutRemoteWrite) {
  const auto read_only = device_.register_memory(region_, access::local_write | access::remote_read);
  WorkRequest r = make(Op::write, 256);
  r.rkey = read_only->rkey();
  expect_refused(r, Status::remote_access);
}

TEST_F(VerbsErrors, WrongLocalKey) {
  WorkRequest r = make(Op::write, 256);
  r.lkey ^= 0x5500;
  // rdma_rxe tells a key that it does not know from a range that the key does not cover.
  expect_refused(r, soft_roce() ? Status::local_qp_op : Status::local_protection);
}

TEST_F(VerbsErrors, BeyondTheLocalRegion) {
  WorkRequest r = make(Op::write, 256);
  r.local = mr_->iova() + 2 * kHalf - 255;
  expect_refused(r, Status::local_protection);
}

TEST_F(VerbsErrors, NoReceiveForASend) {
  expect_refused(make(Op::send, 256), Status::rnr_retry_exceeded);
}

TEST_F(VerbsErrors, SendLongerThanTheReceive) {
  b_.receive(receive_at(kHalf / 2, 128));
  a_.request(make(Op::send, 256));
  // rdma_rxe calls it a bad receive, not a bad request.
  a_.expect_status(soft_roce() ? Status::remote_operation : Status::remote_invalid_request);
  EXPECT_EQ(b_.finish_receive().mine.status, soft_roce() ? Status::local_qp_op : Status::local_length);
  expect_recovery();
}

TEST_F(VerbsErrors, LaterRequestsAreFlushedInOrder) {
  a_.queue->post(kLane, 8, [&](u32 i) {
    WorkRequest r = make(Op::write, 64);
    if (i == 2) r.rkey ^= 0x5500;
    r.signalled = i % 2 == 0;
    return r;
  });
  a_.queue->ring(kLane);
  const Status expected[] = {Status::ok,      Status::remote_access, Status::flushed, Status::flushed,
                             Status::flushed, Status::flushed,       Status::flushed};
  const u32 serials[] = {1, 3, 4, 5, 6, 7, 8};
  for (u32 i = 0; i < std::size(serials); ++i) {
    const auto done = a_.finish();
    EXPECT_EQ(done.mine.status, expected[i]) << i;
    EXPECT_EQ(done.serial, serials[i]);
  }
  EXPECT_EQ(a_.queue->room(), 16u);
  expect_recovery();
}

TEST_F(VerbsErrors, AFailedQueuePairFlushesItsReceives) {
  for (u32 i = 0; i < 4; ++i) a_.receive(receive_at(0, 64));
  a_.object->fail();
  for (u32 i = 1; i <= 4; ++i) {
    const auto done = a_.finish_receive();
    EXPECT_EQ(done.mine.status, Status::flushed);
    EXPECT_EQ(done.serial, i);
  }
  expect_recovery();
}

TEST_F(VerbsErrors, PostsToAQueuePairThatIsNotReadyAreRefused) {
  a_.object->reset();
  a_.object->initialise(options_);
  a_.start();
  a_.receive(receive_at(0, 64));  // legal from INIT on
  EXPECT_EQ(a_.queue->poll_receives(kLane).count, 0u);
  a_.queue->post(kLane, 3, [&](u32) { return make(Op::write, 64); });
  a_.queue->ring(kLane);
  EXPECT_EQ(a_.queue->room(), 0u);
  for (u32 i = 1; i <= 3; ++i) {
    const auto done = a_.finish();
    EXPECT_EQ(done.mine.status, Status::local_qp_op);
    EXPECT_EQ(done.mine.vendor_error, static_cast<u32>(EINVAL));
    EXPECT_EQ(done.serial, i);
  }
  EXPECT_EQ(a_.queue->poll(kLane).count, 0u);
  a_.object->fail();
  expect_recovery();
}

TEST_F(VerbsErrors, StatesThatAreSkippedAreErrors) {
  a_.object->reset();
  try {
    a_.object->connect(b_.object->address(), options_);
    FAIL() << "RESET -> RTR";
  } catch (const Error& e) {
    EXPECT_NE(e.hint().find("RESET"), std::string::npos) << e.hint();
  }
  options_.timeout = 32;
  a_.object->initialise(options_);
  EXPECT_THROW(a_.object->connect(b_.object->address(), options_), Error);
}

/// As `--listen` and `--connect` do it: two devices of their own that know of each other by Exchange only.
TEST_F(VerbsTest, TwoEndsMeetOverTcp) {
  exchange::Listener listener(kRunKind, {"127.0.0.1", 0});
  poison(remote());
  std::thread server([&] {
    VerbsNic device(parse_verbs_spec(spec()));
    const auto mr = device.register_memory(region_, access::all);
    End end(device, {});
    end.object->initialise(options_);
    exchange::Exchange x = listener.accept(10, 10);
    const std::vector<MemoryKey> key{{mr->iova() + kHalf, mr->rkey(), kHalf}};
    (void)swap(x, key);
    end.object->connect(swap(x, std::vector{end.object->address()}).at(0), options_);
    x.barrier("connected");
    x.barrier("written");
    x.send("report", {{"first", remote(kPad)[0]}});
  });
  exchange::Exchange x = exchange::Exchange::connect(kRunKind, listener.at(), 10);
  End end(device_, {});
  end.object->initialise(options_);
  const MemoryKey key = swap(x, std::vector<MemoryKey>(1)).at(0);
  EXPECT_EQ(key.bytes, kHalf);
  end.object->connect(swap(x, std::vector{end.object->address()}).at(0), options_);
  end.start();
  x.barrier("connected");
  fill(local(kPad), 10'000, 9);
  WorkRequest r = make(Op::write, 10'000);
  r.remote = key.address + kPad;
  r.rkey = key.rkey;
  end.request(r);
  end.expect_status(Status::ok);
  expect_data(remote(kPad), 10'000, 9);
  x.barrier("written");
  EXPECT_EQ(x.receive("report")["first"], byte_of(0, 9));
  server.join();
}

TEST_F(VerbsTest, TellsWhatItIs) {
  const RdmaDeviceFacts facts = rdma_device_facts(parse_verbs_spec(spec()).device);
  EXPECT_EQ(device_.kind(), facts.software ? "emulated" : "hardware");
  EXPECT_TRUE(device_.name().starts_with("verbs:" + facts.name + ",port=")) << device_.name();
  const NicLimits l = device_.limits();
  EXPECT_GE(l.max_requests, 128u);
  EXPECT_GE(l.max_queues, 1u);
  EXPECT_GE(l.active_mtu, 256u);
  EXPECT_FALSE(l.gpu_initiator);
  EXPECT_EQ(*device_.alive(Initiator::cpu), 1u);
  EXPECT_EQ(device_.alive(Initiator::gpu), nullptr);
  const BackendStatus status = verbs_status();
  EXPECT_TRUE(status.usable);
  EXPECT_NE(status.detail.find(facts.name), std::string::npos) << status.detail;
  EXPECT_THROW((void)device_.create_queue_pair({.sq_requests = l.max_requests + 1}), Error);
  EXPECT_THROW((void)device_.create_queue_pair({.sq_requests = 0}), Error);
  EXPECT_THROW((void)device_.create_queue_pair({.max_inline = l.max_inline + 1}), Error);
  EXPECT_THROW((void)device_.register_memory(region_, access::remote_write), Error);
  const auto pair = device_.create_queue_pair({});
  EXPECT_THROW((void)pair->memory(Initiator::cpu), Error);
}

TEST_F(VerbsTest, NamesThatAreNotThere) {
  const VerbsConfig good = parse_verbs_spec(spec());
  const auto hint_of = [](const VerbsConfig& c) {
    try {
      VerbsNic opened(c);
    } catch (const Error& e) {
      return std::string(e.what()) + "; " + e.hint();
    }
    return std::string("opened");
  };
  EXPECT_NE(hint_of({.device = "nosuch0"}).find("the devices are"), std::string::npos);
  EXPECT_NE(hint_of({.device = "nosuch0"}).find(good.device), std::string::npos);
  EXPECT_NE(hint_of({.device = good.device, .port = 200}).find("ports 1.."), std::string::npos);
  EXPECT_NE(hint_of({.device = good.device, .gid = 254}).find("no GID 254"), std::string::npos);
}

TEST_P(VerbsTransfer, CountersMove) {
  const auto before = device_.counters();
  if (!before.contains("sent_pkts")) GTEST_SKIP() << "counters of another kind of device";
  a_.request(make(Op::write, 65536));
  a_.expect_status(Status::ok);
  const auto after = device_.counters();
  EXPECT_GE(after["sent_pkts"].get<i64>() - before["sent_pkts"].get<i64>(), 16);
  EXPECT_TRUE(after["events"].is_object());
}

INSTANTIATE_TEST_SUITE_P(OneOrTwo, VerbsTransfer, testing::Bool(),
                         [](const auto& two) { return two.param ? "two" : "one"; });

}  // namespace
}  // namespace doorbell::rdma

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (doorbell::rdma::spec().empty()) {
    std::printf("skipped: DOORBELL_TEST_RDMA names no RDMA device; %s\n",
                doorbell::rdma::verbs_status().detail.c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
