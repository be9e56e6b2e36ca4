// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/text_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "report/layout.hpp"

namespace doorbell::report {

std::string labelled(std::string_view name, std::string_view text) {
  return fmt::format("  {:<10}{}\n", name, text);
}

std::string bytes_text(u64 bytes) {
  const auto v = static_cast<double>(bytes);
  if (v < 1e3) return fmt::format("{} B", bytes);
  if (v < 1e6) return digits(v / 1e3) + " kB";
  if (v < 1e9) return digits(v / 1e6) + " MB";
  if (v < 1e12) return digits(v / 1e9) + " GB";
  return digits(v / 1e12) + " TB";
}

std::string device_text(const Cell& c) {
  const std::string kind = c.device_kind == "model" ? "software model" : printable(c.device_kind);
  return fmt::format("{} ({})", printable(c.device_name), kind);
}

std::string verify_lines(const Verify& v, const Paint& paint) {
  if (v.mode == "none") {
    return labelled("verify", paint(Style::bad, "NOT verified: checking is off, the data may be anything"));
  }
  if (v.checked == 0) {
    const std::string why =
        v.unverifiable != 0
            ? fmt::format(
                  "NOT verified: {} I/Os read data that doorbell is not known to have written; "
                  "a run that writes it first makes it known",
                  v.unverifiable)
            : fmt::format("NOT verified: mode {}, but nothing was read back that could be checked",
                          printable(v.mode));
    return labelled("verify", paint(Style::bad, why));
  }
  std::string failures;
  for (const auto& [kind, count] : Verify::kFailures)
    failures += fmt::format("{}{} {}", failures.empty() ? "" : ", ", v.*count, kind);
  std::string text = fmt::format("verified {} I/Os ({}{}): {}", v.checked, bytes_text(v.checked_bytes),
                                 v.mode == "full" ? "" : ", " + printable(v.mode), failures);
  if (v.unverifiable != 0) text += fmt::format("; {} of data not known to be written", v.unverifiable);
  std::string out = labelled("verify", paint(v.failed() == 0 ? Style::good : Style::bad, text));
  for (const Verify::Occurrence& o : v.first) {
    std::string where = fmt::format("{} at byte {:#x}", printable(o.kind), o.address);
    // 0: written by an earlier run, which did not say when.
    if (o.sequence != 0) where += fmt::format(", sequence {} was due", o.sequence);
    out += labelled("", where);
  }
  return out;
}

std::string errors_line(const Counts& errors, const Paint& paint) {
  std::vector<std::string> parts;
  for (const auto& [kind, count] : errors) {
    if (count != 0) parts.push_back(fmt::format("{} {}", count, printable(kind)));
  }
  if (parts.empty()) return labelled("errors", "none");
  return labelled("errors", paint(Style::bad, fmt::format("{}", fmt::join(parts, ", "))));
}

std::string comparison_table(const Result& result, Look look, bool narrow) {
  const Paint paint(look.colour);
  const ColumnUnit rate = rate_unit(result.cells), bandwidth = bandwidth_unit(look.bits);
  std::vector<const Cell*> rows;
  for (const Cell& c : result.cells)
    if (c.extra.contains("beside")) rows.push_back(&c);
  if (rows.size() < 2) return "";
  const auto ratio = [](const nlohmann::ordered_json& ratios, const char* name) -> std::string {
    if (!ratios.contains(name)) return "-";
    const nlohmann::ordered_json& r = ratios[name];
    return fmt::format("{:.3f} [{:.3f} to {:.3f}]", r["median"].get<double>(), r["ci_low"].get<double>(),
                       r["ci_high"].get<double>());
  };
  std::string out =
      paint(Style::bold, "measured in turns; ratios are the first way's figure to this one's") + "\n";
  std::vector<std::vector<std::string>> lines = {{"way", rate.name, bandwidth.name, "mean us", "p99 us",
                                                  "CPU us/op", "rate ratio", "mean latency ratio"}};
  for (const Cell* c : rows) {
    const nlohmann::ordered_json& ratios = c->extra["beside"];
    const Latency& l = c->metrics.latency_ns;
    lines.push_back({printable(ratios["label"].get<std::string>()), digits(c->metrics.ops_per_s / rate.unit),
                     digits(c->metrics.bytes_per_s / bandwidth.unit), digits(l.mean, 1e3), digits(l.p99, 1e3),
                     digits(c->cost.cpu_ns_per_op, 1e3), ratio(ratios, "ops_per_s_ratio"),
                     ratio(ratios, "mean_latency_ratio")});
  }
  for (const std::vector<std::string>& line : lines) {
    out += fmt::format("  {:<22}", line[0]);
    if (!narrow) out += fmt::format("{:>10}{:>10}", line[1], line[2]);
    out += fmt::format("{:>10}", line[3]);
    if (!narrow) out += fmt::format("{:>10}", line[4]);
    out += fmt::format("{:>12}  {:<26}{}\n", line[5], line[6], line[7]);
  }
  return out + "\n";
}

}  // namespace doorbell::report
