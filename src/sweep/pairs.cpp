// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/pairs.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace doorbell::sweep {

std::string RankName::text() const {
  return fmt::format("{}:{}", host, rank);
}

std::vector<Pair> tournament(const std::vector<std::string>& hosts, const PairPlan& plan) {
  const auto ranks = static_cast<u32>(hosts.size());
  std::vector<Pair> found;
  if (ranks < 2) return found;
  // The circle method: one place is fixed, the others turn. With an odd number, who meets the place that is
  // too many rests.
  const u32 places = ranks + ranks % 2, turning = places - 1;
  const u32 directions = plan.both_directions ? 2 : 1;
  const auto name = [&](u32 rank) { return RankName{rank, hosts[rank]}; };
  for (u32 round = 0; round < turning; ++round) {
    std::vector<std::pair<u32, u32>> met;
    for (u32 i = 0; i < places / 2; ++i) {
      const u32 a = i == 0 ? turning : (round + i) % turning;
      const u32 b = (round + turning - i) % turning;
      if (a < ranks && b < ranks) met.emplace_back(std::min(a, b), std::max(a, b));
    }
    std::ranges::sort(met);
    for (u32 direction = 0; direction < directions; ++direction)
      for (const auto& [low, high] : met)
        found.push_back({name(direction == 0 ? low : high), name(direction == 0 ? high : low),
                         round * directions + direction});
  }
  return found;
}

void add_pair(nlohmann::ordered_json* object, const Pair& pair, char joint) {
  for (const auto& [end, name] : {std::pair(kFrom, &pair.from), std::pair(kTo, &pair.to)}) {
    (*object)[fmt::format("{}{}rank", end, joint)] = name->rank;
    (*object)[fmt::format("{}{}host", end, joint)] = name->host;
  }
}

}  // namespace doorbell::sweep
