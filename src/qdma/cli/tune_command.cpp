// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "cli/run_options.hpp"
#include "cli/texts.hpp"
#include "qdma/bench/tune.hpp"
#include "qdma/cli/parts.hpp"
#include "qdma/model/card.hpp"
#include "qdma/settings.hpp"
#include "rma/settings.hpp"

namespace doorbell::cli {

namespace {

constexpr u32 kRepeats = 7;

void add_tune_options(OptionTable& t) {
  add_card_option(t);
  t.add(memory_option("the card's memory")).add(direction_option());
  add_access_options(t);
  t.group("Work")
      .add({.name = qdma::setting::smallest.option(),
            .kind = Kind::size,
            .default_text = "8Ki",
            .min = 2 * qdma::kGranule,
            .max = u64{1} << 30,
            .help = "the smallest size to measure, a power of two",
            .into = &qdma::TuneOptions::smallest})
      .add({.name = qdma::setting::largest.option(),
            .kind = Kind::size,
            .default_text = "4Mi",
            .min = 2 * qdma::kGranule,
            .max = u64{1} << 30,
            .help = "the largest size to measure, a power of two",
            .into = &qdma::TuneOptions::largest})
      .add({.name = "iterations",
            .metavar = "N",
            .min = 1,
            .max = u64{1} << 32,
            .help = "calls of each way in each repeat (not given: 16 MiB worth, 8 to 400)",
            .into = &qdma::TuneOptions::iterations});
  add_ring_option(t, "0");
}

qdma::TuneOptions tune_options(const Options& o) {
  qdma::TuneOptions t;
  static_cast<RunOptions&>(t) = run_options(o);
  if (!o.has("repeats")) t.repeats = kRepeats;
  if (t.initiator == Initiator::gpu) throw Error("--initiator", "calls are made by the CPU", "leave it out");
  o.read_into(t);
  o.read_into(t.card);
  o.read_into(t.card.access);
  check_faults(t, t.device, qdma::is_model(t.device), "--device model");
  qdma::check(t);
  return t;
}

/// A call's data is checked outside of its time, which takes about twice as long.
constexpr double kTuneChecks = 2;

RunPlan plan_of(const qdma::TuneOptions& t) {
  RunPlan plan = {
      .cells = static_cast<u32>(std::bit_width(t.largest / t.smallest)), .ways = 2, .ways_are = "ways"};
  if (t.duration_s == 0) {
    plan.work = t.iterations != 0 ? fmt::format("{} calls", t.iterations) : "as many calls as suit the size";
    plan.work_s = qdma::repeat_seconds(t);
  }
  if (t.verify) plan.check_s = kTuneChecks * std::max(t.duration_s, plan.work_s);
  return plan;
}

}  // namespace

Command qdma_tune_command() {
  Command c;
  c.name = "qdma-tune";
  c.summary = "measure from which size on a QDMA transfer should use both channels";
  c.description = {
      "For each size the same call is made over one channel and split over both, in turns, so that other load on the "
      "machine affects both alike. The data of every call is checked, outside of its time. The break-even size is the smallest one from which on splitting is faster at every "
      "size measured, by the whole confidence interval of the ratio, which takes six --repeats or more; with fewer it is unknown. It is the value for --smallest-split of "
      "'doorbell qdma', and BalancedPolicy::smallest_split of the library.",
      "It depends on the card, the host and the back end. A software card without a rate limit says what this host's "
      "memory and processors do.",
      key_text("The model's keys:", qdma::model_keys()),
  };
  add_tune_options(c.options);
  add_common_options(c.options);
  c.examples = {
      {"doorbell qdma tune --largest 256Ki", "The software card, up to 256 KiB."},
      {.command = "doorbell qdma tune --device kernel:/dev/slash_qdma_ctl0 --op get --json tune.json",
       .text = "A card, and the figures in a file.",
       .needs = Needs::device},
  };
  c.check = [](const Options& o) { (void)tune_options(o); };
  c.run = [](const Options& o, Context& context) {
    const qdma::TuneOptions t = tune_options(o);
    return run_and_report(
        o, context, t, {}, [&](const measure::RunWatch& watch) { return qdma::tune(t, watch); },
        [](const report::Result& r) { return qdma::tune_text(r, "--smallest-split"); }, plan_of(t));
  };
  return c;
}

}  // namespace doorbell::cli
