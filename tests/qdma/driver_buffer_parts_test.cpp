// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Host buffers that are made part by part, while others ask too, and who still has one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <string>

#include "qdma/driver_rig.hpp"
#include "system/available_memory.hpp"

namespace doorbell::qdma {
namespace {

/// Work that a driver puts off, done when a test says so.
struct PutOff {
  std::deque<std::function<void()>> work;
  DriverModel::Later later() {
    return [this](std::function<void()> one) { work.push_back(std::move(one)); };
  }
  void do_one() {
    const auto one = std::move(work.front());
    work.pop_front();
    one();
  }
};

constexpr u64 kPart = 4096;

TEST(DriverBuffers, OneIsMadeInPartsAndGivenUpBetweenThem) {
  for (const bool gone : {false, true}) {
    PutOff put_off;
    DriverRig r("model", {}, {.buffers = {.bytes = 4 * kPart, .part = kPart}}, put_off.later());
    const auto call = r.begin_structure(r.control, kCallBufCreate, BufCreate{.length = 4 * kPart});
    put_off.do_one();
    put_off.do_one();
    EXPECT_FALSE(call->over);
    if (gone) {
      r.driver.close(*r.control);
    } else {
      ASSERT_TRUE(call->transfer);
      r.driver.cancel(*call->transfer);
    }
    put_off.do_one();
    EXPECT_EQ(call->wait(), -ECANCELED);
    EXPECT_LT(call->reply.descriptor.get(), 0);
    EXPECT_TRUE(put_off.work.empty());
    // The memory that the cancelled call had is there for others.
    const auto control = r.driver.open();
    const auto other = r.begin_structure(control, kCallBufCreate, BufCreate{.length = 4 * kPart});
    while (!put_off.work.empty()) put_off.do_one();
    EXPECT_EQ(other->wait(), 0);
  }
}

TEST(DriverBuffers, ALargeOneDoesNotHoldUpASmallOne) {
  PutOff put_off;
  DriverRig r("model", {}, {.buffers = {.part = kPart}}, put_off.later());
  const auto large = r.begin_structure(r.control, kCallBufCreate, BufCreate{.length = 8 * kPart});
  put_off.do_one();
  const auto small = r.begin_structure(r.control, kCallBufCreate, BufCreate{.length = kPart});
  put_off.do_one();
  put_off.do_one();
  EXPECT_TRUE(small->over);
  EXPECT_FALSE(large->over);
  while (!put_off.work.empty()) put_off.do_one();
  EXPECT_EQ(large->wait(), 0);
  // All of it is there.
  Mapping m(large->reply.descriptor.get(), 8 * kPart);
  std::memset(m.data(), 1, 8 * kPart);
}

TEST(DriverBuffers, RequestsAtTheSameTimeGetNoMoreThanThereIs) {
  const auto available = available_memory();
  if (!available) GTEST_SKIP() << "how much memory there is cannot be read";
  PutOff put_off;
  DriverRig r("model", {}, {.buffers = {.part = kPart}}, put_off.later());
  // Each fits, both do not. Only the first pages are really taken.
  const BufCreate most{.length = *available / 20 * 13 / kGranule * kGranule};
  const auto first = r.begin_structure(r.control, kCallBufCreate, most);
  const auto second = r.begin_structure(r.control, kCallBufCreate, most);
  put_off.do_one();
  put_off.do_one();
  EXPECT_FALSE(first->over);
  EXPECT_TRUE(second->over);
  EXPECT_EQ(second->reply.result, -ENOMEM);
  // When the first is given up, there is room.
  r.driver.cancel(*first->transfer);
  put_off.do_one();
  EXPECT_EQ(first->wait(), -ECANCELED);
  const auto third = r.begin_structure(r.control, kCallBufCreate, most);
  put_off.do_one();
  EXPECT_FALSE(third->over);
  r.driver.cancel(*third->transfer);
  put_off.do_one();
}

TEST(DriverBuffers, RequestsAtTheSameTimeStayWithinTheLimit) {
  PutOff put_off;
  DriverRig r("model", {}, {.buffers = {.buffers = 2, .bytes = 8 * kPart, .part = kPart}}, put_off.later());
  const auto begin = [&](u64 parts) {
    return r.begin_structure(r.control, kCallBufCreate, BufCreate{.length = parts * kPart});
  };
  const auto first = begin(5), second = begin(4), third = begin(3), fourth = begin(1);
  while (!put_off.work.empty()) put_off.do_one();
  EXPECT_EQ(first->wait(), 0);
  EXPECT_EQ(second->wait(), -EDQUOT);  // of bytes
  EXPECT_EQ(third->wait(), 0);
  EXPECT_EQ(fourth->wait(), -EDQUOT);  // of buffers
}

TEST(DriverBuffers, WhoGivesUpItsLockStillHasIt) {
  // A client could pass a limit with it, and hold what nobody counts.
  DriverRig r;
  BufCreate b{.flags = kFlagCloseOnExec, .length = 8192};
  ASSERT_EQ(r.call(r.control, kCallBufCreate, b), 0);
  Descriptor own = std::move(r.last.descriptor);
  const Descriptor other(memfd_create("test", MFD_CLOEXEC));
  if (fcntl(other.get(), F_SETLEASE, F_RDLCK) != 0 && errno == EINVAL)
    GTEST_SKIP() << "this kernel leases no memory files";
  EXPECT_EQ(flock(own.get(), LOCK_UN), 0);
  EXPECT_EQ(r.driver.sweep_buffers(), 1u);
  const Descriptor opened(open(("/proc/self/fd/" + std::to_string(own.get())).c_str(), O_RDONLY | O_CLOEXEC));
  own.reset();
  EXPECT_EQ(r.driver.sweep_buffers(), 1u);
  const_cast<Descriptor&>(opened).reset();
  EXPECT_EQ(r.driver.sweep_buffers(), 0u);
}

}  // namespace
}  // namespace doorbell::qdma
