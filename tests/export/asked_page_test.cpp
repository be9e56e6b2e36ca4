// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A page that a loop's thread makes for others: whose thread makes it, how fresh it is, and how a wait ends.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "export/asked_page.hpp"

namespace doorbell::exporting {
namespace {

using std::chrono::hours;

/// A loop that does nothing but posted calls. Without start() they wait.
class ToyLoop {
 public:
  ~ToyLoop() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  void start() {
    thread_ = std::thread([this] {
      std::unique_lock lock(mutex_);
      for (;;) {
        changed_.wait(lock, [this] { return over_ || !calls_.empty(); });
        if (over_) return;
        const auto call = std::move(calls_.front());
        calls_.pop_front();
        lock.unlock();
        call();
        lock.lock();
      }
    });
  }
  /// For an AskedPage to post by.
  [[nodiscard]] AskedPage::Post post() {
    return [this](std::function<void()> call) {
      {
        const std::scoped_lock lock(mutex_);
        calls_.push_back(std::move(call));
        ++posted_;
      }
      changed_.notify_all();
    };
  }
  void wait_for_a_post() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return posted_ > 0; });
  }
  [[nodiscard]] int posted() {
    const std::scoped_lock lock(mutex_);
    return posted_;
  }
  [[nodiscard]] std::thread::id id() const { return thread_.get_id(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> calls_;
  int posted_ = 0;
  bool over_ = false;
  std::thread thread_;
};

TEST(AskedPage, IsMadeByTheLoopsThreadEachTime) {
  ToyLoop loop;
  loop.start();
  std::thread::id made_by;
  int made = 0;  // the loop's thread's alone
  AskedPage page(
      loop.post(),
      [&] {
        made_by = std::this_thread::get_id();
        return std::to_string(++made);
      },
      hours(1));
  EXPECT_EQ(page.ask(), "1");
  EXPECT_EQ(page.ask(), "2");
  EXPECT_EQ(made_by, loop.id());
}

TEST(AskedPage, OfSeveralWhoAskEachGetsOneMadeSince) {
  ToyLoop loop;
  loop.start();
  std::atomic<int> begun{0};
  AskedPage page(
      loop.post(), [&] { return std::to_string(++begun); }, hours(1));
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i)
    askers.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        const int before = begun;
        EXPECT_GT(std::stoi(page.ask().value_or("0")), before);
      }
    });
  for (std::thread& t : askers) t.join();
  EXPECT_LE(begun, 800);
}

TEST(AskedPage, ALoopThatIsAwayCostsAnAnswerAndOneCall) {
  ToyLoop loop;
  AskedPage page(
      loop.post(), [] { return std::string("page"); }, std::chrono::milliseconds(1));
  EXPECT_EQ(page.ask(), std::nullopt);
  EXPECT_EQ(page.ask(), std::nullopt);
  EXPECT_EQ(loop.posted(), 1) << "who asks later waits for the same call";
  loop.start();
  while (!page.ask()) {
  }
}

TEST(AskedPage, ItsEndIsAnAnswerForWhoWaits) {
  ToyLoop loop;
  AskedPage page(
      loop.post(), [] { return std::string("page"); }, hours(1));
  std::thread asker([&] { EXPECT_EQ(page.ask(), std::nullopt); });
  loop.wait_for_a_post();
  page.end();
  asker.join();
  EXPECT_EQ(page.ask(), std::nullopt);
  EXPECT_EQ(loop.posted(), 1);
}

TEST(AskedPage, ACallThatComesAfterItsEndMakesNone) {
  std::atomic<int> made{0};
  ToyLoop loop;
  auto page = std::make_unique<AskedPage>(
      loop.post(), [&] { return std::to_string(++made); }, std::chrono::milliseconds(1));
  EXPECT_EQ(page->ask(), std::nullopt);
  page.reset();
  loop.start();
  // A second page's call comes after the first one's.
  AskedPage second(
      loop.post(), [] { return std::string("second"); }, hours(1));
  EXPECT_EQ(second.ask(), "second");
  EXPECT_EQ(made, 0);
}

}  // namespace
}  // namespace doorbell::exporting
