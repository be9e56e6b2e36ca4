// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/tally.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/statistics.hpp"

namespace doorbell::nvme {

namespace {

constexpr double kClockDrift = 0.02;

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

/// The plain sums among the counters.
constexpr u64 IoCounters::*kSums[] = {&IoCounters::posted,
                                      &IoCounters::succeeded,
                                      &IoCounters::failed,
                                      &IoCounters::timed_out,
                                      &IoCounters::aborted,
                                      &IoCounters::late,
                                      &IoCounters::duplicated,
                                      &IoCounters::protocol,
                                      &IoCounters::checked,
                                      &IoCounters::unverifiable,
                                      &IoCounters::corrupt,
                                      &IoCounters::misplaced,
                                      &IoCounters::stale,
                                      &IoCounters::missing,
                                      &IoCounters::polls,
                                      &IoCounters::empty_polls,
                                      &IoCounters::sq_doorbells,
                                      &IoCounters::cq_doorbells,
                                      &IoCounters::register_writes,
                                      &IoCounters::timed,
                                      &IoCounters::build_ticks,
                                      &IoCounters::enqueue_ticks,
                                      &IoCounters::sq_doorbell_ticks,
                                      &IoCounters::cq_poll_ticks,
                                      &IoCounters::cq_doorbell_ticks};

void add_stats(IoStats& into, const IoStats& from) {
  for (const auto field : kSums) into.*field += from.*field;
  for (const IoStats::StatusCount& s : from.statuses) {
    if (s.count == 0) continue;
    u32 at = 0;
    while (at + 1 < IoStats::kKept && into.statuses[at].count > 0 &&
           into.statuses[at].type_and_code != s.type_and_code)
      ++at;
    if (into.statuses[at].count == 0) into.statuses[at].type_and_code = s.type_and_code;
    into.statuses[at].count += s.count;
  }
  for (u32 i = 0; i < from.failures && into.failures < IoStats::kKept; ++i)
    into.first_failures[into.failures++] = from.first_failures[i];
}

double ratio(u64 a, u64 b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

}  // namespace

void PhaseTally::add(const PhaseOutcome& outcome, u64 io_bytes) {
  for (const IoStats& s : outcome.queues) {
    add_stats(sum, s);
    bytes += s.succeeded * io_bytes;
    queue_busy_ns += static_cast<double>(s.end_ns - s.begin_ns);
    queue_busy_ticks += static_cast<double>(s.busy_ticks);
  }
  latency.merge(outcome.latency);
  elapsed_s += outcome.elapsed_s;
  for (const ThreadCost& t : outcome.threads) threads.push_back(t);
}

void PhaseTally::add(const PhaseTally& other) {
  add_stats(sum, other.sum);
  latency.merge(other.latency);
  elapsed_s += other.elapsed_s;
  queue_busy_ns += other.queue_busy_ns;
  queue_busy_ticks += other.queue_busy_ticks;
  bytes += other.bytes;
  threads.insert(threads.end(), other.threads.begin(), other.threads.end());
}

report::Metrics PhaseTally::metrics() const {
  report::Metrics m;
  m.ops = sum.succeeded;
  m.bytes = bytes;
  m.elapsed_s = elapsed_s;
  if (elapsed_s > 0) {
    m.ops_per_s = static_cast<double>(m.ops) / elapsed_s;
    m.bytes_per_s = static_cast<double>(m.bytes) / elapsed_s;
  }
  if (latency.count() > 0) m.latency_ns = latency.to_latency();
  return m;
}

PhaseTally RepeatTally::both() const {
  PhaseTally t = write;
  t.add(read);
  return t;
}

void Tally::finish(double ns_per_tick, StopReason stop, bool substeps, std::string (*status_name)(u16)) {
  measure_median(substeps, ns_per_tick);
  list_repeats();
  count_errors(stop, status_name);
  double ns = 0, ticks = 0;
  for (const Seeded& r : repeats_) {
    const PhaseTally both = r.tally.both();
    ns += both.queue_busy_ns;
    ticks += both.queue_busy_ticks;
  }
  if (ns > 1e6 && ticks > 0 && cell_.errors.at("timeout") == 0 &&
      std::abs(ticks * ns_per_tick / ns - 1) > kClockDrift)
    warnings_.push_back(
        fmt::format("the initiator's clock ran at {:.3f} of its calibrated rate: latencies are off by that",
                    ns / (ticks * ns_per_tick)));
}

void Tally::measure_median(bool substeps, double ns_per_tick) {
  if (repeats_.empty()) return;
  std::vector<std::size_t> order(repeats_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto rate = [&](std::size_t i) { return repeats_[i].tally.both().metrics().ops_per_s; };
  std::ranges::sort(order, {}, rate);
  const RepeatTally& median = repeats_[order[(order.size() - 1) / 2]].tally;
  const PhaseTally both = median.both();
  cell_.metrics = both.metrics();
  if (median.write.sum.posted > 0) cell_.parts.emplace_back("write", median.write.metrics());
  if (median.read.sum.posted > 0) cell_.parts.emplace_back("read", median.read.metrics());

  const u64 ops = both.sum.posted;
  if (ops == 0) return;
  if (substeps) {
    const auto per_op = [&](u64 ticks) {
      return static_cast<double>(ticks) * ns_per_tick / static_cast<double>(ops);
    };
    cell_.substeps_ns.build = per_op(both.sum.build_ticks);
    cell_.substeps_ns.enqueue = per_op(both.sum.enqueue_ticks);
    cell_.substeps_ns.sq_doorbell = per_op(both.sum.sq_doorbell_ticks);
    cell_.substeps_ns.cq_poll = per_op(both.sum.cq_poll_ticks);
    cell_.substeps_ns.cq_doorbell = per_op(both.sum.cq_doorbell_ticks);
    cell_.substeps_ns.total = cell_.metrics.latency_ns.mean;
  }
  report::Cost& cost = cell_.cost;
  for (const ThreadCost& t : both.threads) {
    cost.cpu_user_s += t.user_s;
    cost.cpu_system_s += t.system_s;
    const auto same = std::ranges::find(cost.threads, t.name, &report::Cost::Thread::name);
    if (same != cost.threads.end()) same->cpu_s += t.user_s + t.system_s;
    else cost.threads.push_back({t.name, t.user_s + t.system_s});
  }
  cost.cpu_ns_per_op = (cost.cpu_user_s + cost.cpu_system_s) * 1e9 / static_cast<double>(ops);
  cost.doorbells_per_op = ratio(both.sum.sq_doorbells + both.sum.cq_doorbells, ops);
  const u64 completions = both.sum.succeeded + both.sum.failed;
  if (completions > 0) cost.polls_per_completion = ratio(both.sum.polls, completions);
  nlohmann::ordered_json& extra = cell_.extra["nvme"];
  extra["sq_doorbells_per_op"] = ratio(both.sum.sq_doorbells, ops);
  extra["cq_doorbells_per_op"] = ratio(both.sum.cq_doorbells, ops);
  extra["register_writes_per_op"] = ratio(both.sum.register_writes, ops);
  extra["empty_polls"] = both.sum.empty_polls;
}

report::Repeat repeat_of(u64 seed, const report::Metrics& m, u64 errors) {
  report::Repeat r;
  r.seed = seed;
  r.ops_per_s = m.ops_per_s;
  r.bytes_per_s = m.bytes_per_s;
  r.mean_ns = m.latency_ns.mean;
  r.p50_ns = m.latency_ns.p50;
  r.p99_ns = m.latency_ns.p99;
  r.p99_9_ns = m.latency_ns.p99_9;
  r.errors = errors;
  return r;
}

std::vector<std::string> summarise_repeats(report::Cell& cell) {
  const std::vector<report::Repeat>& repeats = cell.repeats;
  if (repeats.size() < 2) return {};
  std::vector<double> ops, bytes;
  for (const report::Repeat& r : repeats) {
    ops.push_back(r.ops_per_s);
    bytes.push_back(r.bytes_per_s);
  }
  cell.spread["ops_per_s"] = measure::spread_of(ops);
  cell.spread["bytes_per_s"] = measure::spread_of(bytes);
  constexpr std::pair<const char*, std::optional<double> report::Repeat::*> kLatencies[] = {
      {"mean_ns", &report::Repeat::mean_ns},
      {"p50_ns", &report::Repeat::p50_ns},
      {"p99_ns", &report::Repeat::p99_ns}};
  for (const auto& [name, field] : kLatencies) {
    std::vector<double> samples;
    for (const report::Repeat& r : repeats)
      if (r.*field) samples.push_back(*(r.*field));
    if (samples.size() == repeats.size()) cell.spread[name] = measure::spread_of(samples);
  }
  if (measure::relative_spread(ops) <= measure::kNoisy) return {};
  return {fmt::format("noisy: the repeats' rates spread by {:.0f} %", measure::relative_spread(ops) * 100)};
}

void Tally::list_repeats() {
  for (const Seeded& r : repeats_) {
    const PhaseTally both = r.tally.both();
    const report::Metrics m = both.metrics();
    const IoStats& s = both.sum;
    cell_.repeats.push_back(repeat_of(r.seed, m,
                                      s.failed + s.timed_out + s.aborted + s.late + s.protocol + s.corrupt +
                                          s.misplaced + s.stale + s.missing + s.duplicated));
  }
  for (std::string& w : summarise_repeats(cell_)) warnings_.push_back(std::move(w));
}

void Tally::count_errors(StopReason stop, std::string (*status_name)(u16)) {
  PhaseTally all = others_;
  for (const Seeded& r : repeats_) all.add(r.tally.both());
  const IoStats& s = all.sum;
  report::Verify& v = cell_.verify;
  v.checked = s.checked;
  v.checked_bytes = s.checked * io_bytes_;
  v.unverifiable = s.unverifiable;
  v.corrupt = s.corrupt;
  v.misplaced = s.misplaced;
  v.stale = s.stale;
  v.missing = s.missing;
  v.duplicated = s.duplicated;
  for (u32 i = 0; i < s.failures; ++i)
    v.first.push_back({verdict_name(s.first_failures[i].verdict), s.first_failures[i].address,
                       s.first_failures[i].sequence});
  const u64 ended = s.succeeded + s.failed + s.timed_out + s.aborted;
  cell_.errors = {{"completion", s.failed},
                  {"timeout", s.timed_out},
                  {"late", s.late},
                  {"aborted", s.aborted},
                  {"removal", stop == StopReason::removed ? 1u : 0u},
                  {"reset", stop == StopReason::reset ? 1u : 0u},
                  {"protocol", s.protocol},
                  {"identity", ended > s.posted ? ended - s.posted : s.posted - ended}};
  nlohmann::ordered_json statuses = nlohmann::ordered_json::object();
  for (const IoStats::StatusCount& c : s.statuses)
    if (c.count > 0) statuses[status_name(c.type_and_code)] = c.count;
  cell_.extra["nvme"]["completion_statuses"] = statuses;
  cell_.extra["nvme"]["submitted"] = s.posted;
}

nlohmann::ordered_json controller_facts(const ControllerInfo& info, const NamespaceInfo& ns) {
  return {{"model", info.model},
          {"serial", info.serial},
          {"firmware", info.firmware},
          {"max_transfer_bytes", info.max_transfer_bytes},
          {"max_queue_entries", info.max_queue_entries},
          {"doorbell_stride", info.stride},
          {"lba_bytes", ns.lba_bytes},
          {"blocks", ns.blocks}};
}

}  // namespace doorbell::nvme
