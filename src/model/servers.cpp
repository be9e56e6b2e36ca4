// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "model/servers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>

#include "system/clock.hpp"

namespace doorbell::model {

namespace {

constexpr u64 kAnswerNs = 10'000'000'000;
constexpr u64 kEndNs = 2'000'000'000;

}  // namespace

void Servers::give_up(Region& state, u64 gone_at) {
  give_up();
  const u32 gone = 1;
  try {
    if (gpu_) state.write(gone_at, &gone, sizeof gone);
    else store_release(reach<u32>(state, gone_at), gone);
  } catch (const std::exception&) {
    // A GPU that cannot be written runs no server.
  }
}

u32 Servers::fitting(u32 wanted, const gpu::Gpu* gpu) {
  const u32 most =
      gpu == nullptr ? kMostThreads : static_cast<u32>(std::max(gpu->info().multiprocessors / 2, 1));
  return std::clamp(wanted, 1u, most);
}

Servers::Servers(std::shared_ptr<gpu::Gpu> gpu, u32 count, u32 order_bytes)
    : gpu_(std::move(gpu)),
      count_(count),
      order_bytes_(order_bytes),
      orders_at_(lines(count * sizeof(u32))),
      board_(allocate(orders_at_ + u64{count} * order_bytes)),
      answers_(gpu_ ? Place::pinned : Place::pageable, count * kAnswerBytes, gpu_),
      sequence_(count) {}

void Servers::end(const void* order) {
  {
    const std::scoped_lock lock(mutex_);
    deaf_ = false;
  }
  (void)order_all(order);
  stop();
}

void Servers::stop() {
  threads_.clear();
  if (stream_.handle == nullptr) return;
  try {
    if (gpu_->wait(stream_, kEndNs)) gpu_->destroy(stream_);
    stream_ = {};
  } catch (const std::exception&) {
    // A kernel that failed has ended.
  }
}

void Servers::launch(const std::string& kernel, u32 threads_a_block, u32 shared_bytes, const Region& job) {
  stream_ = gpu_->create_stream();
  void* given = job.device();
  std::array<void*, 1> args = {&given};
  gpu_->launch(gpu_->kernel(kernel),
               {.blocks = count_, .threads = threads_a_block, .shared_bytes = shared_bytes}, stream_, args);
}

void Servers::start_threads(const std::string& name,
                            const std::function<std::function<bool()>(u32 server)>& poll) {
  try {
    for (u32 i = 0; i < count_; ++i)
      threads_.push_back(std::make_unique<DeviceThread>(fmt::format("{}-{}", name, i), poll(i)));
  } catch (...) {
    threads_.clear();  // before the owner's memory, which they use
    throw;
  }
}

bool Servers::order(u32 first, u32 count, const void* order) {
  const std::scoped_lock lock(mutex_);
  if (deaf_) return false;
  std::vector<u32> numbers(count);
  for (u32 i = 0; i < count; ++i) numbers[i] = ++sequence_[first + i];
  deaf_ = !announce(first, numbers, order);
  const u64 deadline = wall_ns() + kAnswerNs;
  for (u32 i = 0; i < count && !deaf_; ++i) deaf_ = !answered(first + i, numbers[i], deadline);
  return !deaf_;
}

/// An order comes before the number that announces it: a copy to a GPU has ended when it returns.
bool Servers::announce(u32 first, const std::vector<u32>& numbers, const void* order) {
  try {
    std::vector<u8> orders(numbers.size() * order_bytes_);
    for (u64 at = 0; at < orders.size(); at += order_bytes_)
      std::copy_n(static_cast<const u8*>(order), order_bytes_, orders.data() + at);
    board_.write(orders_at_ + u64{first} * order_bytes_, orders.data(), orders.size());
    if (gpu_) {
      board_.write(first * sizeof(u32), numbers.data(), numbers.size() * sizeof(u32));
    } else {
      u32* const to = reinterpret_cast<u32*>(board_.host()) + first;
      for (std::size_t i = 0; i < numbers.size(); ++i) store_release(to + i, numbers[i]);
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

bool Servers::answered(u32 server, u32 number, u64 deadline) {
  const auto* const word = reinterpret_cast<const u32*>(answers_.host() + server * kAnswerBytes);
  bool late = false;
  // The acquire orders what the server did before its answer.
  for (u32 looks = 0; load_acquire(word) != number; ++looks) {
    if (late) return false;
    // A process that was stopped finds the answer when it looks again.
    late = wall_ns() > deadline;
    if (looks > 1000) std::this_thread::yield();
    else cpu_relax();
  }
  return true;
}

}  // namespace doorbell::model
