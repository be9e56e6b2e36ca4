// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "cli/device_engine.hpp"
#include "cli/offers.hpp"
#include "cli/texts.hpp"
#include "cxi/backends.hpp"
#include "cxi/cli/parts.hpp"
#include "cxi/model/spec.hpp"
#include "cxi/port.hpp"
#include "cxi/settings.hpp"
#include "rma/cli/options.hpp"
#include "rma/settings.hpp"

namespace doorbell::cli {

namespace {

void add_cxi_options(OptionTable& t) {
  t.group("Device")
      .add({.name = cxi::setting::device.option(),
            .letter = 'd',
            .metavar = "SPEC",
            .default_text = "cxi-model0",
            .offers = [] { return device_words("cxi", backend_words(cxi::backends())); },
            .help = "cxi-modelN[:KEY=VALUE,...] (keys above), or a Cassini of this machine: cxi0",
            .bare = true,
            .brief = "a model, or a Cassini: cxi0"})
      .add(device_engine_option())
      .group("Work")
      .add({.name = rma::setting::op.option(),
            .default_text = "put",
            .choices = {"put", "get"},
            .help = "the operation, without matching",
            .brief = "the operation",
            .into = {[](std::string_view op) { return op == "get" ? rma::Op::read : rma::Op::write; },
                     &rma::BenchOptions::op}})
      .add({.name = "unrestricted",
            .kind = Kind::flag,
            .help =
                "full DMA commands of 64 bytes, whose packets the NIC keeps in order and repeats by itself, "
                "instead of restricted ones of 32"});
  add_size_option(t, "bytes of an operation", 0, "1KiB");
  add_queues_option(
      t, "command queues that the rate part drives at the same time, each with buffers of its own");
  t.group("Queues").add(
      {.name = cxi::setting::inline_below.option(),
       .metavar = "BYTES",
       .default_text = "0",
       .max = 224,
       .help = "puts of up to so many bytes carry their data in the command (IDC; unrestricted ones up to "
               "192)",
       .into = &rma::BenchOptions::inline_below});
}

rma::BenchOptions bench_options(const Options& o) {
  rma::BenchOptions b = rma_options(o, cxi::bench_of_puts(!o.flag("unrestricted")));
  b.device = spec_with_engine(o, "device", "cxi-model0", cxi::is_model(o.text("device")));
  if (o.flag("unrestricted")) {
    if (b.inline_below > cxi::idc_limit(false))
      throw Error("--idc", fmt::format("{} is not in 0..{}, what an unrestricted command carries",
                                       b.inline_below, cxi::idc_limit(false)));
  }
  if (b.op == rma::Op::read && b.inline_below > 0)
    throw Error("--idc", "a get brings data back: nothing travels in the command",
                "leave it out, or --op put");
  check_faults(b, b.device, cxi::is_model(b.device), "--device cxi-model0");
  check_request(cxi::backends(), {.spec = b.device});
  rma::check(b);
  return b;
}

}  // namespace

Command cxi_command() {
  Command c;
  c.name = "cxi";
  c.means = {"cassini", "cxi_gpu_loopback_bw"};
  c.summary = "puts and gets through HPE Cassini command queues, by CPU or GPU";
  c.description = {
      "Maps buffers, opens a portals entry in front of them, and carries out puts or gets from this endpoint to "
      "itself for each size: first single operations, each timed from the command to its acknowledgement, then a "
      "window of them at full rate, from and to as many offsets as are in flight. The data of every operation is "
      "checked where it arrives.",
      "Commands are built and the doorbell is rung by the CPU thread or, with --initiator gpu, by the GPU kernel "
      "itself. Acknowledgements are counted by a counting event; an operation that fails makes an event, whose "
      "return code is reported. The software Cassini reads the command queues as the card does. cxi0 is the card, "
      "through libcxi.so.1; it is never replaced by the model silently.",
      key_text("The model's keys:", cxi::model_keys()),
      "One cell of the result is one size and one part, latency or rate. 'cxi_gpu_loopback_bw' is the same work with "
      "that tool's own command line and output.",
  };
  add_cxi_options(c.options);
  add_rma_options(c.options, "command queue");
  add_common_options(c.options);
  c.examples = {
      {"doorbell cxi --size 64:1MiB", "Puts on the model, fifteen sizes, verified."},
      {"doorbell cxi --op get --size 512KiB --measure rate --duration 2", "Gets at full rate."},
      {"doorbell cxi --size 8,64,128 --idc 128 --measure latency --iterations 10000",
       "Small puts with the data in the command, one after the other."},
      {"doorbell cxi --unrestricted --size 4KiB", "The same as ordered, reliable packets."},
      {"doorbell cxi --offsets one --verify off --size 512KiB --measure rate",
       "One buffer over and over, as cxi_gpu_loopback_bw measures it."},
      {.command = "doorbell cxi --initiator gpu --queue-mem vram --data-mem vram --size 4KiB --num-queues 8",
       .text = "A GPU kernel builds commands and rings; queues and data in GPU memory.",
       .needs = Needs::gpu},
      {.command = "doorbell cxi --initiator gpu --device-engine gpu --queue-mem vram --num-queues 8",
       .text = "The Cassini is a kernel too: what queues in GPU memory carry, without a CPU in between.",
       .needs = Needs::gpu},
      {.command = "doorbell cxi --fault corrupt=0.001 --size 4KiB",
       .text = "Prove that damage is found: exit code 2 and a count.",
       .code = 2},
      {.command = "doorbell cxi cxi0 --size 8:4M",
       .text = "On a Cassini of this machine.",
       .needs = Needs::device},
  };
  c.run = [](const Options& o, Context& context) { return run_rma(bench_options(o), o, context); };
  c.check = [](const Options& o) { (void)bench_options(o); };
  return c;
}

}  // namespace doorbell::cli
