// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// `--controller file:PATH` end to end: what is written is read back, what cannot be is refused and leaves
// the file as it was, and no trouble of the file's makes a run hang.

#include <doorbell/error.hpp>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "file_contents.hpp"
#include "nvme/clean.hpp"
#include "nvme/linux/file.hpp"
#include "nvme/run_into.hpp"
#include "options/setting.hpp"
#include "scratch.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {
namespace {

constexpr u64 kMiB = 1 << 20;

class File : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_uring()) GTEST_SKIP() << "no io_uring here";
  }
  /// By io_uring, past the page cache where that can be.
  [[nodiscard]] BenchOptions usual(const std::string& path) const {
    BenchOptions o;
    Setting::name_by_options();
    o.file = path;
    o.controller = "file:" + path;
    o.file_options.direct = scratch_.direct();
    o.write_io = o.read_io = 100;
    o.timeout_s = 60;
    o.late_after_s = 50;
    return o;
  }
  static void sync(BenchOptions& o) {
    o.file_options.sync = true;
    o.batch = 1;
    o.in_flight = 0;
  }
  static std::string name_of(const BenchOptions& o) {
    const FileOptions& f = o.file_options;
    return std::string(f.sync ? "sync" : "io_uring") + (f.direct ? " direct" : "") +
           (f.fixed_buffers ? " buffers" : "") + (f.fixed_files ? " files" : "") +
           (f.sqpoll ? " sqpoll" : "") + " blocks " + std::to_string(o.lbas_per_io) + " queues " +
           std::to_string(o.num_queues) + " batch " + std::to_string(o.batch) + " in flight " +
           std::to_string(o.in_flight) + (o.random ? " random" : "");
  }
  static void expect_clean(const BenchOptions& o) {
    SCOPED_TRACE(name_of(o));
    const BenchResult r = run_bench(o, {});
    expect_nothing_wrong(r, o.read_io);
    expect_all_done(r, o);
    EXPECT_EQ(r.cell().device_kind, "kernel");
    EXPECT_EQ(r.cell().device_name, o.controller);
  }
  static Error refusal(const BenchOptions& o) {
    try {
      (void)run_bench(o, {});
    } catch (const Error& e) {
      return e;
    }
    ADD_FAILURE() << o.controller << " was taken";
    return {"", ""};
  }
  static bool says(const Error& e, const std::string& words) {
    return (std::string(e.what()) + e.hint()).find(words) != std::string::npos;
  }
  static u64 statuses(const BenchResult& r, const std::string& name) {
    return r.cell().extra.at("nvme").at("completion_statuses").value(name, u64{0});
  }
  static std::string foreign(std::size_t bytes) {
    std::string text(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 + i / 256 + 1);
    return text;
  }
  void put(const std::string& path, const std::string& text) const {
    std::ofstream(path, std::ios::binary) << text;
  }

  test::Scratch scratch_;
};

// --- data -------------------------------------------------------------------------------------------

TEST_F(File, Sizes) {
  BenchOptions o = usual(scratch_.file("data", 32 * kMiB));
  for (const u32 blocks : {1u, 2u, 7u, 8u, 9u, 128u, 1024u, 2048u}) {
    o.lbas_per_io = blocks;
    o.batch = 4;
    o.write_io = o.read_io = 20;
    expect_clean(o);
    BenchOptions s = o;
    sync(s);
    expect_clean(s);
  }
}

TEST_F(File, QueuesAndBatches) {
  BenchOptions o = usual(scratch_.file("data", 8 * kMiB));
  for (const u32 queues : {1u, 3u, 8u})
    for (const u32 batch : {1u, 2u, 64u}) {
      o.num_queues = queues;
      o.batch = batch;
      o.in_flight = batch == 64 ? 64 : 0;
      o.random = batch == 2;
      o.write_io = o.read_io = 300;
      expect_clean(o);
    }
  sync(o);
  o.random = true;
  expect_clean(o);
}

