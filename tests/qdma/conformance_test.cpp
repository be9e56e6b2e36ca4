// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The same cases through every entry. Error numbers are those of docs/qdma.md.
#include <doorbell/pattern_unit.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "entries.hpp"
#include "fake_kernel.hpp"
#include "qdma/model/card.hpp"
#include "qdma/server/card_server.hpp"
#include "qdma/slash_client.hpp"

#ifdef DOORBELLD
#include "qdma/daemon_process.hpp"
#endif

namespace doorbell::qdma {

namespace {

using test::Entry;
using test::EntryBuffer;
using test::EntryRow;

constexpr const char* kCard = "model";
constexpr const char* kSlowCard = "model:bandwidth=1000000";

/// A card server in a process of its own, begun before this process has threads.
class ServerProcess : public testing::Environment {
 public:
  static std::string path(bool slow) { return folder() + (slow ? "/slow" : "/card"); }
  static std::string slash_path(bool slow) { return slash_folder(slow) + "/" + slash::kQdmaFile; }
  void SetUp() override {
    std::filesystem::create_directories(folder());
    int up[2], down[2];
    ASSERT_EQ(pipe2(up, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(down, O_CLOEXEC), 0);
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      ::close(down[1]);
      serve(up[1], down[0]);
    }
    ::close(up[1]);
    ::close(down[0]);
    end_ = Descriptor(down[1]);
    char ready = 0;
    ASSERT_EQ(read(up[0], &ready, 1), 1);
    ::close(up[0]);
  }
  void TearDown() override {
    end_.reset();
    int status = 0;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    EXPECT_EQ(status, 0);
    std::filesystem::remove_all(folder());
  }

 private:
  static std::string folder() {
    static const std::string name =
        (std::filesystem::temp_directory_path() / ("qdma_conformance_" + std::to_string(getpid()))).string();
    return name;
  }
  static std::string slash_folder(bool slow) { return path(slow) + ".slash"; }
  [[noreturn]] static void serve(int ready, int end) {
    static_cast<void>(folder());
    {
      CardServer card(make_model_card(kCard)), slow(make_model_card(kSlowCard));
      card.listen(path(false));
      slow.listen(path(true));
      card.listen_slash(slash_folder(false));
      slow.listen_slash(slash_folder(true));
      char byte = 0;
      if (write(ready, "", 1) != 1) _exit(1);
      while (read(end, &byte, 1) > 0) {
      }
    }
    _exit(0);
  }
  pid_t child_ = -1;
  Descriptor end_;
};

/// A kernel driver over the driver model, with both in one object.
std::unique_ptr<Entry> kernel_entry(bool slow) {
  struct Both : KernelDriver {
    explicit Both(std::shared_ptr<test::FakeKernel> k) : KernelDriver("/dev/slash_qdma_ctl0", k->calls()) {
      kernel = std::move(k);
    }
    std::shared_ptr<test::FakeKernel> kernel;
  };
  // The layer must outlive the base class, which closes the node at its end.
  auto kernel = std::make_shared<test::FakeKernel>(slow ? kSlowCard : kCard);
  std::shared_ptr<Driver> driver(new Both(kernel), [kernel](Driver* d) { delete d; });
  return test::library_entry(std::move(driver));
}

#ifdef DOORBELLD
constexpr u32 kDaemonQueuePairs = 40;

/// The daemons of this process, each begun when the first test needs it.
class Daemons : public testing::Environment {
 public:
  static std::string name(bool slow) {
    auto& daemon = all().at(slow ? 1 : 0);
    if (!daemon) {
      daemon = std::make_unique<daemon::DaemonProcess>(
          std::vector<std::string>{"--max-queue-pairs", std::to_string(kDaemonQueuePairs)},
          slow ? kSlowCard : kCard);
      EXPECT_TRUE(daemon->ready()) << daemon->child().errors();
    }
    return "daemon:" + daemon->path();
  }
  void TearDown() override {
    for (auto& daemon : all()) {
      if (!daemon) continue;
      // Nobody holds anything any more, whatever the cases have left behind.
      EXPECT_TRUE(doorbell::test::eventually([&] { return daemon->holds_nothing(); })) << daemon->http();
      EXPECT_EQ(daemon->end(), 0) << daemon->child().errors();
      daemon.reset();
    }
  }

