// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/peer/remote.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "exchange/alive.hpp"
#include "exchange/fields.hpp"
#include "exchange/message_fields.hpp"
#include "net/peer/peer_link.hpp"
#include "net/settings.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net {

namespace {

using Json = nlohmann::ordered_json;
using exchange::flag;
using exchange::kOtherEnd;
using exchange::list;
using exchange::number;
using exchange::real;
using exchange::small;
using exchange::text;

constexpr u64 kAny = ~u64{0};
constexpr u64 kMostCounted = u64{1} << 56;  // in a year at 10^9 a second it is not reached, and sums fit
constexpr std::size_t kLongestText = 128;
constexpr double kAnswerS = 10;              // how much longer than its own limits the other end may take
constexpr double kLongestS = 366 * 86400.0;  // --infinite

Json counts_json(const ReceiveCounts& c) {
  Json j;
  for (const ReceiveCount& f : kReceiveCounts) j[f.key] = c.*f.count;
  return j;
}
ReceiveCounts read_counts(const Json& m) {
  ReceiveCounts c;
  for (const ReceiveCount& f : kReceiveCounts) c.*f.count = number(m, f.key, 0, kMostCounted);
  return c;
}

/// One clock counts for both ends only where they are on one machine.
std::string boot_id() {
  return read_line("/proc/sys/kernel/random/boot_id").value_or("");
}

constexpr u32 kLongestBatch = 16384;

/// The fields of a cell, for the other end; see FieldWriter.
template <class Fields, class Options, class Setup>
void cell_fields(Fields& f, Options& o, Setup& s) {
  f.text("stream", o.stream, kLongestText);
  f.text("engine", o.engine, kLongestText);
  f.number("payload_bytes", s.cell.payload, kHeaderBytes, 0x7fffffff);
  f.number("batch", s.cell.batch, 1, kLongestBatch);
  f.number("tx_queues", s.cell.tx_queues, 1, kMaxQueues);
  f.number("rx_queues", s.cell.rx_queues, 1, kMaxQueues);
  f.number("flows", s.cell.given_flows, 0, kMaxFlows);
  f.choice("encapsulation", o.encapsulation, encapsulation_names().size());
  f.either("rss", o.steering, Steering::rule, Steering::rss);
  f.choice("rss_fields", o.rss_fields, 2);
  f.number("run_tag", s.run_tag, 0, 0xffff);
  f.number("first_sequence", o.first_sequence, 0, kSequenceMask);
  f.number("seed", o.seed, 0, kAny);
  f.flag("verify", o.verify);
  f.real("verify_sample", o.verify_sample, 0, 1);
  f.real("late_after_s", o.late_after_s, 0, kLongestS);
  f.real("settle_s", o.settle_s, 0.001, 60);
  f.real("relay_delay_s", o.relay_delay_s, 0, 60);
  f.real("timeout_s", o.timeout_s, 0.001, kLongestS);
  f.flag("segmentation", o.segmentation);
  f.number("busy_poll_us", o.busy_poll_us, 0, 100'000);
  f.number("block_timeout_ms", o.block_timeout_ms, 1, 1000);
  f.number("socket_bytes", o.socket_bytes, 0, u64{1} << 30);
  auto& w = o.windows;
  f.flag("windows", w.on);
  f.choice("workload", w.workload, workload_names().size());
  f.number("workload_batch_bytes", w.batch_bytes, 0, u64{1} << 30);
  f.number("gemm_dim", w.gemm_dim, 0, kMaxGemmDim);
  f.number("window_packets", w.packets, 0, kMaxWindowPackets);
  f.number("windows_open", w.open, 1, kMaxOpenWindows);
  f.real("window_timeout_s", w.timeout_s, 0, 3600);
  f.either("missing_zero", w.missing, Missing::mark, Missing::zero);
  f.number("check_every", w.check_every, 0, ~0u);
  f.reals("faults", o.faults.probability, 0, 1);
}

}  // namespace

Json cell_message(const BenchOptions& o, const CellSetup& s) {
  BenchOptions sent = o;
  // The best engine for the sender's link is the receiver's engine too.
  if (const StreamKind& kind = kind_of(o); kind.frames && o.engine.empty()) sent.engine = kind.name;
  exchange::FieldWriter fields;
  cell_fields(fields, std::as_const(sent), s);
  Json m = fields.take();
  m["convert"] = o.windows.convert ? name(*o.windows.convert) : "";
  m["big_endian"] = o.windows.convert && o.windows.convert->big_endian;
  m["machine"] = boot_id();
  return m;
}

void read_cell_message(const Json& m, BenchOptions* o, CellSetup* s) {
  exchange::FieldReader fields(m);
  cell_fields(fields, *o, *s);
  const bool big_endian = flag(m, "big_endian");
  if (const std::string convert = text(m, "convert", kLongestText); !convert.empty()) {
    const auto at = std::ranges::find(conversion_names(), convert);
    if (at == conversion_names().end()) throw Error(kOtherEnd, "'convert' names no conversion");
    o->windows.convert = conversion(static_cast<u32>(at - conversion_names().begin()), big_endian);
  }
  o->one_clock = text(m, "machine", kLongestText) == boot_id();
  (void)kind_of(*o);  // throws for a stream that this program does not know
}

Json sent_message(const std::vector<u64>& sent) {
  return {{"sent", sent}};
}
std::vector<u64> read_sent_message(const Json& m, u32 flows) {
  std::vector<u64> sent;
  for (const Json& n : list(m, "sent", flows)) {
    if (!n.is_number_unsigned()) throw Error(kOtherEnd, "'sent' has something else than numbers");
    sent.push_back(n.get<u64>());
  }
  if (sent.size() != flows)
    throw Error(kOtherEnd, fmt::format("'sent' has not the {} flows of the run", flows));
  return sent;
}

Json phase_message(const ReceivePhase& p) {
  Json bins = Json::array();
  const auto counts = p.latency.counts();
  for (u32 i = 0; i < counts.size(); ++i)
    if (counts[i] != 0) bins.push_back({i, counts[i]});
  Json threads = Json::array();
  for (const ThreadUse& t : p.threads)
    threads.push_back({{"core", t.core},
                       {"user_s", t.cost.user_s},
                       {"system_s", t.cost.system_s},
                       {"elapsed_s", t.elapsed_s},
                       {"useful", t.useful}});
  return {{"counts", counts_json(p.counts)},
          {"begin_ns", p.begin_ns},
          {"elapsed_s", p.elapsed_s},
          {"timed_out", p.timed_out},
          {"away_s", p.away_s},
          {"latency_bins", bins},
          {"latency_min_ns", p.latency.min().value_or(0)},
          {"latency_max_ns", p.latency.max().value_or(0)},
          {"latency_mean_ns", p.latency.mean().value_or(0)},
          {"latency_std_ns", p.latency.std().value_or(0)},
          {"threads", threads},
          {"machine", boot_id()}};
}

ReceivePhase read_phase_message(const Json& m) {
  ReceivePhase p;
  const auto counts = m.find("counts");
  if (counts == m.end() || !counts->is_object()) throw Error(kOtherEnd, "its report has no counts");
  p.counts = read_counts(*counts);
  p.elapsed_s = real(m, "elapsed_s", 0, kLongestS);
  p.timed_out = flag(m, "timed_out");
  if (m.contains("away_s")) p.away_s = real(m, "away_s", 0, kLongestS);
  u32 n = 0;
  for (const Json& t : list(m, "threads", kMaxQueues)) {
    ThreadUse use;
    use.role = "rx";
    use.index = n;
    use.core = static_cast<int>(real(t, "core", -1, 1e6));
    use.cost = {fmt::format("rx-{}", n++), real(t, "user_s", 0, 1e9), real(t, "system_s", 0, 1e9), 0};
    use.elapsed_s = real(t, "elapsed_s", 0, kLongestS);
    use.useful = real(t, "useful", 0, 1);
    p.threads.push_back(use);
  }
  if (text(m, "machine", kLongestText) != boot_id()) return p;
  p.begin_ns = number(m, "begin_ns", 0, kAny);
  std::vector<u64> bins(histogram::kBuckets);
  u64 total = 0;
  for (const Json& b : list(m, "latency_bins", histogram::kBuckets)) {
    if (!b.is_array() || b.size() != 2 || !b[0].is_number_unsigned() || !b[1].is_number_unsigned() ||
        b[0].get<u64>() >= histogram::kBuckets)
      throw Error(kOtherEnd, "its latency histogram is none");
    bins[b[0].get<u64>()] = std::min(b[1].get<u64>(), kMostCounted / histogram::kBuckets);
    total += bins[b[0].get<u64>()];
  }
  const double mean = real(m, "latency_mean_ns", 0, 1e18), std = real(m, "latency_std_ns", 0, 1e18);
  const auto count = static_cast<double>(total);
  p.latency.merge(bins, static_cast<u64>(real(m, "latency_min_ns", 0, 1e18)),
                  static_cast<u64>(real(m, "latency_max_ns", 0, 1e18)),
                  static_cast<u64>(std::min(mean * count, 1.8e19)),
                  std * std * std::max(count - 1, 0.0) + mean * mean * count);
  return p;
}

Json totals_message(const ReceiveTotals& t) {
  return {{"counts", counts_json(t.counts)},
          {"lost", t.lost},
          {"beyond", t.beyond},
          {"unmatched", t.unmatched},
          {"drops_socket", t.drops.socket},
          {"drops_ring", t.drops.ring},
          {"drops_interface", t.drops.interface},
          {"drops_application", t.drops.application},
          {"drops_relay", t.drops.relay},
          {"in_windows", t.in_windows},
          {"wrong_results", t.wrong_results},
          {"windows", t.windows},
          {"injected", t.injected}};
}

ReceiveTotals read_totals_message(const Json& m) {
  ReceiveTotals t;
  const auto counts = m.find("counts");
  if (counts == m.end() || !counts->is_object()) throw Error(kOtherEnd, "its report has no counts");
  t.counts = read_counts(*counts);
  t.lost = number(m, "lost", 0, kMostCounted);
  t.beyond = number(m, "beyond", 0, kMostCounted);
  t.unmatched = number(m, "unmatched", 0, kMostCounted);
  t.drops.socket = number(m, "drops_socket", 0, kMostCounted);
  t.drops.ring = number(m, "drops_ring", 0, kMostCounted);
  t.drops.interface = number(m, "drops_interface", 0, kMostCounted);
  t.drops.application = number(m, "drops_application", 0, kMostCounted);
  t.drops.relay = number(m, "drops_relay", 0, kMostCounted);
  t.in_windows = number(m, "in_windows", 0, kMostCounted);
  t.wrong_results = number(m, "wrong_results", 0, kMostCounted);
  const auto windows = m.find("windows");
  if (windows != m.end() && windows->is_object())
    for (const auto& [key, value] : windows->items())
      if (value.is_number() || (value.is_string() && value.get<std::string>().size() < 200))
        t.windows[key] = value;
  const auto injected = m.find("injected");
  if (injected != m.end() && injected->is_object())
    for (const auto& [kind, n] : injected->items())
      if (n.is_number_unsigned() && t.injected.size() < model::kFaultKinds) t.injected[kind] = n.get<u64>();
  return t;
}

namespace {

class RemoteReceivingEnd final : public ReceivingEnd {
 public:
  /// `grace_s`: how long the other end waits for what has been sent.
  RemoteReceivingEnd(exchange::Exchange& exchange, double grace_s, double timeout_s)
      : exchange_(exchange), grace_s_(grace_s), limit_s_(grace_s + timeout_s + kAnswerS) {}
  void begin() override {
    exchange_.send("begin", Json::object());
    (void)exchange_.receive("began");
  }
  [[nodiscard]] ReceivePhase end(const std::vector<u64>& sent) override {
    exchange_.wait_on_stop(grace_s_);
    exchange_.send("end", sent_message(sent));
    ReceivePhase p = read_phase_message(exchange_.receive("phase", limit_s_));
    progress_ += p.counts.unique;
    return p;
  }
  [[nodiscard]] ReceiveTotals finish(const std::vector<u64>& sent) override {
    exchange_.send("finish", sent_message(sent));
    return read_totals_message(exchange_.receive("totals", limit_s_));
  }
  [[nodiscard]] u64 progress() const override { return progress_; }
  // During a phase the other end says nothing, unless it has failed or gone.
  [[nodiscard]] bool gone() override {
    if (exchange_.pending()) return true;
    try {
      alive_.send();
      return false;
    } catch (const Error&) {
      return true;  // end() says why: this is called while senders are at work
    }
  }

