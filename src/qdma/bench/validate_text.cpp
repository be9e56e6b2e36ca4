// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A validation's cells as lines.

#include <fmt/format.h>

#include "qdma/bench/validate.hpp"
#include "report/cell_table.hpp"
#include "report/layout.hpp"

namespace doorbell::qdma {

namespace {

/// "9.547 GB/s", with the interval of the median where there is one.
std::string rate_line(std::string_view what, const report::Metrics& m, const report::Spread* spread) {
  std::string line = fmt::format("    {:<7}{:.3f} GB/s", fmt::format("{}:", what), m.bytes_per_s / 1e9);
  if (spread != nullptr)
    line += fmt::format(" [{:.3f} to {:.3f}]", spread->ci_low / 1e9, spread->ci_high / 1e9);
  const auto ms = [](const std::optional<double>& ns) { return report::digits(ns, 1e6); };
  return line + fmt::format("   a call {} ms, p99 {}, longest {}\n", ms(m.latency_ns.mean),
                            ms(m.latency_ns.p99), ms(m.latency_ns.max));
}

/// Each class of errors that was counted.
std::string error_lines(const report::Cell& c) {
  std::string out;
  for (const auto& [kind, count] : c.errors)
    if (count != 0) out += fmt::format("    {} {}\n", count, kind);
  return out;
}

std::string integrity_lines(const report::Cell& c) {
  std::string out;
  u32 good = 0, bad = 0;
  for (const auto& place : c.extra.at("qdma").at("places")) {
    const auto verdict = place.at("verdict").get<std::string>();
    if (verdict == "ok") ++good;
    else ++bad, out += fmt::format("    {}: FAIL ({})\n", place.at("place").get<std::string>(), verdict);
  }
  out += fmt::format("    {}/{} OK", good, c.cell.at("threads").get<u64>());
  return out + (bad == 0 ? "\n" : fmt::format(", {} FAIL\n", bad)) + error_lines(c);
}

std::string cell_lines(const report::Cell& c) {
  const auto text = [&](const char* key) { return c.cell.at(key).get<std::string>(); };
  if (text("phase") == "integrity")
    return fmt::format("Testing {} data integrity ({} buffers of {} bytes)...\n", text("memory"),
                       c.cell.at("threads").get<u64>(), c.cell.at("buffer_bytes").get<u64>()) +
           integrity_lines(c);
  const std::string phase = text("phase") == "duplex"      ? "read and write"
                            : text("phase") == "gpu-read"  ? "card to GPU"
                            : text("phase") == "gpu-write" ? "GPU to card"
                                                           : text("phase");
  std::string out = fmt::format("Testing {} {} bandwidth ({} threads, channels: {})...\n", text("memory"),
                                phase, c.cell.at("threads").get<u64>(), text("channels"));
  const auto spread = c.spread.find("bytes_per_s");
  const report::Spread* const all = spread != c.spread.end() ? &spread->second : nullptr;
  for (const auto& [name, m] : c.parts)
    out += rate_line(name == "read" ? "Read" : "Write", m, c.parts.size() == 1 ? all : nullptr);
  if (c.parts.size() == 2) out += rate_line("Total", c.metrics, all);
  out += error_lines(c);
  if (const auto& own = c.extra.at("qdma"); own.contains("copy_engine_bytes_per_s")) {
    const double engine = own.at("copy_engine_bytes_per_s").get<double>();
    out += fmt::format("    Copy engine alone: {:.3f} GB/s, of which this is {:.2f}\n", engine / 1e9,
                       c.metrics.bytes_per_s / engine);
  }
  const auto& calls = c.extra.at("qdma").at("calls");
  out += fmt::format("    Calls:  {} measured, data of {} checked; {} more made and checked\n",
                     calls.at("measured").get<u64>(), calls.at("measured_checked").get<u64>(),
                     calls.at("others_checked").get<u64>());
  if (c.verify.failed() != 0)
    out += fmt::format("    {} of {} buffers are WRONG\n", c.verify.failed(), c.verify.checked);
  return out;
}

}  // namespace

std::string validate_text(const report::Result& result) {
  std::string out;
  if (!result.cells.empty()) {
    const report::Cell& c = result.cells.front();
    out += fmt::format("{} ({}); 1 GB/s is 10^9 bytes per second\nring size index {} ({} entries)",
                       report::printable(c.device_name),
                       c.device_kind == "model" ? "software model" : c.device_kind,
                       c.cell.at("ring_size_index").get<u64>(), c.cell.at("ring_entries").get<u64>());
    for (const auto& [key, value] : c.extra.at("host").items())
      out += fmt::format(", {} {}", key, value.is_string() ? value.get<std::string>() : value.dump());
    out += "\n";
  }
  for (const report::Cell& c : result.cells) out += cell_lines(c);
  return out + report::closing_lines(result);
}

}  // namespace doorbell::qdma
