// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "cli/run_options.hpp"
#include "cli/texts.hpp"
#include "qdma/bench/validate.hpp"
#include "qdma/cli/parts.hpp"
#include "qdma/model/card.hpp"
#include "qdma/settings.hpp"

namespace doorbell::cli {

namespace {

std::vector<std::string> phase_choices() {
  std::vector<std::string> choices = {"all"};
  choices.insert(choices.end(), qdma::validate_phase_names().begin(), qdma::validate_phase_names().end());
  return choices;
}

/// None for "all".
std::optional<qdma::ValidatePhase> phase_of(const std::string& name) {
  const auto& names = qdma::validate_phase_names();
  const auto at = std::ranges::find(names, name);
  if (at == names.end()) return {};
  return static_cast<qdma::ValidatePhase>(at - names.begin());
}

std::vector<qdma::Channels> channels_of(const std::string& list) {
  std::vector<qdma::Channels> all;
  for (const std::string& item : split(list)) {
    if (item == "auto") all.push_back(qdma::Channels::both);
    else if (item == "0") all.push_back(qdma::Channels::only0);
    else if (item == "1") all.push_back(qdma::Channels::only1);
    else throw Error("--mm-channel", fmt::format("'{}' is not auto, 0 or 1", item));
  }
  if (all.size() == 1 && all.front() == qdma::Channels::both) return {};
  return all;
}

void add_validate_options(OptionTable& t) {
  const auto left_out = [](bool only_the_others) { return !only_the_others; };
  add_card_option(t);
  add_access_options(t);
  t.group("Device")
      .add({.name = qdma::setting::ddr_only.option(),
            .help = "leave HBM out",
            .into = {left_out, &qdma::ValidateOptions::hbm}})
      .add({.name = qdma::setting::hbm_only.option(),
            .help = "leave DDR out",
            .into = {left_out, &qdma::ValidateOptions::ddr}})
      .add({.name = qdma::setting::together_only.option(),
            .help = "leave out each memory by itself: both of them together",
            .into = {left_out, &qdma::ValidateOptions::each}})
      .group("Work")
      .add(
          {.name = "phase",
           .default_text = "all",
           .choices = phase_choices(),
           .help =
               "all of them one after the other, or one alone; gpu-read and gpu-write move GPU memory (--gpu)",
           .into = {phase_of, &qdma::ValidateOptions::phase}})
      .add(
          {.name = "gpu-memory",
           .help =
               "measure as well how fast the card's bytes get into GPU memory and back, beside the copy engine",
           .into = &qdma::ValidateOptions::gpu_memory})
      .add(
          {.name = "gpu-chunk",
           .kind = Kind::size,
           .default_text = "1Mi",
           .min = qdma::kGranule,
           .max = qdma::kLargestValidateBuffer,
           .help =
               "bytes that go between card and GPU at a time, a multiple of 4 KiB; four chunks of each thread are under way",
           .into = {granules("gpu-chunk"), &qdma::ValidateOptions::gpu_chunk}})
      .add({.name = qdma::setting::threads.option(),
            .letter = 'j',
            .default_text = "8",
            .min = 1,
            .max = qdma::kMostValidateThreads,
            .help = "threads of each direction; each memory has two places for each",
            .into = &qdma::ValidateOptions::threads})
      .add(
          {.name = qdma::setting::buffer_bytes.option(),
           .kind = Kind::size,
           .min = qdma::kGranule,
           .max = qdma::kLargestValidateBuffer,
           .help =
               "bytes of a place, a multiple of 4 KiB (not given: 512 MiB, or what half of the memory available "
               "holds)",
           .into = {granules("buffer-size"), &qdma::ValidateOptions::buffer_bytes}})
      .add(
          {.name = qdma::setting::offset.option(),
           .kind = Kind::size,
           .min = qdma::kGranule,
           .max = qdma::kDdrBytes,
           .help =
               "from place to place, a multiple of 4 KiB and at least --buffer-size (not given: 512 MiB, or less "
               "if the places then do not fit)",
           .into = {granules("offset"), &qdma::ValidateOptions::offset}})
      .add({.name = qdma::setting::starting_offset.option(),
            .kind = Kind::size,
            .default_text = "0",
            .max = qdma::kDdrBytes,
            .help = "of the first place in a memory, a multiple of 4 KiB",
            .into = {granules("starting-offset"), &qdma::ValidateOptions::starting_offset}})
      .add({.name = "bandwidth-iterations",
            .default_text = "1",
            .min = 1,
            .max = u64{1} << 32,
            .help = "transfers of each thread in each measurement",
            .into = &qdma::ValidateOptions::iterations})
      .add({.name = "bandwidth-duration",
            .kind = Kind::seconds,
            .default_text = "0",
            .min = 0,
            .max = 86400,
            .help = "measure for so long instead; the same as --duration. 0: by --bandwidth-iterations"})
      .group("Queues")
      .add(
          {.name = qdma::setting::channels.option(),
           .metavar = "auto|0|1[,...]",
           .default_text = "auto",
           .help =
               "channel of every place, or a list with one entry for each place (twice --threads). auto: "
               "descriptors with both channels, cut by --policy, and duplex once more with both directions of a "
               "thread on the same channel and once crossed",
           .into = {channels_of, &qdma::ValidateOptions::channels}})
      .add(
          {.name = qdma::setting::channel_allocation.option(),
           .default_text = "auto",
           .choices = {"auto", "paired"},
           .help =
               "auto: places one after the other; paired: each second one --channel-region-stride further up",
           .into = {"paired", &qdma::ValidateOptions::paired}})
      .add({.name = qdma::setting::region_stride.option(),
            .kind = Kind::size,
            .default_text = "16Gi",
            .min = qdma::kGranule,
            .max = qdma::kDdrBytes,
            .help = "paired: from the places of the one kind to those of the other, a multiple of 4 KiB",
            .into = {granules("channel-region-stride"), &qdma::ValidateOptions::region_stride},
            .only_if = {"channel-allocation", {"paired"}}})
      .add({.name = "policy",
            .default_text = "balanced",
            .choices = {"balanced", "v80-compat"},
            .help = "how a call is cut between both channels",
            .into = &qdma::CardUse::policy});
  add_ring_option(t, "0");
}

qdma::ValidateOptions validate_options(const Options& given) {
  Options o = given;
  if (o.given("bandwidth-duration") && o.seconds("bandwidth-duration") > 0) {
    if (o.given("duration"))
      throw Error("--bandwidth-duration", "it is the same as --duration", "give one of them");
    o.set("duration", fmt::format("{}", o.seconds("bandwidth-duration")));
  }
  qdma::ValidateOptions v;
  static_cast<RunOptions&>(v) = run_options(o);
  if (v.initiator == Initiator::gpu)
    throw Error("--initiator", "the threads of a validation are the CPU's", "leave it out");
  if (o.given("verify") && o.text("verify") != "on" && o.text("verify") != "off")
    throw Error("--verify", fmt::format("{} is not for a validation", o.text("verify")), "use on or off");
  o.read_into(v);
  o.read_into(v.card);
  o.read_into(v.card.access);
  check_faults(v, v.device, qdma::is_model(v.device), "--device model");
  qdma::check(v);
  return v;
}

/// As many calls as were measured are made again, one by one and checked, which takes about so much longer.
constexpr double kValidateChecks = 2.5;

RunPlan plan_of(const qdma::ValidateOptions& v) {
  const qdma::PlannedWork work = qdma::work_of(v);
  RunPlan plan = {.cells = work.cells};
  if (work.cells == 0) plan.once = "all places are written and read once";
  if (v.duration_s == 0) {
    plan.work = fmt::format("{} {} of {} bytes by each thread", v.iterations,
                            v.iterations == 1 ? "transfer" : "transfers", work.buffer_bytes);
    plan.work_s = work.repeat_s;
  }
  if (v.verify) plan.check_s = kValidateChecks * std::max(v.duration_s, plan.work_s);
  return plan;
}

}  // namespace

Command qdma_validate_command() {
  Command c;
  c.name = "qdma-validate";
  c.summary = "check a QDMA card's memory, and measure each direction and both";
  c.description = {
      "Writes data that is named by its card address to every place, then reads all of it back: places that are one "
      "and the same, bytes that are wrong and old data are found. Then threads read, write, and do both, each with "
      "plain transfers of a whole buffer. Once for HBM, once for DDR, once for both together.",
      "Both directions together are measured with both channels for every transfer, with the read and the write of a "
      "thread on the same channel, and crossed: only so it shows what the channels and what the link allow. Data is "
      "checked after each measurement, outside of its time: that of each thread's last transfer, and then that of as "
      "many transfers more as were measured, one by one.",
      "Rates are in GB/s of 10^9 bytes per second, in the JSON in bytes per second. A rate is that of all bytes from "
      "the first start to the last end, each direction by its own. The exit code is 2 if data is wrong or if a transfer "
      "fails, is lost or is late, each counted and printed as what it is. No rate decides it: large transfers have longer "
      "than --timeout and --late-after, by their bytes, and time for which this process does not run makes none late.",
      "A card's driver takes no GPU memory, so bytes between card and GPU go through host buffers that are registered "
      "with the GPU, in chunks, while the GPU's copy engine moves the chunks before them. Beside the rate stands that of "
      "the copy engine alone, between the same buffers and the same GPU memory.",
      key_text("The model's keys:", qdma::model_keys()),
  };
  add_validate_options(c.options);
  add_common_options(c.options);
  c.examples = {
      {"doorbell qdma validate -j 2 --buffer-size 1Mi", "The software card, with small buffers."},
      {"doorbell qdma validate -d model:bandwidth=1G -j 2 --buffer-size 4Mi --ddr-only",
       "A card whose channels have a limit."},
      {.command = "doorbell qdma validate --gpu-memory --ddr-only --buffer-size 64Mi --bandwidth-duration 1",
       .text = "With the card's memory to and from a GPU's.",
       .needs = Needs::gpu},
      {.command = "doorbell qdma validate -d kernel:/dev/slash_qdma_ctl0 --ddr-only --bandwidth-duration 10",
       .text = "A card, both directions on the same channel and crossed.",
       .needs = Needs::device},
  };
  c.check = [](const Options& o) { (void)validate_options(o); };
  c.run = [](const Options& o, Context& context) {
    const qdma::ValidateOptions v = validate_options(o);
    return run_and_report(
        o, context, v, {}, [&](const measure::RunWatch& watch) { return qdma::validate(v, watch); },
        qdma::validate_text, plan_of(v));
  };
  return c;
}

}  // namespace doorbell::cli
