// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A kernel's block that is a device, on threads of the CPU.
#pragma once

#include <doorbell/config.hpp>

#include <memory>
#include <thread>
#include <vector>

namespace doorbell::test {

/// A block of `kHelpers` + 1 warps, each on a thread. `Served`: the engine that the first one runs.
template <class Served, class Warp, class ServerJob, u32 kHelpers>
class EmulatedBlock {
 public:
  EmulatedBlock(const ServerJob& job, u32 server)
      : job_(job), server_(server), memory_(std::make_unique<typename Served::Memory>()) {}

  /// Serves until it is told to end.
  bool poll() {
    if (memory_->ended != 0) return false;
    std::vector<std::thread> helpers;
    if constexpr (kHelpers > 0) {
      for (u32 i = 0; i < kHelpers; ++i)
        helpers.emplace_back([this, i] {
          auto help = [&](const Warp& warp) { memory_->jobs.help(warp, i, kHelpers); };
          auto hub = std::make_unique<typename Warp::Hub>();
          hub->run(help);
        });
    }
    auto serve = [&](const Warp& warp) {
      Served engine(warp, job_, server_, *memory_, kHelpers);
      for (auto r = engine.round(); r != Served::Round::ended; r = engine.round())
        if (r == Served::Round::idle && warp.lane() == 0) std::this_thread::yield();
    };
    auto hub = std::make_unique<typename Warp::Hub>();
    hub->run(serve);
    for (std::thread& t : helpers) t.join();
    return false;
  }

 private:
  const ServerJob& job_;
  u32 server_;
  std::unique_ptr<typename Served::Memory> memory_;
};

}  // namespace doorbell::test
