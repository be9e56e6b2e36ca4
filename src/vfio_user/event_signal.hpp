// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Adds to eventfds of another process without ever waiting. A write waits where the count is full, unless
// O_NONBLOCK is set, and that flag is not this process's alone: whoever sent the descriptor can clear it at
// any time. The kernel itself does not wait when it tells an eventfd that a request of aio has ended, so the
// count is raised by a request that ends at once.
#pragma once

#include <linux/aio_abi.h>

#include "system/descriptor.hpp"

namespace doorbell::vfio_user {

class EventSignal {
 public:
  EventSignal();
  ~EventSignal();
  EventSignal(const EventSignal&) = delete;
  EventSignal& operator=(const EventSignal&) = delete;

  /// False where the kernel lets this process have no aio: then add() is a write.
  [[nodiscard]] bool never_waits() const { return context_ != 0; }
  /// Adds 1. False: `eventfd` is none, or, of a write, it is full. Any threads; does not throw.
  [[nodiscard]] bool add(int eventfd) noexcept;

 private:
  [[nodiscard]] bool submit(int eventfd) noexcept;

  Descriptor empty_;  ///< a file whose reads end at once, with nothing
  aio_context_t context_ = 0;
};

}  // namespace doorbell::vfio_user
