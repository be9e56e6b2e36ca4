// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rma/cli/options.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "cli/run_bench.hpp"
#include "cli/sizes.hpp"
#include "measure/endless.hpp"
#include "rma/cli/demo.hpp"
#include "rma/settings.hpp"

namespace doorbell::cli {

void add_size_option(OptionTable& t, const std::string& what, u32 smallest, const std::string& not_given) {
  const auto sizes = [smallest](const std::string& text) {
    const std::vector<u64> all = sizes_of("size", text, smallest, rma::kMaxMessage);
    return std::vector<u32>(all.begin(), all.end());
  };
  t.group("Work").add({.name = rma::setting::size.option(),
                       .aliases = {"bs", "block-size", "msg-size"},
                       .letter = 's',
                       .metavar = "SIZE[:SIZE]",
                       .help = fmt::format("{}, {}..{}; A:B goes from A to B by powers of two, and a list "
                                           "separated by commas is taken as it is (not given: {})",
                                           what, smallest, rma::kMaxMessage, not_given),
                       .brief = "bytes of an operation: 64, 64:1M or 8,4K",
                       .into = {sizes, &rma::BenchOptions::sizes}});
}

void add_queues_option(OptionTable& t, const std::string& help) {
  t.group("Queues").add({.name = rma::setting::queues.option(),
                         .aliases = {"parallel"},
                         .letter = 'P',
                         .default_text = "1",
                         .min = 1,
                         .max = 64,
                         .help = help,
                         .brief = "queues that work at the same time",
                         .into = &rma::BenchOptions::queues});
}

namespace {

void add_places(OptionTable& t) {
  const auto place = [](std::string_view name) { return name == "vram" ? Place::gpu : Place::pageable; };
  // --data-mem is both buffers' place, and --target-mem then changes the responder's.
  t.group("Device")
      .add({.name = rma::setting::queue_memory.option(),
            .default_text = "host",
            .choices = {"host", "vram"},
            .help = "what the queues lie in",
            .into = {place, &rma::BenchOptions::queue_memory}})
      .add({.name = rma::setting::local_memory.option(),
            .default_text = "host",
            .choices = {"host", "vram"},
            .help = "what the initiator's buffers lie in",
            .into = {place, &rma::BenchOptions::local_memory, &rma::BenchOptions::remote_memory}})
      .add({.name = rma::setting::remote_memory.option(),
            .metavar = "PLACE",
            .choices = {"host", "vram"},
            .help = "what the responder's buffers lie in (not given: as --data-mem)",
            .into = {place, &rma::BenchOptions::remote_memory}});
}

}  // namespace

void add_rma_options(OptionTable& t, const std::string& queue, bool ping_pong, bool device_memory,
                     u32 window) {
  std::vector<std::string> measures = {"latency", "rate", "both"};
  if (ping_pong) measures.emplace_back("ping-pong");

  if (!device_memory) add_places(t);
  add_check_options(t);
  t.group("Work")
      .add({.name = rma::setting::measure.option(),
            .default_text = "both",
            .choices = measures,
            .choices_mean =
                {{"bandwidth", "rate"}, {"bw", "rate"}, {"throughput", "rate"}, {"lat", "latency"}},
            .help =
                std::string("single operations one after the other, a window of them, or first one and then "
                            "the other (with --infinite the window alone)") +
                (ping_pong ? "; ping-pong: half the time until the other end has answered a write or send"
                           : ""),
            .brief = "latency, rate or both"})
      .add({.name = rma::setting::offsets.option(),
            .default_text = "spread",
            .choices = {"spread", "one"},
            .help =
                fmt::format("each operation in flight from and to an offset of its own, or all of a {} from "
                            "and to one, which a cache may hold (with --verify off)",
                            queue),
            .into = {"one", &rma::BenchOptions::one_offset}})
      .add({.name = "iterations",
            .aliases = {"iters", "count"},
            .letter = 'n',
            .metavar = "N",
            .min = 1,
            .max = u64{1} << 40,
            .help = fmt::format(
                "operations of each {} in each part and repeat (not given: chosen from the size)", queue),
            .brief = "operations of each size, part and repeat",
            .into = &rma::BenchOptions::iterations})
      .add(infinite_option())
      .group("Queues")
      .add({.name = rma::setting::batch.option(),
            .aliases = {"post-list"},
            .metavar = "N",
            .min = 1,
            .max = window,
            .help = "requests posted for one doorbell (not given: 256 KiB worth, at most 64)",
            .into = &rma::BenchOptions::batch})
      .add(
          {.name = rma::setting::in_flight.option(),
           .aliases = {"tx-depth", "iodepth", "queue-depth"},
           .metavar = "N",
           .min = 1,
           .max = window,
           .help = fmt::format(
               "operations in flight on one {} (not given: four batches, 16 at least, as far as 256 MiB of buffers go)",
               queue),
           .brief = "operations in flight on one queue",
           .into = &rma::BenchOptions::in_flight})
      .add(
          {.name = "threads",
           .default_text = "0",
           .max = 64,
           .help = fmt::format("CPU initiator threads, among which {}s are shared; 0: half the cores", queue),
           .into = &rma::BenchOptions::threads})
      .group("Timing")
      .add({.name = "substep-timing",
            .help = "time the parts of an operation: payload, building the request, SQ doorbell, CQ poll",
            .into = &rma::BenchOptions::substeps});
}

rma::BenchOptions rma_options(const Options& o, rma::BenchOptions b) {
  static_cast<RunOptions&>(b) = run_options(o);
  read_infinite(o, "iterations", &b);
  o.read_into(b);
  // Of both parts, the rate is what a run without an end is about.
  const std::string measure =
      measure::is_endless(b.duration_s) && !o.given("measure") ? "rate" : o.text("measure");
  b.latency = measure == "latency" || measure == "both";
  b.rate = measure == "rate" || measure == "both";
  b.ping_pong = measure == "ping-pong";
  return b;
}

RunPlan plan_of(const rma::BenchOptions& b) {
  RunPlan plan = {.cells = static_cast<u32>(b.sizes.size()) * (b.latency + b.rate + b.ping_pong)};
  if (b.duration_s == 0)
    plan.work = b.iterations > 0 ? fmt::format("{} operations of each queue", b.iterations)
                                 : "as many operations as suit the size";
  return plan;
}

int run_rma(const rma::BenchOptions& bench, const Options& options, Context& context) {
  const auto run = [&](const measure::RunWatch& watch) {
    measure::BenchResult outcome = rma::run_bench(bench, watch);
    for (report::Cell& cell : outcome.cells) {
      cell.options = {{"op", cell.cell["op"]},
                      {"size", cell.cell["size_bytes"]},
                      {"batch_size", cell.cell["batch"]},
                      {"in_flight", cell.cell["in_flight"]}};
      if (options.table().find("signal-every") != nullptr)
        cell.options["signal_every"] = cell.cell["signal_every"];
      if (cell.cell.contains("target_memory") && options.table().find("target-mem") != nullptr)
        cell.options["target_mem"] = cell.cell["target_memory"];
    }
    return outcome;
  };
  return run_and_report(options, context, bench, {}, run, nullptr, plan_of(bench));
}

}  // namespace doorbell::cli
