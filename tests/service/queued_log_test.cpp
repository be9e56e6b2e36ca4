// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's log over places that cannot be written, and users who cause many entries.
#include "service/queued_log.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include "eventually.hpp"
#include "system/clock.hpp"

namespace doorbell::service {
namespace {

/// The texts that the log behind has taken. It may hold a write up, or fail.
struct Place {
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::string> texts;
  bool holds = false, fails = false;
  int failed = 0;

  void set(bool Place::*what, bool to) {
    const std::lock_guard lock(mutex);
    this->*what = to;
    wake.notify_all();
  }
  bool has(std::size_t count) {
    return test::eventually([&] {
      const std::lock_guard lock(mutex);
      return texts.size() >= count;
    });
  }
};

class PlacedLog final : public Log {
 public:
  explicit PlacedLog(std::shared_ptr<Place> place) : place_(std::move(place)) {}
  void write(const LogEntry& entry) override {
    std::unique_lock lock(place_->mutex);
    place_->wake.wait(lock, [&] { return !place_->holds; });
    if (place_->fails && ++place_->failed > 0) throw std::runtime_error("no space left");
    place_->texts.push_back(entry.text);
  }

 private:
  std::shared_ptr<Place> place_;
};

struct QueuedLogTest : testing::Test {
  std::shared_ptr<Place> place = std::make_shared<Place>();
  std::unique_ptr<QueuedLog> log =
      std::make_unique<QueuedLog>(std::make_unique<PlacedLog>(place), Priority::notice);
  void write(const std::string& text, std::optional<uid_t> user = {}) {
    log->write({.priority = Priority::notice, .text = text, .user = user});
  }
};

TEST_F(QueuedLogTest, WritesInOrderAndWhatIsLeftAtTheEnd) {
  for (int i = 0; i < 100; ++i) write(std::to_string(i));
  log->write({.priority = Priority::info, .text = "not asked for"});
  log.reset();
  ASSERT_EQ(place->texts.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(place->texts[static_cast<std::size_t>(i)], std::to_string(i));
}

TEST_F(QueuedLogTest, FlushWaitsForWhatIsOnItsWay) {
  for (int i = 0; i < 100; ++i) write("x");
  log->flush();
  const std::lock_guard lock(place->mutex);
  EXPECT_EQ(place->texts.size(), 100u);
}

TEST_F(QueuedLogTest, APlaceThatTakesNothingHoldsNobodyUp) {
  place->set(&Place::holds, true);
  const u64 more = 10;
  for (u64 i = 0; i < QueuedLog::kMostWaiting + 1 + more; ++i) write("x");  // one is being written
  EXPECT_GE(log->lost(), more);
  EXPECT_LE(log->lost(), more + 1);
  log.reset();  // which waits a while
  place->set(&Place::holds, false);
  EXPECT_TRUE(place->has(QueuedLog::kMostWaiting));  // the thread is left to itself
}

TEST_F(QueuedLogTest, AFullDiskCostsEntriesAndIsSaidLater) {
  place->set(&Place::fails, true);
  write("lost");
  EXPECT_TRUE(test::eventually([&] { return log->lost() == 1; }));
  place->set(&Place::fails, false);
  write("there is room again");
  ASSERT_TRUE(place->has(2));
  log.reset();
  EXPECT_EQ(place->texts,
            (std::vector<std::string>{"1 entries of this log were lost", "there is room again"}));
}

TEST_F(QueuedLogTest, OneUserFillsItForNobody) {
  const u64 before = wall_ns();
  for (u32 i = 0; i < 1000; ++i) write("again", 1001);
  write("something else", 1002);
  const u64 seconds = (wall_ns() - before) / 1'000'000'000 + 1;
  log.reset();
  EXPECT_GE(place->texts.size(), QueuedLog::kBurst + 1);
  EXPECT_LE(place->texts.size(), QueuedLog::kBurst + 1 + 2 * seconds * QueuedLog::kPerSecond);
  EXPECT_EQ(place->texts.back(), "something else");
}

TEST_F(QueuedLogTest, UsersWithoutEndShareAnAllowance) {
  const u64 before = wall_ns();
  for (uid_t user = 0; user < 5000; ++user) write("from each", user);
  const u64 seconds = (wall_ns() - before) / 1'000'000'000 + 1;
  EXPECT_GE(log->lost(), 5000u - 1024 - QueuedLog::kBurst - seconds * QueuedLog::kPerSecond);
}

}  // namespace
}  // namespace doorbell::service
