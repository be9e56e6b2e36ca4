// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/workload/computing.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <complex>

#include "system/clock.hpp"

namespace doorbell::net {
namespace {

// How often a thread that waits for a GPU looks for another window to start.
constexpr u64 kLookNs = 100'000;
/// Rows of a matrix that a check reads at a time have about so many bytes.
constexpr u64 kBlockBytes = 1u << 20;
/// Of one checked product in so many, the first one included, every element of a row is compared by itself,
/// and of one in more every element, if it is no larger than this: what takes longer than the product itself.
constexpr u64 kRowEvery = 16, kWholeEvery = 64;
constexpr u32 kWholeDim = 256;

}  // namespace

Computing::Computing(const WorkloadShape& shape, const WorkloadRequest& request,
                     const std::function<std::unique_ptr<Engine>()>& open)
    : shape_(shape), request_(request), thread_(make_thread("workload", [this, open] { run(open); })) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ready_ || error_ != nullptr; });
    if (error_ == nullptr) return;
  }
  thread_.join();
  std::rethrow_exception(error_);
}

Computing::~Computing() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// --- the caller's side --------------------------------------------------------------------------------

void Computing::throw_if_failed() {
  const std::lock_guard lock(mutex_);
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void Computing::submit(const Window& window) {
  // Of a window that nothing came for nothing is to be computed: where nearly all packets are lost, most are.
  const bool empty = window.packets != 0 && window.missing == window.packets;
  if (window.bytes < shape_.input_bytes || empty) {
    ++counts_.skipped;
    window.give_back();
    return;
  }
  if ((request_.gpu != nullptr ? window.device : window.host) == nullptr)
    throw Error(fmt::format("workload {}", name(shape_.kind)),
                "its windows lie in memory that what computes cannot reach");
  poll();
  if (in_flight() == request_.in_flight) {
    wait(request_.limit_ns);
    if (in_flight() == request_.in_flight)
      throw Error(
          fmt::format("workload {}", name(shape_.kind)),
          fmt::format("no window was done within {:.1f} s", static_cast<double>(request_.limit_ns) * 1e-9),
          {}, ExitCode::data);
  }
  {
    const std::lock_guard lock(mutex_);
    // The thread sets this before it closes the engine.
    if (error_ != nullptr) std::rethrow_exception(error_);
    engine_->announce(place(submitted_));
    job(submitted_) = {.window = window};
    given_ = ++submitted_;
  }
  changed_.notify_all();
}

void Computing::poll() {
  // Pairs with the thread's store: what it counted is visible, and so is why it ended.
  const u64 done = done_.load(std::memory_order_acquire);
  if (done == collected_) return;
  throw_if_failed();
  while (collected_ < done) {
    const Job& j = job(collected_++);
    counts_ += j.counts;
    j.window.give_back();
  }
}

void Computing::wait(u64 limit_ns) {
  if (in_flight() == 0) return;
  {
    std::unique_lock lock(mutex_);
    (void)changed_.wait_for(lock, std::chrono::nanoseconds(limit_ns),
                            [this] { return done_ > collected_ || error_ != nullptr; });
    if (error_ != nullptr) std::rethrow_exception(error_);
  }
  poll();
}

void Computing::finish() {
  while (in_flight() != 0) {
    const u64 before = in_flight();
    wait(request_.limit_ns);
    if (in_flight() == before)
      throw Error(fmt::format("workload {}", name(shape_.kind)),
                  fmt::format("{} windows were not done in time", before), {}, ExitCode::data);
  }
}

// --- the thread's side --------------------------------------------------------------------------------

void Computing::run(const std::function<std::unique_ptr<Engine>()>& open) {
  try {
    engine_ = open();
    library_ = engine_->name();
    if (request_.check_every != 0) {
      if (shape_.kind == WorkloadKind::fft) {
        input_.resize(shape_.input_bytes);
        result_.resize(shape_.result_bytes);
      } else {
        factor_ = second_factor(shape_.n, shape_.kind == WorkloadKind::gemm_fp16);
        gemm_ = std::make_unique<GemmCheck>(shape_, factor_);
        rows_at_once_ = static_cast<u32>(std::clamp<u64>(kBlockBytes / (u64{shape_.n} * 4), 1, shape_.n));
        input_.resize(shape_.input_bytes / shape_.n * rows_at_once_);
        result_.resize(shape_.result_bytes / shape_.n * rows_at_once_);
      }
    }
    {
      const std::lock_guard lock(mutex_);
      ready_ = true;
    }
    changed_.notify_all();
    compute();
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      // A polling thread looks for the reason when this changes.
      done_.store(~u64{0}, std::memory_order_release);
    }
    changed_.notify_all();
  }
  // On this thread, to which a GPU's context belongs.
  engine_.reset();
}

