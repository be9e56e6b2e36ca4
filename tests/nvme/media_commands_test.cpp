// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Commands that change what media keep: deallocation, formatting and writes that must reach the disk, in
// memory and in files.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "file_contents.hpp"
#include "nvme/conformance/raw_controller.hpp"
#include "nvme/model/controller.hpp"

namespace doorbell::nvme {
namespace {

using testing_raw::RawController;
using testing_raw::RawQueue;

constexpr u64 kMiB = u64{1} << 20;
constexpr u32 kBlock = 4096;

class MediaCommands : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "doorbell-commands-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ModelConfig config;
    config.capacity_bytes = 16 * kMiB;
    config.lba_bytes = kBlock;
    config.format = true;
    config.media = in_file() ? ModelConfig::Media::file : ModelConfig::Media::ram;
    config.path = path();
    c_.emplace(std::make_unique<ModelController>(config, "model"));
    c_->enable();
    q_ = c_->create(1, 16, 16);
    data_ = &c_->memory(kBlock);
  }
  void TearDown() override {
    c_.reset();
    std::filesystem::remove_all(folder_);
  }
  [[nodiscard]] static bool in_file() { return GetParam(); }
  [[nodiscard]] std::string path() const { return folder_ + "/media"; }

  u16 run(const Sqe& e) {
    q_->submit(e);
    return status_of(q_->wait()).type_and_code();
  }
  u16 write(u64 lba, u8 value, u32 more = 0) {
    std::memset(data_->region().host(), value, kBlock);
    Sqe e = io_command(IoOpcode::write, 1, 1, lba, 1, data_->iova(), 0);
    e.cdw12 |= more;
    return run(e);
  }
  /// The value of all bytes of a block; -1: they differ.
  int value(u64 lba) {
    std::memset(data_->region().host(), 0xee, kBlock);
    EXPECT_EQ(run(io_command(IoOpcode::read, 1, 1, lba, 1, data_->iova(), 0)), status::success);
    const u8* const p = data_->region().host();
    return std::memcmp(p, p + 1, kBlock - 1) == 0 ? p[0] : -1;
  }
  u16 deallocate(u64 lba, u32 blocks) {
    const u32 head[2] = {0, blocks};
    std::memcpy(data_->region().host(), head, sizeof head);
    std::memcpy(data_->region().host() + 8, &lba, sizeof lba);
    Sqe e;
    e.opcode = static_cast<u8>(IoOpcode::dataset_management);
    e.cid = 1;
    e.nsid = 1;
    e.prp1 = data_->iova();
    e.cdw11 = 4;
    return run(e);
  }
  u16 admin(AdminOpcode op, u32 cdw10, u32 cdw11 = 0) {
    Sqe e = admin_command(op, 0);
    e.nsid = op == AdminOpcode::format_nvm ? 1 : 0;
    e.cdw10 = cdw10;
    e.cdw11 = cdw11;
    return c_->status(e);
  }
  [[nodiscard]] u64 bytes_on_disk() const {
    struct stat st {};
    EXPECT_EQ(stat(path().c_str(), &st), 0);
    return static_cast<u64>(st.st_blocks) * 512;
  }

  std::string folder_;
  std::optional<RawController> c_;
  RawQueue* q_ = nullptr;
  Mapped* data_ = nullptr;
};

