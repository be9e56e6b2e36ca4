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

#include "measure/stop.hpp"
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

/// One sequence everywhere in [begin, end).
EarlierWrite plain(u64 begin, u64 end, u64 sequence, u64 seed = 7) {
  return {.bytes = {begin, end},
          .origin = begin,
          .io_bytes = end - begin,
          .posted = 1,
          .seed = seed,
          .sequence = sequence};
}
/// A phase over `span` positions of 4096 bytes from `begin` on.
EarlierWrite phase(u64 begin, u64 span, u64 posted, u64 sequence, bool random = false) {
  return {.bytes = {begin, begin + span * 4096},
          .origin = begin,
          .io_bytes = 4096,
          .span = span,
          .posted = posted,
          .order_seed = 99,
          .seed = 7,
          .sequence = sequence,
          .random = random ? 1U : 0U};
}
using Writes = std::vector<EarlierWrite>;
constexpr ByteRange kEverything{0, ~u64{0}};

TEST(EarlierWrites, SayWhichPassCameLast) {
  // Ten I/Os over four positions: two whole passes, and a third that came to two positions.
  for (const bool random : {false, true}) {
    const EarlierWrite w = phase(8192, 4, 10, 100, random);
    const Permutation order(4, 99);
    for (u64 i = 0; i < 4; ++i) {
      const u64 at = 8192 + (random ? order(i) : i) * 4096;
      for (const u64 byte : {at, at + 4095}) {
        u64 sequence = 0;
        EXPECT_TRUE(w.covers(byte, &sequence));
        EXPECT_EQ(sequence, i < 2 ? 102u : 101u) << random << i;
        EXPECT_EQ(w.position_end(byte), at + 4096);
      }
    }
  }
  u64 sequence = 0;
  EXPECT_TRUE(phase(0, 4, 3, 100).covers(2 * 4096, &sequence));
  EXPECT_EQ(sequence, 100u);
  EXPECT_FALSE(phase(0, 4, 3, 100).covers(3 * 4096, &sequence));
}

TEST(EarlierWrites, AreSimplified) {
  EXPECT_EQ(simplified(phase(0, 4, 0, 100)), Writes{});
  EXPECT_EQ(simplified(phase(0, 4, 4, 100)), Writes{plain(0, 16384, 100)});
  EXPECT_EQ(simplified(phase(0, 4, 12, 100, true)), Writes{plain(0, 16384, 102)});
  EXPECT_EQ(simplified(phase(0, 4, 3, 100)), Writes{plain(0, 12288, 100)});
  EXPECT_EQ(simplified(phase(0, 4, 5, 100)), (Writes{plain(0, 4096, 101), plain(4096, 16384, 100)}));
  EXPECT_EQ(simplified(phase(0, 4, 5, 100, true)), Writes{phase(0, 4, 5, 100, true)});
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
  /// Of a run that wrote this to the file, whose data it leaves as it is.
  void note(const Writes& writes) const {
    WrittenMark m(path_);
    for (const EarlierWrite& w : writes) m.about_to_write(w.bytes);
    for (const EarlierWrite& w : writes) m.written(w);
    m.save();
  }
  [[nodiscard]] Writes noted() const { return WrittenMark(path_).known(kEverything); }
};

TEST_F(Mark, GoesWithTheFile) {
  const EarlierWrite random = phase(16384, 8, 13, 0x1234567890, true);
  note({plain(0, 4096, 5), random, plain(1 << 19, 1 << 20, 6)});
  std::filesystem::rename(path_, path_ + "2");
  const WrittenMark m(path_ + "2");
  EXPECT_EQ(m.known(kEverything), (Writes{plain(1 << 19, 1 << 20, 6), random, plain(0, 4096, 5)}));
  EarlierWrite half = random;
  half.bytes = {20480, 24576};
  EXPECT_EQ(m.known({20480, 24576}), Writes{half});
  EXPECT_EQ(m.known({4096, 16384}), Writes{});
  EXPECT_FALSE(m.outdated());
}