 private:
  static std::array<std::unique_ptr<daemon::DaemonProcess>, 2>& all() {
    static std::array<std::unique_ptr<daemon::DaemonProcess>, 2> daemons;
    return daemons;
  }
};
#endif

const std::vector<EntryRow>& entries() {
  static const std::vector<EntryRow> all = {
      {"library",
       [](bool slow) { return test::library_entry(open_driver({.spec = slow ? kSlowCard : kCard})); }},
      {"c", [](bool slow) { return test::c_entry(slow ? kSlowCard : kCard); }},
      {"server",
       [](bool slow) {
         return test::library_entry(open_driver({.spec = "server:" + ServerProcess::path(slow)}));
       }},
      {"server_c", [](bool slow) { return test::c_entry("server:" + ServerProcess::path(slow)); }},
      {"kernel", kernel_entry, false, false},
      {.name = "slash",
       .open =
           [](bool slow) {
             return test::library_entry(
                 std::make_shared<slash::SlashDriver>(ServerProcess::slash_path(slow)));
           },
       .reports_parts = false,
       .keeps_deadlines = false,
       .unknown_call = ENOSYS},
#ifdef DOORBELLD
      {.name = "daemon",
       .open = [](bool slow) { return test::library_entry(open_driver({.spec = Daemons::name(slow)})); },
       .most_queue_pairs = kDaemonQueuePairs,
       .over_most = EDQUOT},
      {.name = "daemon_c",
       .open = [](bool slow) { return test::c_entry(Daemons::name(slow)); },
       .most_queue_pairs = kDaemonQueuePairs,
       .over_most = EDQUOT},
#endif
  };
  return all;
}

class Conformance : public testing::TestWithParam<EntryRow> {
 protected:
  void SetUp() override { open(false); }
  void open(bool slow) {
    entry = GetParam().open(slow);
    ASSERT_NE(entry, nullptr);
  }
  void TearDown() override {
    for (const int fd : fds) entry->close(fd);
    for (const u32 q : queues) static_cast<void>(entry->operate(q, QueueOp::del));
  }
  u32 queue(u32 channel = kChannelAuto, u32 directions = kDirH2C | kDirC2H, bool start = true) {
    QpairAdd a{.dir_mask = directions, .mm_channel = channel};
    EXPECT_EQ(entry->add(a), 0);
    if (start) {
      EXPECT_EQ(entry->operate(a.qid, QueueOp::start), 0);
    }
    queues.push_back(a.qid);
    return a.qid;
  }
  int descriptor(std::vector<u32> ids) {
    const i64 fd = entry->get_fd(ids, kFlagCloseOnExec);
    EXPECT_GE(fd, 0);
    fds.push_back(static_cast<int>(fd));
    return fds.back();
  }
  std::unique_ptr<EntryBuffer> buffer(u64 bytes) {
    std::unique_ptr<EntryBuffer> b;
    EXPECT_EQ(entry->create_buffer(bytes, b), 0);
    return b;
  }
  i64 one(int fd, SubXfer x) {
    std::vector<SubResult> parts;
    return entry->batch(fd, std::span(&x, 1), 0, parts);
  }
  static SubXfer part(Direction d, int fd, u64 address, u64 bytes, u64 offset = 0, u32 index = 0) {
    return {.qpair_index = index,
            .direction = static_cast<u32>(d),
            .buf_fd = fd,
            .buf_offset = offset,
            .dev_addr = address,
            .length = bytes};
  }
  /// A word at a time: under ThreadSanitizer each access is a call.
  static void fill(EntryBuffer& b, u32 seed) {
    for (u64 i = 0; i < b.bytes; i += sizeof(u64)) {
      const u64 word = pattern::mix64(u64{seed} << 32 | i);
      std::memcpy(b.data + i, &word, std::min(sizeof word, b.bytes - i));
    }
  }