TEST_F(File, EveryWayToAsk) {
  BenchOptions o = usual(scratch_.file("data", 8 * kMiB));
  o.batch = 8;
  o.num_queues = 2;
  for (u32 shape = 0; shape < 16; ++shape) {
    FileOptions& f = o.file_options;
    f.fixed_buffers = (shape & 1) != 0;
    f.fixed_files = (shape & 2) != 0;
    f.sqpoll = (shape & 4) != 0;
    f.direct = (shape & 8) != 0 && scratch_.direct();
    expect_clean(o);
  }
  sync(o);
  for (const bool direct : {false, true}) {
    o.file_options.direct = direct && scratch_.direct();
    expect_clean(o);
  }
}

TEST_F(File, SeveralPassesOverASmallFile) {
  BenchOptions o = usual(scratch_.file("data", 64 * 1024));
  o.write_io = o.read_io = 1000;
  o.num_queues = 3;
  o.batch = 8;
  expect_clean(o);
  o.random = true;
  o.repeats = 3;
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell().verify.checked, 3000u);
  EXPECT_EQ(r.cell().repeats.size(), 3u);
}

TEST_F(File, ByDuration) {
  BenchOptions o = usual(scratch_.file("data", 4 * kMiB));
  o.duration_s = 0.1;
  o.warmup_s = 0.05;
  o.repeats = 2;
  for (const bool by_sync : {false, true}) {
    o.batch = 4;
    if (by_sync) sync(o);
    const BenchResult r = run_bench(o, {});
    EXPECT_FALSE(r.failed);
    EXPECT_EQ(r.stop_reason, StopReason::done);
    EXPECT_EQ(r.cell().repeats.size(), 2u);
    EXPECT_GT(r.cell().verify.checked, 0u);
  }
}

TEST_F(File, TimingVariants) {
  BenchOptions o = usual(scratch_.file("data", 4 * kMiB));
  o.less_timing = true;
  BenchResult r = run_bench(o, {});
  EXPECT_EQ(r.cell().metrics.ops, 200u);
  EXPECT_EQ(r.cell().metrics.latency_ns.count, 0u);
  o.less_timing = false;
  o.substeps = true;
  r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_TRUE(r.cell().substeps_ns.build && r.cell().substeps_ns.sq_doorbell && r.cell().substeps_ns.cq_poll);
}

/// A file on tmpfs.
TEST_F(File, InMemory) {
  const int fd = memfd_create("data", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 4 * kMiB), 0);
  BenchOptions o = usual("/proc/self/fd/" + std::to_string(fd));
  o.file_options.direct = false;
  o.batch = 4;
  expect_clean(o);
  sync(o);
  expect_clean(o);
  close(fd);
}

TEST_F(File, SurvivesARestartAndDamageIsFound) {
  const std::string path = scratch_.file("data", kMiB);
  BenchOptions o = usual(path);
  o.read_io = 0;
  EXPECT_FALSE(run_bench(o, {}).failed);
  o.write_io = 0;
  o.read_io = 100;
  o.lfsr_seed = 77;
  const std::string before = test::contents(path);
  EXPECT_EQ(run_bench(o, {}).cell().verify.checked, 100u);
  EXPECT_TRUE(test::contents(path) == before) << "reading changed it";
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(50 * 512 + 99);
    file.put(static_cast<char>(before[50 * 512 + 99] ^ 1));
    file.seekp(60 * 512);
    file.write(before.data() + 61 * 512, 512);
  }
  for (const bool by_sync : {false, true}) {
    if (by_sync) sync(o);
    const BenchResult r = run_bench(o, {});
    EXPECT_TRUE(r.failed);
    EXPECT_EQ(r.cell().verify.corrupt, 1u);
    EXPECT_EQ(r.cell().verify.misplaced, 1u);
    EXPECT_EQ(r.cell().verify.checked, 100u);
  }
}

