// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/remote_server.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <cmath>

#include "exchange/fields.hpp"
#include "exchange/message_fields.hpp"
#include "measure/counters.hpp"
#include "rdma/swap.hpp"
#include "rma/ping_pong_end.hpp"

namespace doorbell::rdma {

namespace {

using Json = nlohmann::ordered_json;
using exchange::number;
using exchange::small;

/// Whether a responder reports it: it measures no time, and knows all data that it checks.
bool reports(const measure::OpCounter& c) {
  using enum measure::CounterClass;
  return (c.is == operations || c.is == error || c.is == check || c.is == failure) &&
         c.field != &OpCounters::late && c.field != &OpCounters::unverifiable &&
         c.field != &OpCounters::old_version;
}

constexpr u32 kMostOps = static_cast<u32>(Op::compare_swap);
constexpr u32 kMostQueuePairs = 1024;
constexpr u32 kMostVerdict = static_cast<u32>(pattern::Verdict::corrupt);

/// The fields that describe a cell to the server; see FieldWriter.
template <class Fields, class Options, class Connection, class Setup>
void cell_fields(Fields& f, Options& o, Connection& n, Setup& c) {
  f.choice("op", o.op, kMostOps + 1);
  f.number("bytes", c.bytes, 0, kMaxMessage);
  f.number("batch", c.batch, 1, kMaxWindow);
  f.number("window", c.window, 1, kMaxWindow);
  f.number("signal_every", c.signal_every, 1, kMaxWindow);
  f.flag("one_offset", c.shape.one_offset);
  f.flag("ping_pong", c.shape.ping_pong);
  f.flag("inlined", c.inlined);
  f.number("queue_pairs", c.shape.queues, 1, kMostQueuePairs);
  f.number("seed", o.seed, 0, ~u64{0});
  f.flag("verify", o.verify);
  f.number("mtu", n.mtu, 0, 4096);
  f.number("ack_timeout", n.timeout, 0, 31);
  f.number("retry_count", n.retry_count, 0, 7);
  f.number("rnr_retry", n.rnr_retry, 0, 7);
  f.number("min_rnr_timer", n.min_rnr_timer, 0, 31);
  f.number("max_rd_atomic", n.max_rd_atomic, 1, 128);
}

}  // namespace

Json cell_message(const rma::BenchOptions& o, const ConnectionOptions& n, const CellSetup& c) {
  CellSetup sent = c;
  sent.inlined = c.shape.ping_pong && c.inlined;  // concerns only what the server sends itself
  exchange::FieldWriter fields;
  cell_fields(fields, o, n, std::as_const(sent));
  Json m = fields.take();
  m["timeout_ns"] = static_cast<u64>(o.timeout_s * 1e9);
  return m;
}

void read_cell_message(const Json& m, BenchOptions* o, CellSetup* c) {
  exchange::FieldReader fields(m);
  cell_fields(fields, *o, o->connection, *c);
  o->timeout_s = static_cast<double>(number(m, "timeout_ns", 1, u64{86400} * 1'000'000'000)) * 1e-9;
  o->ends = Ends::remote;
  if (c->batch > c->window)
    throw Error("the other end", fmt::format("its 'batch' is {}, not in 1..{}", c->batch, c->window));
  const bool ping_pong = c->shape.ping_pong, one_offset = c->shape.one_offset;
  if (ping_pong && (c->window != kPingPongSlots || !is_ping_pong_op(o->op) || one_offset ||
                    (o->op == Op::write && c->bytes == 0)))
    throw Error("the other end", "its ping-pong is not one of writes or sends");
  if (c->inlined && !ping_pong) throw Error("the other end", "this end sends nothing that it could inline");
  if (one_offset && o->verify) throw Error("the other end", "its operations share their bytes, unchecked");
  c->shape = {.ends = Ends::remote,
              .role = Role::responder,
              .queues = c->shape.queues,
              // Receives for operations in flight, and for those that follow before the server has looked. A
              // write with immediate has slots for those that follow in the memory to which it writes.
              .window = takes_receive(o->op) && o->op != Op::write_imm && !ping_pong
                            ? std::min(2 * c->window, kMaxWindow)
                            : c->window,
              .requests = ping_pong ? 2 * c->signal_every : 0,
              .target_slots = target_slots(o->op, Ends::remote, c->window),
              .one_offset = one_offset,
              .ping_pong = ping_pong,
              .receives = takes_receive(o->op),
              .bytes = c->bytes,
              .max_inline = c->inlined ? c->bytes : 0};
}

void connect_sessions(exchange::Exchange& exchange, NicQueues& queues, Session& session) {
  queues.connect(swap(exchange, queues.addresses()));
  session.use(swap(exchange, session.keys()));
}

Json phase_message(const PhaseMessage& p) {
  return {{"generation", p.generation}, {"count", p.count}};
}

PhaseMessage read_phase_message(const Json& m) {
  return {number(m, "generation", 0, ~u64{0}), number(m, "count", 0, ~u64{0})};
}

Json stats_message(const OpStats& s) {
  Json m = Json::object();
  for (const measure::OpCounter& c : measure::kCounters)
    if (reports(c)) m[c.name] = s.*c.field;
  m["statuses"] = Json::array();
  for (const OpStats::StatusCount& c : s.statuses)
    if (c.count > 0) m["statuses"].push_back({{"code", c.code}, {"count", c.count}});
  m["failures"] = Json::array();
  for (u32 i = 0; i < s.failures; ++i) {
    const OpStats::Failure& f = s.first_failures[i];
    m["failures"].push_back(
        {{"verdict", static_cast<u32>(f.verdict)}, {"address", f.address}, {"sequence", f.sequence}});
  }
  return m;
}

OpStats read_stats_message(const Json& m) {
  OpStats s;
  for (const measure::OpCounter& c : measure::kCounters)
    if (reports(c)) s.*c.field = number(m, c.name, 0, ~u64{0});
  const auto list = [&](const char* key) -> const Json& {
    const auto it = m.find(key);
    if (it == m.end() || !it->is_array() || it->size() > OpStats::kKept)
      throw Error("the other end",
                  fmt::format("its report has no list '{}' of at most {}", key, OpStats::kKept));
    return *it;
  };
  for (const Json& c : list("statuses"))
    count_status(s, static_cast<u16>(small(c, "code", 0, 0xffff)), number(c, "count", 0, ~u64{0}));
  for (const Json& f : list("failures"))
    s.first_failures[s.failures++] = {static_cast<pattern::Verdict>(small(f, "verdict", 0, kMostVerdict)),
                                      number(f, "address", 0, ~u64{0}), number(f, "sequence", 0, ~u64{0})};
  return s;
}

RemoteServer::RemoteServer(const exchange::SocketName& at, const std::string& setting, double limit_s,
                           const measure::StopFlag* stop, const ConnectionOptions& connection,
                           std::function<NicQueues&()> queues)
    : exchange_(exchange::Exchange::connect(kRunKind, at, limit_s, stop, setting)),
      grace_s_(limit_s),
      connection_(connection),
      queues_(std::move(queues)) {}

void RemoteServer::open(const rma::BenchOptions& options, const CellSetup& setup, Session& session) {
  exchange_.send("cell", cell_message(options, connection_, setup));
  connect_sessions(exchange_, queues_(), session);
  exchange_.barrier("connected");
}

void RemoteServer::begin(const PhaseMessage& phase) {
  exchange_.send("phase", phase_message(phase));
  (void)exchange_.receive("ready");
}

void RemoteServer::alive() {
  // During a phase the other end says nothing, unless it has failed: this throws with its reason.
  if (exchange_.pending()) (void)exchange_.receive("report");
  alive_.send();
}

measure::PhaseOutcome RemoteServer::end(const measure::PhaseOutcome& mine) {
  exchange_.wait_on_stop(grace_s_);
  Json posted = Json::array();
  for (const OpStats& q : mine.queues) posted.push_back(q.succeeded);
  exchange_.send("done", {{"operations", posted}});
  const Json report = exchange_.receive("report");
  const auto queues = report.find("queues");
  if (queues == report.end() || !queues->is_array() || queues->size() != mine.queues.size())
    throw Error("the other end", "its report is not one of as many queue pairs");
  measure::PhaseOutcome theirs;
  for (const Json& q : *queues) theirs.queues.push_back(read_stats_message(q));
  return theirs;
}

void RemoteServer::finish() {
  exchange_.send("end", Json::object());
}

}  // namespace doorbell::rdma
