// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/cli/window_options.hpp"
#include "net/settings.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace doorbell::cli {

void add_window_options(OptionTable& t) {
  t.add(
       {.name = "workload",
        .kind = Kind::choice,
        .default_text = "none",
        .choices = net::workload_names(),
        .help =
            "assemble packets into windows and compute on each: Fourier transforms of 1024 points, or a matrix product in "
            "single or half precision; every element of each result is checked",
        .group = "Windows"})
      .add(
          {.name = "workload-batch-bytes",
           .kind = Kind::size,
           .min = 1024,
           .max = u64{1} << 30,
           .help =
               "data of a window, rounded to whole packets; a longer message is cut (not given: --window packets)",
           .group = "Windows"})
      .add({.name = "gemm-dim",
            .aliases = {"workload-gemm-dim"},
            .kind = Kind::integer,
            .metavar = "N",
            .min = 64,
            .max = net::kMaxGemmDim,
            .help = "rows and columns of the matrices (not given: as many as the window's bytes make up)",
            .group = "Windows"})
      .add({.name = "assemble",
            .kind = Kind::flag,
            .help = "assemble windows although nothing computes on them",
            .group = "Windows"})
      .add({.name = net::setting::window.option(),
            .kind = Kind::integer,
            .metavar = "PACKETS",
            .min = 1,
            .max = net::kMaxWindowPackets,
            .help = "packets of a window (not given: 1024, or fewer so that it has about 8 MB)",
            .group = "Windows"})
      .add({.name = "windows-open",
            .kind = Kind::integer,
            .default_text = "4",
            .min = 1,
            .max = net::kMaxOpenWindows,
            .help =
                "windows that are filled at the same time; the oldest closes when a packet needs another one",
            .group = "Windows"})
      .add({.name = "window-timeout",
            .kind = Kind::seconds,
            .default_text = "0",
            .min = 0,
            .max = 3600,
            .help = "close a window so long after its first packet; 0: never",
            .group = "Windows"})
      .add({.name = "missing",
            .kind = Kind::choice,
            .default_text = "zero",
            .choices = {"zero", "mark"},
            .help = "what becomes of slots that no packet came for: zeros, or left as they are and listed",
            .group = "Windows"})
      .add({.name = "window-mem",
            .kind = Kind::choice,
            .default_text = "host",
            .choices = {"host", "vram"},
            .help = "what windows lie in, and who computes: the CPU, or the GPU of --gpu",
            .group = "Windows"})
      .add(
          {.name = net::setting::to_gpu.option(),
           .kind = Kind::choice,
           .default_text = "copy",
           .choices = {"copy", "kernel"},
           .help =
               "how packets come into GPU memory: one copy of a window that the CPU assembles, or a kernel that reads "
               "them where they lie (with --host-memory pinned)",
           .group = "Windows"})
      .add(
          {.name = "check-every",
           .kind = Kind::integer,
           .metavar = "N",
           .default_text = "1",
           .max = 1'000'000'000,
           .help =
               "check one window in N: its product by Freivalds' method, which sees one wrong element, each of its "
               "transforms by a random sum of all bins, each of its converted slots; 0: none",
           .group = "Windows"})
      .add(
          {.name = net::setting::convert.option(),
           .kind = Kind::choice,
           .metavar = "FROM:TO",
           .choices = net::conversion_names(),
           .help =
               "received integers become floating-point numbers (little endian) on the way into a window, rounded to "
               "nearest",
           .group = "Windows"})
      .add(
          {.name = "endian",
           .kind = Kind::choice,
           .default_text = "little",
           .choices = {"little", "big"},
           .help =
               "the order of a received integer's bytes; of two int4, which comes first: the low or the high bits",
           .group = "Windows"});
}

void read_window_options(const Options& o, net::BenchOptions* b) {
  net::WindowOptions& w = b->windows;
  w.workload = net::workload_kind(o.text("workload"));
  constexpr std::array<std::string_view, 10> kAsk = {
      "workload", "workload-batch-bytes", "assemble", "window", "windows-open", "window-timeout",
      "missing",  "window-mem",           "gemm-dim", "convert"};
  w.on = std::ranges::any_of(kAsk, [&](std::string_view name) { return o.given(name); });
  if (o.has("workload-batch-bytes")) w.batch_bytes = o.bytes("workload-batch-bytes");
  if (o.has("workload-batch-bytes") && o.given("window"))
    throw Error("--window", "it contradicts --workload-batch-bytes", "give one of the two");
  w.gemm_dim = o.has("gemm-dim") ? static_cast<u32>(o.integer("gemm-dim")) : 0;
  const bool gemm = w.workload == net::WorkloadKind::gemm || w.workload == net::WorkloadKind::gemm_fp16;
  if (o.has("gemm-dim") && !gemm)
    throw Error("--gemm-dim", "there is no matrix product", "add --workload gemm");
  w.packets = o.has("window") ? static_cast<u32>(o.integer("window")) : 0;
  w.open = static_cast<u32>(o.integer("windows-open"));
  w.timeout_s = o.seconds("window-timeout");
  w.missing = o.text("missing") == "zero" ? net::Missing::zero : net::Missing::mark;
  w.on_gpu = o.text("window-mem") == "vram";
  w.to_gpu = o.text("to-gpu") == "kernel" ? net::ToGpu::kernel : net::ToGpu::copy;
  if (o.given("to-gpu") && !w.on_gpu)
    throw Error("--to-gpu", "the windows lie in host memory", "add --window-mem vram");
  w.check_every = static_cast<u32>(o.integer("check-every"));
  if (o.given("check-every") && !w.on)
    throw Error("--check-every", "there are no windows to check", "add --workload or --convert");
  if (o.given("endian") && !o.has("convert"))
    throw Error("--endian", "nothing is converted", "add --convert FROM:TO");
  if (o.has("convert")) {
    const auto& names = net::conversion_names();
    w.convert = net::conversion(static_cast<u32>(std::ranges::find(names, o.text("convert")) - names.begin()),
                                o.text("endian") == "big");
  }
  // Any bytes are integers.
  if (w.workload == net::WorkloadKind::none || w.convert) return;
  const net::Fill fill = w.workload == net::WorkloadKind::gemm_fp16 ? net::Fill::float16 : net::Fill::float32;
  if (!o.given("fill")) b->fill = fill;
  else if (b->fill != fill && b->fill != net::Fill::zero)
    throw Error("--fill",
                fmt::format("{} computes with {}", o.text("workload"),
                            fill == net::Fill::float16 ? "float16" : "float32"),
                "leave --fill out");
}

}  // namespace doorbell::cli
