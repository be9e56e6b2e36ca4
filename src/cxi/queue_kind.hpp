// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The kinds of command queues.
#pragma once

namespace doorbell::cxi {

/// The kinds of command queues, by Cassini's names.
enum class CommandQueueKind {
  transmit,   ///< puts, gets, IDC
  triggered,  ///< counter commands
  target,     ///< append, set state: commands to the endpoint's own portals entries
};

}  // namespace doorbell::cxi