/// Only whole blocks are touched, and only those that were asked for.
TEST_F(File, WhatLiesOutsideIsKept) {
  const std::string path = scratch_.path("data");
  put(path, foreign(kMiB + 300));
  const std::string before = test::contents(path);
  BenchOptions o = usual(path);
  o.allow_write = true;
  o.base_lba = 8;
  o.write_io = o.read_io = 2040;
  o.batch = 8;
  expect_clean(o);
  const std::string after = test::contents(path);
  ASSERT_EQ(after.size(), before.size());
  EXPECT_TRUE(after.substr(0, 4096) == before.substr(0, 4096));
  EXPECT_TRUE(after.substr(kMiB) == before.substr(kMiB));
  EXPECT_FALSE(after.substr(4096, 512) == before.substr(4096, 512));
  o.base_lba = 2048;
  EXPECT_TRUE(says(refusal(o), "--base-lba"));
}

// --- files that cannot be, or must not be written -----------------------------------------------------

TEST_F(File, WhatIsNoFile) {
  ASSERT_EQ(mkfifo(scratch_.path("pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(scratch_.path("folder"));
  for (const std::string& path :
       {scratch_.path("pipe"), scratch_.path("folder"), std::string("/dev/null"), std::string("/dev/zero")}) {
    const Error e = refusal(usual(path));
    EXPECT_TRUE(says(e, "neither a file nor a block device")) << e.what();
    EXPECT_TRUE(says(e, path)) << e.what();
    EXPECT_EQ(e.code(), ExitCode::usage);
  }
}

TEST_F(File, MissingEmptyOrShort) {
  Error e = refusal(usual(scratch_.path("missing")));
  EXPECT_TRUE(says(e, "No such file")) << e.what();
  EXPECT_TRUE(says(e, "--file-size")) << e.hint();
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("missing")));

  BenchOptions o = usual(scratch_.path("no-such-folder/missing"));
  o.file_options.create_bytes = kMiB;
  e = refusal(o);
  EXPECT_TRUE(says(e, "No such file")) << e.what();
  EXPECT_EQ(e.hint().find("--file-size"), std::string::npos) << "it was given";

  e = refusal(usual(scratch_.file("empty", 0)));
  EXPECT_TRUE(says(e, "it is empty")) << e.what();

  put(scratch_.path("short"), "abc");
  o = usual(scratch_.path("short"));
  o.allow_write = true;
  e = refusal(o);
  EXPECT_TRUE(says(e, "less than a block")) << e.what();
  EXPECT_EQ(test::contents(scratch_.path("short")), "abc");

  o = usual(scratch_.file("two-blocks", 1024 + 511));
  o.lbas_per_io = 3;
  EXPECT_TRUE(says(refusal(o), "--num-queues"));
  o.lbas_per_io = 2;
  expect_clean(o);
  EXPECT_EQ(std::filesystem::file_size(o.file), 1024u + 511);
}

TEST_F(File, IsMadeWhenAsked) {
  BenchOptions o = usual(scratch_.path("new"));
  o.file_options.create_bytes = 2 * kMiB;
  expect_clean(o);
  EXPECT_EQ(std::filesystem::file_size(o.file), 2 * kMiB);
  o.file_options.create_bytes = 4 * kMiB;  // it is there: it stays as it is
  expect_clean(o);
  EXPECT_EQ(std::filesystem::file_size(o.file), 2 * kMiB);
  // Neither count given: the file is doorbell's own, so it writes.
  o = usual(scratch_.path("newer"));
  o.file_options.create_bytes = 2 * kMiB;
  o.default_counts = true;
  expect_clean(o);
  // To be read only.
  o = usual(scratch_.path("newest"));
  o.file_options.create_bytes = 2 * kMiB;
  o.write_io = 0;
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell().verify.unverifiable, 100u);
}

