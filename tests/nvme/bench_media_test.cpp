// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// `doorbell nvme` with media in a file that still exists after the controller is gone.

#include <doorbell/error.hpp>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "bench_rig.hpp"
#include "eventually.hpp"
#include "file_contents.hpp"
#include "nvme/run_into.hpp"

namespace doorbell::nvme {
namespace {

using namespace bench_rig;

class MediaFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "doorbell-media-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/media";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  BenchOptions options(u64 writes, u64 reads) const {
    BenchOptions o = usual();
    o.controller = "model:capacity=8Mi,media=file:" + path_;
    o.write_io = writes;
    o.read_io = reads;
    o.num_queues = 2;
    o.batch = 4;
    return o;
  }
  [[nodiscard]] std::string contents() const { return test::contents(path_); }
  std::string folder_, path_;
};

TEST_F(MediaFile, SurvivesARestart) {
  BenchOptions o = options(600, 0);
  EXPECT_FALSE(run_bench(o, {}).failed);
  o = options(0, 600);
  o.seed = o.lfsr_seed = 99;  // what was written says who it is: the reader needs no seed
  expect_clean(run_bench(o, {}), 600);
  o.read_io = 0;
  o.write_io = 600;
  EXPECT_FALSE(run_bench(o, {}).failed);
  o.write_io = 0;
  o.read_io = 600;
  o.num_queues = 1;
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell().verify.checked, 600u);
}

TEST_F(MediaFile, TruncatedInMidRunIsAMediaError) {
  for (const bool writes : {true, false}) {
    ASSERT_FALSE(run_bench(options(16384, 0), {}).failed);  // all of it: no byte needs space any more
    BenchOptions o = options(writes ? 1000 : 0, writes ? 0 : 1000);
    o.duration_s = test::kWaitLimitS;
    const BenchResult r = run_into(
        o, [&](auto&) { std::filesystem::resize_file(path_, 4096); }, true);
    EXPECT_TRUE(r.failed);
    EXPECT_EQ(r.stop_reason, StopReason::requested) << "it found no error";
    EXPECT_GT(errors(r, "completion"), 0u);
    const auto& model = r.cell().extra.at("model");
    ASSERT_TRUE(model.contains("media_refuses_writes"));
    EXPECT_NE(model.at("media_refuses_writes").get<std::string>().find("truncated"), std::string::npos);
  }
}

TEST_F(MediaFile, DamageBetweenRunsIsFound) {
  EXPECT_FALSE(run_bench(options(100, 0), {}).failed);
  const std::string before = contents();
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(7 * 512 + 100);
    // The pattern has the time in it, so any byte may be there already.
    file.put(static_cast<char>(before[7 * 512 + 100] ^ 1));
    file.seekp(3 * 512);
    file.write(before.data() + 9 * 512, 512);  // block 3 holds what belongs to block 9
  }
  BenchOptions o = options(0, 100);
  o.num_queues = 1;
  const BenchResult r = run_bench(o, {});
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.cell().verify.corrupt, 1u);
  EXPECT_EQ(r.cell().verify.misplaced, 1u);
  EXPECT_EQ(r.cell().verify.checked, 100u);
}

/// The tail of the range too, where queues do not divide it: in both orders, by count and by duration.
TEST_F(MediaFile, NoPositionIsLeftOut) {
  const auto shape = [&](u64 writes, u64 reads, u32 queues, bool random) {
    BenchOptions o = options(writes, reads);
    o.controller = "model:capacity=1Mi,media=file:" + path_;
    o.num_queues = queues;
    o.random = random;
    return o;
  };
  ASSERT_FALSE(run_bench(shape(2048, 0, 1, false), {}).failed);
  for (const u64 block : {2046, 2047}) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(block) * 512 + 100);
    file.put(static_cast<char>(contents()[block * 512 + 100] ^ 1));
  }
  for (const u32 queues : {1, 2, 3, 5, 7})
    for (const bool random : {false, true}) {
      SCOPED_TRACE(testing::Message() << queues << " queues, " << (random ? "random" : "sequential"));
      const BenchResult r = run_bench(shape(0, 2048, queues, random), {});
      EXPECT_EQ(r.cell().verify.checked, 2048u);
      EXPECT_EQ(r.cell().verify.corrupt, 2u);
    }
  for (const bool random : {false, true}) {
    BenchOptions o = shape(0, 1, 3, random);
    o.duration_s = test::kWaitLimitS;
    measure::StopFlag stop;
    measure::LiveBoard live(true);
    const auto watch = [&](double, const std::string&) {
      if (live.figures().counters.corrupt > 1) (void)stop.request(SIGINT);
    };
    EXPECT_EQ(run_bench(o, {.stop = &stop, .progress = watch, .live = &live}).stop_reason,
              StopReason::requested);
  }
}

TEST_F(MediaFile, WhoWroteWhatIsThereInsteadIsNamed) {
  BenchOptions o = options(100, 0);
  o.lfsr_seed = 77;
  EXPECT_FALSE(run_bench(o, {}).failed);
  o = options(100, 100);
  o.lfsr_seed = 78;
  o.faults.probability[static_cast<u32>(model::Fault::stale)] = 1;
  const BenchResult r = run_bench(o, {});
  EXPECT_TRUE(r.failed);
  bool named = false;
  for (const std::string& w : r.warnings) named = named || w.find("seed 77") != std::string::npos;
  EXPECT_TRUE(named);
}

TEST_F(MediaFile, IsUntouchedByARefusedRun) {
  {
    std::string bytes(8u << 20, '\0');
    for (u32 i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31);
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  const std::string before = contents();
  const auto refused = [&](auto change) {
    BenchOptions o = options(100, 100);
    change(o);
    EXPECT_THROW((void)run_bench(o, {}), Error);
    EXPECT_TRUE(contents() == before) << "a refused run changed the file";
  };
  refused([](auto& o) { o.queue_length = 5000; });
  refused([](auto& o) { o.lbas_per_io = 60000; });
  refused([](auto& o) { o.base_lba = 1u << 20; });
  refused([](auto& o) { o.controller += ",queues=1"; });
  refused([](auto& o) { o.nsid = 7; });
  refused([](auto& o) { o.controller += ",lba=1000"; });
}

TEST_F(MediaFile, ALargerFileKeepsWhatLiesBehind) {
  {
    std::ofstream file(path_, std::ios::binary);
    file << std::string(8u << 20, 'a') << "the tail";
  }
  BenchOptions o = options(16384, 100);
  EXPECT_THROW((void)run_bench(o, {}), Error);  // somebody else's blocks
  EXPECT_EQ(contents().substr(0, 8u << 20), std::string(8u << 20, 'a'));
  o.allow_write = true;
  EXPECT_FALSE(run_bench(o, {}).failed);
  EXPECT_EQ(contents().substr(8u << 20), "the tail");
}

TEST(Bench, AMediaFileThatCannotBe) {
  BenchOptions o = usual();
  o.controller = "model:media=file:/dev/null";
  EXPECT_THROW((void)run_bench(o, {}), Error);
  o.controller = "model:media=file:/nonexistent/folder/file";
  EXPECT_THROW((void)run_bench(o, {}), Error);
  o.controller = "model:media=file:/tmp";
  EXPECT_THROW((void)run_bench(o, {}), Error);
}

}  // namespace
}  // namespace doorbell::nvme