/// Of every size, over the borders of the parts in which files get their space; the neighbours stay.
TEST_P(MediaCommands, WhatIsDeallocatedReadsAsZeros) {
  constexpr u64 kBlocks = 16 * kMiB / kBlock;
  const std::pair<u64, u32> ranges[] = {{3, 1},
                                        {510, 4},
                                        {1000, 700},
                                        {512, 512},
                                        {600, 30},
                                        {1, 1024},
                                        {511, 2000},
                                        {kBlocks - 1, 1},
                                        {2048, 1},
                                        {1023, 514},
                                        {0, static_cast<u32>(kBlocks)}};
  for (const auto& [lba, blocks] : ranges) {
    SCOPED_TRACE(testing::Message() << lba << ' ' << blocks);
    const u64 end = lba + blocks;
    const u64 looked_at[] = {0,       lba == 0 ? 0 : lba - 1,    lba, (lba + end) / 2,
                             end - 1, std::min(end, kBlocks - 1)};
    for (const u64 at : looked_at) ASSERT_EQ(write(at, 0x42), status::success);
    ASSERT_EQ(deallocate(lba, blocks), status::success);
    for (const u64 at : looked_at) EXPECT_EQ(value(at), at >= lba && at < end ? 0 : 0x42) << at;
    // Space comes back with the next write.
    ASSERT_EQ(write((lba + end) / 2, 0x43), status::success);
    EXPECT_EQ(value((lba + end) / 2), 0x43);
  }
}

TEST_P(MediaCommands, DeallocationBeforeTheFirstWrite) {
  EXPECT_EQ(deallocate(5, 1000), status::success);
  EXPECT_EQ(value(5), 0);
  EXPECT_EQ(std::filesystem::exists(path()), false) << "it needs no file";
}

TEST_P(MediaCommands, AFileGivesItsSpaceBack) {
  if (!in_file()) GTEST_SKIP() << "of files";
  for (u64 lba = 0; lba < 2048; lba += 512) ASSERT_EQ(write(lba, 0x42), status::success);
  const u64 before = bytes_on_disk();
  EXPECT_GE(before, 8 * kMiB);
  ASSERT_EQ(deallocate(512, 1024), status::success);
  EXPECT_LE(bytes_on_disk(), before - 4 * kMiB);
  EXPECT_EQ(value(0), 0x42);
  EXPECT_EQ(value(1536), 0x42);
}

TEST_P(MediaCommands, FormatAndSanitizeLeaveNothing) {
  const u64 places[] = {0, 511, 512, 2000, 4095};
  for (const bool sanitize : {false, true}) {
    for (const u64 lba : places) ASSERT_EQ(write(lba, 0x42), status::success);
    ASSERT_EQ(sanitize ? admin(AdminOpcode::sanitize, 2) : admin(AdminOpcode::format_nvm, 0),
              status::success);
    for (const u64 lba : places) EXPECT_EQ(value(lba), 0) << lba;
    if (in_file()) {
      EXPECT_EQ(test::contents(path()).find('\x42'), std::string::npos);
    }
    ASSERT_EQ(write(512, 0x43), status::success);
    EXPECT_EQ(value(512), 0x43);
  }
}

/// Only media in files have a cache that a host may turn off.
TEST_P(MediaCommands, TheWriteCache) {
  constexpr u32 kFeature = 6;
  ASSERT_EQ(c_->status(identify_command(0, Cns::controller, 0, data_->iova())), status::success);
  EXPECT_EQ(data_->region().host()[identify::vwc] & 1, in_file() ? 1 : 0);
  EXPECT_EQ(admin(AdminOpcode::get_features, kFeature), in_file() ? status::success : status::invalid_field);
  EXPECT_EQ(admin(AdminOpcode::set_features, kFeature, 0),
            in_file() ? status::success : status::invalid_field);
  for (const u32 force : {0u, kForceUnitAccess}) {
    ASSERT_EQ(write(7, 0x42, force), status::success);
    EXPECT_EQ(value(7), 0x42);
    ASSERT_EQ(run(io_command(IoOpcode::write_zeroes, 1, 1, 7, 1, 0, 0)), status::success);
    EXPECT_EQ(value(7), 0);
  }
  EXPECT_EQ(run(flush_command(1, 1)), status::success);
}

INSTANTIATE_TEST_SUITE_P(Kept, MediaCommands, testing::Bool(),
                         [](const auto& p) { return p.param ? "InAFile" : "InMemory"; });

}  // namespace
}  // namespace doorbell::nvme
