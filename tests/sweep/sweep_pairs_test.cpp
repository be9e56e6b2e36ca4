// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Cells between two ranks of an MPI launcher: which pairs there are, and what a plan says of them.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <set>

#include "errors.hpp"
#include "sweep/cells.hpp"
#include "sweep/pairs.hpp"
#include "sweep/ranks/addresses.hpp"
#include "sweep/ranks/launcher.hpp"
#include "sweep_subject.hpp"

namespace doorbell::sweep {
namespace {

using test::error_of;
using test::expect_says;

std::vector<std::string> hosts_of(u32 n) {
  std::vector<std::string> hosts;
  for (u32 i = 0; i < n; ++i) hosts.push_back(fmt::format("node{}", i));
  return hosts;
}

TEST(SweepPairs, EveryPairMeetsOnceInEachDirectionAndASlotSharesNoRank) {
  for (u32 ranks = 2; ranks <= 17; ++ranks)
    for (const bool both : {true, false}) {
      std::set<std::pair<u32, u32>> met;
      std::set<std::pair<u32, u32>> busy;  // slot and rank
      u32 last = 0;
      PairPlan plan;
      plan.both_directions = both;
      for (const Pair& p : tournament(hosts_of(ranks), plan)) {
        EXPECT_NE(p.from.rank, p.to.rank);
        EXPECT_EQ(p.from.host, fmt::format("node{}", p.from.rank));
        EXPECT_TRUE(met.emplace(p.from.rank, p.to.rank).second) << ranks;
        EXPECT_TRUE(busy.emplace(p.slot, p.from.rank).second) << ranks;
        EXPECT_TRUE(busy.emplace(p.slot, p.to.rank).second) << ranks;
        EXPECT_GE(p.slot, last);
        last = p.slot;
        if (!both) {
          EXPECT_LT(p.from.rank, p.to.rank);
        }
      }
      const u32 pairs = ranks * (ranks - 1) / 2, slots = ranks - 1 + ranks % 2;
      EXPECT_EQ(met.size(), both ? 2 * pairs : pairs) << ranks;
      EXPECT_EQ(last + 1, both ? 2 * slots : slots) << "the fewest slots in which all can meet, " << ranks;
    }
  EXPECT_TRUE(tournament(hosts_of(1), {}).empty());
}

/// The sample command as one that has two ends, of which the listening one takes the device.
const std::vector<Subject>& subjects_of_two() {
  static const std::vector<Subject> all = [] {
    Subject s = sample_subject();
    s.table.add({.name = "listen", .kind = options::Kind::text})
        .add({.name = "connect", .kind = options::Kind::text});
    const options::OptionTable table = s.table;
    s.parse = [table](const std::vector<std::string>& words) {
      options::Options o(table);
      for (const std::string& word : words) {
        const auto equals = word.find('=');
        o.set(word.substr(2, equals - 2), equals == std::string::npos ? "" : word.substr(equals + 1));
      }
      if (o.has("listen") && o.text("device") == "deaf") throw Error("--device", "nobody reaches it");
      return o;
    };
    s.listening = {"device"};
    Subject alone = sample_subject();
    alone.name = "alone";
    return std::vector<Subject>{s, alone};
  }();
  return all;
}

Plan plan_of_two(const std::string& rest, const std::string& command = "rdma") {
  return parse_plan("name: n\ncommand: " + command + "\n" + rest, "p.yaml", subjects_of_two());
}

TEST(SweepPairs, APlanSaysHow) {
  EXPECT_FALSE(plan_of_two("").pairs);
  const Plan plain = plan_of_two("pairs: {}\n");
  ASSERT_TRUE(plain.pairs);
  EXPECT_TRUE(plain.pairs->both_directions);
  EXPECT_FALSE(plain.pairs->disjoint);
  const Plan all = plan_of_two("pairs: {directions: one, at-once: disjoint, network: 10.0.0.0/8}\n");
  EXPECT_FALSE(all.pairs->both_directions);
  EXPECT_TRUE(all.pairs->disjoint);
  EXPECT_EQ(all.pairs->network, "10.0.0.0/8");
}

TEST(SweepPairs, ABadPlanIsRefusedWithTheReason) {
  const auto refused = [](const std::string& rest, const std::string& command = "rdma") {
    return error_of([&] { (void)plan_of_two(rest, command); });
  };
  expect_says(refused("pairs: {direction: one}\n"), "did you mean 'directions'?");
  expect_says(refused("pairs: {directions: on}\n"), "did you mean 'one'?");
  expect_says(refused("pairs: {network: 10.0.0.0}\n"), "is no network ADDRESS/BITS");
  expect_says(refused("pairs: {network: 10.0.0.0/33}\n"), "p.yaml:3: pairs.network");
  expect_says(refused("pairs: {}\n", "alone"), "doorbell alone has no --listen and --connect");
  expect_says(refused("options: {connect: there}\npairs: {}\n"), "the key 'pairs' sets it");
}

TEST(SweepPairs, CellsAreThoseOfEachPair) {
  const Plan plan = plan_of_two("options: {device: d}\nmatrix: {size: [64, 4096]}\npairs: {}\n");
  EXPECT_EQ(varied(plan), (std::vector<std::string>{"size", "from", "to"}));
  const std::vector<Cell> cells = expand_pairs(plan, expand(plan), {"a", "b", "b"});
  ASSERT_EQ(cells.size(), 12u);
  for (u32 i = 0; i < cells.size(); ++i) EXPECT_EQ(cells[i].index, i);
  EXPECT_EQ(value_of(cells[0], "size"), "64");
  EXPECT_EQ(value_of(cells[6], "size"), "4096");
  EXPECT_EQ(listening_arguments(plan, cells[6]), (std::vector<std::string>{"--device=d"}));
  for (const std::string& word : cells[6].arguments) EXPECT_EQ(word.find("connect"), std::string::npos);
  EXPECT_EQ(select(plan, cells, "from=0,to=2").size(), 2u);
  EXPECT_EQ(select(plan, cells, "from=b").size(), 8u) << "two ranks of one host";
  EXPECT_EQ(select(plan, cells, "from=b:2,size=64").size(), 2u);
  expect_says(error_of([&] { (void)select(plan, cells, "from=c"); }), "none of the 12 cells fits");
}

TEST(SweepPairs, WhatTheListeningEndRefusesIsSaidBeforeAnythingRuns) {
  const Plan plan = plan_of_two("options: {device: deaf}\npairs: {}\n");
  const std::vector<Cell> cells = expand(plan);
  expect_says(error_of([&] { (void)expand_pairs(plan, cells, {}); }),
              "cell 1, the listening end (--device=deaf --listen=0)");
}

TEST(SweepPairs, TooManyRunsAreRefused) {
  const Plan plan = plan_of_two("pairs: {}\nrounds: 2\n");
  const std::vector<Cell> cells = expand(plan);
  expect_says(error_of([&] { (void)expand_pairs(plan, cells, hosts_of(80)); }), "more than 10000 runs");
}

TEST(SweepPairs, AShuffledOrderKeepsPairsOfASlotTogether) {
  const Plan plan = plan_of_two("pairs: {at-once: disjoint}\norder: shuffled\nrounds: 2\n");
  const std::vector<Cell> cells = expand_pairs(plan, expand(plan), hosts_of(6));
  std::vector<u32> all;
  for (const Cell& cell : cells) all.push_back(cell.index);
  std::vector<Turn> order = turns(plan, all, 3);
  join_groups(cells, &order);
  ASSERT_EQ(order.size(), 60u);
  std::set<std::pair<u32, u32>> seen;
  for (std::size_t at = 0; at < order.size();) {
    const std::size_t together = group_at(cells, order, at);
    EXPECT_EQ(together, 3u) << "six ranks are three pairs";
    EXPECT_TRUE(seen.emplace(order[at].round, cells[order[at].cell].group).second);
    at += together;
  }
  EXPECT_EQ(order.front().round, 0u);
  EXPECT_EQ(order.back().round, 1u);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.begin() + 30,
                              [](const Turn& a, const Turn& b) { return a.cell < b.cell; }));
}

