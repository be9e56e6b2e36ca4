// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Several flows of control that take turns on one thread. Sanitizers are told of each switch: to
// ThreadSanitizer every fiber is a thread, and a switch orders nothing.
#pragma once

#include <pthread.h>
#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace doorbell {

class Fiber {
 public:
  /// The thread's own flow.
  Fiber() {
#if defined(__SANITIZE_ADDRESS__)
    pthread_attr_t attributes;
    void* bottom = nullptr;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      (void)pthread_attr_getstack(&attributes, &bottom, &stack_bytes_);
      (void)pthread_attr_destroy(&attributes);
    }
    bottom_ = bottom;
#endif
#if defined(__SANITIZE_THREAD__)
    identity_ = __tsan_get_current_fiber();
#endif
  }
  /// Begins with run(argument) when it is first switched to. `run` must not return: it ends by a switch.
  Fiber(void (*run)(void*), void* argument)
      : run_(run), argument_(argument), stack_(new std::byte[kStackBytes]), stack_bytes_(kStackBytes) {
    bottom_ = stack_.get();
    if (getcontext(&context_) != 0) std::abort();
    context_.uc_stack.ss_sp = stack_.get();
    context_.uc_stack.ss_size = kStackBytes;
    context_.uc_link = nullptr;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::begin), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self));
#if defined(__SANITIZE_THREAD__)
    identity_ = __tsan_create_fiber(0);
#endif
  }
  ~Fiber() {
#if defined(__SANITIZE_THREAD__)
    if (stack_) __tsan_destroy_fiber(identity_);
#endif
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// From this fiber, which runs, to another. Returns when somebody switches back. What it reads of the two
  /// is ordered by the turns that they take, which ThreadSanitizer is not to know of.
  __attribute__((no_sanitize("thread"))) void switch_to(Fiber& to) {
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, to.bottom_, to.stack_bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(to.identity_, __tsan_switch_to_fiber_no_sync);
#endif
    go_to(to);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  }

 private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    (defined(_FORTIFY_SOURCE) && _FORTIFY_SOURCE > 0)
  // Sanitizers know the stacks of contexts, not those of jumps, and a fortified longjmp() ends a program that
  // leaves its stack. ThreadSanitizer counts the calls of each fiber: this one begins in one and returns in
  // another.
  __attribute__((no_sanitize("thread"))) void go_to(Fiber& to) {
    if (swapcontext(&context_, &to.context_) != 0) std::abort();
  }
#else
  // swapcontext() asks the kernel for the mask of signals, twice a switch, which is most of its time. So a
  // context only begins a fiber.
  void go_to(Fiber& to) {
    if (_setjmp(place_) != 0) return;
    left_ = true;
    if (to.left_) _longjmp(to.place_, 1);
    setcontext(&to.context_);
    std::abort();
  }
  jmp_buf place_;
  bool left_ = false;
#endif

  // AddressSanitizer clears the notes of the whole stack with each swapcontext: 8 KiB of them. From 512 KiB
  // of stack on it maps new memory for them each time.
  static constexpr std::size_t kStackBytes = 64 << 10;

  static void begin(unsigned high, unsigned low) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
    auto* const self = reinterpret_cast<Fiber*>(static_cast<std::uintptr_t>(high) << 32 | low);
    self->run_(self->argument_);
    std::abort();
  }

  ucontext_t context_{};
  void (*run_)(void*) = nullptr;
  void* argument_ = nullptr;
  std::unique_ptr<std::byte[]> stack_;
  const void* bottom_ = nullptr;
  std::size_t stack_bytes_ = 0;
#if defined(__SANITIZE_THREAD__)
  void* identity_ = nullptr;
#endif
};

/// Actions before order_before(word) happen before those that follow order_after(word): for ThreadSanitizer,
/// where nothing else says so.
inline void order_before([[maybe_unused]] void* word) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(word);
#endif
}
inline void order_after([[maybe_unused]] void* word) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(word);
#endif
}

}  // namespace doorbell
