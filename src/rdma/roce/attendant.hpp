// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A NIC that goes on while its program does not call: a thread that sleeps until packets come or a timer is
// due. Programs that poll in a tight loop do its work themselves; it then only looks from time to time
// whether they still do, and nobody pays for waking it.
#pragma once

#include <doorbell/config.hpp>

#include <atomic>
#include <thread>

#include "rdma/roce/nic.hpp"
#include "system/clock.hpp"
#include "system/descriptor.hpp"

namespace doorbell::roce {

class Attendant {
 public:
  struct Options {
    /// How long the thread goes on looking after it has done something; ~0: by the number of processors.
    u64 spin_ns = ~u64{0};
  };
  /// Both outlive it. Throws Error where there is no thread.
  Attendant(Nic& nic, Carrier& carrier) : Attendant(nic, carrier, Options{}) {}
  Attendant(Nic& nic, Carrier& carrier, const Options& options);
  ~Attendant();
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

  // For the program's threads. Each drives the NIC and may return before it has, where another thread does.

  /// After one or more requests were posted.
  void on_post() {
    nic_.progress();
    keep_deadlines();
  }
  /// After a completion queue was found empty. True when there may be completions now.
  bool on_empty_poll() {
    const u64 now = wall_ns();
    // A program that has done something else since has not waited for that long.
    if (now - last_poll_ns_.load(std::memory_order_relaxed) > kPatienceNs)
      waits_since_ns_.store(now, std::memory_order_relaxed);
    last_poll_ns_.store(now, std::memory_order_relaxed);
    const bool did = nic_.progress();
    keep_deadlines();
    // The peer, whose packets are waited for, may have no processor: a program that polls through its time
    // slice moves a ring's worth of data in one. One that runs answers sooner than that.
    if (did) waits_since_ns_.store(now, std::memory_order_relaxed);
    else if (now - waits_since_ns_.load(std::memory_order_relaxed) > kPatienceNs) std::this_thread::yield();
    return did;
  }
  /// The program is about to sleep until a completion comes: it will not poll.
  void on_arm() {
    if (trusting_.load(std::memory_order_relaxed)) kick();
  }
  /// The thread looks at everything, now.
  void kick();

  /// In the child of a fork, which has no such thread: closes the descriptor. The attendant can only be
  /// forgotten then.
  void leave_to_parent() { kicks_.reset(); }

  /// How often the thread was woken, and how often it left the work to the program.
  [[nodiscard]] u64 wakes() const { return wakes_.load(std::memory_order_relaxed); }
  [[nodiscard]] u64 trusts() const { return trusts_.load(std::memory_order_relaxed); }

 private:
  /// A poll so short ago means that the program is polling.
  static constexpr u64 kPollingNs = 10'000;
  /// So long a program polls in vain before it lets others run.
  static constexpr u64 kPatienceNs = 2'000;
  static constexpr u64 kTrustNs = 1'000'000;
  static constexpr u32 kLeastProof = 3, kMostProof = 64;

  /// A timer may now be due before the thread wakes.
  void keep_deadlines() {
    // Between the NIC's new deadline and the look at the thread's, as in sleep() the other way round.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (nic_.next_due_ns() < asleep_until_ns_.load(std::memory_order_relaxed)) kick();
  }
  [[nodiscard]] bool program_polls(u64 now_ns) const {
    return now_ns - last_poll_ns_.load(std::memory_order_relaxed) < kPollingNs;
  }
  enum class Woken : u8 { time, packets, kick };
  [[nodiscard]] bool take_kick() { return kicked_.exchange(false, std::memory_order_acquire); }
  void run();
  void serve();
  Woken sleep();
  void trust();
  Woken wait_for_packets(u64 until_ns);
  Woken wait_for_kick(u64 until_ns);

  Nic& nic_;
  Carrier& carrier_;
  u64 spin_ns_;
  Descriptor kicks_;
  u32 proof_needed_ = kLeastProof;
  alignas(64) std::atomic<u64> last_poll_ns_ = 0;     ///< written by the program
  std::atomic<u64> waits_since_ns_ = 0;               ///< by the program
  alignas(64) std::atomic<u64> asleep_until_ns_ = 0;  ///< written by the thread; 0: it is awake, or trusts
  std::atomic<bool> trusting_ = false, kicked_ = false, stop_ = false;
  std::atomic<u64> wakes_ = 0, trusts_ = 0;
  std::thread thread_;
};

}  // namespace doorbell::roce
