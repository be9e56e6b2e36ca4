// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// `--controller qemu` end to end, against a real QEMU: shapes, media, errors, and a process that goes away.

#include <doorbell/error.hpp>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <atomic>
#include <thread>

#include "children.hpp"
#include "file_contents.hpp"
#include "nvme/clean.hpp"
#include "nvme/conformance/rig.hpp"
#include "nvme/qemu/controller.hpp"
#include "nvme/run_into.hpp"
#include "options/setting.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {
namespace {

using test::children;

/// Every test leaves no process behind.
class Qemu : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(children().empty());
    descriptors_ = test::open_descriptors();
  }
  void TearDown() override {
    EXPECT_TRUE(children().empty()) << "a QEMU is left";
    EXPECT_EQ(test::open_descriptors(), descriptors_) << "descriptors are left";
  }
  static BenchOptions usual(const std::string& keys = "capacity=64Mi") {
    BenchOptions o;
    Setting::name_by_options();
    o.controller = "qemu:" + keys;
    o.write_io = o.read_io = 200;
    o.timeout_s = 60;
    o.late_after_s = 50;
    return o;
  }
  static BenchResult expect_clean(const BenchOptions& o) {
    SCOPED_TRACE(shape_of(o));
    BenchResult r = run_bench(o, {});
    expect_nothing_wrong(r, o.read_io);
    expect_all_done(r, o);
    EXPECT_EQ(r.cell().device_kind, "emulated");
    EXPECT_EQ(r.cell().device_name, o.controller);
    return r;
  }
  static double seconds_since(u64 begin) { return static_cast<double>(wall_ns() - begin) * 1e-9; }

 private:
  std::size_t descriptors_ = 0;
};

// --- shapes -----------------------------------------------------------------------------------------

TEST_F(Qemu, Sizes) {
  for (const u32 lba : {512u, 4096u})
    for (const u32 bytes : {512u, 4096u, 65536u, 524288u}) {  // the last is MDTS 7's limit
      if (bytes < lba) continue;
      BenchOptions o = usual("capacity=64Mi,lba=" + std::to_string(lba));
      o.lbas_per_io = bytes / lba;
      o.write_io = o.read_io = 60;
      o.batch = 4;
      expect_clean(o);
    }
}

TEST_F(Qemu, TheLargestTransferOfEachMdts) {
  for (const u32 mdts : {1u, 4u, 10u}) {
    BenchOptions o = usual("capacity=64Mi,lba=4096,mdts=" + std::to_string(mdts));
    o.lbas_per_io = 1u << mdts;
    o.write_io = o.read_io = 8;
    o.batch = 2;
    expect_clean(o);
    o.lbas_per_io = (1u << mdts) + 1;
    try {
      (void)run_bench(o, {});
      ADD_FAILURE() << "mdts " << mdts;
    } catch (const Error& e) {
      EXPECT_EQ(e.subject(), "--lbas-per-io") << e.what();
    }
  }
}

TEST_F(Qemu, QueuesAndBatches) {
  for (const u32 queues : {1u, 3u, 8u})
    for (const u32 batch : {1u, 7u, 64u}) {
      BenchOptions o = usual();
      o.num_queues = queues;
      o.batch = batch;
      o.random = batch == 7;
      o.write_io = o.read_io = 500;
      expect_clean(o);
    }
}

TEST_F(Qemu, ShortQueuesThatWrapManyTimes) {
  for (const u32 length : {2u, 3u, 5u})
    for (const bool shadow : {false, true}) {
      BenchOptions o = usual();
      o.queue_length = length;
      o.batch = length - 1;
      o.num_queues = length == 3 ? 2 : 1;
      o.random = length == 5;
      o.shadow_doorbells = shadow;
      o.write_io = o.read_io = 700;
      expect_clean(o);
    }
}

TEST_F(Qemu, ShadowDoorbells) {
  for (const u32 queues : {1u, 4u}) {
    BenchOptions o = usual();
    o.shadow_doorbells = true;
    o.num_queues = queues;
    o.batch = 8;
    o.write_io = o.read_io = 2000;
    expect_clean(o);
  }
}

TEST_F(Qemu, AsManyQueuesAsItGrants) {
  BenchOptions o = usual("capacity=64Mi,queues=64");
  o.num_queues = 64;
  o.write_io = o.read_io = 640;
  expect_clean(o);
  o.controller = "qemu:capacity=64Mi,queues=2";
  o.num_queues = 2;
  expect_clean(o);
  o.num_queues = 3;
  try {
    (void)run_bench(o, {});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.subject(), "--num-queues") << e.what();
  }
}

