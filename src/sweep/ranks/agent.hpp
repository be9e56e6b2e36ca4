// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The work of a rank: it starts the ends of runs as rank 0 says, each in a process of its own.
#pragma once

#include "exchange/exchange.hpp"
#include "measure/stop.hpp"

namespace doorbell::sweep {

/// Time for a process to start and to listen, also on a busy machine.
inline constexpr double kStart_s = 60;
/// How long a rank may be without work: rank 0 is with other ranks. A rank 0 that has died is noticed at
/// once, one whose machine has died by TCP's keep-alive.
inline constexpr double kIdle_s = 30 * 86400.0;

/// Works until rank 0 says that all is done, or until Ctrl-C and a time for that. Throws doorbell::Error if
/// rank 0 goes.
void work_for(exchange::Exchange& zero, measure::StopFlag* stop);

}  // namespace doorbell::sweep
