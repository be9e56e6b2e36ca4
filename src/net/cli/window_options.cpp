// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/cli/window_options.hpp"
#include "net/peer/serve.hpp"
#include "net/settings.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace doorbell::cli {

void add_window_options(OptionTable& t) {
  t.group("Windows")
      .add(
          {.name = "workload",
           .default_text = "none",
           .choices = net::workload_names(),
           .help =
               "assemble packets into windows and compute on each: Fourier transforms of 1024 points, or a matrix product in "
               "single or half precision; every element of each result is checked",
           .into = &net::WindowOptions::workload})
      .add(
          {.name = "workload-batch-bytes",
           .kind = Kind::size,
           .min = 1024,
           .max = u64{1} << 30,
           .help =
               "data of a window, rounded to whole packets; a longer message is cut (not given: --window packets)",
           .into = &net::WindowOptions::batch_bytes})
      .add({.name = "gemm-dim",
            .aliases = {"workload-gemm-dim"},
            .metavar = "N",
            .min = 64,
            .max = net::kMaxGemmDim,
            .help = "rows and columns of the matrices (not given: as many as the window's bytes make up)",
            .into = &net::WindowOptions::gemm_dim,
            .only_if = {"workload", {"gemm", "gemm_fp16"}}})
      .add({.name = "assemble",
            .kind = Kind::flag,
            .help = "assemble windows although nothing computes on them"})
      .add({.name = net::setting::window.option(),
            .metavar = "PACKETS",
            .min = 1,
            .max = net::kMaxWindowPackets,
            .help = "packets of a window (not given: 1024, or fewer so that it has about 8 MB)",
            .into = &net::WindowOptions::packets})
      .add({.name = "windows-open",
            .default_text = "4",
            .min = 1,
            .max = net::kMaxOpenWindows,
            .help =
                "windows that are filled at the same time; the oldest closes when a packet needs another one",
            .into = &net::WindowOptions::open})
      .add({.name = "window-timeout",
            .kind = Kind::seconds,
            .default_text = "0",
            .min = 0,
            .max = 3600,
            .help = "close a window so long after its first packet; 0: never",
            .into = &net::WindowOptions::timeout_s})
      .add({.name = "missing",
            .default_text = "zero",
            .choices = {"zero", "mark"},
            .help = "what becomes of slots that no packet came for: zeros, or left as they are and listed",
            .into = &net::WindowOptions::missing})
      .add({.name = "window-mem",
            .default_text = "host",
            .choices = {"host", "vram"},
            .help = "what windows lie in, and who computes: the CPU, or the GPU of --gpu",
            .into = {"vram", &net::WindowOptions::on_gpu, &net::ServeOptions::windows_on_gpu}})
      .add(
          {.name = net::setting::to_gpu.option(),
           .default_text = "copy",
           .choices = {"copy", "kernel"},
           .help =
               "how packets come into GPU memory: one copy of a window that the CPU assembles, or a kernel that reads "
               "them where they lie (with --host-memory pinned)",
           .into = {&net::WindowOptions::to_gpu, &net::ServeOptions::to_gpu},
           .only_if = {"window-mem", {"vram"}}})
      .add(
          {.name = "check-every",
           .metavar = "N",
           .default_text = "1",
           .max = 1'000'000'000,
           .help =
               "check one window in N: its product by Freivalds' method, which sees one wrong element, each of its "
               "transforms by a random sum of all bins, each of its converted slots; 0: none",
           .into = &net::WindowOptions::check_every})
      .add(
          {.name = net::setting::convert.option(),
           .metavar = "FROM:TO",
           .choices = net::conversion_names(),
           .help =
               "received integers become floating-point numbers (little endian) on the way into a window, rounded to "
               "nearest"})
      .add(
          {.name = "endian",
           .default_text = "little",
           .choices = {"little", "big"},
           .help =
               "the order of a received integer's bytes; of two int4, which comes first: the low or the high bits",
           .only_if = {"convert"}});
}

void read_window_options(const Options& o, net::BenchOptions* b) {
  net::WindowOptions& w = b->windows;
  o.read_into(w);
  // --check-every by itself asks for no windows.
  w.on = std::ranges::any_of(o.table().all(), [&](const Option& option) {
    return option.group == "Windows" && option.name != "check-every" && o.given(option.name);
  });
  if (o.has("workload-batch-bytes") && o.given("window"))
    throw Error("--window", "it contradicts --workload-batch-bytes", "give one of the two");
  if (o.given("check-every") && !w.on)
    throw Error("--check-every", "there are no windows to check", "add --workload or --convert");
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
