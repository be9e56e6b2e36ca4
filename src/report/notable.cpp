// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/notable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "loop/histogram.hpp"
#include "report/layout.hpp"

namespace doorbell::report {

namespace {

/// Words in the names of counters of trouble.
constexpr std::array kTroubles = {
    "alien",    "broken",    "drop",       "error",           "fail",      "fault",     "invalid",
    "lost",     "missed",    "nak",        "no_buffer",       "not_whole", "overflow",  "refused",
    "reject",   "resets",    "rnr_events", "retransmissions", "skipped",   "strangers", "timed_out",
    "too_long", "too_short", "unexp",      "unknown",         "unmatched"};

constexpr u64 kRangeEndNs = u64{1} << histogram::kMaxOctave;

/// Objects of which each member is one.
constexpr std::array kTables = {"completion_statuses", "drops", "injected"};

bool names_trouble(std::string_view name) {
  // A share or a time says again what a count says.
  for (const char* unit : {"_percent", "_fraction", "_ns", "_us", "_bytes", "_bytes_per_s"})
    if (name.ends_with(unit)) return false;
  return std::ranges::any_of(kTroubles,
                             [&](const char* word) { return name.find(word) != std::string_view::npos; });
}

void find_counters(const nlohmann::ordered_json& object, const std::string& where, bool all,
                   std::vector<std::string>* found) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_object()) {
      const bool table = std::ranges::find(kTables, name) != kTables.end();
      find_counters(value, where + printable(name) + " ", table, found);
      continue;
    }
    const bool flag = value.is_boolean() && value.get<bool>();
    const bool count = value.is_number() && value.get<double>() != 0;
    if ((count || flag) && (all || names_trouble(name)))
      found->push_back(fmt::format("{}{}{}", where, printable(name), flag ? "" : " " + value.dump()));
  }
}

}  // namespace

std::vector<std::string> notable_counters(const nlohmann::ordered_json& extra) {
  std::vector<std::string> found;
  if (!extra.is_object()) return found;
  for (const auto& [key, object] : extra.items())
    if (object.is_object())
      find_counters(object, printable(key) + " ", std::ranges::find(kTables, key) != kTables.end(), &found);
  return found;
}

u64 beyond_range(const Latency& latency) {
  return !latency.bins.empty() && latency.bins.back().first >= kRangeEndNs ? latency.bins.back().second : 0;
}

std::string beyond_range_text(const Latency& latency) {
  const u64 n = beyond_range(latency);
  if (n == 0) return "";
  return fmt::format(
      "{} of {} operations took {:.1f} s or more, where the buckets end: no percentile among them", n,
      latency.count, static_cast<double>(kRangeEndNs) * 1e-9);
}

}  // namespace doorbell::report
