// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One cell between two ranks: one listens, the other connects.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sweep/pairs.hpp"
#include "sweep/process.hpp"
#include "sweep/ranks/team.hpp"

namespace doorbell::sweep {

/// The words of both processes, without the addresses.
struct PairWords {
  std::vector<std::string> client;  ///< "net", "--stream=tcp", ...
  std::vector<std::string> server;
};

/// Runs it. Whatever goes wrong with one of the two ranks is the outcome; a rank that does not answer in time
/// or has gone takes no more part (Member::gone). `stop` is asked again and again. The two members belong to
/// this call while it runs.
[[nodiscard]] Outcome run_pair(Team& team, const Pair& pair, const PairWords& words, double limit_s,
                               const std::function<bool()>& stop);

}  // namespace doorbell::sweep
