// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Runs over a link that changes under them, or that others have shaped.
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <system_error>

#include "net/bench/cell_run.hpp"
#include "net/bench_run.hpp"
#include "net/raw_veth.hpp"
#include "system/child.hpp"

namespace doorbell::net {
namespace {

using LinkChanges = test_packets::OnVeth;

/// Repeats that were measured before a link has gone are the result.
TEST_F(LinkChanges, AnInterfaceThatGoesInMidRunLeavesTheRepeatsBefore) {
  for (const bool removed : {true, false}) {
    SCOPED_TRACE(removed);
    BenchOptions o = options_of("raw", 1000, 0);
    o.link = "veth";
    o.engine = "af_packet";
    o.duration_s = 0.05;
    o.repeats = 1'000'000;
    const std::shared_ptr<Link> own = open_link({.spec = "veth"});
    bool done = false;
    const measure::RunWatch watch = {.progress = [&](double, const std::string& what) {
      if (done || what.find("repeat 3 of") == std::string::npos) return;
      done = true;
      own->in(End::tx, [&] {
        netlink::Interfaces i;
        const netlink::Interface it = i.get(own->interface(End::tx));
        if (removed) i.remove(it);
        else i.set_up(it, false);
      });
    }};
    measure::BenchResult r;
    CellRun(o, cells_of(o).front(), watch, nullptr, own).run(r);
    ASSERT_EQ(r.cells.size(), 1u);
    EXPECT_TRUE(r.failed);
    EXPECT_EQ(r.stop_reason, StopReason::broken);
    EXPECT_GE(r.cell().repeats.size(), 2u);
    EXPECT_LT(r.cell().repeats.size(), 1000u);
    EXPECT_GT(r.cell().metrics.ops, 0u);
    EXPECT_EQ(r.cell().errors.at("completion"), 1u);
    EXPECT_EQ(r.cell().extra.at("link").contains("gone"), removed);
    EXPECT_TRUE(!removed || r.cell().extra.at("drops").at("unexplained").is_null());
    for (const std::string& w : r.warnings) EXPECT_EQ(w.find("others use the link"), std::string::npos) << w;
  }
}

/// The link's MTU falls below a packet's size in mid-run, at one end.
measure::BenchResult run_with_mtu_changed(const std::string& stream, const std::string& engine, End end) {
  BenchOptions o = options_of(stream, 1000, 0);
  o.link = "veth";
  o.engine = engine;
  o.duration_s = 0.05;
  o.repeats = 5;
  o.timeout_s = 1;
  o.target_gbps = 0.02;
  const std::shared_ptr<Link> own = open_link({.spec = "veth"});
  bool done = false;
  const measure::RunWatch watch = {.progress = [&](double, const std::string& what) {
    if (done || what.find("repeat 3 of") == std::string::npos) return;
    done = true;
    own->in(end, [&] {
      netlink::Interfaces i;
      i.set_mtu(i.get(own->interface(end)), 600);
    });
  }};
  measure::BenchResult r;
  CellRun(o, cells_of(o).front(), watch, nullptr, own).run(r);
  EXPECT_TRUE(done);
  return r;
}

/// Who is told that packets do not fit ends the run, whose repeats are kept; else the interface's counter
/// explains what is lost, once although both ends of a pair count it.
TEST_F(LinkChanges, AnMtuThatFallsInMidRun) {
  for (const auto& [stream, engine] :
       {std::pair{"raw", "af_packet"}, {"raw", "af_xdp"}, {"udp", ""}, {"tcp", ""}})
    for (const End end : {End::tx, End::rx}) {
      SCOPED_TRACE(fmt::format("{} {} {}", stream, engine, static_cast<int>(end)));
      const measure::BenchResult r = run_with_mtu_changed(stream, engine, end);
      ASSERT_EQ(r.cells.size(), 1u);
      const auto& cell = r.cell();
      const auto& drops = cell.extra.at("drops");
      EXPECT_GE(cell.repeats.size(), 2u);
      EXPECT_EQ(r.stop_reason == StopReason::done, cell.repeats.size() == 5u) << report::name(r.stop_reason);
      EXPECT_EQ(r.failed, r.stop_reason != StopReason::done);
      EXPECT_EQ(drops.at("unexplained"), 0u) << drops.dump();
      EXPECT_EQ(drops.at("interface"), cell.extra.at("net").at("lost")) << drops.dump();
      // An AF_XDP socket hands its frames to the driver, and hears nothing of what becomes of them.
      if (std::string_view(engine) == "af_xdp" && end == End::rx) {
        EXPECT_GT(drops.at("interface"), 0u);
      }
      for (const std::string& w : r.warnings) EXPECT_EQ(w.find("more were dropped"), std::string::npos) << w;
    }
}

/// Drops of the queueing discipline in front of the sending interface are found there.
TEST_F(LinkChanges, DropsOfAShapedInterfaceAreExplained) {
  const std::shared_ptr<Link> own = open_link({.spec = "veth"});
  try {
    Child tc({"tc", "qdisc", "add", "dev", own->interface(End::tx), "root", "tbf", "rate", "100mbit", "burst",
              "64k", "latency", "2ms"},
             {}, "", own->network_namespace(End::tx));
    ASSERT_TRUE(tc.wait(60));
    if (tc.exit_code() != 0) GTEST_SKIP() << "no such discipline here: " << tc.errors();
  } catch (const std::system_error& e) {
    GTEST_SKIP() << "tc cannot be started: " << e.what();
  }
  BenchOptions o = options_of("udp", 1000, 0);
  o.link = "veth";
  o.duration_s = 0.3;
  o.settle_s = 0.5;
  measure::BenchResult r;
  CellRun(o, cells_of(o).front(), {}, nullptr, own).run(r);
  const auto& cell = r.cell();
  EXPECT_GT(cell.extra.at("net").at("lost"), 0u);
  EXPECT_GT(cell.extra.at("drops").at("queue"), 0u);
  EXPECT_EQ(cell.extra.at("drops").at("unexplained"), 0u) << cell.extra.at("drops").dump();
  EXPECT_FALSE(r.failed) << cell.extra.dump(1);
}

}  // namespace
}  // namespace doorbell::net
