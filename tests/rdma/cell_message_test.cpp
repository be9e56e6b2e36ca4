// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The message in which a client describes a cell to the server: it arrives complete, and messages that no
// client of this version sends are refused.

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include "rdma/remote_server.hpp"
#include "rma/cell_setup.hpp"

namespace doorbell::rdma {
namespace {

using Json = nlohmann::ordered_json;

BenchOptions options(Op op, u32 bytes) {
  BenchOptions o;
  o.provider = Provider::verbs;
  o.ends = Ends::remote;
  o.op = op;
  o.sizes = {bytes};
  o.queues = 3;
  o.seed = 77;
  o.timeout_s = 1.5;
  o.connection.retry_count = 2;
  return o;
}

struct Served {
  BenchOptions options;
  CellSetup plan;
};
Served served(const Json& message) {
  Served s;
  read_cell_message(message, &s.options, &s.plan);
  return s;
}
std::string refusal(const Json& message) {
  try {
    (void)served(message);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
void expect_refused(Json message, const char* key, const Json& value, const std::string& part) {
  ASSERT_TRUE(message.contains(key));
  message[key] = value;
  EXPECT_NE(refusal(message).find(part), std::string::npos) << message.dump() << ": " << refusal(message);
}

TEST(RdmaCellMessage, WhatTheServerDoesFollowsFromIt) {
  BenchOptions o = options(Op::send, 4096);
  o.batch = 8;
  o.in_flight = 32;
  const Served s = served(cell_message(o, o.connection, set_up_cell(o, Part::rate, 4096)));
  EXPECT_EQ(s.options.op, Op::send);
  EXPECT_EQ(s.options.seed, 77u);
  EXPECT_EQ(s.options.ends, Ends::remote);
  EXPECT_NEAR(s.options.timeout_s, 1.5, 1e-9);
  EXPECT_EQ(s.plan.bytes, 4096u);
  EXPECT_EQ(s.plan.window, 32u);
  EXPECT_EQ(s.plan.batch, 8u);
  EXPECT_EQ(s.plan.shape.role, Role::responder);
  EXPECT_EQ(s.plan.shape.queues, 3u);
  EXPECT_EQ(s.plan.shape.window, 64u) << "receives for what follows, too";
  EXPECT_EQ(s.options.connection.retry_count, 2u);
  EXPECT_FALSE(s.plan.shape.ping_pong);
}

TEST(RdmaCellMessage, OfAPingPong) {
  BenchOptions o = options(Op::write, 8);
  o.ping_pong = true;
  o.signal_every = 5;
  const Served s = served(cell_message(o, o.connection, set_up_cell(o, Part::ping_pong, 8)));
  EXPECT_TRUE(s.plan.shape.ping_pong);
  EXPECT_EQ(s.plan.shape.queues, 1u);
  EXPECT_EQ(s.plan.signal_every, 5u);
  EXPECT_EQ(s.plan.shape.requests, 10u);
  EXPECT_FALSE(s.plan.inlined);
  EXPECT_EQ(s.plan.shape.max_inline, 0u);
}

TEST(RdmaCellMessage, AServerInlinesWhatItsClientInlines) {
  BenchOptions o = options(Op::write, 24);
  o.inline_below = 64;
  o.ping_pong = true;
  const Served s = served(cell_message(o, o.connection, set_up_cell(o, Part::ping_pong, 24)));
  EXPECT_TRUE(s.plan.inlined);
  EXPECT_EQ(s.plan.shape.max_inline, 24u) << "no more than its payloads need";
  o.ping_pong = false;
  const Json one_way = cell_message(o, o.connection, set_up_cell(o, Part::latency, 24));
  EXPECT_FALSE(served(one_way).plan.inlined) << "it sends nothing itself";
  expect_refused(one_way, "inlined", true, "inline");
}

TEST(RdmaCellMessage, FieldsOutOfRangeAreNamed) {
  const BenchOptions o = options(Op::write, 64);
  const Json good = cell_message(o, o.connection, set_up_cell(o, Part::rate, 64));
  ASSERT_EQ(refusal(good), "");
  for (const auto& [key, value] : good.items()) {
    expect_refused(good, key.c_str(), "text", "'" + key + "'");
    expect_refused(good, key.c_str(), -1, "'" + key + "'");
    Json without = good;
    without.erase(key);
    EXPECT_NE(refusal(without).find("'" + key + "'"), std::string::npos) << key;
  }
  expect_refused(good, "window", 0u, "'window'");
  expect_refused(good, "window", 1025u, "'window'");
  expect_refused(good, "batch", good.at("window").get<u32>() + 1, "'batch'");
  expect_refused(good, "signal_every", 0u, "'signal_every'");
  expect_refused(good, "queue_pairs", 1025u, "'queue_pairs'");
  expect_refused(good, "bytes", u64{1} << 31, "'bytes'");
  expect_refused(good, "op", 99u, "'op'");
}

TEST(RdmaCellMessage, OfAPhase) {
  const PhaseMessage p = read_phase_message(phase_message({u64{5} << 32, ~u64{0}}));
  EXPECT_EQ(p.generation, u64{5} << 32);
  EXPECT_EQ(p.count, ~u64{0});
  for (const char* bad :
       {"{}", R"({"generation":1})", R"({"generation":1,"count":-1})", R"({"generation":"1","count":1})"})
    EXPECT_THROW((void)read_phase_message(Json::parse(bad)), Error) << bad;
}

/// A key more or less is another version of the exchange.
TEST(RdmaCellMessage, OfWhatAResponderHasCounted) {
  OpStats s;
  u64 n = 0;
  for (const auto field :
       {&OpCounters::posted, &OpCounters::succeeded, &OpCounters::failed, &OpCounters::timed_out,
        &OpCounters::aborted, &OpCounters::skipped, &OpCounters::protocol, &OpCounters::unchecked,
        &OpCounters::checked, &OpCounters::corrupt, &OpCounters::misplaced, &OpCounters::stale,
        &OpCounters::duplicated, &OpCounters::missing})
    s.*field = ++n;
  const Json m = stats_message(s);
  EXPECT_EQ(m.size(), n + 2) << "the counters, statuses and failures: " << m;
  EXPECT_EQ(m["timed_out"], 4);
  EXPECT_EQ(stats_message(read_stats_message(m)), m);
}

TEST(RdmaCellMessage, WhatDoesNotGoTogether) {
  BenchOptions o = options(Op::write, 64);
  expect_refused(cell_message(o, o.connection, set_up_cell(o, Part::rate, 64)), "one_offset", true,
                 "share their bytes");
  o.verify = false;
  const Json ping_pong = cell_message(o, o.connection, set_up_cell(o, Part::ping_pong, 64));
  ASSERT_EQ(refusal(ping_pong), "");
  expect_refused(ping_pong, "one_offset", true, "ping-pong");
  expect_refused(ping_pong, "op", static_cast<u32>(Op::read), "ping-pong");
  expect_refused(ping_pong, "bytes", 0u, "ping-pong");
  expect_refused(ping_pong, "window", 1u, "ping-pong");
}

}  // namespace
}  // namespace doorbell::rdma
