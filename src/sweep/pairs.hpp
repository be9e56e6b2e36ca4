// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Which ranks of an MPI launcher a sweep's cells run between.
#pragma once

#include <doorbell/config.hpp>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace doorbell::sweep {

/// A plan's key 'pairs'.
struct PairPlan {
  bool both_directions = true;  ///< false: of two ranks only the lower one sends
  bool disjoint = false;        ///< pairs that share no rank run at the same time
  std::string network;          ///< "192.0.2.0/24": the network whose addresses are used; empty: any
};

/// One end of a pair.
struct RankName {
  u32 rank = 0;
  std::string host;
  /// "node7:2"; hosts may have several ranks.
  [[nodiscard]] std::string text() const;
};

/// `from` is the client, which sends and reports; `to` listens.
struct Pair {
  RankName from;
  RankName to;
  u32 slot = 0;  ///< pairs of one slot share no rank
};

/// Every pair of ranks, slot after slot: a round-robin tournament, so that in each slot every rank is in one
/// pair at most. `hosts` has the host of each rank.
[[nodiscard]] std::vector<Pair> tournament(const std::vector<std::string>& hosts, const PairPlan& plan);

/// The names under which a cell's label, --only and the table have the two ends.
inline constexpr const char* kFrom = "from";
inline constexpr const char* kTo = "to";

/// The pair as members of a JSON object: from_rank, from_host, to_rank, to_host; `joint` is '_' or '-'.
void add_pair(nlohmann::ordered_json* object, const Pair& pair, char joint);

}  // namespace doorbell::sweep
