// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/run_options.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "measure/endless.hpp"
#include "measure/settings.hpp"

namespace doorbell::cli {

namespace {

constexpr u64 kRepeatsByTime = 7;

}  // namespace

model::FaultRates run_fault_rates(const Options& o) {
  model::FaultRates rates;
  for (const ListItem& item : o.list("fault")) {
    const auto& names = model::fault_names();
    const auto kind = static_cast<std::size_t>(std::ranges::find(names, item.kind) - names.begin());
    rates.probability[kind] = item.value;
  }
  return rates;
}

RunOptions run_options(const Options& o) {
  RunOptions r;
  r.seed = o.integer("seed");
  r.verify = o.text("verify") != "off";
  r.strict = o.text("verify") == "strict";
  r.verify_sample = o.choice_number("verify").value_or(1);
  r.timeout_s = o.seconds("timeout");
  r.late_after_s = o.seconds("late-after");
  r.duration_s = o.has("duration") ? o.seconds("duration") : 0;
  // A count fixes how much is done; only a run by time has a warm-up and repeats by default.
  const bool by_time = r.duration_s > 0;
  r.warmup_s = o.has("warmup") ? o.seconds("warmup") : by_time ? std::min(1.0, r.duration_s / 10) : 0;
  r.repeats = static_cast<u32>(o.has("repeats") ? o.integer("repeats") : by_time ? kRepeatsByTime : 1);
  r.faults = run_fault_rates(o);
  r.initiator = o.text("initiator") == "gpu" ? Initiator::gpu : Initiator::cpu;
  if (o.table().find("check-threads") != nullptr) {
    if (o.has("check-threads")) r.check_threads = static_cast<u32>(o.integer("check-threads"));
    r.check_warps = static_cast<u32>(o.integer("check-warps"));
  }
  r.gpu = static_cast<int>(o.integer("gpu"));
  return r;
}

void check_faults(const RunOptions& run, const std::string& device, bool is_model, const std::string& use) {
  if (run.faults.any() && !is_model)
    throw Error("--fault", fmt::format("{} is not a model: faults cannot be injected into it", device),
                "use " + use);
}

Option infinite_option() {
  return {.name = measure::setting::infinite.option(),
          .kind = Kind::flag,
          .help = "go on until Ctrl-C",
          .group = "Work"};
}

void read_infinite(const Options& o, const char* count, RunOptions* run) {
  if (!o.flag("infinite")) return;
  for (const char* other : {"duration", "repeats", count})
    if (o.given(other))
      throw Error("--infinite", fmt::format("it contradicts --{}", other), "give one of the two");
  run->duration_s = measure::kEndlessS;
  run->repeats = 1;
}

Place host_memory(const Options& o) {
  const std::string& name = o.text("host-memory");
  if (name == "pinned") return Place::pinned;
  if (name == "huge-2m") return Place::huge_2m;
  return name == "huge-1g" ? Place::huge_1g : Place::pageable;
}

Option listen_wait_option() {
  return {.name = "listen-wait",
          .kind = Kind::seconds,
          .default_text = "24h",
          .min = 0.1,
          .max = 2592000,
          .help = "with --listen: end with an error if no client has come after this time",
          .group = "Connection"};
}

void require_listening(const Options& options, const std::vector<std::string>& names) {
  const std::set<std::string_view> own = {"listen", "listen-wait", "quiet", "help"};
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
