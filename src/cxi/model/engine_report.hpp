// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Facts that an engine tells of its objects.
#pragma once

#include <doorbell/cxi/types.hpp>

namespace doorbell::cxi {

/// A portals entry as it is between two rounds.
struct EntryReport {
  PtlteState state = PtlteState::reset;
  u32 buffers = 0;  ///< of all lists
};

}  // namespace doorbell::cxi
