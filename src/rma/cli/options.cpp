// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rma/cli/options.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <stdexcept>

#include "cli/run_bench.hpp"
#include "rma/cli/demo.hpp"

namespace doorbell::cli {

namespace {

u32 size_of(const std::string& text) {
  const Option size = {.name = "size", .kind = Kind::size, .min = 0, .max = rma::kMaxMessage};
  try {
    return static_cast<u32>(std::get<u64>(convert(size, text)));
  } catch (const std::invalid_argument& e) {
    throw Error("--size", e.what(), "write bytes, 4KiB, 256:1MiB, or a list with commas");
  }
}

}  // namespace

std::vector<u32> sizes_of(const std::string& text) {
  std::vector<u32> sizes;
  for (const std::string& item : split(text)) {
    const std::size_t colon = item.find(':');
    if (colon == std::string::npos) {
      sizes.push_back(size_of(item));
      continue;
    }
    const u64 first = size_of(item.substr(0, colon));
    const u64 last = size_of(item.substr(colon + 1));
    if (first > last)
      throw Error("--size", fmt::format("{} goes from more to less", item), "write SMALL:LARGE");
    sizes.push_back(static_cast<u32>(first));
    for (u64 power = 1; power <= last; power *= 2)
      if (power > first) sizes.push_back(static_cast<u32>(power));
    if (sizes.back() != last) sizes.push_back(static_cast<u32>(last));
  }
  return sizes;
}

void add_rma_options(OptionTable& t, const std::string& queue, bool ping_pong) {
  std::vector<std::string> measures = {"latency", "rate", "both"};
  if (ping_pong) measures.emplace_back("ping-pong");

  t.add({.name = "queue-mem",
         .kind = Kind::choice,
         .default_text = "host",
         .choices = {"host", "vram"},
         .help = "what the queues lie in",
         .group = "Device"})
      .add({.name = "data-mem",
            .kind = Kind::choice,
            .default_text = "host",
            .choices = {"host", "vram"},
            .help = "what the initiator's buffers lie in",
            .group = "Device"})
      .add({.name = "target-mem",
            .kind = Kind::choice,
            .metavar = "PLACE",
            .choices = {"host", "vram"},
            .help = "what the responder's buffers lie in (not given: as --data-mem)",
            .group = "Device"})
      .add({.name = "measure",
            .kind = Kind::choice,
            .default_text = "both",
            .choices = measures,
            .help =
                std::string("single operations one after the other, a window of them, or first one and then "
                            "the other") +
                (ping_pong ? "; ping-pong: half the time until the other end has answered a write or send"
                           : ""),
            .group = "Work"})
      .add({.name = "offsets",
            .kind = Kind::choice,
            .default_text = "spread",
            .choices = {"spread", "one"},
            .help =
                fmt::format("each operation in flight from and to an offset of its own, or all of a {} from "
                            "and to one, which a cache may hold (with --verify off)",
                            queue),
            .group = "Work"})
      .add({.name = "iterations",
            .kind = Kind::integer,
            .metavar = "N",
            .min = 1,
            .max = u64{1} << 40,
            .help = fmt::format(
                "operations of each {} in each part and repeat (not given: chosen from the size)", queue),
            .group = "Work"})
      .add({.name = "batch-size",
            .kind = Kind::integer,
            .metavar = "N",
            .min = 1,
            .max = rma::kMaxWindow,
            .help = "requests posted for one doorbell (not given: 256 KiB worth, at most 64)",
            .group = "Queues"})
      .add(
          {.name = "in-flight",
           .kind = Kind::integer,
           .metavar = "N",
           .min = 1,
           .max = rma::kMaxWindow,
           .help = fmt::format(
               "operations in flight on one {} (not given: four batches, 16 at least, as far as 256 MiB of buffers go)",
               queue),
           .group = "Queues"})
      .add(
          {.name = "threads",
           .kind = Kind::integer,
           .default_text = "0",
           .max = 64,
           .help = fmt::format("CPU initiator threads, among which {}s are shared; 0: half the cores", queue),
           .group = "Queues"})
      .add({.name = "substep-timing",
            .kind = Kind::flag,
            .help = "time the parts of an operation: payload, building the request, SQ doorbell, CQ poll",
            .group = "Timing"});
}

rma::BenchOptions rma_options(const Options& o, rma::BenchOptions b) {
  static_cast<RunOptions&>(b) = run_options(o);
  b.texts.settings = {.measure = "--measure",
                      .op = "--op",
                      .size = "--size",
                      .batch = "--batch-size",
                      .in_flight = "--in-flight",
                      .signal_every = "--signal-every",
                      .inline_below = "--inline",
                      .offsets = "--offsets",
                      .queues = "--num-queues",
                      .initiator = "--initiator",
                      .queue_memory = "--queue-mem",
                      .local_memory = "--data-mem",
                      .remote_memory = "--target-mem",
                      .verify = "--verify"};
  const std::string measure = o.text("measure");
  b.latency = measure == "latency" || measure == "both";
  b.rate = measure == "rate" || measure == "both";
  b.ping_pong = measure == "ping-pong";
  b.one_offset = o.text("offsets") == "one";
  b.iterations = o.has("iterations") ? o.integer("iterations") : 0;
  b.batch = o.has("batch-size") ? static_cast<u32>(o.integer("batch-size")) : 0;
  b.in_flight = o.has("in-flight") ? static_cast<u32>(o.integer("in-flight")) : 0;
  const auto place = [](const std::string& name) { return name == "vram" ? Place::gpu : Place::pageable; };
  b.queue_memory = place(o.text("queue-mem"));
  b.local_memory = place(o.text("data-mem"));
  b.remote_memory = place(o.has("target-mem") ? o.text("target-mem") : o.text("data-mem"));
  b.threads = static_cast<u32>(o.integer("threads"));
  b.substeps = o.flag("substep-timing");
  return b;
}

int run_rma(const rma::BenchOptions& bench, const Options& options, Context& context) {
  return run_bench(options, context, bench, {}, [&](const measure::RunWatch& watch) {
    measure::BenchResult outcome = rma::run_bench(bench, watch);
    for (report::Cell& cell : outcome.cells)
      cell.options = {{"op", cell.cell["op"]},
                      {"size", cell.cell["size_bytes"]},
                      {"batch_size", cell.cell["batch"]},
                      {"in_flight", cell.cell["in_flight"]},
                      {"signal_every", cell.cell["signal_every"]},
                      {"target_mem", cell.cell["target_memory"]}};
    return outcome;
  });
}

}  // namespace doorbell::cli
