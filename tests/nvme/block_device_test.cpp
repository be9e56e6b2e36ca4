// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <doorbell/nvme/block_device.hpp>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "errors.hpp"
#include "nvme/linux/scratch.hpp"

namespace doorbell::nvme {
namespace {

std::vector<u8> numbered(u64 bytes, u32 seed) {
  std::vector<u8> data(bytes);
  for (u64 i = 0; i < bytes; ++i) data[i] = static_cast<u8>(i * 31 + i / 512 * 7 + seed);
  return data;
}

TEST(BlockDevice, ReadsWhatItWrote) {
  for (const u64 io_bytes : {u64{0}, u64{512}, u64{1024}, u64{1} << 20}) {
    const auto disk = BlockDevice::open("model:capacity=32Mi", {.in_flight = 7, .io_bytes = io_bytes});
    EXPECT_EQ(disk->blocks(), 65536U);
    EXPECT_EQ(disk->block_bytes(), 512U);
    const std::vector<u8> data = numbered(3001 * 512, 1);
    BlockMemory memory = disk->allocate(data.size() + 4);
    std::memcpy(memory.host() + 4, data.data(), data.size());
    disk->write(5, 3001, memory, 4);
    std::memset(memory.host(), 0, memory.bytes());
    disk->read(5, 3001, memory, 0);
    EXPECT_EQ(std::memcmp(memory.host(), data.data(), data.size()), 0) << io_bytes;
    // A part, to memory that the device does not know.
    std::vector<u8> part(1000 * 512);
    disk->read(1005, 1000, part.data());
    EXPECT_EQ(std::memcmp(part.data(), data.data() + 1000 * 512, part.size()), 0) << io_bytes;
    disk->flush();
    disk->read(0, 0, memory);
  }
}

TEST(BlockDevice, MoreThanTheMemoryInBetweenHolds) {
  const auto disk = BlockDevice::open("model:capacity=32Mi");
  const std::vector<u8> data = numbered(u64{20} << 20, 2);
  disk->write(100, data.size() / 512, data.data());
  std::vector<u8> back(data.size());
  disk->read(100, back.size() / 512, back.data());
  EXPECT_EQ(back, data);
}

/// From 64 MiB on the model's stores go past the cache; they are there when the completion is.
TEST(BlockDevice, MemoryThatIsLargerThanTheCache) {
  const auto disk = BlockDevice::open("model:capacity=68Mi", {.io_bytes = u64{128} << 10});
  const std::vector<u8> data = numbered((u64{64} << 20) + 1024, 3);
  BlockMemory memory = disk->allocate(data.size() + 512);
  for (const u64 offset : {u64{0}, u64{4}, u64{508}}) {
    std::memcpy(memory.host() + offset, data.data(), data.size());
    disk->write(3, data.size() / 512, memory, offset);
    std::memset(memory.host(), 0xee, memory.bytes());
    disk->read(3, data.size() / 512, memory, offset);
    EXPECT_EQ(std::memcmp(memory.host() + offset, data.data(), data.size()), 0) << offset;
    EXPECT_EQ(std::count(memory.host(), memory.host() + offset, 0xee), static_cast<i64>(offset));
  }
}

TEST(BlockDevice, RefusesWhatIsNotThere) {
  const auto disk = BlockDevice::open("model:capacity=1Mi");
  BlockMemory memory = disk->allocate(4096);
  u8 byte = 0;
  test::expect_says(test::error_of([&] { disk->read(2048, 1, memory); }), "the namespace has 2048 blocks");
  test::expect_says(test::error_of([&] { disk->read(~u64{0}, 2, memory); }), "the namespace has 2048 blocks");
  test::expect_says(test::error_of([&] { disk->read(0, ~u64{0}, &byte); }), "the namespace has 2048 blocks");
  test::expect_says(test::error_of([&] { disk->write(0, 9, memory); }), "room for 8 blocks");
  test::expect_says(test::error_of([&] { disk->read(0, 8, memory, 4); }), "room for 7 blocks");
  test::expect_says(test::error_of([&] { disk->read(0, 1, memory, ~u64{0}); }), "room for 0 blocks");
  test::expect_says(test::error_of([&] { disk->read(0, 1, memory, 2); }), "not aligned to 4 bytes");
  test::expect_says(test::error_of([&] { (void)disk->allocate(4096, Place::gpu); }), "opened without a GPU");
  disk->read(2047, 1, memory);
  test::expect_says(test::error_of([] { (void)BlockDevice::open("model", {.in_flight = 0}); }),
                    "0 is not in 1..");
  test::expect_says(test::error_of([] { (void)BlockDevice::open("model", {.io_bytes = 700}); }),
                    "multiples of 512");
  test::expect_says(test::error_of([] { (void)BlockDevice::open("file:/tmp/x"); }), "through the kernel");
  test::expect_says(test::error_of([] { (void)BlockDevice::open("no such"); }),
                    "no back end knows this name");
}

TEST(BlockDevice, ForeignDataTakesPermission) {
  const test::Scratch folder;
  const std::string media = folder.path("media");
  std::ofstream(media) << std::string(64 << 10, 'x');
  const std::string spec = "model:media=file:" + media;
  u8 block[512] = {};
  {
    const auto disk = BlockDevice::open(spec);
    test::expect_says(test::error_of([&] { disk->write(0, 1, block); }), "doorbell did not write");
    disk->read(0, 1, block);
    EXPECT_EQ(block[17], 'x');
  }
  const auto disk = BlockDevice::open(spec, {.allow_write = true});
  std::memset(block, 'y', sizeof block);
  disk->write(1, 1, block);
  std::memset(block, 0, sizeof block);
  disk->read(1, 1, block);
  EXPECT_EQ(block[511], 'y');
}

TEST(BlockDevice, AnErrorNamesTheBlockAndTheStatus) {
  const test::Scratch folder;
  const std::string media = folder.path("media");
  std::ofstream(media) << std::string(64 << 10, '\0');
  const auto disk = BlockDevice::open("model:media=file:" + media, {.io_bytes = 4096});
  ASSERT_EQ(truncate(media.c_str(), 32 << 10), 0);
  std::vector<u8> data(64 << 10);
  const std::string why = test::error_of([&] { disk->read(0, 128, data.data()); }, ExitCode::data);
  test::expect_says(why, "read of 128 blocks at 0: at block 64: NVMe status");
}

}  // namespace
}  // namespace doorbell::nvme
