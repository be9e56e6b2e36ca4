// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The order in which the software Cassini makes its stores visible. The page that it writes to is made
// read-only, so that its store raises a signal, during which everything else stands still.

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "cxi/model/launch.hpp"
#include "rig.hpp"

// The code that looks in the signal allocates. That is safe here: the signal is a fault of the device's own
// store, which is in no allocation.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
  return "report_signal_unsafe=0";
}

namespace doorbell::cxi {
namespace {

/// Memory whose next writer is seen before its store: `look` runs on the writer's thread.
class Guarded {
 public:
  template <class Look>
  Guarded(void* at, Look& look) : at_(at), look_(&look), call_([](void* l) { (*static_cast<Look*>(l))(); }) {
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t* info, void*) { now_->caught(info->si_addr); };
    now_ = this;
    EXPECT_EQ(sigaction(SIGSEGV, &action, &before_), 0);
    EXPECT_EQ(mprotect(at_, bytes(), PROT_READ), 0);
  }
  ~Guarded() {
    open();
    sigaction(SIGSEGV, &before_, nullptr);
    now_ = nullptr;
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  static std::size_t bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

 private:
  void open() { (void)mprotect(at_, bytes(), PROT_READ | PROT_WRITE); }
  void caught(const void* address) {
    const auto* const first = static_cast<const u8*>(at_);
    if (address < first || address >= first + bytes()) {
      // Somebody else's fault: it comes again, and ends the program as it would have.
      sigaction(SIGSEGV, &before_, nullptr);
      return;
    }
    call_(look_);
    open();
  }

  static inline Guarded* now_ = nullptr;
  void* at_;
  void* look_;
  void (*call_)(void*);
  struct sigaction before_ = {};
};

TEST(CxiOrder, ARejectedWindowIsInTheStatusBeforeItIsCounted) {
  Rig rig({.slow_writer_ns = 200'000'000});
  ASSERT_EQ(reinterpret_cast<std::uintptr_t>(rig.tx.memory.ring) % Guarded::bytes(), 0u);
  std::atomic<bool> stored{false};
  std::atomic<u64> counted{0};
  auto look = [&] {
    counted = rig.counter("rejected_window_writes");
    stored = true;
  };
  {
    const Guarded status(rig.tx.memory.ring, look);
    u64* const window = window_of(rig.tx.memory.launch, kWindow64, 9);
    for (u32 k = 0; k < kSlotWords; ++k) store64_release(window + k, k + 1);
    ASSERT_TRUE(eventually([&] { return rig.counter("rejected_window_writes") == 1; }));
  }
  EXPECT_TRUE(stored);
  EXPECT_EQ(counted, 0u) << "who waits for the count finds the old status";
  EXPECT_EQ(rig.tx.status().rejected, 1u);
}

TEST(CxiOrder, ADroppedEventIsInTheStatusBeforeItIsCounted) {
  Rig rig({.spec = "cxi-model0:eq-full=2"});
  const auto trigger = [&](u64 n) {
    rig.triggered.submit(CounterCommand::trig_event(rig.ct.index(), n, rig.tx_events.index()));
    rig.tx.submit(rig.put(64));
  };
  for (const u64 n : {1, 2}) {
    trigger(n);
    (void)rig.tx_events.expect<TriggeredEvent>(EventType::triggered_op);
  }
  u8* const events = rig.tx_events.object->memory(Initiator::cpu).events;
  ASSERT_EQ(reinterpret_cast<std::uintptr_t>(events) % Guarded::bytes(), 0u);
  std::atomic<bool> stored{false};
  std::atomic<u64> counted{0};
  auto look = [&] {
    counted = rig.counter("dropped_events") + rig.injected("eq_full");
    stored = true;
  };
  {
    const Guarded status(events, look);
    trigger(3);
    ASSERT_TRUE(eventually([&] { return rig.counter("dropped_events") == 1; }));
  }
  EXPECT_TRUE(stored);
  EXPECT_EQ(counted, 0u);
  EXPECT_TRUE(rig.tx_events.queue->status(lane).unackd_dropped);
}

}  // namespace
}  // namespace doorbell::cxi
