// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "report/csv.hpp"
#include "report/layout.hpp"
#include "report/notable.hpp"
#include "report/paint.hpp"
#include "report/text_parts.hpp"
#include "report/verdict.hpp"

namespace doorbell::report {

namespace {

using Json = nlohmann::ordered_json;

const char* operations_a_second(const Cell& c) {
  return c.operation == kPacket ? "pps" : "IOPS";
}

std::string metrics_table(const Cell& c, bool bits) {
  std::vector<std::pair<std::string, const Metrics*>> populations;
  for (const auto& [name, metrics] : c.parts) populations.emplace_back(printable(name), &metrics);
  populations.emplace_back("all", &c.metrics);

  double fastest = 0;
  for (const auto& [name, m] : populations) fastest = std::max(fastest, m->ops_per_s);
  const Scale rate = scale_for(fastest);
  const ColumnUnit bandwidth = bandwidth_unit(bits);

  std::vector<std::vector<std::string>> rows{{"", "ops", std::string(rate.prefix) + operations_a_second(c),
                                              bandwidth.name, "elapsed s", "min us", "mean us", "std us",
                                              "p50 us", "p99 us", "p99.9 us", "max us"}};
  for (const auto& [name, m] : populations) {
    const Latency& l = m->latency_ns;
    rows.push_back({name, std::to_string(m->ops), digits(m->ops_per_s / rate.unit),
                    digits(m->bytes_per_s / bandwidth.unit), digits(m->elapsed_s), digits(l.min, 1e3),
                    digits(l.mean, 1e3), digits(l.std, 1e3), digits(l.p50, 1e3), digits(l.p99, 1e3),
                    digits(l.p99_9, 1e3), digits(l.max, 1e3)});
  }
  return table(rows);
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

std::string cost_line(const Cost& c) {
  std::vector<std::string> parts;
  const auto add = [&](const char* pattern, const std::optional<double>& v) {
    if (v && std::isfinite(*v)) parts.push_back(fmt::format(fmt::runtime(pattern), digits(*v)));
  };
  add("{} CPU ns/op", c.cpu_ns_per_op);
  if (c.checking)
    parts.push_back(fmt::format("checking {} CPU ns/op (busy {:.0f} %)", digits(c.checking->cpu_ns_per_op),
                                100 * c.checking->useful_share));
  add("{} doorbells/op", c.doorbells_per_op);
  add("{} polls/completion", c.polls_per_completion);
  add("GPU SM {} %", c.gpu_sm_percent);
  parts.push_back(fmt::format("CPU {} s user, {} s system", digits(c.cpu_user_s), digits(c.cpu_system_s)));
  if (c.elapsed_s) parts.back() += fmt::format(" in {} s", digits(*c.elapsed_s));
  return labelled("cost", joined(parts));
}

// A metric of the spread in the unit that the table uses for it.
struct Unit {
  double divisor = 1;
  std::string name;   // behind the figure
  std::string label;  // in front of it
};
Unit unit_of(const Cell& c, const std::string& metric, double median, bool bits) {
  if (metric == "ops_per_s") {
    const Scale s = scale_for(median);
    return {s.unit, fmt::format(" {}{}", s.prefix, operations_a_second(c)), ""};
  }
  if (metric == "bytes_per_s") {
    const ColumnUnit unit = bandwidth_unit(bits);
    return {unit.unit, " " + unit.name, ""};
  }
  if (metric.ends_with("_ns")) return {1e3, " us", metric.substr(0, metric.size() - 3) + " "};
  return {1, "", metric + " "};
}

std::string spread_lines(const Cell& c, const Paint& paint, bool bits) {
  if (c.repeats.size() < 2) return "";
  std::string out;
  for (const auto& [metric, s] : c.spread) {
    const Unit unit = unit_of(c, metric, s.median, bits);
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

// The figures that a path adds: the plain members of its sub-objects. Structured ones are for the JSON.
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

std::string cell_title(const Cell& c) {
  std::string title =
      fmt::format("{}  {}  initiator {}", printable(c.path), device_text(c), printable(c.initiator_kind));
  if (c.gpu) title += fmt::format(" {}", *c.gpu);
  return title;
}

std::string cell_text(const Cell& c, Look look) {
  const Paint paint(look.colour);
  std::string out = paint(Style::bold, cell_title(c)) + "\n";
  const std::string parameters = printable(parameters_of(c.cell, "  "));
  if (!parameters.empty()) out += "  " + parameters + "\n";
  out += metrics_table(c, look.bits);
  if (const std::string beyond = beyond_range_text(c.metrics.latency_ns); !beyond.empty())
    out += labelled("latency", beyond);
  out += substeps_line(c.substeps_ns);
  out += extra_lines(c.extra);
  out += verify_lines(c.verify, paint);
  out += errors_line(c.errors, paint);
  out += cost_line(c.cost);
  out += spread_lines(c, paint, look.bits);
  return out;
}

}  // namespace

std::string to_text(const Cell& cell, Look look) {
  return cell_text(cell, look);
}

std::string to_text(const Result& result, Look look) {
  const Paint paint(look.colour);
  std::string out;
  for (const Cell& c : result.cells) out += cell_text(c, look) + "\n";
  out += comparison_table(result, look, false);
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
