// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/attendant.hpp"

#include <doorbell/error.hpp>
#include <doorbell/memory_order.hpp>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "system/signals_blocked.hpp"
#include "system/thread.hpp"

namespace doorbell::roce {

namespace {

/// Where programs that spin have all processors, a thread that spins too takes their time.
u64 usual_spin_ns() {
  cpu_set_t own;
  const int processors = sched_getaffinity(0, sizeof own, &own) == 0 ? CPU_COUNT(&own) : 1024;
  return processors <= 2 ? 2'000 : processors <= 4 ? 20'000 : 50'000;
}

timespec left(u64 until_ns, u64 now_ns) {
  const u64 ns = until_ns - now_ns;
  return {.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
          .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

Attendant::Attendant(Nic& nic, Carrier& carrier, const Options& options)
    : nic_(nic),
      carrier_(carrier),
      spin_ns_(options.spin_ns == kNever ? usual_spin_ns() : options.spin_ns),
      kicks_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (kicks_.get() < 0)
    throw Error("a NIC's thread", std::string("no event descriptor: ") + std::strerror(errno),
                "raise the limit of open files (ulimit -n)");
  carrier_.add_to_descriptor(kicks_.get());
  const SignalsBlocked blocked;
  thread_ = make_thread("a NIC's thread", [this] { run(); });
}

Attendant::~Attendant() {
  stop_.store(true, std::memory_order_release);
  kick();
  thread_.join();
}

void Attendant::kick() {
  kicked_.store(true, std::memory_order_release);
  const u64 one = 1;
  // It fails when there are 2^64 - 2 of them already, which wake as well.
  static_cast<void>(!write(kicks_.get(), &one, sizeof one));
}

void Attendant::run() {
  pthread_setname_np(pthread_self(), "doorbell-nic");
  prctl(PR_SET_TIMERSLACK, 5'000UL);
  u32 proof = 0;
  while (!stop_.load(std::memory_order_acquire)) {
    const u64 poll = last_poll_ns_.load(std::memory_order_relaxed);
    if (sleep() != Woken::packets) {
      serve();
      continue;
    }
    // A wake that nobody needed: the program is there to take the packets, or has taken them.
    const bool needless = program_polls(wall_ns()) ||
                          (!nic_.progress() && last_poll_ns_.load(std::memory_order_relaxed) != poll);
    if (!needless) {
      proof /= 2;
      serve();
    } else if (++proof >= proof_needed_) {
      trust();
      proof = 0;
      serve();
    }
  }
}

/// Until nothing has come for a while.
void Attendant::serve() {
  u64 last = wall_ns();
  for (;;) {
    const bool did = nic_.progress();
    const u64 now = wall_ns();
    if (did) last = now;
    if (now - last >= spin_ns_ || stop_.load(std::memory_order_relaxed)) return;
    if (!did) cpu_relax();
  }
}

/// Until packets come, a timer is due or somebody kicks.
Attendant::Woken Attendant::sleep() {
  carrier_.arm();
  // A whole round with the engine: what came before arm() is seen here, and for the rest there is a wake.
  Woken by = Woken::time;
  if (!nic_.progress_waiting()) {
    u64 due = nic_.next_due_ns();
    asleep_until_ns_.store(due, std::memory_order_relaxed);
    // Between this thread's deadline and the look at the NIC's; see keep_deadlines().
    std::atomic_thread_fence(std::memory_order_seq_cst);
    due = std::min(due, nic_.next_due_ns());
    by = wait_for_packets(due);
    asleep_until_ns_.store(0, std::memory_order_relaxed);
  }
  carrier_.woken();
  return by;
}

/// For as long as the program polls.
void Attendant::trust() {
  trusts_.fetch_add(1, std::memory_order_relaxed);
  trusting_.store(true, std::memory_order_relaxed);
  u64 looks = 0, poll = 0;
  // A poller that has no processor now is no reason to stop while nothing waits for it.
  do {
    ++looks;
    poll = last_poll_ns_.load(std::memory_order_relaxed);
  } while (wait_for_kick(wall_ns() + kTrustNs) == Woken::time &&
           (program_polls(wall_ns()) ||
            (last_poll_ns_.load(std::memory_order_relaxed) != poll && !nic_.progress())));
  trusting_.store(false, std::memory_order_relaxed);
  // Whoever is trusted and goes away at once has to prove more.
  proof_needed_ = looks > 10 ? kLeastProof : std::min(2 * proof_needed_, kMostProof);
}

Attendant::Woken Attendant::wait_for_packets(u64 until_ns) {
  const u64 now = wall_ns();
  if (until_ns <= now) return Woken::time;
  // A carrier that cannot wake is looked at.
  if (carrier_.descriptor() < 0) return wait_for_kick(std::min(until_ns, now + kTrustNs));
  const timespec time = left(until_ns, now);
  const timespec* const limit = until_ns == kNever ? nullptr : &time;
  std::array<epoll_event, 4> events;
  int n = epoll_pwait2(carrier_.descriptor(), events.data(), events.size(), limit, nullptr);
  if (n < 0 && (errno == ENOSYS || errno == EPERM)) {  // Linux before 5.11, or a filter of that age
    pollfd file{carrier_.descriptor(), POLLIN, 0};
    n = ppoll(&file, 1, limit, nullptr);
  }
  wakes_.fetch_add(1, std::memory_order_relaxed);
  // Only this thread takes kicks. Whoever drives the NIC looks at the same descriptor: a kick that was
  // reported once, to another, would be lost.
  u64 kicks = 0;
  const bool kicked = n > 0 && read(kicks_.get(), &kicks, sizeof kicks) == sizeof kicks;
  if (take_kick() || kicked) return Woken::kick;
  return n > 0 ? Woken::packets : Woken::time;
}

Attendant::Woken Attendant::wait_for_kick(u64 until_ns) {
  u64 kicks = 0;
  static_cast<void>(!read(kicks_.get(), &kicks, sizeof kicks));
  const u64 now = wall_ns();
  if (until_ns > now && !kicked_.load(std::memory_order_relaxed)) {
    const timespec time = left(until_ns, now);
    pollfd file{kicks_.get(), POLLIN, 0};
    ppoll(&file, 1, &time, nullptr);
    wakes_.fetch_add(1, std::memory_order_relaxed);
  }
  return take_kick() ? Woken::kick : Woken::time;
}

}  // namespace doorbell::roce