/// Writes of queues next to each other are one write.
TEST_F(Mark, OfManyQueuesIsShort) {
  Writes queues;
  for (u64 q = 0; q < 256; ++q) queues.push_back(phase(q * 4096, 1, 3, 50));
  note(queues);
  EXPECT_EQ(noted(), Writes{plain(0, 1 << 20, 52)});
}

/// Killed in mid-write: what was known before must not make damage of half a unit.
TEST_F(Mark, IsTakenBackBeforeAWrite) {
  note({plain(0, 1 << 20, 5)});
  {
    WrittenMark m(path_);
    m.about_to_write({4096, 8192});
    m.written(plain(4096, 8192, 6));
  }  // not saved
  EXPECT_EQ(noted(), (Writes{plain(0, 4096, 5), plain(8192, 1 << 20, 5)}));
}

/// A phase that did not come everywhere leaves what was there before.
TEST_F(Mark, KeepsWhatAWriteDidNotReach) {
  note({plain(0, 16384, 5)});
  note({phase(0, 4, 1, 10)});
  u64 sequence = 0;
  Writes all = noted();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], plain(0, 4096, 10));
  EXPECT_TRUE(all[1].covers(4096, &sequence));
  EXPECT_EQ(sequence, 5u);
  const EarlierWrite random = phase(0, 4, 2, 20, true);
  note({random});
  all = noted();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all.front(), random);
  // The same again hides the one before.
  EarlierWrite again = random;
  again.sequence = 30;
  note({again});
  ASSERT_EQ(noted().size(), 3u);
  EXPECT_EQ(noted().front(), again);
  note({phase(0, 4, 9, 40, true)});
  EXPECT_EQ(noted(), Writes{phase(0, 4, 9, 40, true)});
}

/// The remains of a write that failed are not known, nor what was there before it.
TEST_F(Mark, ForgetsWhatAFailedWriteMayHaveTouched) {
  note({plain(0, 16384, 5)});
  {
    WrittenMark m(path_);
    m.about_to_write({0, 8192});
    m.about_to_write({0, 8192});
    m.written(phase(0, 2, 1, 9));
    m.save();
  }
  EXPECT_EQ(noted(), (Writes{plain(0, 4096, 9), plain(8192, 16384, 5)}));
}

TEST_F(Mark, OfAFileThatHoldsNothingIsVoid) {
  note({plain(0, 1 << 20, 5)});
  ASSERT_EQ(truncate(path_.c_str(), 0), 0);
  ASSERT_EQ(truncate(path_.c_str(), 1 << 20), 0);
  EXPECT_TRUE(noted().empty());
}

/// The mark is of the content, which another program may replace.
TEST_F(Mark, OfAnotherContentIsVoid) {
  const auto times = [&](u64 change_s) {
    const timespec both[2] = {{static_cast<time_t>(change_s), 5}, {static_cast<time_t>(change_s), 5}};
    ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), both, 0), 0);
  };
  times(1000);
  note({plain(0, 1 << 20, 5)});
  EXPECT_EQ(noted().size(), 1u);
  put(4096, "written by another program");
  EXPECT_TRUE(noted().empty());
  EXPECT_TRUE(WrittenMark(path_).outdated());
  times(1000);  // as it was: cp -a and a file system's restored snapshot keep it
  EXPECT_EQ(noted().size(), 1u);
  ASSERT_EQ(truncate(path_.c_str(), 1 << 21), 0);
  times(1000);
  EXPECT_TRUE(noted().empty());
  note({plain(0, 4096, 9)});
  EXPECT_EQ(noted(), Writes{plain(0, 4096, 9)});
}

