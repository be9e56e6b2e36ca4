// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The queue of another program's job, with the model and its faults: every I/O has one outcome, and what goes
// wrong is said.

#include "nvme/jobs/job_queue.hpp"

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>

namespace doorbell::nvme {
namespace {

constexpr double kLong = 60;  // a busy machine is not an error

/// The tag of I/O `i`.
void* tag(std::size_t i) {
  return reinterpret_cast<void*>(i + 1);
}
std::size_t index_of(const IoOutcome& o) {
  return reinterpret_cast<std::size_t>(o.tag) - 1;
}

struct Job {
  explicit Job(const SharedOptions& options, u32 depth = 8, u64 io_bytes = 4096)
      : Job(std::make_shared<SharedController>(options), depth, io_bytes) {}
  Job(std::shared_ptr<SharedController> shared, u32 depth, u64 io_bytes)
      : controller(std::move(shared)),
        ns(controller->name_space(1)),
        queue(controller, depth, io_bytes),
        slot_bytes(io_bytes),
        buffer(static_cast<u8*>(queue.make_buffer(Place::pageable, depth * io_bytes))),
        outcomes(depth) {}

  [[nodiscard]] u8* slot(u64 i) const { return buffer + i * slot_bytes; }
  [[nodiscard]] JobQueue::Queued post(IoOpcode op, u64 offset, u64 bytes, void* data, std::size_t i) {
    return queue.queue(ns, {op, offset, bytes, data, tag(i)});
  }
  /// One I/O from its post to its outcome.
  IoOutcome one(IoOpcode op, u64 offset, u64 bytes, void* data) {
    EXPECT_EQ(post(op, offset, bytes, data, 0), JobQueue::Queued::yes) << queue.refusal();
    EXPECT_EQ(queue.reap(outcomes, 1), 1u);
    return outcomes[0];
  }
  /// The reason for which the queue does not take it.
  std::string refusal(IoOpcode op, u64 offset, u64 bytes, void* data, int number = EINVAL) {
    EXPECT_EQ(post(op, offset, bytes, data, 0), JobQueue::Queued::no);
    EXPECT_EQ(queue.refusal_errno(), number);
    return queue.refusal();
  }

