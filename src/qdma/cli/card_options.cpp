// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <utility>

#include "qdma/cli/parts.hpp"
#include "qdma/settings.hpp"
#include "rma/settings.hpp"

namespace doorbell::cli {

void add_card_option(OptionTable& t) {
  t.add({.name = qdma::setting::card.option(),
         .letter = 'd',
         .kind = Kind::text,
         .metavar = "SPEC",
         .default_text = "model",
         .help =
             "model[:KEY=VALUE,...] (keys above), server:PATH (a card that 'doorbell card serve' serves), "
             "kernel:/dev/slash_qdma_ctlN (the card, through its driver) or daemon[:PATH] (doorbelld)",
         .group = "Device"});
}

Option memory_option(std::string help) {
  return {.name = "memory",
          .kind = Kind::choice,
          .default_text = "ddr",
          .choices = {"ddr", "hbm", "hbm-high"},
          .help = std::move(help),
          .group = "Device"};
}

Option direction_option() {
  return {.name = rma::setting::op.option(),
          .kind = Kind::choice,
          .default_text = "put",
          .choices = {"put", "get"},
          .help = "host to card, or card to host",
          .group = "Work"};
}

void add_ring_option(OptionTable& t, const std::string& default_text) {
  t.add({.name = "ring-size-index",
         .kind = Kind::integer,
         .metavar = "N",
         .default_text = default_text,
         .max = qdma::kMaxRingIndex,
         .help = "index into the driver's table of ring sizes, of both rings of every queue pair: 0 is 2049 "
                 "descriptors of 4 KiB, 9 is 1537, 15 is 16385",
         .group = "Queues"});
}

void add_policy_options(OptionTable& t) {
  const qdma::BalancedPolicy defaults;
  t.add({.name = "channels",
         .kind = Kind::choice,
         .default_text = "both",
         .choices = qdma::channel_names(),
         .help = "NoC channels that a transfer descriptor has queue pairs on",
         .group = "Queues"})
      .add({.name = "policy",
            .kind = Kind::choice,
            .default_text = "balanced",
            .choices = {"balanced", "v80-compat", "channel0", "channel1"},
            .help = "which channel carries what of a transfer: doorbell's own, upstream's, or always one",
            .group = "Queues"})
      .add(
          {.name = "smallest-split",
           .kind = Kind::size,
           .default_text = fmt::format("{}", defaults.smallest_split),
           .max = u64{1} << 40,
           .help = "balanced: transfers of fewer bytes stay on one channel; 'doorbell qdma tune' measures it",
           .group = "Queues"})
      .add({.name = "stripe",
            .kind = Kind::size,
            .default_text = "0",
            .max = u64{1} << 40,
            .help = "balanced: the channels in turn every so many bytes; 0: one part for each channel",
            .group = "Queues"})
      .add({.name = "hbm-routing",
            .kind = Kind::choice,
            .default_text = "shared",
            .choices = {"shared", "by-half"},
            .help = "balanced: both channels reach all of HBM, or each one half of it, as upstream routes it",
            .group = "Queues"});
}

void read_policy(const Options& o, qdma::CardUse& into) {
  for (u32 i = 0; i < qdma::channel_names().size(); ++i)
    if (qdma::channel_names()[i] == o.text("channels")) into.channels = static_cast<qdma::Channels>(i);
  into.policy = *qdma::policy_named(o.text("policy"));
  into.balanced.smallest_split = o.bytes("smallest-split");
  into.balanced.stripe = o.bytes("stripe");
  into.balanced.routing = o.text("hbm-routing") == "by-half" ? qdma::Routing::by_half : qdma::Routing::shared;
  into.ring_index = static_cast<u32>(o.integer("ring-size-index"));
  if (into.channels != qdma::Channels::both && o.given("policy"))
    throw Error("--policy", "with one channel there is nothing to choose",
                "leave out --policy or --channels");
  if (into.policy != qdma::PolicyKind::balanced)
    for (const char* const name : {"smallest-split", "stripe", "hbm-routing"})
      if (o.given(name))
        throw Error(fmt::format("--{}", name), "it belongs to --policy balanced", "leave it out");
}

u64 granules_of(const Options& o, const std::string& name) {
  const u64 bytes = o.bytes(name);
  if (bytes % qdma::kGranule != 0)
    throw Error("--" + name, fmt::format("{} is not a multiple of {} bytes", bytes, qdma::kGranule));
  return bytes;
}

}  // namespace doorbell::cli
