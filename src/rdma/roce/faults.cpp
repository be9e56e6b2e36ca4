// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/faults.hpp"

#include <doorbell/error.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

namespace doorbell::roce {

namespace {

[[noreturn]] void refuse(std::string_view part, const std::string& why) {
  throw Error(
      "fault '" + std::string(part) + "'", why,
      "give, for example, drop=0.01,corrupt=0.001,duplicate=0.01,reorder=0.02,delay=0.001:500us,error=0.001,early=0.01");
}

double number(std::string_view part, std::string_view text, std::string_view& rest) {
  double v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc() || !std::isfinite(v)) refuse(part, "'" + std::string(text) + "' is no number");
  return v;
}

u64 duration_ns(std::string_view part, std::string_view text) {
  std::string_view unit;
  const double v = number(part, text, unit);
  const double ns = unit == "ns" ? 1 : unit == "us" ? 1e3 : unit == "ms" ? 1e6 : unit == "s" ? 1e9 : 0;
  if (ns == 0) refuse(part, "a time has one of the units ns, us, ms and s");
  if (v < 0 || v * ns > 10e9) refuse(part, "its time is 0 to 10 seconds");
  return static_cast<u64>(v * ns);
}

/// Where a fault's values go. `time` is null for those that have none.
struct Place {
  double* probability;
  u64* time;
};

Place place_of(Faults& faults, std::string_view part, std::string_view name) {
  for (std::size_t i = 0; i < kWireFaults; ++i)
    if (kWireFaultNames[i] == name)
      return {&faults.wire.probability[i],
              static_cast<WireFault>(i) == WireFault::delay ? &faults.wire.delay_ns : nullptr};
  for (std::size_t i = 0; i < kCompletionFaults; ++i)
    if (kCompletionFaultNames[i] == name)
      return {&faults.completions.probability[i], static_cast<CompletionFault>(i) == CompletionFault::early
                                                      ? &faults.completions.early_ns
                                                      : nullptr};
  refuse(part, "there is no such fault; there are drop, corrupt, duplicate, reorder, delay, error and early");
}

template <std::size_t N>
void check_sum(const char* which, const std::array<double, N>& probability) {
  double sum = 0;
  for (const double p : probability) sum += p;
  if (sum > 1 + 1e-9) throw Error(which, "their probabilities have a sum above 1");
}

}  // namespace

Faults parse_faults(std::string_view text) {
  Faults faults;
  std::vector<const double*> given;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(part.size());
    if (!text.empty()) {
      text.remove_prefix(1);
      if (text.empty()) refuse("", "nothing follows the last comma");
    }
    const std::size_t equals = part.find('=');
    const Place place = place_of(faults, part, part.substr(0, equals));
    if (equals == std::string_view::npos) refuse(part, "it has no probability");
    if (std::ranges::find(given, place.probability) != given.end())
      refuse(part, "this fault was given before");
    given.push_back(place.probability);
    std::string_view rest;
    const double p = number(part, part.substr(equals + 1), rest);
    if (p < 0 || p > 1) refuse(part, "a probability is 0 to 1");
    *place.probability = p;
    if (rest.starts_with(':') && place.time != nullptr) *place.time = duration_ns(part, rest.substr(1));
    else if (!rest.empty()) refuse(part, "'" + std::string(rest) + "' has no meaning behind a probability");
  }
  check_sum("faults of packets", faults.wire.probability);
  check_sum("faults of completions", faults.completions.probability);
  return faults;
}

}  // namespace doorbell::roce
