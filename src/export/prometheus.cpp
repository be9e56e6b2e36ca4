// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "export/prometheus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "measure/counters.hpp"

namespace doorbell::exporting {

namespace {

using measure::CounterClass;

constexpr std::array kPercentiles = {50.0, 90.0, 99.0, 99.9};
/// Bounds of the exported histogram are powers of two of a nanosecond, which are bounds of ours, too.
constexpr u32 kLeastBound = 7, kMostBound = 34;  // 128 ns to 17 s

/// A label's value: backslash, quotation mark and line end are escaped.
std::string label_value(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') out += "\\n";
    else out += c;
  }
  return out;
}

/// One family of metrics: its head, then its samples.
class Family {
 public:
  Family(std::string name, const char* type, const char* help, std::string* out)
      : name_(std::move(name)), out_(out) {
    *out_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, help, name_, type);
  }
  void sample(const std::string& labels, auto value, const char* suffix = "") {
    *out_ += fmt::format("{}{}{} {}\n", name_, suffix, labels.empty() ? "" : "{" + labels + "}", value);
  }

 private:
  std::string name_;
  std::string* out_;
};

void add_histogram(const measure::Histogram& latency, std::string* out) {
  Family family("doorbell_latency_seconds", "histogram", "Time of one operation.", out);
  u64 below = 0;
  u32 bucket = 0;
  for (u32 power = kLeastBound; power <= kMostBound; ++power) {
    const u64 bound = u64{1} << power;
    for (; bucket < histogram::kBuckets && histogram::lower_ns(bucket) < bound; ++bucket)
      below += latency.counts()[bucket];
    family.sample(fmt::format("le=\"{}\"", static_cast<double>(bound) * 1e-9), below, "_bucket");
  }
  family.sample("le=\"+Inf\"", latency.count(), "_bucket");
  const double mean_ns = latency.mean().value_or(0);
  family.sample("", mean_ns * 1e-9 * static_cast<double>(latency.count()), "_sum");
  family.sample("", latency.count(), "_count");
}

/// Whether the run counts more than its operations. One that does has a latency of each of them.
bool counts_details(const measure::LiveFigures& f) {
  return f.operations == 0 || f.latency.count() > 0 || f.counters.checked > 0 ||
         measure::errors_of(f.counters) > 0;
}

}  // namespace

std::string prometheus_text(const measure::LiveFigures& f, const RunName& name) {
  std::string out;
  Family("doorbell_run_info", "gauge", "What is running; always 1.", &out)
      .sample(fmt::format("command=\"{}\",version=\"{}\",git=\"{}\"", label_value(name.command),
                          label_value(name.version), label_value(name.git)),
              1);
  Family("doorbell_operations_total", "counter", "Operations that have ended.", &out)
      .sample("", f.operations);
  Family("doorbell_bytes_total", "counter", "Payload bytes of these operations.", &out).sample("", f.bytes);
  Family("doorbell_operations_per_second", "gauge", "Rate over about the last second.", &out)
      .sample("", f.ops_per_s);
  // A 0 would say that something has been counted.
  if (!counts_details(f)) return out;
  Family errors("doorbell_errors_total", "counter", "Operations that went wrong, by class.", &out);
  for (const measure::OpCounter& c : measure::counters_of(CounterClass::error))
    errors.sample(fmt::format("class=\"{}\"", c.result_name), f.counters.*c.field);
  Family("doorbell_verified_operations_total", "counter", "Operations whose data was checked.", &out)
      .sample("", f.counters.checked);
  Family failures("doorbell_verify_failures_total", "counter", "Checks of data that failed, by class.", &out);
  for (const measure::OpCounter& c : measure::counters_of(CounterClass::failure))
    failures.sample(fmt::format("class=\"{}\"", c.result_name), f.counters.*c.field);
  Family percentiles("doorbell_latency_percentile_seconds", "gauge",
                     "Percentiles of all latencies so far, with an error of at most 0.8 %.", &out);
  for (const double p : kPercentiles)
    if (const auto ns = f.latency.percentile(p))
      percentiles.sample(fmt::format("percentile=\"{}\"", p), *ns * 1e-9);
  add_histogram(f.latency, &out);
  return out;
}

}  // namespace doorbell::exporting