  std::shared_ptr<SharedController> controller;
  NamespaceInfo ns;
  JobQueue queue;
  u64 slot_bytes;
  u8* buffer;
  std::vector<IoOutcome> outcomes;
};

SharedOptions with(const std::string& controller, const std::string& faults = "", double timeout_s = kLong) {
  return {.controller = controller, .faults = parse_faults(faults), .timeout_s = timeout_s};
}

bool holds(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

template <class Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(JobQueue, WhatIsWrittenIsReadBack) {
  for (const u64 bytes : {u64{512}, u64{4096}, u64{8192}, u64{131072}, u64{2097152}}) {
    Job job(with("model:capacity=64Mi"), 4, bytes);
    for (u64 i = 0; i < 4; ++i) {
      for (u64 at = 0; at < bytes; at += 8) {
        const u64 word = bytes * 1000003 + i * bytes + at;
        std::memcpy(job.slot(i) + at, &word, sizeof word);
      }
      ASSERT_EQ(job.post(IoOpcode::write, i * bytes, bytes, job.slot(i), i), JobQueue::Queued::yes);
    }
    ASSERT_EQ(job.queue.reap(job.outcomes, 4), 4u);
    EXPECT_EQ(job.one(IoOpcode::flush, 0, 0, nullptr).end, IoEnd::ok);
    const std::vector<u8> before(job.buffer, job.buffer + 4 * bytes);
    std::memset(job.buffer, 0, 4 * bytes);
    // In another order, so that data of a wrong slot or list shows.
    for (u64 i = 0; i < 4; ++i)
      ASSERT_EQ(job.post(IoOpcode::read, (3 - i) * bytes, bytes, job.slot(3 - i), i), JobQueue::Queued::yes);
    ASSERT_EQ(job.queue.reap(job.outcomes, 4), 4u);
    for (const IoOutcome& o : job.outcomes) EXPECT_EQ(o.end, IoEnd::ok);
    EXPECT_EQ(std::memcmp(before.data(), job.buffer, before.size()), 0) << bytes;
    job.queue.end();
    EXPECT_EQ(job.queue.fault(), "");
  }
}

TEST(JobQueue, DataMayBeginAnywhereInAPage) {
  constexpr u64 kBytes = 20480;
  Job job(with("model:capacity=1Mi"), 2, 2 * kBytes);
  for (const u64 offset : {u64{0}, u64{4}, u64{512}, u64{4092}}) {
    for (u64 i = 0; i < kBytes; ++i) job.buffer[offset + i] = static_cast<u8>(i * 7 + offset);
    EXPECT_EQ(job.one(IoOpcode::write, 0, kBytes, job.buffer + offset).end, IoEnd::ok);
    std::memset(job.slot(1), 0, job.slot_bytes);
    EXPECT_EQ(job.one(IoOpcode::read, 0, kBytes, job.slot(1) + offset).end, IoEnd::ok);
    EXPECT_EQ(std::memcmp(job.buffer + offset, job.slot(1) + offset, kBytes), 0) << offset;
    EXPECT_EQ(std::count(job.slot(1) + offset + kBytes, job.slot(1) + job.slot_bytes, 0),
              static_cast<std::ptrdiff_t>(job.slot_bytes - offset - kBytes));
  }
}

TEST(JobQueue, DataThatNeverArrivesIsNotTakenForGoodData) {
  Job job(with("model:media=null"), 1, 8192);  // which answers, and moves nothing
  EXPECT_FALSE(job.controller->moves_data());
  for (const bool poison : {false, true}) {
    std::memset(job.buffer, 7, job.slot_bytes);
    ASSERT_EQ(job.queue.queue(job.ns, {IoOpcode::read, 0, 8192, job.buffer, nullptr, poison}),
              JobQueue::Queued::yes);
    ASSERT_EQ(job.queue.reap(job.outcomes, 1), 1u);
    const std::vector<u8> good(512, 7);
    for (u64 at = 0; at < 8192; at += 512)
      EXPECT_EQ(std::memcmp(job.buffer + at, good.data(), 512) != 0, poison) << at;
  }
}

TEST(JobQueue, EveryIoHasOneOutcomeAtAnyDepth) {
  for (const u32 depth : {1u, 2u, 7u, 128u, 1023u}) {
    Job job(with("model:capacity=64Mi"), depth);
    std::multiset<std::size_t> seen;
    std::size_t next = 0;
    while (seen.size() < 3000) {
      while (next < 3000 && job.post(IoOpcode::read, next % 1000 * 4096, 4096, job.slot(next % depth),
                                     next) == JobQueue::Queued::yes)
        ++next;
      EXPECT_LE(job.queue.in_flight(), depth);
      const u32 n = job.queue.reap(job.outcomes, 1);
      ASSERT_GE(n, 1u);
      for (u32 i = 0; i < n; ++i) seen.insert(index_of(job.outcomes[i]));
    }
    for (std::size_t i = 0; i < 3000; ++i) EXPECT_EQ(seen.count(i), 1u);
    job.queue.end();
    EXPECT_EQ(job.queue.fault(), "");
  }
}

TEST(JobQueue, LookingWithoutWaiting) {
  Job job(with("model"));
  EXPECT_EQ(job.queue.reap(job.outcomes, 0, 0), 0u);
  EXPECT_EQ(job.queue.reap(job.outcomes, 4), 0u);  // nothing is in flight: it does not wait
  ASSERT_EQ(job.post(IoOpcode::read, 0, 4096, job.slot(0), 5), JobQueue::Queued::yes);
  u32 n = 0;
  while (n == 0) n = job.queue.reap(job.outcomes, 0, 0);
  EXPECT_EQ(index_of(job.outcomes[0]), 5u);
}

TEST(JobQueue, WhatCannotBeDoneIsRefusedInWords) {
  Job job(with("model:lba=4096,capacity=1Mi"), 2, 8192);
  u8* const data = job.slot(0);
  EXPECT_TRUE(holds(job.refusal(IoOpcode::read, 512, 4096, data), "blocks of 4096 bytes"));
  EXPECT_TRUE(holds(job.refusal(IoOpcode::read, 0, 512, data), "blocks of 4096 bytes"));
  EXPECT_TRUE(holds(job.refusal(IoOpcode::read, 0, 0, data), "blocks of 4096 bytes"));
  EXPECT_TRUE(holds(job.refusal(IoOpcode::read, 0, 12288, data), "have at most 8192"));
  EXPECT_TRUE(holds(job.refusal(IoOpcode::read, 1048576, 4096, data), "the namespace has 1048576"));
  EXPECT_TRUE(holds(job.refusal(IoOpcode::read, ~u64{4095}, 8192, data), "the namespace has 1048576"));
  std::vector<u8> foreign(8192);
  EXPECT_TRUE(holds(job.refusal(IoOpcode::write, 0, 4096, foreign.data()), "the controller reaches"));
  EXPECT_TRUE(holds(job.refusal(IoOpcode::write, 0, 8192, job.slot(1) + 4096), "the controller reaches"));
  EXPECT_TRUE(holds(job.refusal(IoOpcode::write, 0, 4096, data + 2), "aligned to 4"));
  EXPECT_TRUE(holds(job.refusal(IoOpcode::write_zeroes, 0, 4096, data, EOPNOTSUPP), "only reads, writes"));
  EXPECT_EQ(job.queue.in_flight(), 0u);
  EXPECT_EQ(job.one(IoOpcode::read, 0, 4096, data).end, IoEnd::ok);  // it goes on
}

TEST(JobQueue, SizesAreCheckedBeforeTheJob) {
  ControllerInfo c;
  c.max_transfer_bytes = 131072;
  const NamespaceInfo ns{.nsid = 1, .blocks = 1000, .lba_bytes = 4096};
  const auto check = [&](u64 least, u64 most, u64 step, u64 at) {
    return error_of([&] { check_sizes(c, ns, least, most, step, at); });
  };
  EXPECT_EQ(check(4096, 131072, 4096, 8192), "no error");
  EXPECT_TRUE(holds(check(512, 4096, 512, 4096), "have 4096 bytes"));
  EXPECT_TRUE(holds(check(4096, 6144, 4096, 4096), "have 4096 bytes"));
  EXPECT_TRUE(holds(check(4096, 4096, 4096, 512), "multiples of 512"));
  EXPECT_TRUE(holds(check(4096, 135168, 4096, 4096), "at most 131072"));
}

TEST(JobQueue, DepthsAreChecked) {
  const auto open = [](const std::string& model, u32 depth) {
    return error_of([&] { Job job(with(model), depth); });
  };
  EXPECT_EQ(open("model:entries=16", 15), "no error");
  EXPECT_TRUE(holds(open("model:entries=16", 16), "takes 1 to 15"));
  EXPECT_TRUE(holds(open("model", 1024), "takes 1 to 1023"));
  EXPECT_TRUE(holds(open("model", 0), "takes 1 to 1023"));
}

TEST(JobFaults, AnErrorStatusIsNamed) {
  Job job(with("model", "error=1"));
  const IoOutcome read = job.one(IoOpcode::read, 0, 4096, job.slot(0));
  EXPECT_EQ(read.end, IoEnd::refused);
  EXPECT_EQ(read.status, status::unrecovered_read);
  EXPECT_EQ(errno_of(read.end, read.status), EIO);
  EXPECT_TRUE(holds(text_of(read.end, read.status), "Unrecovered Read"));
  const IoOutcome write = job.one(IoOpcode::write, 0, 4096, job.slot(0));
  EXPECT_EQ(write.status, status::write_fault);
  EXPECT_NE(errno_of(write.end, write.status), 0);
}

TEST(JobFaults, EveryEndThatIsNotOkHasAnErrno) {
  EXPECT_EQ(errno_of(IoEnd::ok, 0), 0);
  EXPECT_EQ(errno_of(IoEnd::timeout, 0), ETIMEDOUT);
  EXPECT_EQ(errno_of(IoEnd::gone, 0), ENODEV);
  for (u32 status = 0; status < 0x800; ++status)
    EXPECT_NE(errno_of(IoEnd::refused, static_cast<u16>(status)), 0);
}

TEST(JobFaults, ALostCommandEndsInTime) {
  Job job(with("model", "drop=1", 0.2));
  for (std::size_t i = 0; i < 4; ++i)
    ASSERT_EQ(job.post(IoOpcode::write, i * 4096, 4096, job.slot(i), i), JobQueue::Queued::yes);
  std::set<std::size_t> seen;
  while (seen.size() < 4) {  // an outcome at a time, so that they wait to be handed out
    ASSERT_EQ(job.queue.reap(std::span(job.outcomes).first(1), 1), 1u);
    EXPECT_EQ(job.outcomes[0].end, IoEnd::timeout);
    seen.insert(index_of(job.outcomes[0]));
  }
  EXPECT_EQ(job.queue.in_flight(), 0u);
  // Its buffer may still be used by the controller.
  EXPECT_TRUE(holds(job.refusal(IoOpcode::read, 0, 4096, job.slot(0), ETIMEDOUT), "did not answer in time"));
}

TEST(JobFaults, ACompletionThatComesTwiceIsSaid) {
  for (const u32 depth : {1u, 8u}) {  // the first has room for one completion
    Job job(with("model", "duplicate=1"), depth);
    ASSERT_EQ(job.one(IoOpcode::read, 0, 4096, job.slot(0)).end, IoEnd::ok);
    job.queue.end();  // it may come behind the last outcome
    EXPECT_TRUE(holds(job.queue.fault(), "came twice")) << depth;
  }
}

TEST(JobFaults, ARemovedControllerEndsWhatIsInFlight) {
  Job job(with("model", "removal=1"));
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_EQ(job.post(IoOpcode::read, 0, 4096, job.slot(i), i), JobQueue::Queued::yes);
  ASSERT_EQ(job.queue.reap(job.outcomes, 3), 3u);
  for (u32 i = 0; i < 3; ++i) EXPECT_EQ(job.outcomes[i].end, IoEnd::gone);
  EXPECT_TRUE(holds(job.refusal(IoOpcode::read, 0, 4096, job.slot(0), ENODEV), "gone"));
  job.queue.end();
  EXPECT_NE(job.queue.fault(), "");
}

TEST(JobFaults, LateAndReorderedCompletionsAreNoError) {
  Job job(with("model:delay=20ms", "delay=0.1,reorder=0.2"), 16);
  std::multiset<std::size_t> seen;
  std::size_t next = 0;
  while (seen.size() < 300) {
    while (next < 300 &&
           job.post(IoOpcode::read, 0, 4096, job.slot(next % 16), next) == JobQueue::Queued::yes)
      ++next;
    const u32 n = job.queue.reap(job.outcomes, 1);
    for (u32 i = 0; i < n; ++i) {
      EXPECT_EQ(job.outcomes[i].end, IoEnd::ok);
      seen.insert(index_of(job.outcomes[i]));
    }
  }
  for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(seen.count(i), 1u);
  job.queue.end();
  EXPECT_EQ(job.queue.fault(), "");
}

TEST(JobFaults, FaultsThatCannotBe) {
  EXPECT_TRUE(holds(error_of([] { (void)parse_faults("corupt=1"); }), "unknown key 'corupt'"));
  EXPECT_TRUE(holds(error_of([] { (void)parse_faults("corrupt=2"); }), "2"));
  EXPECT_TRUE(holds(error_of([] { SharedController c(with("qemu", "drop=1")); }), "not a model"));
  EXPECT_TRUE(holds(error_of([] { SharedController c(with("file:/tmp/x")); }), "through the kernel"));
  EXPECT_TRUE(holds(error_of([] { SharedController c(with("modell")); }), "no back end"));
  EXPECT_FALSE(parse_faults("").any());
  EXPECT_EQ(parse_faults("stale=0.25").of(model::Fault::stale), 0.25);
}

TEST(JobSharing, JobsShareOneControllerAndItsBlocks) {
  const auto options = with("model:capacity=8Mi,latency=1us");
  const auto first = share_controller(options);
  EXPECT_EQ(share_controller(options), first);
  EXPECT_TRUE(
      holds(error_of([&] { (void)share_controller(with(options.controller, "drop=1")); }), "must agree"));
  EXPECT_TRUE(holds(error_of([&] { (void)claim_controller(options.controller); }), "cannot share"));
  constexpr u32 kJobs = 4;
  std::vector<std::thread> threads;
  std::vector<u32> bad(kJobs);
  for (u32 t = 0; t < kJobs; ++t)
    threads.emplace_back([&, t] {
      // Queues come and go while others work.
      for (u32 round = 0; round < 5; ++round) {
        Job job(first, 4, 4096);
        std::memset(job.slot(0), static_cast<int>(t + 1), 4096);
        if (job.one(IoOpcode::write, u64{t} * 4096, 4096, job.slot(0)).end != IoEnd::ok) ++bad[t];
        if (job.one(IoOpcode::read, u64{t} * 4096, 4096, job.slot(1)).end != IoEnd::ok) ++bad[t];
        if (std::memcmp(job.slot(0), job.slot(1), 4096) != 0) ++bad[t];
        job.queue.end();
        if (!job.queue.fault().empty()) ++bad[t];
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(bad, std::vector<u32>(kJobs));
  Job reader(first, 4, 4096);
  for (u32 t = 0; t < kJobs; ++t) {
    EXPECT_EQ(reader.one(IoOpcode::read, u64{t} * 4096, 4096, reader.slot(0)).end, IoEnd::ok);
    EXPECT_EQ(std::count(reader.slot(0), reader.slot(1), t + 1), 4096);
  }
}

TEST(JobSharing, ItCloses) {
  const auto options = with("model:capacity=1Mi,latency=2us");
  std::weak_ptr<SharedController> old = share_controller(options);
  EXPECT_TRUE(old.expired());
  EXPECT_NE(share_controller(options), nullptr);
}

TEST(JobSharing, AProcessHasItAlone) {
  const auto options = with("model:capacity=1Mi,latency=3us");
  auto claim = claim_controller(options.controller);
  EXPECT_TRUE(holds(error_of([&] { (void)claim_controller(options.controller); }), "cannot share"));
  EXPECT_TRUE(holds(error_of([&] { (void)share_controller(options); }), "cannot share"));
  claim.reset();
  EXPECT_NE(share_controller(options), nullptr);
}

TEST(JobSharing, MoreJobsThanQueues) {
  const auto shared = std::make_shared<SharedController>(with("model:queues=2"));
  Job first(shared, 1, 4096);
  {
    Job second(shared, 1, 4096);
    EXPECT_TRUE(holds(error_of([&] { Job third(shared, 1, 4096); }), "2 queue pairs are in use"));
  }
  Job third(shared, 1, 4096);  // a number that has become free
  EXPECT_EQ(third.one(IoOpcode::read, 0, 4096, third.slot(0)).end, IoEnd::ok);
}

}  // namespace
}  // namespace doorbell::nvme