TEST(SweepPairs, AnAddressLiesInItsNetworks) {
  EXPECT_TRUE(in_network("10.1.2.3", "10.0.0.0/8"));
  EXPECT_FALSE(in_network("11.1.2.3", "10.0.0.0/8"));
  EXPECT_TRUE(in_network("10.1.2.191", "10.1.2.128/26"));
  EXPECT_FALSE(in_network("10.1.2.192", "10.1.2.128/26"));
  EXPECT_TRUE(in_network("11.1.2.3", "0.0.0.0/0"));
  EXPECT_TRUE(in_network("fd00::7", "fd00::/64"));
  EXPECT_FALSE(in_network("10.1.2.3", "fd00::/64"));
  EXPECT_FALSE(in_network("nowhere", "10.0.0.0/8"));
  for (const char* bad : {"", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/8x", "host/8", "fd00::/129"})
    EXPECT_THROW(check_network(bad), std::invalid_argument) << bad;
}

/// The environment as a launcher sets it, for as long as this lives.
class Variables {
 public:
  Variables(std::initializer_list<std::pair<const char*, const char*>> set) {
    for (const char* name : kAll) ::unsetenv(name);
    for (const auto& [name, value] : set) ::setenv(name, value, 1);
  }
  ~Variables() {
    for (const char* name : kAll) ::unsetenv(name);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  static constexpr std::array kAll = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
                                      "SLURM_PROCID",         "SLURM_NTASKS",         "PMIX_RANK"};
};

TEST(SweepRanks, TheLaunchersVariablesAreRead) {
  {
    const Variables none({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}});
    EXPECT_FALSE(launcher()) << "a batch script is no rank";
  }
  {
    const Variables open_mpi({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}});
    ASSERT_TRUE(launcher());
    EXPECT_EQ(launcher()->name, "Open MPI");
    EXPECT_EQ(launcher()->rank, 2u);
    EXPECT_EQ(launcher()->size, 3u);
  }
  {
    const Variables pmix({{"PMIX_RANK", "1"}, {"SLURM_NTASKS", "2"}});
    ASSERT_TRUE(launcher());
    EXPECT_EQ(launcher()->name, "Open MPI");
  }
  {
    const Variables mpich({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}});
    ASSERT_TRUE(launcher());
    EXPECT_EQ(launcher()->name, "MPICH");
  }
  const Variables bad({{"PMI_RANK", "1"}, {"PMI_SIZE", "1"}});
  expect_says(error_of([] { (void)launcher(); }), "rank 1 of 1 ranks");
  const Variables worse({{"PMI_RANK", "x"}, {"PMI_SIZE", "1"}});
  expect_says(error_of([] { (void)launcher(); }), "PMI_RANK: 'x' is no number from 0");
}

}  // namespace
}  // namespace doorbell::sweep