 private:
  exchange::Exchange& exchange_;
  double grace_s_;
  double limit_s_;  // of an answer at a phase's end: packets, then windows and workloads
  u64 progress_ = 0;
  exchange::SignsOfLife alive_{exchange_};
};

}  // namespace

RemoteReceiver::RemoteReceiver(const BenchOptions& o, const measure::StopFlag* stop)
    : exchange_(exchange::Exchange::connect(kRunKind, o.other_end, o.timeout_s, stop, setting::connect)),
      // The other end waits for what has been sent before it answers.
      grace_s_(o.timeout_s + o.settle_s),
      timeout_s_(o.timeout_s) {}

std::unique_ptr<Link> RemoteReceiver::open(const BenchOptions& o, const CellSetup& setup) {
  exchange_.send("cell", cell_message(o, setup));
  auto link = std::make_unique<PeerLink>(End::tx, o.link, o.other_end.host);
  link->meet(exchange_);
  return link;
}

std::unique_ptr<ReceivingEnd> RemoteReceiver::ready() {
  (void)exchange_.receive("ready");
  return std::make_unique<RemoteReceivingEnd>(exchange_, grace_s_, timeout_s_);
}

void RemoteReceiver::finish(int code, const std::string& verdict) {
  exchange_.send("bye", {{"code", code}, {"verdict", verdict.substr(0, kLongestVerdict)}});
}

}  // namespace doorbell::net