TEST_F(Qemu, SeveralPassesAndRepeats) {
  BenchOptions o = usual("capacity=1Mi,lba=4096");  // 256 blocks
  o.write_io = o.read_io = 1000;
  o.num_queues = 3;
  o.batch = 8;
  expect_clean(o);
  o.random = true;
  o.repeats = 3;
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell().verify.checked, 3000u);
}

TEST_F(Qemu, TheLastBlock) {
  BenchOptions o = usual();
  o.base_lba = 131071;
  expect_clean(o);
  o.base_lba = 131072;
  EXPECT_THROW((void)run_bench(o, {}), Error);
}

TEST_F(Qemu, TwoAtOnce) {
  std::thread other([] { expect_clean(usual("capacity=32Mi")); });
  expect_clean(usual("capacity=64Mi,lba=4096"));
  other.join();
}

// --- media ------------------------------------------------------------------------------------------

TEST_F(Qemu, NullMediaVerifiesNothingAndSaysSo) {
  BenchOptions o = usual("media=null");
  o.batch = 16;
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell().metrics.ops, 400u);
  EXPECT_EQ(r.cell().verify.checked, 0u);
  EXPECT_EQ(r.cell().verify.mode, "none");
  ASSERT_FALSE(r.warnings.empty());
}

TEST_F(Qemu, ABadSector) {
  for (const std::string keys : {"", ",lba=4096", ",iops=5000"}) {
    SCOPED_TRACE(keys);
    BenchOptions o = usual("capacity=64Mi,bad-sector=403" + keys);
    o.lbas_per_io = 8;
    if (keys == ",lba=4096") o.lbas_per_io = 1;
    o.batch = 4;
    const BenchResult r = run_bench(o, {});
    EXPECT_TRUE(r.failed);
    EXPECT_EQ(r.stop_reason, StopReason::done);
    EXPECT_EQ(r.cell().errors.at("completion"), 1u)
        << "sector 403 lies in one I/O of eight, of which 200 are read";
    EXPECT_EQ(r.cell().extra.at("nvme").at("completion_statuses"),
              (nlohmann::ordered_json{{"Unrecovered Read Error", 1}}));
    EXPECT_EQ(r.cell().verify.checked, 199u);
    EXPECT_EQ(r.cell().verify.failed(), 0u);
    EXPECT_EQ(r.cell().verify.unverifiable, 0u);
    EXPECT_EQ(r.cell().metrics.ops, 399u);
  }
}

TEST_F(Qemu, ABadSectorThatIsNotRead) {
  BenchOptions o = usual("capacity=64Mi,bad-sector=200");
  expect_clean(o);
  o.controller = "qemu:capacity=64Mi,bad-sector=199";
  EXPECT_TRUE(run_bench(o, {}).failed);
  o.read_io = 0;
  EXPECT_FALSE(run_bench(o, {}).failed) << "writing it is no error";
}

class Drive : public Qemu {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "doorbell-drive-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    image_ = folder_ + "/image";
    std::ofstream(image_).close();
    std::filesystem::resize_file(image_, 8 << 20);
    Qemu::SetUp();
  }
  void TearDown() override {
    Qemu::TearDown();
    std::filesystem::remove_all(folder_);
  }
  [[nodiscard]] BenchOptions options(u64 writes, u64 reads) const {
    BenchOptions o = usual("drive=" + image_);
    o.write_io = writes;
    o.read_io = reads;
    o.allow_write = writes > 0;
    return o;
  }
  [[nodiscard]] std::string contents() const { return test::contents(image_); }
  std::string folder_, image_;
};

TEST_F(Drive, SurvivesARestart) {
  EXPECT_FALSE(run_bench(options(600, 0), {}).failed);
  const std::string before = contents();
  BenchOptions o = options(0, 600);
  o.num_queues = 2;
  o.lfsr_seed = 99;
  expect_clean(o);
  EXPECT_TRUE(contents() == before) << "reading changed it";
  {
    std::fstream file(image_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(7 * 512 + 100);
    file.put(static_cast<char>(before[7 * 512 + 100] ^ 1));
  }
  const BenchResult r = run_bench(o, {});
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.cell().verify.corrupt, 1u);
  EXPECT_EQ(r.cell().verify.checked, 600u);
}

TEST_F(Drive, OfSomebodyElseTakesPermission) {
  std::ofstream(image_, std::ios::binary) << std::string(8 << 20, 'p');
  BenchOptions o = options(100, 100);
  o.allow_write = false;
  try {
    (void)run_bench(o, {});
    ADD_FAILURE() << "it was overwritten";
  } catch (const Error& e) {
    EXPECT_EQ(e.subject(), "--write-io");
    EXPECT_NE(e.hint().find("--allow-write"), std::string::npos);
  }
  EXPECT_TRUE(contents() == std::string(8 << 20, 'p'));
  // Neither count given: it reads, and says why it does no more.
  o.default_counts = true;
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell().verify.unverifiable, 100u);
  ASSERT_FALSE(r.warnings.empty());
  EXPECT_TRUE(contents() == std::string(8 << 20, 'p'));
  expect_clean(options(100, 100));
}