/// A few units that another program has damaged are damage; a file whose beginning or much of which is
/// another is another content.
TEST_F(Mark, HoldsWhereNearlyAllIsTheSame) {
  constexpr u64 kUnits = 2048;
  const auto damage = [&](u64 first, u64 count) {
    for (u64 n = 0; n < kUnits; ++n) put(n * 512, unit(n * 512));
    note({plain(0, kUnits * 512, 3)});
    for (u64 n = first; n < first + count; ++n) put(n * 512, std::string(512, 'x'));
    const timespec later[2] = {{4'000'000'000, 0}, {4'000'000'000, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), later, 0), 0);
  };
  const auto voided = [&] {
    const WrittenMark m(path_);
    EXPECT_TRUE(m.changed_by_others());
    EXPECT_EQ(m.outdated(), m.known(kEverything).empty());
    return m.outdated();
  };
  damage(100, 1);
  EXPECT_FALSE(voided());
  damage(100, kUnits / 16);
  EXPECT_FALSE(voided());
  damage(100, kUnits / 4);
  EXPECT_TRUE(voided());
  damage(0, 1);
  EXPECT_TRUE(voided());
}

/// The file that was opened has the mark, not what has its name at the end.
TEST_F(Mark, DoesNotGoToAReplacement) {
  WrittenMark m(path_);
  m.about_to_write({0, 4096});
  std::filesystem::rename(path_, path_ + "2");
  make(1 << 20);
  put(0, unit(0));
  m.written(plain(0, 4096, 9));
  m.save();
  EXPECT_TRUE(noted().empty());
  EXPECT_FALSE(WrittenMark(path_).outdated());
  EXPECT_EQ(WrittenMark(path_ + "2").known(kEverything), Writes{plain(0, 4096, 9)});
}

TEST_F(Mark, OfAnotherFormIsNone) {
  note({plain(0, 4096, 5)});
  std::array<char, 200> own{};
  const ssize_t n = getxattr(path_.c_str(), "user.doorbell.written", own.data(), own.size());
  ASSERT_GT(n, 0);
  const std::string sound(own.data(), static_cast<std::size_t>(n));
  const std::string header = sound.substr(0, sound.find(" w"));
  for (const std::string& text :
       {std::string(), std::string("1 0-512"), header + " w1", header + " 0-512", header + " w1.2 5.5.0",
        header + " w1.2 9.3.0", header + " w1.2 0.200", header + " w1.2 0.200.0 x", header + " w1.2 0.200.0 ",
        header + " w1.2 0.200.0.0.0.1.1.1", header + " w1.2 0.400.0.0.200.1.1.1",
        header + " w1.2 400.600.0.200.ffffffffffffffff.1.1.1",
        std::string("2 1.1.1 w1.2 200.ffffffffffffffff.0"), header + "0 w1.2 0.200.0"}) {
    ASSERT_EQ(setxattr(path_.c_str(), "user.doorbell.written", text.data(), text.size(), 0), 0);
    EXPECT_TRUE(noted().empty()) << text;
  }
  ASSERT_EQ(setxattr(path_.c_str(), "user.doorbell.written", sound.data(), sound.size(), 0), 0);
  EXPECT_EQ(noted(), Writes{plain(0, 4096, 5)});
}

/// An older write that shows where a newer one is missing would be wrong, so the oldest go first.
TEST_F(Mark, KeepsTheNewestOfMany) {
  Writes many;
  for (u64 i = 0; i < 200; ++i) many.push_back(plain(i * 8192, i * 8192 + 512, 1000 - i));
  note(many);
  const Writes kept = noted();
  ASSERT_GT(kept.size(), 60u);
  ASSERT_LE(kept.size(), WrittenMark::kWritesAtMost);
  for (u64 i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i], many[199 - i]);
}

TEST(MarkOfNoFile, OnlyRemembers) {
  WrittenMark m("");
  m.about_to_write({0, 4096});
  m.written(plain(0, 4096, 5));
  m.save();
  EXPECT_EQ(m.known(kEverything), Writes{plain(0, 4096, 5)});
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

TEST_F(Files, ASignalEndsTheLookForForeignData) {
  put(0, unit(0));
  measure::StopFlag stop;
  stop.install();
  EXPECT_FALSE(foreign());
  (void)stop.request(SIGINT);
  try {
    (void)foreign();
    ADD_FAILURE() << "it went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::interrupted);
  }
}

}  // namespace
}  // namespace doorbell::nvme
