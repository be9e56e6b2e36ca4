// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A workload that an engine computes, on a thread of its own: it starts up to two windows and checks the
// older one's result while the newer one is computed on.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "net/workload/checks.hpp"
#include "net/workload/engine.hpp"
#include "net/workload/workload.hpp"
#include "system/thread.hpp"

namespace doorbell::net {

class Computing final : public Workload {
 public:
  static constexpr u32 kMaxInFlight = 2;

  /// `open` makes the engine, on the thread that uses it. Throws what it throws.
  Computing(const WorkloadShape& shape, const WorkloadRequest& request,
            const std::function<std::unique_ptr<Engine>()>& open);
  ~Computing() override;
  Computing(const Computing&) = delete;
  Computing& operator=(const Computing&) = delete;

  void submit(const Window& window) override;
  void poll() override;
  void wait(u64 limit_ns) override;
  void finish() override;
  [[nodiscard]] const WorkloadCounts& counts() const override { return counts_; }
  [[nodiscard]] const WorkloadShape& shape() const override { return shape_; }
  [[nodiscard]] std::string library() const override { return library_; }

 private:
  /// Window number i lies at i mod kMaxInFlight, and its result in the engine's place of that number.
  struct Job {
    Window window;
    u64 begin_ns = 0;
    WorkloadCounts counts = {};
    bool looked = false;  ///< for its end
  };
  [[nodiscard]] Job& job(u64 i) { return jobs_[i % kMaxInFlight]; }
  [[nodiscard]] static u32 place(u64 i) { return static_cast<u32>(i % kMaxInFlight); }
  [[nodiscard]] u64 in_flight() const { return submitted_ - collected_; }

  void run(const std::function<std::unique_ptr<Engine>()>& open);
  void compute();
  void start_given(std::unique_lock<std::mutex>& lock);
  void complete(u64 i, u64 now, bool seen);
  void check(u64 i);
  [[nodiscard]] double worst_of(const Window& window, u32 slot);
  [[nodiscard]] double worst_of_product(const Window& window, u32 slot);
  void throw_if_failed();

  WorkloadShape shape_;
  WorkloadRequest request_;
  std::string library_;
  std::array<Job, kMaxInFlight> jobs_;

  // The caller's.
  WorkloadCounts counts_;
  u64 submitted_ = 0, collected_ = 0;

  // The thread's.
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<GemmCheck> gemm_;
  FftCheck fft_;
  std::vector<float> factor_;
  std::vector<u8> input_, result_;  ///< what a check reads: all, or rows of matrices
  u32 rows_at_once_ = 0;
  u64 products_checked_ = 0;
  u64 started_ = 0;
  u64 busy_until_ns_ = 0;
  u64 checked_until_ns_ = 0;  ///< the end of the last check

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  bool ready_ = false;
  u64 given_ = 0;              ///< to the thread
  std::atomic<u64> done_ = 0;  ///< by the thread; read without the mutex once a burst
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace doorbell::net
