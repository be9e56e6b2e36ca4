// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/tally.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/counters.hpp"
#include "measure/statistics.hpp"

namespace doorbell::measure {

std::string verdict_name(pattern::Verdict v) {
  switch (v) {
    case pattern::Verdict::stale:
      return "stale";
    case pattern::Verdict::misplaced:
      return "misplaced";
    case pattern::Verdict::missing:
      return "missing";
    default:
      return "corrupt";
  }
}

namespace {

constexpr double kClockDrift = 0.02;
constexpr double kBusy = 0.1;         // share of its time that an initiator may wait for a processor
constexpr double kBusyLeastS = 1e-3;  // less is a single switch

void add_stats(OpStats& into, const OpStats& from) {
  add_sums(into, from);
  add_tables(into, from);
}

double ratio(u64 a, u64 b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

double cpu_ns_per_op(const report::Cost& cost, u64 ops) {
  return (cost.cpu_user_s + cost.cpu_system_s) * 1e9 / static_cast<double>(ops);
}

report::Repeat repeat_of(const RepeatFigures& figures) {
  const report::Metrics& m = figures.metrics;
  report::Repeat r;
  r.seed = figures.seed;
  r.ops_per_s = m.ops_per_s;
  r.bytes_per_s = m.bytes_per_s;
  r.mean_ns = m.latency_ns.mean;
  r.p50_ns = m.latency_ns.p50;
  r.p99_ns = m.latency_ns.p99;
  r.p99_9_ns = m.latency_ns.p99_9;
  r.errors = figures.errors;
  return r;
}

/// Fills the spreads; returns warnings.
std::vector<std::string> summarise(report::Cell& cell) {
  const std::vector<report::Repeat>& repeats = cell.repeats;
  if (repeats.size() < 2) return {};
  std::vector<double> ops, bytes;
  for (const report::Repeat& r : repeats) {
    ops.push_back(r.ops_per_s);
    bytes.push_back(r.bytes_per_s);
  }
  cell.spread["ops_per_s"] = spread_of(ops);
  cell.spread["bytes_per_s"] = spread_of(bytes);
  constexpr std::pair<const char*, std::optional<double> report::Repeat::*> kLatencies[] = {
      {"mean_ns", &report::Repeat::mean_ns},
      {"p50_ns", &report::Repeat::p50_ns},
      {"p99_ns", &report::Repeat::p99_ns}};
  for (const auto& [name, field] : kLatencies) {
    std::vector<double> samples;
    for (const report::Repeat& r : repeats)
      if (r.*field) samples.push_back(*(r.*field));
    if (samples.size() == repeats.size()) cell.spread[name] = spread_of(samples);
  }
  if (relative_spread(ops) <= kNoisy) return {};
  return {fmt::format("noisy: the repeats' rates spread by {:.0f} %", relative_spread(ops) * 100)};
}

}  // namespace

void add_sums(OpCounters& into, const OpCounters& from) {
  for (const OpCounter& c : kCounters)
    if (c.is != CounterClass::own) into.*c.field += from.*c.field;
}

report::Metrics metrics_of(u64 ops, u64 bytes, double elapsed_s) {
  report::Metrics m;
  m.ops = ops;
  m.bytes = bytes;
  m.elapsed_s = elapsed_s;
  if (elapsed_s > 0) {
    m.ops_per_s = static_cast<double>(ops) / elapsed_s;
    m.bytes_per_s = static_cast<double>(bytes) / elapsed_s;
  }
  return m;
}

void add_thread(report::Cost& cost, const ThreadCost& t) {
  if (!t.checked_s) {
    cost.cpu_user_s += t.user_s;
    cost.cpu_system_s += t.system_s;
  }
  if (t.name.empty()) return;
  const auto same = std::ranges::find(cost.threads, t.name, &report::Cost::Thread::name);
  if (same != cost.threads.end()) same->cpu_s += t.user_s + t.system_s;
  else cost.threads.push_back({t.name, t.user_s + t.system_s});
}

std::size_t median_repeat(const std::vector<report::Repeat>& repeats) {
  std::vector<double> rates;
  for (const report::Repeat& r : repeats) rates.push_back(r.ops_per_s);
  return median_index(rates);
}

std::vector<std::string> add_repeats(report::Cell& cell, const std::vector<RepeatFigures>& repeats) {
  for (const RepeatFigures& r : repeats) cell.repeats.push_back(repeat_of(r));
  if (repeats.empty()) return {};
  const RepeatFigures& median = repeats[median_repeat(cell.repeats)];
  cell.metrics = median.metrics;
  for (const ThreadCost& t : median.threads) add_thread(cell.cost, t);
  if (!median.threads.empty() && median.metrics.ops > 0)
    cell.cost.cpu_ns_per_op = cpu_ns_per_op(cell.cost, median.metrics.ops);
  return summarise(cell);
}

void PhaseTally::add(const PhaseOutcome& outcome, u64 op_bytes) {
  for (const OpStats& s : outcome.queues) {
    add_stats(sum, s);
    bytes += s.succeeded * op_bytes;
    queue_busy_ns += static_cast<double>(s.end_ns - s.begin_ns);
    queue_busy_ticks += static_cast<double>(s.busy_ticks);
  }
  latency.merge(outcome.latency);
  elapsed_s += outcome.elapsed_s;
  // Threads may begin one after the other where processors are few.
  double counted = 0;
  for (const ThreadCost& t : outcome.threads) {
    threads.push_back(t);
    if (t.wall_s > 0) counted = std::max({counted, t.wall_s, outcome.elapsed_s});
  }
  counted_s += counted;
}

void PhaseTally::add(const PhaseTally& other) {
  add_stats(sum, other.sum);
  latency.merge(other.latency);
  elapsed_s += other.elapsed_s;
  queue_busy_ns += other.queue_busy_ns;
  queue_busy_ticks += other.queue_busy_ticks;
  bytes += other.bytes;
  counted_s += other.counted_s;
  threads.insert(threads.end(), other.threads.begin(), other.threads.end());
}

report::Metrics PhaseTally::metrics() const {
  report::Metrics m = metrics_of(sum.succeeded, bytes, elapsed_s);
  if (latency.count() > 0) m.latency_ns = latency.to_latency();
  return m;
}

PhaseTally& RepeatTally::part(const std::string& name) {
  for (auto& [own, tally] : parts)
    if (own == name) return tally;
  return parts.emplace_back(name, PhaseTally{}).second;
}

PhaseTally RepeatTally::whole() const {
  PhaseTally t;
  for (const auto& [name, tally] : parts) t.add(tally);
  return t;
}

Histogram Tally::latency() const {
  Histogram all;
  for (const Seeded& r : repeats_)
    for (const auto& [name, part] : r.tally.parts) all.merge(part.latency);
  return all;
}

void Tally::finish(double ns_per_tick, StopReason stop, bool substeps, StatusName status_name) {
  std::vector<RepeatFigures> repeats;
  for (const Seeded& r : repeats_) {
    const PhaseTally whole = r.tally.whole();
    repeats.push_back({r.seed, whole.metrics(), errors_of(whole.sum)});
  }
  warnings_ = add_repeats(cell_, repeats);
  if (!repeats_.empty()) measure_median(substeps, ns_per_tick);
  count_errors(stop, status_name);
  double ns = 0, ticks = 0;
  for (const Seeded& r : repeats_) {
    const PhaseTally whole = r.tally.whole();
    ns += whole.queue_busy_ns;
    ticks += whole.queue_busy_ticks;
  }
  warn_of_waiting();
  if (ns > 1e6 && ticks > 0 && cell_.errors.at("timeout") == 0 &&
      std::abs(ticks * ns_per_tick / ns - 1) > kClockDrift)
    warnings_.push_back(
        fmt::format("the initiator's clock ran at {:.3f} of its calibrated rate: latencies are off by that",
                    ns / (ticks * ns_per_tick)));
}

/// Equal runs on a busy machine have had a p50 of 588 ns and of 15.8 us.
void Tally::warn_of_waiting() {
  double ran = 0, waited = 0;
  for (const Seeded& r : repeats_)
    for (const auto& [name, part] : r.tally.parts)
      for (const ThreadCost& t : part.threads) {
        ran += t.user_s + t.system_s;
        waited += t.waited_s;
      }
  if (waited > kBusy * (ran + waited) && waited > kBusyLeastS)
    warnings_.push_back(fmt::format(
        "the machine is busy: the initiators waited for a processor for {:.0f} % of the time that they could have run",
        100 * waited / (ran + waited)));
}

void Tally::measure_median(bool substeps, double ns_per_tick) {
  const RepeatTally& median = repeats_[median_repeat(cell_.repeats)].tally;
  const PhaseTally whole = median.whole();
  for (const auto& [name, tally] : median.parts)
    if (tally.sum.posted > 0) cell_.parts.emplace_back(name, tally.metrics());

  const u64 ops = whole.sum.posted;
  if (ops == 0) return;
  if (substeps) {
    const auto per_op = [&](u64 ticks) {
      return static_cast<double>(ticks) * ns_per_tick / static_cast<double>(ops);
    };
    if (whole.sum.payload_ticks > 0) cell_.substeps_ns.payload = per_op(whole.sum.payload_ticks);
    cell_.substeps_ns.build = per_op(whole.sum.build_ticks);
    cell_.substeps_ns.enqueue = per_op(whole.sum.enqueue_ticks);
    cell_.substeps_ns.sq_doorbell = per_op(whole.sum.sq_doorbell_ticks);
    cell_.substeps_ns.cq_poll = per_op(whole.sum.cq_poll_ticks);
    cell_.substeps_ns.cq_doorbell = per_op(whole.sum.cq_doorbell_ticks);
    // The mean latency is that of the operations that succeeded; the steps are those of all.
    cell_.substeps_ns.total =
        whole.sum.total_ticks > 0 ? per_op(whole.sum.total_ticks) : cell_.metrics.latency_ns.mean;
  }
  report::Cost& cost = cell_.cost;
  // The cost of checking is told apart from that of initiators.
  double checking_s = 0, useful_s = 0;
  for (const ThreadCost& t : whole.threads) {
    if (t.checked_s) {
      checking_s += t.user_s + t.system_s;
      useful_s += *t.checked_s;
    }
    add_thread(cost, t);
  }
  if (checking_s > 0)
    cost.checking = {checking_s * 1e9 / static_cast<double>(ops), std::min(useful_s / checking_s, 1.0)};
  if (whole.counted_s > 0) cost.elapsed_s = whole.counted_s;
  cost.cpu_ns_per_op = cpu_ns_per_op(cost, ops);
  cost.doorbells_per_op = ratio(whole.sum.sq_doorbells + whole.sum.cq_doorbells, ops);
  const u64 completions = whole.sum.succeeded + whole.sum.failed;
  if (completions > 0) cost.polls_per_completion = ratio(whole.sum.polls, completions);
  nlohmann::ordered_json& extra = cell_.extra[cell_.path];
  extra["sq_doorbells_per_op"] = ratio(whole.sum.sq_doorbells, ops);
  extra["cq_doorbells_per_op"] = ratio(whole.sum.cq_doorbells, ops);
  extra["register_writes_per_op"] = ratio(whole.sum.register_writes, ops);
  extra["empty_polls"] = whole.sum.empty_polls;
}

void Tally::count_errors(StopReason stop, StatusName status_name) {
  PhaseTally all = others_;
  for (const Seeded& r : repeats_) all.add(r.tally.whole());
  const OpStats& s = all.sum;
  report::Verify& v = cell_.verify;
  v.checked_bytes = s.checked * op_bytes_;
  for (const OpCounter& c : kCounters)
    if (c.verify != nullptr) v.*c.verify = s.*c.field;
  for (u32 i = 0; i < s.failures; ++i)
    v.first.push_back({verdict_name(s.first_failures[i].verdict), s.first_failures[i].address,
                       s.first_failures[i].sequence});
  const u64 ended = s.succeeded + s.failed + s.timed_out + s.aborted;
  cell_.errors = {{"removal", stop == StopReason::removed ? 1u : 0u},
                  {"reset", stop == StopReason::reset ? 1u : 0u},
                  {"identity", ended > s.posted ? ended - s.posted : s.posted - ended}};
  for (const OpCounter& c : counters_of<CounterClass::error>()) cell_.errors[c.result_name] = s.*c.field;
  nlohmann::ordered_json statuses = nlohmann::ordered_json::object();
  for (const OpStats::StatusCount& c : s.statuses)
    if (c.count > 0) statuses[status_name(c.code)] = c.count;
  cell_.extra[cell_.path]["completion_statuses"] = statuses;
  cell_.extra[cell_.path]["submitted"] = s.posted;
}

}  // namespace doorbell::measure
