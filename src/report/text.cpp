// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "report/csv.hpp"
#include "report/layout.hpp"
#include "report/verdict.hpp"

namespace doorbell::report {

namespace {

using Json = nlohmann::ordered_json;

enum class Style { plain, bold, good, bad, warn };

class Paint {
 public:
  explicit Paint(bool colour) : colour_(colour) {}
  [[nodiscard]] std::string operator()(Style style, std::string_view text) const {
    if (!colour_ || style == Style::plain) return std::string(text);
    const char* code = style == Style::bold   ? "1"
                       : style == Style::good ? "32"
                       : style == Style::bad  ? "1;31"
                                              : "33";
    return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
  }

 private:
  bool colour_;
};

std::string bytes_text(u64 bytes) {
  const auto v = static_cast<double>(bytes);
  if (v < 1e3) return fmt::format("{} B", bytes);
  if (v < 1e6) return digits(v / 1e3) + " kB";
  if (v < 1e9) return digits(v / 1e6) + " MB";
  if (v < 1e12) return digits(v / 1e9) + " GB";
  return digits(v / 1e12) + " TB";
}

std::string metrics_table(const Cell& c) {
  std::vector<std::pair<std::string, const Metrics*>> populations;
  for (const auto& [name, metrics] : c.parts) populations.emplace_back(printable(name), &metrics);
  populations.emplace_back("all", &c.metrics);

  double fastest = 0;
  for (const auto& [name, m] : populations) fastest = std::max(fastest, m->ops_per_s);
  const Scale rate = scale_for(fastest);

  std::vector<std::vector<std::string>> rows{{"", "ops", std::string(rate.prefix) + "IOPS", "MB/s",
                                              "elapsed s", "min us", "mean us", "std us", "p50 us", "p99 us",
                                              "p99.9 us", "max us"}};
  for (const auto& [name, m] : populations) {
    const Latency& l = m->latency_ns;
    rows.push_back({name, std::to_string(m->ops), digits(m->ops_per_s / rate.unit),
                    digits(m->bytes_per_s / 1e6), digits(m->elapsed_s), digits(l.min, 1e3),
                    digits(l.mean, 1e3), digits(l.std, 1e3), digits(l.p50, 1e3), digits(l.p99, 1e3),
                    digits(l.p99_9, 1e3), digits(l.max, 1e3)});
  }
  return table(rows);
}

// "  name      text\n"; the names line up under each other.
std::string labelled(std::string_view name, std::string_view text) {
  return fmt::format("  {:<10}{}\n", name, text);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

std::string substeps_line(const Substeps& s) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const std::optional<double>& ns) {
    if (ns) parts.push_back(fmt::format("{} {}", name, digits(*ns)));
  };
  add("payload", s.payload);
  add("build", s.build);
  add("enqueue", s.enqueue);
  add("SQ doorbell", s.sq_doorbell);
  add("CQ poll", s.cq_poll);
  add("CQ doorbell", s.cq_doorbell);
  add("total", s.total);
  return parts.empty() ? "" : labelled("steps", joined(parts) + " (ns per operation)");
}

std::string verify_lines(const Verify& v, const Paint& paint) {
  if (v.mode == "none") {
    return labelled("verify", paint(Style::bad, "NOT verified: checking is off, the data may be anything"));
  }
  if (v.checked == 0) {
    return labelled("verify", paint(Style::bad, fmt::format("NOT verified: mode {}, but no I/O was checked",
                                                            printable(v.mode))));
  }
  std::string text =
      fmt::format("verified {} I/Os ({}{}): {} corrupt, {} misplaced, {} stale, {} duplicated, {} missing",
                  v.checked, bytes_text(v.checked_bytes), v.mode == "full" ? "" : ", " + printable(v.mode),
                  v.corrupt, v.misplaced, v.stale, v.duplicated, v.missing);
  if (v.unverifiable != 0) text += fmt::format("; {} of data that nobody wrote", v.unverifiable);
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
  return labelled("errors", paint(Style::bad, joined(parts)));
}

std::string cost_line(const Cost& c) {
  std::vector<std::string> parts;
  const auto add = [&](const char* pattern, const std::optional<double>& v) {
    if (v && std::isfinite(*v)) parts.push_back(fmt::format(fmt::runtime(pattern), digits(*v)));
  };
  add("{} CPU ns/op", c.cpu_ns_per_op);
  add("{} doorbells/op", c.doorbells_per_op);
  add("{} polls/completion", c.polls_per_completion);
  add("GPU SM {} %", c.gpu_sm_percent);
  parts.push_back(fmt::format("CPU {} s user, {} s system", digits(c.cpu_user_s), digits(c.cpu_system_s)));
  return labelled("cost", joined(parts));
}

// A metric of the spread in the unit that the table uses for it.
struct Unit {
  double divisor = 1;
  std::string name;   // behind the figure
  std::string label;  // in front of it
};
Unit unit_of(const std::string& metric, double median) {
  if (metric == "ops_per_s") {
    const Scale s = scale_for(median);
    return {s.unit, std::string(" ") + s.prefix + "IOPS", ""};
  }
  if (metric == "bytes_per_s") return {1e6, " MB/s", ""};
  if (metric.ends_with("_ns")) return {1e3, " us", metric.substr(0, metric.size() - 3) + " "};
  return {1, "", metric + " "};
}

std::string spread_lines(const Cell& c, const Paint& paint) {
  if (c.repeats.size() < 2) return "";
  std::string out;
  for (const auto& [metric, s] : c.spread) {
    const Unit unit = unit_of(metric, s.median);
    const auto in_unit = [&](double v) { return digits(v / unit.divisor); };
    std::string text =
        fmt::format("median {}{}{} [{} to {}, {:.1f} % confidence]", printable(unit.label), in_unit(s.median),
                    unit.name, in_unit(s.ci_low), in_unit(s.ci_high), s.ci_level * 100);
    for (const u64 repeat : s.outliers) {
      text += fmt::format("{}{}", repeat == s.outliers.front() ? ", outliers: repeat " : ", ", repeat + 1);
    }
    if (s.noisy) text += ", " + paint(Style::warn, "NOISY");
    out += labelled(out.empty() ? fmt::format("{} runs", c.repeats.size()) : "", text);
  }
  return out;
}

// What a path adds: the plain members of its sub-objects. Structured ones are for the JSON.
std::string extra_lines(const Json& extra) {
  std::string out;
  if (!extra.is_object()) return out;
  for (const auto& [key, object] : extra.items()) {
    if (!object.is_object()) continue;
    std::vector<std::string> parts;
    for (const auto& [name, value] : object.items()) {
      if (name == "completion_statuses")
        for (const auto& [status, count] : value.items())
          parts.push_back(fmt::format("status '{}' {}", printable(status), count.dump()));
      if (value.is_structured() || value.is_null()) continue;
      if (value.is_number_float() && !std::isfinite(value.get<double>())) continue;
      if (value.is_number() && value.get<double>() == 0) continue;  // the JSON has the zeros
      const std::string text = value.is_number_float() ? digits(value.get<double>())
                               : value.is_string()     ? value.get<std::string>()
                                                       : value.dump();
      parts.push_back(printable(name) + " " + printable(text));
    }
    if (!parts.empty()) out += labelled(printable(key), joined(parts));
  }
  return out;
}

std::string device_text(const Cell& c) {
  const std::string kind = c.device_kind == "model" ? "software model" : printable(c.device_kind);
  return fmt::format("{} ({})", printable(c.device_name), kind);
}

std::string cell_title(const Cell& c) {
  std::string title =
      fmt::format("{}  {}  initiator {}", printable(c.path), device_text(c), printable(c.initiator_kind));
  if (c.gpu) title += fmt::format(" {}", *c.gpu);
  return title;
}

std::string cell_text(const Cell& c, const Paint& paint) {
  std::string out = paint(Style::bold, cell_title(c)) + "\n";
  const std::string parameters = printable(parameters_of(c.cell, "  "));
  if (!parameters.empty()) out += "  " + parameters + "\n";
  out += metrics_table(c);
  out += substeps_line(c.substeps_ns);
  out += extra_lines(c.extra);
  out += verify_lines(c.verify, paint);
  out += errors_line(c.errors, paint);
  out += cost_line(c.cost);
  out += spread_lines(c, paint);
  return out;
}

// The cells that were measured in turns, one a line, with the first one's ratios to each.
std::string comparison_table(const Result& result, const Paint& paint) {
  std::vector<const Cell*> rows;
  for (const Cell& c : result.cells)
    if (c.extra.contains("beside")) rows.push_back(&c);
  if (rows.size() < 2) return "";
  const auto ratio = [](const Json& beside, const char* name) -> std::string {
    if (!beside.contains(name)) return "-";
    const Json& r = beside[name];
    return fmt::format("{:.3f} [{:.3f} to {:.3f}]", r["median"].get<double>(), r["ci_low"].get<double>(),
                       r["ci_high"].get<double>());
  };
  const auto figure = [](const std::optional<double>& v, double unit) {
    return v && std::isfinite(*v) ? digits(*v / unit) : std::string("-");
  };
  std::string out =
      paint(Style::bold, "measured in turns; ratios are the first way's figure to this one's") + "\n";
  out += fmt::format("  {:<22}{:>10}{:>10}{:>10}{:>10}{:>12}  {:<26}{}\n", "way", "kIOPS", "MB/s", "mean us",
                     "p99 us", "CPU us/op", "rate ratio", "mean latency ratio");
  for (const Cell* c : rows) {
    const Json& beside = c->extra["beside"];
    const Latency& l = c->metrics.latency_ns;
    out += fmt::format("  {:<22}{:>10}{:>10}{:>10}{:>10}{:>12}  {:<26}{}\n",
                       printable(beside["label"].get<std::string>()), digits(c->metrics.ops_per_s / 1e3),
                       digits(c->metrics.bytes_per_s / 1e6), figure(l.mean, 1e3), figure(l.p99, 1e3),
                       figure(c->cost.cpu_ns_per_op, 1e3), ratio(beside, "ops_per_s_ratio"),
                       ratio(beside, "mean_latency_ratio"));
  }
  return out + "\n";
}

Style style_of(const Verdict& verdict) {
  if (verdict.kind == Verdict::Kind::ok) return Style::good;
  return verdict.kind == Verdict::Kind::failed ? Style::bad : Style::warn;
}

}  // namespace

std::string to_text(const Cell& cell, bool colour) {
  return cell_text(cell, Paint(colour));
}

std::string to_text(const Result& result, bool colour) {
  const Paint paint(colour);
  std::string out;
  for (const Cell& c : result.cells) out += cell_text(c, paint) + "\n";
  out += comparison_table(result, paint);
  for (const std::string& warning : result.warnings) {
    out += paint(Style::warn, "warning: " + printable(warning)) + "\n";
  }
  const Verdict verdict = verdict_for(result);
  return out + paint(style_of(verdict), verdict.text) + "\n";
}

std::string failure_text(const Result& result) {
  const Paint paint(false);
  std::string out;
  for (const Cell& c : result.cells) {
    const bool errors = std::ranges::any_of(c.errors, [](const auto& e) { return e.second != 0; });
    if (c.verify.failed() == 0 && !errors) continue;
    out += cell_title(c) + "\n";
    if (c.verify.failed() != 0) out += verify_lines(c.verify, paint);
    if (errors) out += errors_line(c.errors, paint);
  }
  for (const std::string& warning : result.warnings) out += "warning: " + printable(warning) + "\n";
  return out + verdict_for(result).text + "\n";
}

}  // namespace doorbell::report
