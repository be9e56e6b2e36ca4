// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The engines under the kernel path by themselves: what they hand over, and that no wait is without end.

#include <doorbell/error.hpp>
#include <doorbell/region.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <set>

#include "nvme/linux/uring.hpp"
#include "scratch.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {
namespace {

constexpr u64 kLimitNs = 30'000'000'000;
constexpr u32 kBytes = 4096;

struct Fd {
  explicit Fd(int number) : fd(number) {}
  ~Fd() {
    if (fd >= 0) close(fd);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int fd;
};

class Engines : public testing::Test {
 protected:
  Engines() : file_(open(scratch_.file("data", 1 << 20).c_str(), O_RDWR | O_CLOEXEC)) {}
  void SetUp() override {
    if (!test::has_uring()) GTEST_SKIP() << "no io_uring here";
    ASSERT_GE(file_.fd, 0);
  }
  [[nodiscard]] u8* slot(u32 i) { return memory_.host() + u64{i} * kBytes; }
  [[nodiscard]] std::span<u8> all() { return {memory_.host(), memory_.bytes()}; }
  [[nodiscard]] FileIo io(bool write, u32 i) {
    return {write, static_cast<u16>(i), slot(i), kBytes, u64{i} * kBytes};
  }

  test::Scratch scratch_;
  Fd file_;
  Region memory_{Place::pageable, 256 * kBytes};
};

/// Takes `n` completions; fails when they do not come.
template <class Engine>
std::vector<FileIoDone> take(Engine& engine, u32 n) {
  std::vector<FileIoDone> done;
  for (const u64 begin = wall_ns(); done.size() < n && wall_ns() - begin < kLimitNs;) {
    FileIoDone one;
    if (engine.take(&one, true)) done.push_back(one);
  }
  EXPECT_EQ(done.size(), n) << "completions are missing";
  FileIoDone more;
  EXPECT_FALSE(engine.take(&more, false)) << "one too many";
  return done;
}

template <class Engine>
void write_and_read_back(Engine& engine, u32 n, const std::function<FileIo(bool, u32)>& io,
                         const std::function<u8*(u32)>& slot) {
  for (const bool write : {true, false}) {
    for (u32 i = 0; i < n; ++i) {
      std::memset(slot(i), write ? static_cast<int>(i * 7 + 1) : 0, kBytes);
      engine.put(io(write, i));
    }
    (void)engine.submit(n == 1);
    std::set<u16> cids;
    for (const FileIoDone& d : take(engine, n)) {
      EXPECT_EQ(d.result, static_cast<std::int32_t>(kBytes)) << d.cid;
      EXPECT_TRUE(cids.insert(d.cid).second) << d.cid << " twice";
    }
    EXPECT_EQ(cids.size(), n);
  }
  for (u32 i = 0; i < n; ++i)
    EXPECT_TRUE(std::all_of(slot(i), slot(i) + kBytes, [&](u8 b) { return b == static_cast<u8>(i * 7 + 1); }))
        << i;
}

TEST_F(Engines, UringInEveryShape) {
  for (u32 shape = 0; shape < 8; ++shape)
    for (const u32 n : {1u, 2u, 63u, 64u, 256u}) {
      SCOPED_TRACE(testing::Message() << "shape " << shape << ", " << n << " operations");
      FileOptions o;
      o.fixed_buffers = (shape & 1) != 0;
      o.fixed_files = (shape & 2) != 0;
      o.sqpoll = (shape & 4) != 0;
      UringEngine engine(file_.fd, n, all(), o);
      for (u32 round = 0; round < 3; ++round)
        write_and_read_back(
            engine, n, [&](bool w, u32 i) { return io(w, i); }, [&](u32 i) { return slot(i); });
    }
}

TEST_F(Engines, Sync) {
  SyncEngine engine(file_.fd);
  for (const u32 n : {1u, 5u}) {
    write_and_read_back(
        engine, n, [&](bool w, u32 i) { return io(w, i); }, [&](u32 i) { return slot(i); });
    EXPECT_EQ(engine.submit(false), 0u) << "nothing to do is no call";
  }
}

/// More than the ring has room for: the kernel takes some in between, and none is lost.
TEST_F(Engines, MoreThanFits) {
  UringEngine engine(file_.fd, 3, all(), {});  // a ring of 4, one of them the timeout's
  for (u32 i = 0; i < 20; ++i) engine.put(io(false, i));
  (void)engine.submit(false);
  std::set<u16> cids;
  for (const FileIoDone& d : take(engine, 20)) {
    EXPECT_TRUE(cids.insert(d.cid).second) << d.cid << " twice";
    EXPECT_EQ(d.result, static_cast<std::int32_t>(kBytes));
  }
  EXPECT_EQ(cids.size(), 20u);
}

template <class Engine>
std::int32_t result_of(Engine& engine, const FileIo& io) {
  engine.put(io);
  (void)engine.submit(true);
  const auto done = take(engine, 1);
  return done.empty() ? -9999 : done[0].result;
}

TEST_F(Engines, ErrorsAreErrnos) {
  Fd read_only(open(scratch_.path("data").c_str(), O_RDONLY | O_CLOEXEC));
  FileOptions plain;
  plain.fixed_buffers = plain.fixed_files = false;
  for (const bool sync : {false, true}) {
    SCOPED_TRACE(sync ? "sync" : "io_uring");
    const auto result = [&](int fd, const FileIo& one) {
      if (sync) {
        SyncEngine engine(fd);
        return result_of(engine, one);
      }
      UringEngine engine(fd, 4, all(), plain);
      return result_of(engine, one);
    };
    EXPECT_EQ(result(read_only.fd, io(true, 0)), -EBADF);
    FileIo beyond = io(false, 0);
    beyond.offset = 1 << 20;
    EXPECT_EQ(result(file_.fd, beyond), 0) << "the end of the file";
    beyond.offset = (1 << 20) - 100;
    EXPECT_EQ(result(file_.fd, beyond), 100);
    FileIo wild = io(false, 0);
    wild.data = nullptr;
    EXPECT_EQ(result(file_.fd, wild), -EFAULT);
  }
}

TEST_F(Engines, ABufferOutsideTheRegisteredOnes) {
  UringEngine engine(file_.fd, 4, std::span(memory_.host(), kBytes), {});
  EXPECT_EQ(result_of(engine, io(false, 1)), -EFAULT);
  EXPECT_EQ(result_of(engine, io(false, 0)), static_cast<std::int32_t>(kBytes));
}

TEST_F(Engines, WhatCannotBeRegistered) {
  try {
    UringEngine engine(1 << 20, 4, all(), {});  // no such descriptor
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("registering the file"), std::string::npos) << e.what();
    EXPECT_FALSE(e.hint().empty());
  }
  try {
    UringEngine engine(file_.fd, 4, std::span<u8>(reinterpret_cast<u8*>(4096), 4096), {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("registering the buffers"), std::string::npos) << e.what();
    EXPECT_FALSE(e.hint().empty());
  }
}

/// A pipe without a writer: a read of it never completes.
TEST_F(Engines, AWaitIsShortAndTheEndDoesNotHang) {
  for (const bool sqpoll : {false, true}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    Fd out(ends[0]), in(ends[1]);
    FileOptions o;
    o.sqpoll = sqpoll;
    const u64 begin = wall_ns();
    {
      UringEngine engine(out.fd, 2, all(), o);
      engine.put(io(false, 0));
      (void)engine.submit(!sqpoll);
      FileIoDone done;
      for (u32 i = 0; i < 50; ++i) ASSERT_FALSE(engine.take(&done, true));
      engine.put(io(false, 1));
      (void)engine.submit(false);
      ASSERT_FALSE(engine.take(&done, true));
      ASSERT_EQ(write(in.fd, "hello", 5), 5);
      const auto first = take(engine, 1);
      ASSERT_EQ(first.size(), 1u);
      ASSERT_LT(first[0].cid, 2u);  // the kernel may serve either
      EXPECT_EQ(first[0].result, 5);
      EXPECT_EQ(std::memcmp(slot(first[0].cid), "hello", 5), 0);
    }
    EXPECT_LT(wall_ns() - begin, kLimitNs) << "50 waits of 5 ms";
  }
}

/// Not waiting must not wait: 1000 looks at nothing take less than as many timeouts.
TEST_F(Engines, ALookIsNoWait) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  Fd out(ends[0]), in(ends[1]);
  UringEngine engine(out.fd, 2, all(), {});
  engine.put(io(false, 0));
  (void)engine.submit(false);
  FileIoDone done;
  const u64 begin = wall_ns();
  for (u32 i = 0; i < 1000; ++i) ASSERT_FALSE(engine.take(&done, false));
  EXPECT_LT(wall_ns() - begin, 1000 * 2'500'000u);
}

}  // namespace
}  // namespace doorbell::nvme