TEST_F(File, ARefusedRunMakesNoFile) {
  const auto refused = [&](auto change) {
    BenchOptions o = usual(scratch_.path("new"));
    o.file_options.create_bytes = 2 * kMiB;
    change(o);
    (void)refusal(o);
    EXPECT_FALSE(std::filesystem::exists(o.file)) << name_of(o);
    std::filesystem::remove(o.file);
  };
  refused([](auto& o) { o.queue_length = 1; });
  refused([](auto& o) { o.base_lba = 1u << 20; });
  refused([](auto& o) { o.lbas_per_io = 65536; });
  refused([](auto& o) { o.in_flight = 5000; });
  refused([](auto& o) { o.file_options.sync = true, o.batch = 4; });
  refused([](auto& o) { o.file_options.sync = true, o.in_flight = 4; });
  refused([](auto& o) { o.initiator = Initiator::gpu; });
  refused([](auto& o) { o.file_options.create_bytes = u64{1} << 62; });
}

TEST_F(File, OfSomebodyElseTakesPermission) {
  const std::string path = scratch_.path("precious");
  put(path, foreign(kMiB));
  const std::string before = test::contents(path);
  BenchOptions o = usual(path);
  for (const bool by_sync : {false, true}) {
    if (by_sync) sync(o);
    const Error e = refusal(o);
    EXPECT_TRUE(says(e, "--write-io")) << e.what();
    EXPECT_TRUE(says(e, "--allow-write")) << e.hint();
    EXPECT_TRUE(test::contents(path) == before);
    // Neither count given: it reads, and says why it does no more.
    o.default_counts = true;
    const BenchResult r = run_bench(o, {});
    EXPECT_FALSE(r.failed);
    EXPECT_EQ(r.cell().verify.unverifiable, 100u);
    EXPECT_EQ(r.cell().metrics.ops, 100u);
    ASSERT_FALSE(r.warnings.empty());
    EXPECT_NE(r.warnings[0].find("--allow-write"), std::string::npos);
    EXPECT_TRUE(test::contents(path) == before);
    o.default_counts = false;
  }
  o.allow_write = true;
  expect_clean(o);
}

/// An ext4 image begins with 1024 zeros, a btrfs with 64 KiB of them: neither is empty.
TEST_F(File, OfSomebodyElseThatBeginsWithZeros) {
  const std::string path = scratch_.file("precious", 4 * kMiB);
  BenchOptions o = usual(path);
  for (const std::size_t at : {std::size_t{512}, std::size_t{1080}, std::size_t{4086}, std::size_t{65600}}) {
    std::filesystem::resize_file(path, 0);
    std::filesystem::resize_file(path, 4 * kMiB);
    {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(at));
      file << "precious";
    }
    const std::string before = test::contents(path);
    o.default_counts = true;
    EXPECT_EQ(run_bench(o, {}).cell().metrics.ops, 100u) << "only reads, " << at;
    o.default_counts = false;
    EXPECT_TRUE(says(refusal(o), "--allow-write")) << at;
    EXPECT_TRUE(test::contents(path) == before) << at;
  }
}

TEST_F(File, ReadOnly) {
  const std::string path = scratch_.file("data", kMiB);
  BenchOptions o = usual(path);
  expect_clean(o);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  o.write_io = 0;
  expect_clean(o);
  if (geteuid() != 0) {  // to root it is no obstacle
    o.write_io = 10;
    const Error e = refusal(o);
    EXPECT_TRUE(says(e, "Permission denied")) << e.what();
    EXPECT_TRUE(says(e, "--read-io")) << e.hint();
  }
  close(fd);
  // A running program's file cannot be opened for writing by anybody.
  o = usual(std::filesystem::read_symlink("/proc/self/exe").string());
  o.file_options.direct = false;
  o.allow_write = true;
  EXPECT_TRUE(says(refusal(o), "Text file busy"));
  o.write_io = 0;
  EXPECT_FALSE(run_bench(o, {}).failed);
}