/// An image below /dev is no device.
TEST_F(Drive, AnImageInSharedMemory) {
  std::string pattern = "/dev/shm/doorbell-XXXXXX";
  const int fd = mkstemp(pattern.data());
  if (fd < 0) GTEST_SKIP() << "no /dev/shm here";
  ASSERT_EQ(ftruncate(fd, 8 << 20), 0);
  close(fd);
  BenchOptions o = options(100, 100);
  o.controller = "qemu:drive=" + pattern;
  expect_clean(o);
  unlink(pattern.c_str());
}

TEST_F(Drive, InUse) {
  const QemuController first(parse_qemu_spec("qemu:drive=" + image_), "first", nullptr);
  try {
    (void)run_bench(options(10, 10), {});
    ADD_FAILURE() << "two at once";
  } catch (const Error& e) {
    const std::string who = "in use by process " + std::to_string(getpid());
    EXPECT_NE(std::string(e.what()).find(who), std::string::npos) << e.what();
  }
  EXPECT_EQ(children(), std::vector<pid_t>{first.pid()});
  kill(first.pid(), SIGKILL);  // the destructor is the first to see that it has ended
}

// --- trouble ----------------------------------------------------------------------------------------

TEST_F(Qemu, SlowCommandsEndByTheDeadline) {
  for (const u32 queues : {1u, 3u}) {
    BenchOptions o = usual("capacity=64Mi,iops=20");
    o.num_queues = queues;
    o.batch = 8;
    o.timeout_s = 0.7;
    o.late_after_s = 0.6;
    const u64 begin = wall_ns();
    const BenchResult r = run_bench(o, {});
    EXPECT_LT(seconds_since(begin), 60) << "400 I/Os at 20 a second";
    EXPECT_TRUE(r.failed);
    EXPECT_EQ(r.stop_reason, StopReason::timeout);
    // The deletion of the queue ends them; whichever way each went, it is counted once.
    EXPECT_GT(r.cell().errors.at("timeout") + r.cell().errors.at("late"), 0u);
    EXPECT_EQ(r.cell().errors.at("identity"), 0u);
    EXPECT_EQ(r.cell().verify.duplicated, 0u);
  }
}

TEST_F(Qemu, AStopLeavesAPartialResult) {
  BenchOptions o = usual();
  o.infinite = true;
  o.num_queues = 2;
  o.batch = 4;
  const BenchResult r = run_into(o, stop_it);
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::requested);
  EXPECT_GT(r.cell().metrics.ops, 0u);
}

/// Runs for a minute, and sends QEMU a signal once that has begun; `when` it did.
BenchResult disturb(BenchOptions o, int signal, u64* when = nullptr) {
  o.duration_s = 60;
  o.batch = 8;
  return run_into(o, [&](auto&) {
    for (const pid_t pid : children()) kill(pid, signal);
    if (when != nullptr) *when = wall_ns();
  });
}

TEST_F(Qemu, KilledInTheMiddle) {
  for (const u32 queues : {1u, 4u})
    for (const bool shadow : {false, true}) {
      BenchOptions o = usual();
      o.num_queues = queues;
      o.shadow_doorbells = shadow;
      o.write_io = o.read_io = 2000;
      const u64 begin = wall_ns();
      const BenchResult r = disturb(o, SIGKILL);
      EXPECT_LT(seconds_since(begin), 30) << "it waited for a process that is gone";
      EXPECT_TRUE(r.failed);
      EXPECT_EQ(r.stop_reason, StopReason::removed);
      EXPECT_EQ(r.cell().errors.at("removal"), 1u);
      EXPECT_EQ(r.cell().errors.at("timeout"), 0u);
      EXPECT_EQ(r.cell().errors.at("identity"), 0u);
      EXPECT_GT(r.cell().metrics.ops, 0u) << "what was done before is lost";
      EXPECT_EQ(r.cell().extra.at("emulated").at("last_words"), "ended by signal 9 (Killed)");
      EXPECT_EQ(r.cell().verify.failed(), 0u);
    }
}