  std::unique_ptr<Entry> entry;
  std::vector<u32> queues;
  std::vector<int> fds;
};

INSTANTIATE_TEST_SUITE_P(Entries, Conformance, testing::ValuesIn(entries()),
                         [](const auto& p) { return p.param.name; });

TEST_P(Conformance, InfoIsTerminatedAndOfItsFullSize) {
  Info i;
  i.bdf.fill('x');
  ASSERT_EQ(entry->info(i), 0);
  EXPECT_EQ(i.size, sizeof i);
  EXPECT_EQ(std::strlen(i.bdf.data()), 12u);
}

TEST_P(Conformance, QueuePairsThatCannotBeAreRefused) {
  const auto refused = [&](QpairAdd a) { return entry->add(a); };
  EXPECT_EQ(refused({.dir_mask = 0}), -EINVAL);
  EXPECT_EQ(refused({.dir_mask = 8}), -EINVAL);
  EXPECT_EQ(refused({.mode = 99}), -EINVAL);
  EXPECT_EQ(refused({.h2c_ring = 99}), -EINVAL);
  EXPECT_EQ(refused({.c2h_ring = 16}), -EINVAL);
  EXPECT_EQ(refused({.mm_channel = 7}), -EINVAL);
  EXPECT_EQ(refused({.aperture_size = 4097}), -EINVAL);
  EXPECT_EQ(refused({.mode = kModeStream}), -EOPNOTSUPP);
  EXPECT_EQ(refused({.dir_mask = kDirH2C | kDirCompletion}), -EOPNOTSUPP);
}

TEST_P(Conformance, OneQueuePairTooManyIsRefusedUntilOneGoes) {
  for (u32 i = 0; i < GetParam().most_queue_pairs; ++i) queue(kChannelAuto, kDirH2C, false);
  QpairAdd a;
  EXPECT_EQ(entry->add(a), -GetParam().over_most);
  EXPECT_EQ(entry->operate(queues.back(), QueueOp::del), 0);
  queues.pop_back();
  queue();
}

TEST_P(Conformance, StatesOfAQueuePair) {
  const u32 q = queue(kChannelAuto, kDirH2C, false);
  EXPECT_EQ(entry->operate(q, QueueOp::stop), -EINVAL);
  EXPECT_EQ(entry->operate(q, QueueOp::start), 0);
  EXPECT_EQ(entry->operate(q, QueueOp::start), -EINVAL);
  EXPECT_EQ(entry->operate(q, QueueOp::stop), 0);
  EXPECT_EQ(entry->operate(q + 200, QueueOp::start), -ENOENT);
  if (entry->driver() != nullptr) {
    EXPECT_EQ(entry->operate(q, static_cast<QueueOp>(3)), -EINVAL);
  }
  EXPECT_EQ(entry->operate(q, QueueOp::del), 0);
  queues.clear();
  EXPECT_EQ(entry->operate(q, QueueOp::start), -ESTALE);
  const std::vector<u32> old = {q};
  EXPECT_EQ(entry->get_fd(old, 0), -ESTALE);
}

TEST_P(Conformance, DescriptorsThatCannotBeAreRefused) {
  const u32 a = queue(), b = queue(kChannelAuto, kDirH2C, false);
  const auto get = [&](std::vector<u32> ids, u32 flags = 0) { return entry->get_fd(ids, flags); };
  EXPECT_EQ(get({a}, 1), -EINVAL);
  EXPECT_EQ(get({a, b, a}), -EINVAL);
  EXPECT_EQ(get({a, a}), -EINVAL);
  EXPECT_EQ(get({a + 200}), -ENOENT);
  // They need not be started.
  const int fd = descriptor({a, b});
  EXPECT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST_P(Conformance, BuffersAreWholeGranules) {
  std::unique_ptr<EntryBuffer> b;
  EXPECT_EQ(entry->create_buffer(0, b), -EINVAL);
  EXPECT_EQ(entry->create_buffer(4097, b), -EINVAL);
  ASSERT_EQ(entry->create_buffer(4096, b), 0);
  b->data[4095] = 1;
}

TEST_P(Conformance, TransfersThatCannotBeAreRefused) {
  const int both = descriptor({queue(), queue()}), out = descriptor({queue(kChannelAuto, kDirH2C)});
  auto b = buffer(8192);
  const auto h2c = Direction::host_to_card, c2h = Direction::card_to_host;
  EXPECT_EQ(one(both, part(h2c, b->fd, kDdrBase, 4096, 0, 5)), -EINVAL);
  EXPECT_EQ(one(both, part(static_cast<Direction>(0), b->fd, kDdrBase, 4096)), -EINVAL);
  EXPECT_EQ(one(both, part(static_cast<Direction>(3), b->fd, kDdrBase, 4096)), -EINVAL);
  EXPECT_EQ(one(both, part(h2c, b->fd, kDdrBase, 0)), -EINVAL);
  EXPECT_EQ(one(both, part(h2c, b->fd, kDdrBase, 1, 100)), -EINVAL);
  EXPECT_EQ(one(both, part(h2c, b->fd, kDdrBase, 8193)), -EINVAL);
  EXPECT_EQ(one(both, part(h2c, b->fd, kDdrBase, 1, 8192)), -EINVAL);
  EXPECT_EQ(one(both, part(h2c, b->fd, kDdrBase, u64{1} << 32)), -EINVAL);
  EXPECT_EQ(one(both, part(h2c, -1, kDdrBase, 1)), -EBADF);
  EXPECT_EQ(one(both, part(h2c, 987654, kDdrBase, 1)), -EBADF);
  const Descriptor other(memfd_create("other", MFD_CLOEXEC));
  EXPECT_EQ(one(both, part(h2c, other.get(), kDdrBase, 1)), -EINVAL);
  EXPECT_EQ(one(out, part(c2h, b->fd, kDdrBase, 1)), -ENODEV);
  EXPECT_EQ(one(both, part(h2c, b->fd, 0x300'0000'0000, 1)), -EFAULT);
  EXPECT_EQ(one(both, part(h2c, b->fd, kHbmBase + kHbmBytes - 1, 2)), -EFAULT);
  EXPECT_EQ(one(both, part(c2h, b->fd, kPdiBase, 1)), -EFAULT);
  std::vector<SubResult> parts;
  EXPECT_EQ(entry->batch(both, {}, 0, parts), -EINVAL);
  const std::vector<SubXfer> three(3, part(h2c, b->fd, kDdrBase, 1));
  EXPECT_EQ(entry->batch(both, three, 0, parts), -EINVAL);
  // After all of this it works.
  EXPECT_EQ(one(both, part(h2c, b->fd, kDdrBase, 8192)), 8192);
}

TEST_P(Conformance, AStoppedQueueRefusesAndADeletedOneIsStale) {
  const u32 q = queue();
  const int fd = descriptor({q});
  auto b = buffer(4096);
  const SubXfer x = part(Direction::host_to_card, b->fd, kDdrBase, 4096);
  EXPECT_EQ(one(fd, x), 4096);
  EXPECT_EQ(entry->operate(q, QueueOp::stop), 0);
  EXPECT_EQ(one(fd, x), -EINVAL);
  EXPECT_EQ(entry->operate(q, QueueOp::start), 0);
  EXPECT_EQ(one(fd, x), 4096);
  EXPECT_EQ(entry->operate(q, QueueOp::del), 0);
  queues.clear();
  EXPECT_EQ(one(fd, x), -ESTALE);
  queue();  // takes the number, and the old descriptor does not reach it
  EXPECT_EQ(one(fd, x), -ESTALE);
}

TEST_P(Conformance, EveryLengthArrivesWholeAndTouchesNothingElse) {
  const int fd = descriptor({queue(kChannel0), queue(kChannel1)});
  constexpr u64 kBytes = 2 << 20;
  auto out = buffer(kBytes), in = buffer(kBytes);
  u32 seed = 0;
  for (const u64 base : {kDdrBase, kHbmBase, kHbmBoundary - 4096, kHbmBoundary - (1 << 20)})
    for (const u64 at : {u64{0}, u64{1}, u64{4095}})
      for (const u64 n : {u64{1}, u64{4095}, u64{4096}, u64{4097}, u64{1} << 20, (u64{1} << 20) + 1}) {
        fill(*out, ++seed);
        ASSERT_EQ(entry->transfer(fd, Direction::host_to_card, *out, 0, base + at, n), static_cast<i64>(n));
        std::memset(in->data, 0xa5, n + 4096);
        ASSERT_EQ(entry->transfer(fd, Direction::card_to_host, *in, 0, base + at, n), static_cast<i64>(n));
        ASSERT_EQ(std::memcmp(in->data, out->data, n), 0) << std::hex << base + at << " " << n;
        ASSERT_EQ(in->data[n], 0xa5);
      }
}

TEST_P(Conformance, APlainCallBeginsInTheMiddleOfABuffer) {
  const int fd = descriptor({queue(kChannel0), queue(kChannel1)});
  auto out = buffer(1 << 20), in = buffer(1 << 20);
  fill(*out, 1);
  const u64 n = (1 << 20) - 8192;
  EXPECT_EQ(entry->transfer(fd, Direction::host_to_card, *out, 8192, kDdrBase + 3, n), static_cast<i64>(n));
  EXPECT_EQ(entry->transfer(fd, Direction::card_to_host, *in, 4096, kDdrBase + 3, n), static_cast<i64>(n));
  EXPECT_EQ(std::memcmp(in->data + 4096, out->data + 8192, n), 0);
  EXPECT_EQ(entry->transfer(fd, Direction::card_to_host, *in, 1, kDdrBase, 1), -EINVAL);
  EXPECT_EQ(entry->transfer(fd, Direction::card_to_host, *in, 0, kDdrBase, 0), -EINVAL);
  EXPECT_EQ(entry->transfer(fd, Direction::card_to_host, *in, 4096, kDdrBase, 1 << 20), -EINVAL);
}

TEST_P(Conformance, WhatOneQueueWritesTheOtherReads) {
  const int first = descriptor({queue(kChannel0)}), second = descriptor({queue(kChannel1)});
  auto out = buffer(64 << 10), in = buffer(64 << 10);
  fill(*out, 7);
  EXPECT_EQ(one(first, part(Direction::host_to_card, out->fd, kHbmBase + 777, 64 << 10)), 64 << 10);
  EXPECT_EQ(one(second, part(Direction::card_to_host, in->fd, kHbmBase + 777, 64 << 10)), 64 << 10);
  EXPECT_EQ(std::memcmp(in->data, out->data, 64 << 10), 0);
}

TEST_P(Conformance, TwoSubTransfersInOneCall) {
  const int fd = descriptor({queue(kChannel0), queue(kChannel1)});
  auto out = buffer(32 << 10), in = buffer(32 << 10);
  fill(*out, 3);
  const u64 n = 16 << 10;
  std::vector<SubResult> parts;
  const std::vector<SubXfer> writes = {part(Direction::host_to_card, out->fd, kDdrBase, n, 0, 0),
                                       part(Direction::host_to_card, out->fd, kDdrBase + n, n - 5, n, 1)};
  EXPECT_EQ(entry->batch(fd, writes, 0, parts), static_cast<i64>(2 * n - 5));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].bytes, n);
  EXPECT_EQ(parts[1].bytes, n - 5);
  // Both directions in one call, and one queue pair twice.
  const std::vector<SubXfer> mixed = {part(Direction::card_to_host, in->fd, kDdrBase, n, 0, 0),
                                      part(Direction::host_to_card, out->fd, kDdrBase + 4 * n, n, 0, 1)};
  EXPECT_EQ(entry->batch(fd, mixed, 0, parts), static_cast<i64>(2 * n));
  const std::vector<SubXfer> twice = {part(Direction::card_to_host, in->fd, kDdrBase + n, n - 5, n, 0),
                                      part(Direction::card_to_host, in->fd, kDdrBase, 1, 0, 0)};
  EXPECT_EQ(entry->batch(fd, twice, 0, parts), static_cast<i64>(n - 4));
  EXPECT_EQ(std::memcmp(in->data, out->data, 2 * n - 5), 0);
}

TEST_P(Conformance, ADeadlineIsKeptAndEachSubTransferSaysHowFarItCame) {
  if (!GetParam().keeps_deadlines) GTEST_SKIP() << "its calls return when the driver lets them";
  open(true);
  const int fd = descriptor({queue(kChannel0), queue(kChannel1)});
  auto b = buffer(16 << 20);
  std::vector<SubResult> parts;
  const std::vector<SubXfer> x = {part(Direction::host_to_card, b->fd, kDdrBase, 16 << 20, 0, 0),
                                  part(Direction::host_to_card, b->fd, kDdrBase + (32 << 20), 1, 0, 1)};
  EXPECT_EQ(entry->batch(fd, x, 0.5, parts), -ETIMEDOUT);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].error, ETIMEDOUT);
  EXPECT_LT(parts[0].bytes, u64{16} << 20);
  EXPECT_EQ(parts[1].error, 0);
  EXPECT_EQ(parts[1].bytes, 1u);
  EXPECT_TRUE(parts[0].known && parts[1].known);
}

