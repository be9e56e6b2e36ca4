// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A page that one thread makes, a loop's, and others ask for: what it shows needs no lock.
#pragma once

#include <doorbell/config.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace doorbell::exporting {

class AskedPage {
 public:
  /// Has its argument called by the loop's thread, soon, or drops it if the loop ends first. Called by the
  /// threads that ask; must not throw.
  using Post = std::function<void(std::function<void()>)>;

  /// `render` is called by the loop's thread and must not throw. Whoever asks waits for `limit` at most.
  AskedPage(Post post, std::function<std::string()> render,
            std::chrono::nanoseconds limit = std::chrono::seconds(1))
      : post_(std::move(post)), limit_(limit), state_(std::make_shared<State>(std::move(render))) {}
  ~AskedPage() { end(); }
  AskedPage(const AskedPage&) = delete;
  AskedPage& operator=(const AskedPage&) = delete;

  /// The page as it is after this call has begun; nothing if the loop has not made it in time, or after
  /// end(). Any thread but the loop's. However many ask, and however long the loop is away, at most one
  /// request of theirs waits for it.
  [[nodiscard]] std::optional<std::string> ask() {
    State& s = *state_;
    std::unique_lock lock(s.mutex);
    if (s.ended) return {};
    const bool first = !std::exchange(s.waiting, true);
    const u64 mine = first ? ++s.asked : s.asked;
    if (first) {
      lock.unlock();
      post_([state = state_] { state->make(); });
      lock.lock();
    }
    s.changed.wait_for(lock, limit_, [&] { return s.ended || s.made >= mine; });
    if (s.ended || s.made < mine) return {};
    return s.page;
  }

  /// Whoever waits gets nothing, at once; `render` is not called any more. The loop's thread, or any after it
  /// has ended.
  void end() {
    {
      const std::scoped_lock lock(state_->mutex);
      state_->ended = true;
    }
    state_->changed.notify_all();
  }

 private:
  /// A posted call may come after the page's end, so it owns a part of this.
  struct State {
    explicit State(std::function<std::string()> function) : render(std::move(function)) {}

    void make() {
      u64 number = 0;
      {
        const std::scoped_lock lock(mutex);
        if (ended) return;
        waiting = false;
        number = asked;
      }
      std::string text = render();
      {
        const std::scoped_lock lock(mutex);
        page = std::move(text);
        made = number;
      }
      changed.notify_all();
    }

    std::function<std::string()> render;
    std::mutex mutex;
    std::condition_variable changed;
    bool waiting = false;     ///< a call is posted and has not begun
    bool ended = false;       ///< by end()
    u64 asked = 0, made = 0;  ///< numbers of the last request, and of the one that `page` answers
    std::string page;
  };

  Post post_;
  std::chrono::nanoseconds limit_;
  std::shared_ptr<State> state_;
};

}  // namespace doorbell::exporting
