// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "cli/texts.hpp"
#include "qdma/cli/parts.hpp"
#include "qdma/model/card.hpp"
#include "qdma/settings.hpp"
#include "rma/cli/options.hpp"
#include "rma/settings.hpp"

namespace doorbell::cli {

namespace {

void add_qdma_options(OptionTable& t) {
  add_card_option(t);
  t.add(memory_option("the card's memory: DDR, HBM from its lower half on, or HBM's upper half"))
      .group("Device")
      .add({.name = qdma::setting::starting_offset.option(),
            .kind = Kind::size,
            .default_text = "0",
            .max = qdma::kDdrBytes,
            .help = "into that memory, a multiple of 4 KiB",
            .into = {granules("starting-offset"), &qdma::CardUse::starting_offset}})
      .add(direction_option());
  add_access_options(t);
  add_size_option(t, "bytes of a transfer", 1, "1MiB");
  add_queues_option(
      t,
      "transfer descriptors that the rate part drives at the same time, each with queue pairs and "
      "buffers of its own");
  add_policy_options(t);
  add_ring_option(t, "0");
  t.group("Timing").add(
      {.name = "deadline",
       .kind = Kind::seconds,
       .min = 0.001,
       .max = 3600,
       .help =
           "of each transfer, which the card then ends with ETIMEDOUT (not given: four fifths of --timeout)"});
}

constexpr u32 kMost = qdma::TransferDescriptor::kMaxSubmitted;

/// Four batches in flight, which is what a batch alone asks for, may be more than a descriptor takes. Then as
/// many are in flight as it takes, and as the memory that a run takes by itself holds.
void limit_window(rma::BenchOptions& b) {
  constexpr u64 kBufferBudget = u64{256} << 20;
  if (b.in_flight != 0 || 4 * b.batch <= kMost) return;
  const u64 fit = kBufferBudget / (u64{std::ranges::max(b.sizes)} * b.queues);
  b.in_flight = static_cast<u32>(std::clamp<u64>(fit, b.batch, kMost));
}

rma::BenchOptions bench_options(const Options& o, const measure::StopFlag* stop = nullptr) {
  qdma::CardUse use;
  use.patience = {.limit_s = o.seconds("timeout"), .stop = stop, .gives_up = true};
  o.read_into(use);
  o.read_into(use.balanced);
  o.read_into(use.access);
  if (use.starting_offset >= use.memory.bytes)
    throw Error("--starting-offset", fmt::format("{} is not in 0..{}, the bytes of {}", use.starting_offset,
                                                 use.memory.bytes - qdma::kGranule, use.memory.name));
  // Before the loop gives all of them up.
  use.deadline_grows = !o.has("deadline");
  use.deadline_s = use.deadline_grows ? o.seconds("timeout") * qdma::kDeadlineShare : o.seconds("deadline");
  rma::BenchOptions b = rma_options(o, qdma::bench_of_transfers(use));
  b.op = use.measured == qdma::Direction::card_to_host ? rma::Op::read : rma::Op::write;
  limit_window(b);
  b.model_bytes_per_s = qdma::lowest_model_rate(b.device);
  check_faults(b, b.device, qdma::is_model(b.device), "--device model");
  qdma::check_access(b.device, use.access);
  if (use.starting_offset != 0) qdma::check_access(b.device, use.access, qdma::setting::starting_offset);
  check_request(qdma::backends(), {.spec = b.device});
  rma::check(b);
  return b;
}

}  // namespace

Command qdma_command() {
  Command c;
  c.name = "qdma";
  c.means = {"v80", "v80-smi"};
  c.summary = "transfers to and from a QDMA card's memory (AMD V80), over both channels";
  c.description = {
      "Opens a card, makes queue pairs and transfer descriptors, and moves bytes between buffers of the driver and "
      "the card's memory: a put is host to card, a get is card to host. For each size first single transfers, each "
      "timed from its submission to its completion, then a window of them at full rate. Each goes to or comes from a "
      "place of its own in the card's memory.",
      "Every transfer is verified: what puts leave in the card's memory is read back before it is overwritten, "
      "and gets find what was put there before. Only the transfers that were asked for count in the figures.",
      "One transfer may use both channels: --policy says how it is cut. The software card has its own memory, rings, "
      "channels and limits, and speaks the calls of the card's driver. A back end is never replaced by another.",
      "A card that doorbelld shares gives each run memory of its own; --raw-memory goes by address there.",
      key_text("The model's keys:", qdma::model_keys()),
      "'doorbell qdma validate' tests a card's memory and measures both directions together; 'doorbell qdma tune' "
      "measures from which size on a transfer should be split.",
  };
  add_qdma_options(c.options);
  add_rma_options(c.options, "transfer descriptor", false, true, kMost);
  add_common_options(c.options);
  c.examples = {
      {"doorbell qdma --size 4KiB:4MiB", "Puts on the model, eleven sizes, verified."},
      {"doorbell qdma --op get --memory hbm --size 8MiB --measure rate --duration 1",
       "Gets from HBM's lower half at full rate."},
      {"doorbell qdma --policy v80-compat --memory hbm --size 8MiB --measure rate --iterations 32",
       "The same memory as upstream's client uses it: one channel."},
      {"doorbell qdma --device model:bandwidth=1G --channels 0 --measure rate --iterations 64",
       "One channel of a card whose link is slow."},
      {.command = "doorbell qdma --device kernel:/dev/slash_qdma_ctl0 --size 64MiB --measure rate",
       .text = "A card of this machine.",
       .needs = Needs::device},
  };
  c.check = [](const Options& o) { (void)bench_options(o); };
  c.run = [](const Options& o, Context& context) {
    return run_rma(bench_options(o, &context.stop), o, context);
  };
  return c;
}

}  // namespace doorbell::cli