/// It is there and does nothing any more: commands time out, and then nothing can be deleted either. What was
/// measured until then is told all the same.
TEST_F(Qemu, StoppedInTheMiddle) {
  BenchOptions o = usual();
  o.timeout_s = 1;
  o.late_after_s = 0.9;
  u64 stopped = 0;
  const BenchResult r = disturb(o, SIGSTOP, &stopped);
  // The time-out of the commands, of one register, and of its process's end: not one for each step of its
  // end.
  EXPECT_LT(seconds_since(stopped), 14);
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::timeout);
  EXPECT_GT(r.cell().metrics.ops, 0u);
  EXPECT_GT(r.cell().errors.at("timeout"), 0u);
  EXPECT_EQ(r.cell().errors.at("identity"), 0u);
}

/// Killed while the controller is being set up: an error, and no wait.
TEST_F(Qemu, KilledAtAnyTime) {
  const QemuConfig config = parse_qemu_spec("qemu:capacity=8Mi");
  for (u32 admin = 0; admin < 3; ++admin) {
    auto device = std::make_unique<QemuController>(config, "qemu", nullptr);
    const pid_t pid = device->pid();
    const u64 begin = wall_ns();
    try {
      if (admin == 0) kill(pid, SIGKILL);
      Controller c(std::move(device), {});
      (void)c.identify_namespace(1);
      if (admin == 1) kill(pid, SIGKILL);
      (void)c.request_queues(2);
      IoQueuePair q = c.create_queue_pair(1, 8, Place::pageable, Place::pageable);
      if (admin == 2) kill(pid, SIGKILL);
      while (!c.gone()) std::this_thread::yield();
      EXPECT_EQ(admin, 2u);
    } catch (const Error& e) {
      EXPECT_LT(admin, 2u) << e.what();
      EXPECT_EQ(e.code(), ExitCode::data) << e.what();
    }
    EXPECT_LT(seconds_since(begin), 8) << admin;
    EXPECT_TRUE(children().empty());
  }
}

/// Registers of a device whose process has ended read as all ones, as a card's that was pulled out.
TEST_F(Qemu, RegistersOfADeadDevice) {
  QemuController device(parse_qemu_spec("qemu:capacity=8Mi"), "qemu", nullptr);
  EXPECT_EQ(device.read32(0x08), 0x0001'0400u) << "VS of QEMU 7 to 10";
  kill(device.pid(), SIGKILL);
  for (const u64 begin = wall_ns(); device.read32(0x1c) != ~0u && seconds_since(begin) < 30;)
    std::this_thread::yield();
  EXPECT_EQ(device.read32(0x1c), ~0u);
  EXPECT_EQ(device.read64(0), ~u64{0});
  EXPECT_EQ(*device.cpu_register(0x1c), ~0u);
  device.write32(0x14, 0);
  device.write64(0x28, 0);
  EXPECT_THROW((void)device.cpu_register(16384), Error);
  EXPECT_THROW((void)device.cpu_register(2), Error);
  EXPECT_THROW((void)device.gpu_register(~u64{0} - 3), Error);
}

/// QEMU 7.2 ends by SIGSEGV when a reset finds commands rung and not fetched. Throttled, they are outstanding
/// for long.
TEST_F(Qemu, ResetsRightAfterARing) {
  conformance::Target target;
  target.open = [](bool) {
    return std::make_unique<QemuController>(parse_qemu_spec("qemu:capacity=8Mi,iops=50"), "qemu", nullptr);
  };
  conformance::Rig r(target);
  for (int reset = 0; reset < 200; ++reset) {
    SCOPED_TRACE(reset);
    for (u16 i = 0; i < 40; ++i) {
      Sqe e = r.command(IoOpcode::read, i, 1, r.data.iova());
      e.cid = i;
      r.io->put(e);
    }
    r.io->ring();
    // The forwarder's thread sends it sooner or later than the reset; both must do.
    if (reset % 2 != 0) std::this_thread::sleep_for(std::chrono::microseconds(5 * reset));
    ASSERT_NO_THROW(r.c.disable());
    r.c.enable();
    r.io->start_over();
    ASSERT_EQ(r.c.status(set_queues_command(0, 8, 8)), status::success);
    ASSERT_EQ(r.c.status(create_cq_command(0, 1, 64, r.io->cq_iova())), status::success);
    ASSERT_EQ(r.c.status(create_sq_command(0, 1, 1, 64, r.io->sq_iova())), status::success);
  }
}

TEST_F(Qemu, WhatItRefusesIsReported) {
  for (const std::string& keys : {std::string("binary=/bin/false"), std::string("binary=/nonexistent")}) {
    try {
      (void)run_bench(usual(keys), {});
      ADD_FAILURE() << keys;
    } catch (const Error& e) {
      EXPECT_EQ(e.code() == ExitCode::absent, keys == "binary=/nonexistent") << e.what();
    }
    EXPECT_TRUE(children().empty());
  }
}

}  // namespace
}  // namespace doorbell::nvme
