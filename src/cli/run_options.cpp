// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/run_options.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "exchange/settings.hpp"
#include "measure/endless.hpp"
#include "measure/settings.hpp"

namespace doorbell::cli {

namespace {

constexpr u32 kRepeatsByTime = 7;

}  // namespace

model::FaultRates fault_rates(const std::vector<ListItem>& items) {
  model::FaultRates rates;
  for (const ListItem& item : items) {
    const auto& names = model::fault_names();
    const auto kind = static_cast<std::size_t>(std::ranges::find(names, item.kind) - names.begin());
    rates.probability[kind] = item.value;
  }
  return rates;
}

RunOptions run_options(const Options& o) {
  o.check_conditions();
  RunOptions r;
  o.read_into(r);
  r.verify = o.text("verify") != "off";
  r.verify_sample = o.choice_number("verify").value_or(1);
  // A count fixes how much is done; only a run by time has a warm-up and repeats by default.
  const bool by_time = r.duration_s > 0;
  if (!o.has("warmup")) r.warmup_s = by_time ? std::min(1.0, r.duration_s / 10) : 0;
  if (!o.has("repeats")) r.repeats = by_time ? kRepeatsByTime : 1;
  return r;
}

void check_faults(const RunOptions& run, const std::string& device, bool is_model, const std::string& use) {
  if (run.faults.any() && !is_model)
    throw Error("--fault", fmt::format("{} is not a model: faults cannot be injected into it", device),
                "use " + use);
}

Option infinite_option(Into into) {
  return {.name = measure::setting::infinite.option(),
          .kind = Kind::flag,
          .help = "go on until Ctrl-C",
          .group = "Work",
          .into = std::move(into)};
}

void read_infinite(const Options& o, const char* count, RunOptions* run) {
  if (!o.flag("infinite")) return;
  for (const char* other : {"duration", "repeats", count})
    if (o.given(other))
      throw Error("--infinite", fmt::format("it contradicts --{}", other), "give one of the two");
  run->duration_s = measure::kEndlessS;
  run->repeats = 1;
}

Option server_option(u16 port, char letter) {
  const std::string listen = exchange::setting::listen.option();
  return {.name = "server",
          .letter = letter,
          .kind = Kind::flag,
          .help = fmt::format("as iperf3 has it, for --{} {}", listen, port),
          .group = "Connection",
          .stands_for = [listen, port](const std::string&) {
            return std::vector<options::Assignment>{{listen, fmt::format("{}", port)}};
          }};
}

Option listen_wait_option(Into into) {
  return {.name = "listen-wait",
          .kind = Kind::seconds,
          .default_text = "24h",
          .min = 0.1,
          .max = 2592000,
          .help = "with --listen: end with an error if no client has come after this time",
          .group = "Connection",
          .into = std::move(into)};
}

void require_listening(const Options& options, const std::vector<std::string>& names) {
  const std::set<std::string_view> own = {"quiet", "help"};
  for (const Option& option : options.table().all())
    if (options.given(option.name) && !own.contains(option.name) &&
        std::ranges::find(names, option.name) == names.end())
      throw Error("--" + option.name, "with --listen the client says what is done", "give it to the client");
}

void require_no_listening(const Options& options) {
  if (options.given("listen-wait"))
    throw Error("--listen-wait", "no client is waited for", "add --listen PORT");
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> items;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    items.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return items;
}

}  // namespace doorbell::cli
