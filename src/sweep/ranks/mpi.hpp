// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// MPI, opened at run time, for the one thing that only it can do: tell every rank where rank 0 is.
#pragma once

#include <doorbell/config.hpp>

#include <string>
#include <vector>

#include "measure/stop.hpp"
#include "sweep/ranks/launcher.hpp"

namespace doorbell::sweep {

/// Bytes of one rank's word.
inline constexpr std::size_t kMaxWord = 4000;

/// Gives every rank the words of all ranks, by rank number. MPI works in a child process that ends with this
/// call: its threads, its signal handlers and its memory hooks are no part of what is measured later, and a
/// library that hangs can be ended. Throws doorbell::Error: no MPI library, one of an unknown binary
/// interface, one that another launcher belongs to, a rank that does not come within `limit_s`. Call it while
/// the process has one thread.
[[nodiscard]] std::vector<std::string> exchange_words(const Launcher& launcher, const std::string& mine,
                                                      double limit_s, const measure::StopFlag* stop);

}  // namespace doorbell::sweep
