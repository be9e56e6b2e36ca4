// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/wire_faults.hpp"

#include <doorbell/error.hpp>

#include <charconv>
#include <cmath>

namespace doorbell::roce {

namespace {

/// Each bit of the result depends on each bit of `v` (the finalizer of splitmix64).
u64 mixed(u64 v) {
  v += 0x9E37'79B9'7F4A'7C15;
  v = (v ^ v >> 30) * 0xBF58'476D'1CE4'E5B9;
  v = (v ^ v >> 27) * 0x94D0'49BB'1331'11EB;
  return v ^ v >> 31;
}

[[noreturn]] void refuse(std::string_view part, const std::string& why) {
  throw Error("wire fault '" + std::string(part) + "'", why,
              "give, for example, drop=0.01,corrupt=0.001,duplicate=0.01,reorder=0.02,delay=0.001:500us");
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
  if (v < 0 || v * ns > 10e9) refuse(part, "a delay is 0 to 10 seconds");
  return static_cast<u64>(v * ns);
}

}  // namespace

WireFaults parse_wire_faults(std::string_view text) {
  WireFaults faults;
  std::array<bool, kWireFaults> given{};
  double sum = 0;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(part.size());
    if (!text.empty()) {
      text.remove_prefix(1);
      if (text.empty()) refuse("", "nothing follows the last comma");
    }
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    std::size_t kind = 0;
    while (kind < kWireFaults && kWireFaultNames[kind] != name) ++kind;
    if (kind == kWireFaults)
      refuse(part, "there is no such fault; there are drop, corrupt, duplicate, reorder and delay");
    if (equals == std::string_view::npos) refuse(part, "it has no probability");
    if (given[kind]) refuse(part, "this fault was given before");
    given[kind] = true;
    std::string_view rest;
    const double p = number(part, part.substr(equals + 1), rest);
    if (p < 0 || p > 1) refuse(part, "a probability is 0 to 1");
    faults.probability[kind] = p;
    sum += p;
    if (rest.starts_with(':') && static_cast<WireFault>(kind) == WireFault::delay)
      faults.delay_ns = duration_ns(part, rest.substr(1));
    else if (!rest.empty()) refuse(part, "'" + std::string(rest) + "' has no meaning behind a probability");
  }
  if (sum > 1 + 1e-9) throw Error("wire faults", "their probabilities have a sum above 1");
  return faults;
}

WireDraw draw_wire_fault(const WireFaults& faults, u64 seed, Endpoint from, Endpoint to, u64 place) {
  u64 state = mixed(seed);
  state = mixed(state ^ (u64{from.address} << 16 | from.port));
  state = mixed(state ^ (u64{to.address} << 16 | to.port));
  state = mixed(state ^ place);
  double left = static_cast<double>(state >> 11) * 0x1p-53;
  for (std::size_t i = 0; i < kWireFaults; ++i) {
    if (left < faults.probability[i])
      return {.fault = true, .kind = static_cast<WireFault>(i), .random = mixed(state)};
    left -= faults.probability[i];
  }
  return {};
}

}  // namespace doorbell::roce
