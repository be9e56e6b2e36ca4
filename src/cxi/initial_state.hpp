// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The states of queues that have just been created, with addresses for their initiator.
#pragma once

#include <doorbell/cxi/command_queue.hpp>
#include <doorbell/cxi/event_queue.hpp>

#include "cxi/cassini.hpp"

namespace doorbell::cxi {

[[nodiscard]] inline EventQueueState initial_state(EventQueueObject& queue, Initiator initiator) {
  EventQueueState s;
  s.memory = queue.memory(initiator);
  return s;
}
[[nodiscard]] inline CommandQueueState initial_state(CommandQueueObject& queue, Initiator initiator) {
  CommandQueueState s;
  s.memory = queue.memory(initiator);
  return s;
}

}  // namespace doorbell::cxi
