// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Servers: the blocks of a kernel that act as a device, or threads of the CPU that run the kernel's code. How
// the host starts them, tells them what to do, and ends them.
#pragma once

#include <doorbell/gpu.hpp>
#include <doorbell/region.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "model/device_thread.hpp"

namespace doorbell::model {

/// Each server looks at its sequence number in every round. When it changes, the server carries out its order
/// and then stores the number in its answer, with release.
class Servers {
 public:
  /// A server's answer takes a line of its own; its first word is the sequence number of the last order
  /// carried out.
  static constexpr u64 kAnswerBytes = 64;

  /// The servers for `wanted` of them. All blocks of all kernels that wait for each other must run at the
  /// same time: half of the GPU's processors are left to those that drive the queues and check the data.
  [[nodiscard]] static u32 fitting(u32 wanted, const gpu::Gpu* gpu);
  /// `bytes` in whole lines, for what servers share.
  [[nodiscard]] static constexpr u64 lines(u64 bytes) { return (bytes + kLine - 1) / kLine * kLine; }
  static constexpr u64 kLine = 64;
  static constexpr u32 kMostThreads = 64;

  /// `gpu` may be null: threads. Throws Error.
  Servers(std::shared_ptr<gpu::Gpu> gpu, u32 count, u32 order_bytes);
  ~Servers() { stop(); }
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  /// Starts a block for each server, with the address of `job` as the kernel's argument.
  void launch(const std::string& kernel, u32 threads_a_block, u32 shared_bytes, const Region& job);
  /// Starts a thread for each server. `poll`: makes what a thread calls; true if there was work.
  void start_threads(const std::string& name, const std::function<std::function<bool()>(u32 server)>& poll);

  /// Gives the order to end, to servers that have not answered too, and waits until they have ended; what
  /// they use may go after this. A kernel that does not end within two seconds is left alone.
  void end(const void* order);

  /// Gives one order to servers first..first+count-1 and waits until all have carried it out. False from then
  /// on when one does not answer, or the GPU fails. Any thread; one order at a time.
  [[nodiscard]] bool order(u32 first, u32 count, const void* order);
  [[nodiscard]] bool order_all(const void* all) { return order(0, count(), all); }
  [[nodiscard]] bool deaf() {
    const std::scoped_lock lock(mutex_);
    return deaf_;
  }
  /// From now on no order is given: something of the GPU failed.
  void give_up() {
    const std::scoped_lock lock(mutex_);
    deaf_ = true;
  }
  /// The same, and sets the word at `gone_at` of `state`, at which servers look that are well or only slow.
  void give_up(Region& state, u64 gone_at);

  [[nodiscard]] u32 count() const { return count_; }
  [[nodiscard]] const std::shared_ptr<gpu::Gpu>& gpu() const { return gpu_; }
  /// Memory for the servers alone. Throws Error.
  [[nodiscard]] Region allocate(u64 bytes) const {
    return Region(gpu_ ? Place::gpu : Place::pageable, bytes, gpu_);
  }
  /// Where the servers reach a region.
  template <class T>
  [[nodiscard]] T* reach(const Region& r, u64 offset = 0) const {
    return reinterpret_cast<T*>((gpu_ ? r.device() : r.host()) + offset);
  }
  /// For the servers: the sequence numbers, and the orders one behind the other.
  [[nodiscard]] const u32* sequences() const { return reach<const u32>(board_); }
  template <class Order>
  [[nodiscard]] const Order* orders() const {
    return reach<const Order>(board_, orders_at_);
  }
  template <class Answer>
  [[nodiscard]] Answer* answers() const {
    return reach<Answer>(answers_);
  }
  template <class Answer>
  [[nodiscard]] Answer& answer(u32 server) {
    static_assert(sizeof(Answer) == kAnswerBytes);
    return reinterpret_cast<Answer*>(answers_.host())[server];
  }

 private:
  void stop();
  [[nodiscard]] bool announce(u32 first, const std::vector<u32>& numbers, const void* order);
  [[nodiscard]] bool answered(u32 server, u32 number, u64 deadline);

  std::shared_ptr<gpu::Gpu> gpu_;
  u32 count_;
  u32 order_bytes_;
  u64 orders_at_;
  Region board_;    ///< sequence numbers, then orders
  Region answers_;  ///< host and servers both reach it
  std::vector<u32> sequence_;
  std::mutex mutex_;
  bool deaf_ = false;
  gpu::Stream stream_;
  std::vector<std::unique_ptr<DeviceThread>> threads_;
};

}  // namespace doorbell::model