void Computing::compute() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || given_ != done_; });
    if (stop_) return;
    start_given(lock);
    const u64 i = done_;
    lock.unlock();
    if (engine_->computes_in_wait()) job(i).begin_ns = wall_ns();
    // A run that has ended while a check went on has done so at an unknown time.
    const bool unseen = checked_until_ns_ > job(i).begin_ns && !job(i).looked && engine_->wait(place(i), 0);
    job(i).looked = true;
    const bool computed = unseen || engine_->wait(place(i), kLookNs);
    const u64 now = wall_ns();
    if (!computed && now - job(i).begin_ns > request_.limit_ns)
      throw Error(
          fmt::format("workload {} by {}", name(shape_.kind), library_),
          fmt::format("one run takes more than {:.1f} s", static_cast<double>(request_.limit_ns) * 1e-9), {},
          ExitCode::data);
    lock.lock();
    if (!computed) continue;
    // So that a GPU is not idle during the check.
    start_given(lock);
    lock.unlock();
    complete(i, now, !unseen);
    lock.lock();
    done_.store(i + 1, std::memory_order_release);
    changed_.notify_all();
  }
}

void Computing::start_given(std::unique_lock<std::mutex>& lock) {
  while (started_ < given_) {
    const u64 i = started_++;
    lock.unlock();
    job(i).begin_ns = wall_ns();
    engine_->start(job(i).window, place(i));
    lock.lock();
  }
}

void Computing::complete(u64 i, u64 now, bool seen) {
  Job& j = job(i);
  j.counts.runs = 1;
  j.counts.flop = shape_.flop;
  if (seen) {
    j.counts.timed = 1;
    j.counts.busy_ns = now - std::max(j.begin_ns, busy_until_ns_);
  }
  busy_until_ns_ = now;
  const bool unknown = j.window.missing != 0 && request_.missing == Missing::mark;
  if (request_.check_every == 0 || i % request_.check_every != 0 || unknown) return;
  check(i);
  checked_until_ns_ = wall_ns();
  j.counts.check_ns = checked_until_ns_ - now;
}

void Computing::check(u64 i) {
  WorkloadCounts& c = job(i).counts;
  c.checked = 1;
  c.worst = worst_of(job(i).window, place(i));
  c.failed = c.worst <= 1 ? 0 : 1;
}

double Computing::worst_of(const Window& window, u32 slot) {
  if (gemm_ != nullptr) return worst_of_product(window, slot);
  engine_->read_input(window, 0, input_.data(), input_.size());
  engine_->read_result(slot, 0, result_.data(), result_.size());
  const auto* const in = reinterpret_cast<const std::complex<float>*>(input_.data());
  const auto* const out = reinterpret_cast<const std::complex<float>*>(result_.data());
  double worst = 0;
  for (u64 t = 0; t < shape_.batch; ++t)
    worst = std::max(worst, fft_.transform(in + t * kFftLength, out + t * kFftLength));
  const u64 one = window.index % shape_.batch * 7919 % shape_.batch;
  return std::max(worst, fft_.every_bin(in + one * kFftLength, out + one * kFftLength));
}

double Computing::worst_of_product(const Window& window, u32 slot) {
  const u64 in_bytes = shape_.input_bytes / shape_.n, out_bytes = shape_.result_bytes / shape_.n;
  const u64 serial = products_checked_++;
  const bool whole = shape_.n <= kWholeDim && serial % kWholeEvery == 0;
  const u32 one = serial % kRowEvery == 0 ? gemm_->row_of(window.index) : shape_.n;
  double worst = 0;
  for (u32 first = 0; first < shape_.n; first += rows_at_once_) {
    const u32 rows = std::min(rows_at_once_, shape_.n - first);
    engine_->read_input(window, first * in_bytes, input_.data(), rows * in_bytes);
    engine_->read_result(slot, first * out_bytes, result_.data(), rows * out_bytes);
    const auto* const c = reinterpret_cast<const float*>(result_.data());
    worst = std::max(worst, gemm_->product(window.index, rows, input_.data(), c));
    for (u32 i = 0; i < rows; ++i)
      if (whole || first + i == one)
        worst = std::max(worst, gemm_->row(input_.data() + i * in_bytes, {c + u64{i} * shape_.n, shape_.n}));
  }
  return worst;
}

}  // namespace doorbell::net
