// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A GPU that a test sees through: its memory is the host's, and the kernels of assemble.cu run on the CPU, in
// the order of their streams, but no sooner than somebody waits for them or asks for a step.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>

#include "idle_gpu.hpp"
#include "net/assembly/assemble.hpp"

namespace doorbell::net::test {

class ComputingGpu : public IdleGpu {
 public:
  [[nodiscard]] void* allocate(u64 bytes) override {
    void* const p = IdleGpu::allocate(bytes);
    std::memset(p, 0, bytes);
    return p;
  }
  [[nodiscard]] void* allocate_pinned(u64 bytes) override { return allocate(bytes); }
  void copy(void* to, const void* from, u64 bytes) override {
    if (fail_copies) throw std::runtime_error("the copy failed on purpose");
    std::memcpy(to, from, bytes);
    const std::lock_guard lock(mutex_);
    ++copies;
  }
  void copy(std::span<const gpu::Copy> batch) override {
    for (const gpu::Copy& c : batch) copy(c.to, c.from, c.bytes);
  }
  [[nodiscard]] gpu::Stream create_stream() override {
    const std::lock_guard lock(mutex_);
    void* const handle = reinterpret_cast<void*>(++created_);
    streams_[handle];
    return {handle};
  }
  [[nodiscard]] gpu::Kernel kernel(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    return {const_cast<std::string*>(&*names_.insert(name).first)};
  }
  void launch(gpu::Kernel k, const Launch& shape, gpu::Stream s, std::span<void*> args) override {
    const std::string& name = *static_cast<const std::string*>(k.handle);
    std::function<void()> work;
    const u32 warps = shape.blocks * shape.threads / 32;
    if (name == "doorbell_net_gather") gathering_warps = warps;
    const auto each_warp = [warps](auto f) {
      for (u32 w = 0; w < warps; ++w) f(w, warps);
    };
    if (name == "doorbell_net_gather") {
      work = [=, job = copy_of<GatherJob>(args[0])] {
        each_warp([&](u32 w, u32 n) { gather(OneLane{}, job, w, n); });
      };
    } else if (name == "doorbell_net_place") {
      work = [=, job = copy_of<PlaceJob>(args[0])] {
        each_warp([&](u32 w, u32 n) { place(OneLane{}, job, w, n); });
      };
    } else if (name == "doorbell_net_zero") {
      work = [=, job = copy_of<ZeroJob>(args[0])] {
        each_warp([&](u32 w, u32 n) { zero_slots(OneLane{}, job, w, n); });
      };
    } else if (name == "doorbell_net_check") {
      work = [=, job = copy_of<CheckJob>(args[0])] {
        each_warp([&](u32 w, u32 n) { check_slots(OneLane{}, job, w, n); });
      };
    } else if (name == "doorbell_net_mark") {
      work = [word = copy_of<u64*>(args[0]), value = copy_of<u64>(args[1])] { store64_release(word, value); };
    } else {
      throw std::logic_error("no such kernel: " + name);
    }
    enqueue(s, std::move(work));
  }
  /// Work of a library, which a test brings itself.
  void enqueue(gpu::Stream s, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    streams_.at(s.handle).work.push_back(std::move(work));
    ++launched;
  }
  void start_copy(const gpu::Copy& c, gpu::Stream s) override {
    enqueue(s, [this, c] {
      if (fail_copies) throw std::runtime_error("the copy failed on purpose");
      std::memcpy(c.to, c.from, c.bytes);
      ++copies;
    });
  }
  [[nodiscard]] gpu::Event create_event() override {
    const std::lock_guard lock(mutex_);
    return {&events_.emplace_back()};
  }
  void record(gpu::Event e, gpu::Stream s) override {
    const std::lock_guard lock(mutex_);
    InOrder& stream = streams_.at(s.handle);
    *static_cast<Place*>(e.handle) = {&stream, stream.done + stream.work.size()};
  }
  void follow(gpu::Stream s, gpu::Event e) override {
    const std::lock_guard lock(mutex_);
    streams_.at(s.handle).work.push_back([at = *static_cast<Place*>(e.handle)] {
      while (at.stream != nullptr && at.stream->done < at.until) at.stream->step();
    });
  }
  /// Does the oldest piece of work of the stream; false when there is none.
  bool step(gpu::Stream s) {
    if (stuck) return false;
    const std::lock_guard lock(mutex_);
    return streams_.at(s.handle).step();
  }
  [[nodiscard]] bool finished(gpu::Stream s) override {
    const std::lock_guard lock(mutex_);
    return streams_.at(s.handle).work.empty();
  }
  [[nodiscard]] bool wait(gpu::Stream s, u64) override {
    while (step(s)) {
    }
    return finished(s);
  }

  u64 copies = 0, launched = 0;
  u32 gathering_warps = 0;  ///< of the newest launch
  bool fail_copies = false;
  bool stuck = false;  ///< does nothing any more

 private:
  template <class T>
  static T copy_of(const void* p) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }

  struct InOrder {
    std::deque<std::function<void()>> work;
    u64 done = 0;
    bool step() {
      if (work.empty()) return false;
      work.front()();
      work.pop_front();
      ++done;
      return true;
    }
  };

  struct Place {
    InOrder* stream = nullptr;
    u64 until = 0;
  };

  std::mutex mutex_;
  u64 created_ = 0;
  std::deque<Place> events_;
  std::map<void*, InOrder> streams_;
  std::set<std::string> names_;
};

}  // namespace doorbell::net::test
