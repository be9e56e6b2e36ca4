// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A NIC that has no queue pairs: it answers packets, or counts them. For tests of what is around a NIC.
#pragma once

#include <atomic>
#include <cerrno>
#include <functional>
#include <mutex>
#include <vector>

#include "carrier_rig.hpp"
#include "rdma/roce/nic.hpp"

namespace doorbell::roce::test {

class PacketNic final : public Nic {
 public:
  /// With `echo`, each packet goes back to where it came from.
  PacketNic(Carrier& carrier, bool echo) : carrier_(carrier), echo_(echo) {}

  /// Has progress() send a packet of that number to `peer`.
  void post(Endpoint peer, u64 number) {
    const std::lock_guard lock(posts_mutex_);
    posts_.push_back({peer, packet(number, 64)});
    has_posts_.store(true);
  }
  [[nodiscard]] u64 received() const { return received_.load(); }
  [[nodiscard]] u64 rounds() const { return rounds_.load(); }
  void set_due(u64 ns) { due_.store(ns); }

  bool progress() override {
    bool did = false;
    do {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock) return did;
      did = round() || did;
    } while (has_posts_.load());
    return did;
  }
  bool progress_waiting() override {
    bool did = false;
    {
      const std::lock_guard lock(mutex_);
      did = round();
    }
    // Who posted meanwhile did not get the engine.
    return has_posts_.load() ? progress() || did : did;
  }
  void between_rounds(const std::function<void()>& work) override {
    const std::lock_guard lock(mutex_);
    work();
  }
  [[nodiscard]] u64 next_due_ns() const override { return due_.load(); }

  [[nodiscard]] const Limits& limits() const override { return limits_; }
  Errno register_memory(u32, void*, u64, u64, u32, RegisteredMemory&) override { return ENOSYS; }
  Errno deregister_memory(u32) override { return ENOSYS; }
  Errno reregister_memory(u32, u32, u32, void*, u64, u64, u32, RegisteredMemory&) override { return ENOSYS; }
  Errno make_window(u32, u8, u32&) override { return ENOSYS; }
  Errno free_window(u32) override { return ENOSYS; }
  Errno make_completion_queue(u32, std::unique_ptr<CompletionQueue>&) override { return ENOSYS; }
  Errno make_shared_receive_queue(const SharedReceiveOptions&,
                                  std::unique_ptr<SharedReceiveQueue>&) override {
    return ENOSYS;
  }
  Errno make_queue_pair(const QueuePairOptions&, std::unique_ptr<QueuePair>&) override { return ENOSYS; }
  [[nodiscard]] Counters counters() const override { return {}; }

 private:
  bool round() {
    rounds_.fetch_add(1);
    bool did = false;
    for (const Arrival& a : carrier_.receive()) {
      did = true;
      received_.fetch_add(1);
      if (echo_) waiting_.push_back({a.source, {a.bytes.begin(), a.bytes.end()}});
    }
    if (has_posts_.load()) {
      const std::lock_guard lock(posts_mutex_);
      has_posts_.store(false);
      waiting_.insert(waiting_.end(), posts_.begin(), posts_.end());
      posts_.clear();
    }
    std::size_t done = 0;
    while (done < waiting_.size() && put(carrier_.path(waiting_[done].to), waiting_[done].bytes)) ++done;
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
    carrier_.flush();
    if (due_.load() <= wall_ns()) {
      due_.store(~u64{0});
      did = true;
    }
    return did || done != 0;
  }

  struct Waiting {
    Endpoint to;
    std::vector<u8> bytes;
  };
  Carrier& carrier_;
  const bool echo_;
  const Limits limits_;
  std::mutex mutex_, posts_mutex_;
  std::vector<Waiting> waiting_, posts_;
  std::atomic<bool> has_posts_ = false;
  std::atomic<u64> received_ = 0, rounds_ = 0, due_ = ~u64{0};
};

}  // namespace doorbell::roce::test
