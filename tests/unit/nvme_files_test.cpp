// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Who wrote a file, which parts doorbell is known to have written, and a model's media in a file.
#include <doorbell/error.hpp>
#include <doorbell/pattern.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "nvme/foreign_data.hpp"
#include "nvme/model/media.hpp"
#include "nvme/written_mark.hpp"
#include "system/descriptor.hpp"
#include "system/open_file.hpp"

namespace doorbell::nvme {
namespace {

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "doorbell-files-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/file";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void make(u64 bytes) const {
    const Descriptor fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    ASSERT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  }
  void put(u64 at, const std::string& bytes) const {
    const Descriptor fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_EQ(pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] bool foreign() const {
    const Descriptor fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    return holds_foreign_data(fd.get());
  }
  [[nodiscard]] bool nothing() const {
    const Descriptor fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    return holds_nothing(fd.get());
  }
  [[nodiscard]] u64 size() const { return std::filesystem::file_size(path_); }
  static std::string unit(u64 address) {
    std::array<u32, pattern::kUnitWords> words{};
    pattern::make_unit(words.data(), {7, address, 3});
    return {reinterpret_cast<const char*>(words.data()), sizeof words};
  }

  std::string folder_, path_;
};

TEST_F(Files, WithoutDataHoldNoForeignData) {
  make(0);
  EXPECT_FALSE(foreign());
  EXPECT_TRUE(nothing());
  make(64 << 20);
  EXPECT_FALSE(foreign());
  EXPECT_TRUE(nothing());
}

TEST_F(Files, OfZerosAreSomebodys) {
  put(0, std::string(4 << 20, '\0'));
  EXPECT_TRUE(foreign());
  EXPECT_FALSE(nothing());
}

TEST_F(Files, OfWholeUnitsAreOurs) {
  make(8 << 20);
  put(0, unit(0));
  put(5 << 20, unit(12345) + unit(pattern::kNoAddress));  // wherever they belong
  EXPECT_FALSE(foreign());
  EXPECT_FALSE(nothing());
}

TEST_F(Files, OfUnitsOfAnEarlierVersionAreOursUnlessDamaged) {
  std::array<u32, pattern::kUnitWords> words{};
  pattern::version1::make_unit(words.data(), {7, 512, 3});
  const std::string old(reinterpret_cast<const char*>(words.data()), sizeof words);
  put(0, unit(0) + old);
  EXPECT_FALSE(foreign());
  put(512 + 100, "x");
  EXPECT_TRUE(foreign());
}

/// Wherever else something lies: behind the first MiB, in the last bytes, after units of ours.
TEST_F(Files, WithAnythingElseAreSomebodys) {
  constexpr u64 kBytes = (8 << 20) + 300;
  for (const u64 at : {u64{1}, u64{511}, u64{4096 + 17}, u64{1} << 20, (u64{3} << 20) + 1, kBytes - 1}) {
    make(kBytes);
    put(0, std::string(1 << 20, '\0'));
    put(2 << 20, unit(2 << 20));
    EXPECT_FALSE(foreign());
    put(at, "x");
    EXPECT_TRUE(foreign()) << at;
  }
}

TEST_F(Files, WithADamagedUnitAreSomebodys) {
  for (const u64 at : {u64{0}, u64{9}, u64{100}, u64{511}}) {
    make(1 << 20);
    put(0, unit(0));
    std::string damaged = unit(512);
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    put(512, damaged);
    EXPECT_TRUE(foreign()) << at;
  }
}

TEST_F(Files, OpeningNeverWaits) {
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const int flags : {O_RDONLY, O_WRONLY, O_RDWR})
    EXPECT_FALSE(open_file(fifo, flags, FileKinds::regular_or_block));
  EXPECT_FALSE(open_file("/dev/zero", O_RDONLY, FileKinds::regular));
  EXPECT_EQ(open_file(folder_, O_RDONLY, FileKinds::regular).error, EISDIR);
  EXPECT_EQ(open_file(path_, O_RDONLY, FileKinds::regular).error, ENOENT);
  make(1);
  EXPECT_TRUE(open_file(path_, O_RDONLY, FileKinds::regular));
}

TEST_F(Files, UnderTwoNames) {
  make(1);
  const std::string link = folder_ + "/link", hard = folder_ + "/hard";
  std::filesystem::create_symlink(path_, link);
  std::filesystem::create_hard_link(path_, hard);
  for (const std::string& name : {link, hard, folder_ + "/./file", folder_ + "//file"})
    EXPECT_TRUE(same_file(path_, name)) << name;
  EXPECT_FALSE(same_file(path_, folder_ + "/other"));
  EXPECT_TRUE(same_file(folder_ + "/other", folder_ + "/./other"));  // neither is there yet
  EXPECT_FALSE(same_file("-", "-"));
  EXPECT_FALSE(same_file("", ""));
}

using Ranges = std::vector<ByteRange>;

TEST(Ranges, StayInOrderAndApart) {
  Ranges r;
  add_range(r, {100, 200});
  add_range(r, {300, 400});
  add_range(r, {50, 50});  // empty
  EXPECT_EQ(r, (Ranges{{100, 200}, {300, 400}}));
  add_range(r, {200, 250});  // next to the first
  EXPECT_EQ(r, (Ranges{{100, 250}, {300, 400}}));
  add_range(r, {0, 10});
  add_range(r, {240, 310});
  EXPECT_EQ(r, (Ranges{{0, 10}, {100, 400}}));
  remove_range(r, {150, 160});
  EXPECT_EQ(r, (Ranges{{0, 10}, {100, 150}, {160, 400}}));
  remove_range(r, {5, 120});
  EXPECT_EQ(r, (Ranges{{0, 5}, {120, 150}, {160, 400}}));
  remove_range(r, {0, ~u64{0}});
  EXPECT_TRUE(r.empty());
}

class Mark : public Files {
 protected:
  void SetUp() override {
    Files::SetUp();
    make(1 << 20);
    put(0, unit(0));
    if (setxattr(path_.c_str(), "user.doorbell.test", "1", 1, 0) != 0)
      GTEST_SKIP() << "the file system of " << folder_ << " has no extended attributes";
  }
};

TEST_F(Mark, GoesWithTheFile) {
  {
    WrittenMark m(path_);
    EXPECT_TRUE(m.ranges().empty());
    m.written({0, 4096});
    m.written({8192, 1 << 20});
    m.save();
  }
  std::filesystem::rename(path_, path_ + "2");
  EXPECT_EQ(WrittenMark(path_ + "2").ranges(), (Ranges{{0, 4096}, {8192, 1 << 20}}));
  const WrittenMark m(path_ + "2");
  EXPECT_EQ(m.known({4000, 9000}), (Ranges{{8192, 9000}, {4000, 4096}}));
  EXPECT_EQ(m.known({4096, 8192}), Ranges{});
}

/// Killed in mid-write: what was known before must not make damage of half a unit.
TEST_F(Mark, IsTakenBackBeforeAWrite) {
  {
    WrittenMark m(path_);
    m.written({0, 1 << 20});
    m.save();
  }
  {
    WrittenMark m(path_);
    m.about_to_write({4096, 8192});
    m.written({4096, 8192});
  }  // not saved
  EXPECT_EQ(WrittenMark(path_).ranges(), (Ranges{{0, 4096}, {8192, 1 << 20}}));
}

TEST_F(Mark, OfAFileThatHoldsNothingIsVoid) {
  {
    WrittenMark m(path_);
    m.written({0, 1 << 20});
    m.save();
  }
  ASSERT_EQ(truncate(path_.c_str(), 0), 0);
  ASSERT_EQ(truncate(path_.c_str(), 1 << 20), 0);
  EXPECT_TRUE(WrittenMark(path_).ranges().empty());
}

TEST_F(Mark, OfAnotherFormIsNone) {
  for (const std::string text :
       {"", "2 0-512", "1 0-", "1 5-5", "1 9-3", "1 0-512,", "1 x", "1 0-512 junk"}) {
    ASSERT_EQ(setxattr(path_.c_str(), "user.doorbell.written", text.data(), text.size(), 0), 0);
    EXPECT_TRUE(WrittenMark(path_).ranges().empty()) << text;
  }
}

TEST_F(Mark, KeepsTheLongestOfMany) {
  WrittenMark m(path_);
  for (u64 i = 0; i < 200; ++i) m.written({i * 8192, i * 8192 + 512 + i});
  m.save();
  const WrittenMark again(path_);
  EXPECT_EQ(again.ranges().size(), 64u);
  EXPECT_EQ(again.known({199 * 8192, 200 * 8192}), (Ranges{{199 * 8192, 199 * 8192 + 512 + 199}}));
}

TEST(MarkOfNoFile, DoesNothing) {
  WrittenMark m("");
  m.about_to_write({0, 1});
  m.written({0, 1});
  m.save();
}

class MediaOfFile : public Files {
 protected:
  [[nodiscard]] ModelConfig config(u64 capacity = 0) const {
    ModelConfig c;
    c.media = ModelConfig::Media::file;
    c.path = path_;
    c.capacity_given = capacity > 0;
    if (capacity > 0) c.capacity_bytes = capacity;
    return c;
  }
};

TEST_F(MediaOfFile, ReadingLeavesItAsItIs) {
  {
    Media m(config(8 << 20));
    EXPECT_EQ(m.bytes()[(8 << 20) - 1], 0);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  make(5000);
  put(0, unit(0));
  {
    Media m(config(8 << 20));
    EXPECT_EQ(m.capacity(), 8u << 20);
    EXPECT_EQ(std::memcmp(m.bytes(), unit(0).data(), 512), 0);
    for (const u64 at : {u64{5000}, u64{8191}, u64{8192}, (u64{8} << 20) - 1})
      EXPECT_EQ(m.bytes()[at], 0) << at;
  }
  EXPECT_EQ(size(), 5000u);
  EXPECT_EQ(Media(config()).capacity(), 5000u / 512 * 512);
}

TEST_F(MediaOfFile, WritingMakesItAndGrowsIt) {
  Media m(config(8 << 20));
  ASSERT_TRUE(m.reserve(3 << 20, 512));
  EXPECT_EQ(size(), 8u << 20);
  std::memcpy(m.bytes() + (3 << 20), unit(3 << 20).data(), 512);
  EXPECT_TRUE(m.flush());
  // The space is there before it is used: more of it than the unit, and not all.
  struct stat st {};
  ASSERT_EQ(stat(path_.c_str(), &st), 0);
  EXPECT_GE(st.st_blocks * 512, 1 << 20);
  EXPECT_LT(st.st_blocks * 512, 4 << 20);
  EXPECT_FALSE(foreign());
}

TEST_F(MediaOfFile, ALimitIsARefusalAndNoSignal) {
  make(1 << 20);
  put(0, unit(0));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit less = {1 << 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &less), 0);
  {
    Media m(config(8 << 20));
    EXPECT_FALSE(m.reserve(3 << 20, 512));
    EXPECT_NE(m.refusal().find("File too large"), std::string::npos) << m.refusal();
    EXPECT_EQ(m.bytes()[3 << 20], 0);  // it still reads
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)std::signal(SIGXFSZ, old);
  EXPECT_EQ(size(), 1u << 20);
}

TEST_F(MediaOfFile, OfSomebodyElseIsNeverGrown) {
  put(0, "precious");
  EXPECT_THROW(Media(config(8 << 20)), Error);
  EXPECT_EQ(size(), 8u);
  put(0, std::string(1 << 20, 'p'));
  EXPECT_TRUE(Media(config()).foreign());
  EXPECT_EQ(Media(config()).capacity(), 1u << 20);
}

}  // namespace
}  // namespace doorbell::nvme