/// Polled completions work or are refused with advice: both depend on the disk.
TEST_F(File, Iopoll) {
  if (!scratch_.direct()) GTEST_SKIP() << "no direct I/O here";
  BenchOptions o = usual(scratch_.file("data", kMiB));
  o.file_options.iopoll = true;
  for (const bool sqpoll : {false, true}) {
    o.file_options.sqpoll = sqpoll;
    const u64 begin = wall_ns();
    try {
      const BenchResult r = run_bench(o, {});
      EXPECT_FALSE(r.failed);
      EXPECT_EQ(r.cell().verify.checked, 100u);
    } catch (const Error& e) {
      EXPECT_TRUE(says(e, "--iopoll")) << e.what();
      EXPECT_EQ(e.code(), ExitCode::usage);
    }
    EXPECT_LT(wall_ns() - begin, 60'000'000'000u);
  }
}

// --- trouble on the way -------------------------------------------------------------------------------

TEST_F(File, AStopLeavesAPartialResult) {
  BenchOptions o = usual(scratch_.file("data", 4 * kMiB));
  o.infinite = true;
  o.num_queues = 2;
  for (const bool by_sync : {false, true}) {
    o.batch = 4;
    if (by_sync) sync(o);
    const u64 begin = wall_ns();
    const BenchResult r = run_into(o, stop_it);
    EXPECT_LT(wall_ns() - begin, 60'000'000'000u);
    EXPECT_FALSE(r.failed);
    EXPECT_EQ(r.stop_reason, StopReason::requested);
    EXPECT_GT(r.cell().metrics.ops, 0u);
    for (const auto& [kind, n] : r.cell().errors) EXPECT_EQ(n, 0u) << kind;
  }
}

/// Somebody cuts the file short while it is read: short transfers, each counted, and an end.
TEST_F(File, TruncatedDuringTheRun) {
  const std::string path = scratch_.file("data", 4 * kMiB);
  for (const bool by_sync : {false, true}) {
    std::filesystem::resize_file(path, 4 * kMiB);
    BenchOptions o = usual(path);
    o.write_io = 0;
    o.read_io = 1;
    o.duration_s = 60;  // the end comes from below
    o.batch = 8;
    if (by_sync) sync(o);
    const BenchResult r = run_into(
        o, [&](auto&) { std::filesystem::resize_file(path, kMiB + 100); }, true);
    EXPECT_TRUE(r.failed);
    EXPECT_EQ(r.stop_reason, StopReason::requested);
    EXPECT_GT(r.cell().errors.at("completion"), 0u);
    EXPECT_EQ(statuses(r, "short transfer"), r.cell().errors.at("completion"));
    EXPECT_EQ(r.cell().verify.failed(), 0u) << "what did not come is not checked";
    for (const char* other : {"timeout", "aborted", "identity", "protocol"})
      EXPECT_EQ(r.cell().errors.at(other), 0u) << other;
  }
}

/// Writes begin to fail half way: a memory file that is sealed.
TEST_F(File, WritesThatFail) {
  for (const bool by_sync : {false, true}) {
    const int fd = memfd_create("data", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(ftruncate(fd, 4 * kMiB), 0);
    BenchOptions o = usual("/proc/self/fd/" + std::to_string(fd));
    o.file_options.direct = false;
    o.read_io = 0;
    o.write_io = 8192;
    o.duration_s = 60;
    o.batch = 8;
    if (by_sync) sync(o);
    const BenchResult r = run_into(
        o, [&](auto&) { EXPECT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0); }, true);
    EXPECT_TRUE(r.failed);
    EXPECT_GT(r.cell().metrics.ops, 0u);
    EXPECT_GT(r.cell().errors.at("completion"), 0u);
    EXPECT_EQ(statuses(r, "Operation not permitted"), r.cell().errors.at("completion"));
    EXPECT_EQ(r.cell().errors.at("identity"), 0u);
    close(fd);
  }
}

}  // namespace
}  // namespace doorbell::nvme
