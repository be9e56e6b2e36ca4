// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "export/prometheus.hpp"

#include <fmt/format.h>

#include <array>

#include "export/metric_text.hpp"
#include "measure/counters.hpp"

namespace doorbell::exporting {

namespace {

using measure::CounterClass;

constexpr std::array kPercentiles = {50.0, 90.0, 99.0, 99.9};
/// Bounds of the exported histogram are powers of two of a nanosecond, which are bounds of ours, too.
constexpr u32 kLeastBound = 7, kMostBound = 34;  // 128 ns to 17 s

void add_histogram(const measure::Histogram& latency, MetricText& out) {
  out.family("latency_seconds", "histogram", "Time of one operation.");
  u64 below = 0;
  u32 bucket = 0;
  for (u32 power = kLeastBound; power <= kMostBound; ++power) {
    const u64 bound = u64{1} << power;
    for (; bucket < histogram::kBuckets && histogram::lower_ns(bucket) < bound; ++bucket)
      below += latency.counts()[bucket];
    out.sample(below, {{"le", fmt::format("{}", static_cast<double>(bound) * 1e-9)}}, "_bucket");
  }
  out.sample(latency.count(), {{"le", "+Inf"}}, "_bucket");
  const double mean_ns = latency.mean().value_or(0);
  out.sample(mean_ns * 1e-9 * static_cast<double>(latency.count()), {}, "_sum");
  out.sample(latency.count(), {}, "_count");
}

/// Whether the run counts more than its operations. One that does has a latency of each of them.
bool counts_details(const measure::LiveFigures& f) {
  return f.operations == 0 || f.latency.count() > 0 || f.counters.checked > 0 ||
         measure::errors_of(f.counters) > 0;
}

}  // namespace

std::string prometheus_text(const measure::LiveFigures& f, const RunName& name) {
  MetricText out("doorbell_");
  out.family("run_info", "gauge", "What is running; always 1.");
  out.sample(1, {{"command", name.command}, {"version", name.version}, {"git", name.git}});
  out.one("operations_total", "counter", "Operations that have ended.", f.operations);
  out.one("bytes_total", "counter", "Payload bytes of these operations.", f.bytes);
  out.one("operations_per_second", "gauge", "Rate over about the last second.", f.ops_per_s);
  // A 0 would say that something has been counted.
  if (!counts_details(f)) return out.take();
  const auto classes = [&](CounterClass of) {
    for (const measure::OpCounter& c : measure::kCounters)
      if (c.is == of) out.sample(f.counters.*c.field, {{"class", c.result_name}});
  };
  out.family("errors_total", "counter", "Operations that went wrong, by class.");
  classes(CounterClass::error);
  out.one("verified_operations_total", "counter", "Operations whose data was checked.", f.counters.checked);
  out.family("verify_failures_total", "counter", "Checks of data that failed, by class.");
  classes(CounterClass::failure);
  out.family("latency_percentile_seconds", "gauge",
             "Percentiles of all latencies so far, with an error of at most 0.8 %.");
  for (const double p : kPercentiles)
    if (const auto ns = f.latency.percentile(p))
      out.sample(*ns * 1e-9, {{"percentile", fmt::format("{}", p)}});
  add_histogram(f.latency, out);
  return out.take();
}

}  // namespace doorbell::exporting
