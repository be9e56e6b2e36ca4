// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <utility>

#include "qdma/bench/tune.hpp"
#include "qdma/bench/validate.hpp"
#include "qdma/cli/parts.hpp"
#include "qdma/settings.hpp"
#include "rma/bench.hpp"
#include "rma/settings.hpp"

namespace doorbell::cli {

void add_card_option(OptionTable& t) {
  t.group("Device").add(
      {.name = qdma::setting::card.option(),
       .letter = 'd',
       .metavar = "SPEC",
       .default_text = "model",
       .offers = card_words,
       .help = "model[:KEY=VALUE,...] (keys above), server:PATH (a card that 'doorbell card serve' serves), "
               "kernel:/dev/slash_qdma_ctlN (the card, through its driver) or daemon[:PATH] (doorbelld)",
       .bare = true,
       .brief = "model, server:PATH, kernel:/dev/..., daemon",
       .into = {&rma::BenchOptions::device, &qdma::TuneOptions::device, &qdma::ValidateOptions::device}});
}

void add_access_options(OptionTable& t) {
  t.group("Device")
      .add(
          {.name = qdma::setting::raw_memory.option(),
           .help =
               "over doorbelld: use the card's memory by address, in place of buffers that the daemon gives. "
               "It takes the right raw-mem-access, and is refused where others hold buffers",
           .into = &qdma::MemoryAccess::raw})
      .add({.name = qdma::setting::allow_write.option(),
            .help = "overwrite what others hold there",
            .into = &qdma::MemoryAccess::allow_write,
            .only_if = {qdma::setting::raw_memory.option()}});
}

Option memory_option(std::string help) {
  return {.name = "memory",
          .default_text = "ddr",
          .choices = {"ddr", "hbm", "hbm-high"},
          .help = std::move(help),
          .group = "Device",
          .into = {qdma::card_memory, &qdma::CardUse::memory}};
}

Option direction_option() {
  const auto direction = [](std::string_view op) {
    return op == "get" ? qdma::Direction::card_to_host : qdma::Direction::host_to_card;
  };
  return {.name = rma::setting::op.option(),
          .default_text = "put",
          .choices = {"put", "get"},
          .help = "host to card, or card to host",
          .group = "Work",
          .brief = "put: host to card; get: card to host",
          .into = {direction, &qdma::CardUse::measured, &qdma::TuneOptions::direction}};
}

void add_ring_option(OptionTable& t, const std::string& default_text) {
  t.group("Queues").add(
      {.name = "ring-size-index",
       .metavar = "N",
       .default_text = default_text,
       .max = qdma::kMaxRingIndex,
       .help = "index into the driver's table of ring sizes, of both rings of every queue pair: 0 is 2049 "
               "descriptors of 4 KiB, 9 is 1537, 15 is 16385",
       .into = &qdma::CardUse::ring_index});
}

void add_policy_options(OptionTable& t) {
  const qdma::BalancedPolicy defaults;
  t.group("Queues")
      .add({.name = "channels",
            .default_text = "both",
            .choices = qdma::channel_names(),
            .help = "NoC channels that a transfer descriptor has queue pairs on",
            .into = &qdma::CardUse::channels})
      .add({.name = "policy",
            .default_text = "balanced",
            .choices = {"balanced", "v80-compat", "channel0", "channel1"},
            .help = "which channel carries what of a transfer: doorbell's own, upstream's, or always one",
            .into = &qdma::CardUse::policy,
            .only_if = {"channels", {"both"}}})
      .add(
          {.name = "smallest-split",
           .kind = Kind::size,
           .default_text = fmt::format("{}", defaults.smallest_split),
           .max = u64{1} << 40,
           .help = "balanced: transfers of fewer bytes stay on one channel; 'doorbell qdma tune' measures it",
           .into = &qdma::BalancedPolicy::smallest_split,
           .only_if = {"policy", {"balanced"}}})
      .add({.name = "stripe",
            .kind = Kind::size,
            .default_text = "0",
            .max = u64{1} << 40,
            .help = "balanced: the channels in turn every so many bytes; 0: one part for each channel",
            .into = &qdma::BalancedPolicy::stripe,
            .only_if = {"policy", {"balanced"}}})
      .add({.name = "hbm-routing",
            .default_text = "shared",
            .choices = {"shared", "by-half"},
            .help = "balanced: both channels reach all of HBM, or each one half of it, as upstream routes it",
            .into = &qdma::BalancedPolicy::routing,
            .only_if = {"policy", {"balanced"}}});
}

std::function<u64(u64)> granules(const std::string& option) {
  return [option](u64 bytes) {
    if (bytes % qdma::kGranule != 0)
      throw Error("--" + option, fmt::format("{} is not a multiple of {} bytes", bytes, qdma::kGranule));
    return bytes;
  };
}

}  // namespace doorbell::cli