TEST_P(Conformance, TheRuleOfSizesHolds) {
  Driver* const d = entry->driver();
  if (d == nullptr) GTEST_SKIP() << "its programs give no structures of other sizes";
  const auto info = [&](std::vector<u8>& bytes, u32 size) {
    std::memcpy(bytes.data(), &size, sizeof size);
    return d->call(-1, kCallInfo, bytes).result;
  };
  std::vector<u8> larger(60, 0xee);
  EXPECT_EQ(info(larger, 60), -E2BIG);
  std::fill(larger.begin(), larger.end(), u8{0});
  EXPECT_EQ(info(larger, 60), 0);
  EXPECT_EQ(larger[0], sizeof(Info));
  EXPECT_NE(larger[20], 0);
  std::vector<u8> smaller(16, 0);
  EXPECT_EQ(info(smaller, 16), 0);
  EXPECT_EQ(smaller[0], sizeof(Info));
  EXPECT_EQ(info(smaller, 3), -EINVAL);
  EXPECT_EQ(info(smaller, 60), -EFAULT);
  EXPECT_EQ(d->call(-1, call_number(0x55, 24), larger).result, -GetParam().unknown_call);
}

[[maybe_unused]] const auto* const kServerProcess = testing::AddGlobalTestEnvironment(new ServerProcess);
#ifdef DOORBELLD
[[maybe_unused]] const auto* const kDaemons = testing::AddGlobalTestEnvironment(new Daemons);
#endif

}  // namespace

}  // namespace doorbell::qdma
