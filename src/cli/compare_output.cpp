// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/compare_output.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <stdexcept>

#include "cli/output.hpp"
#include "cli/report_page.hpp"
#include "cli/run_options.hpp"
#include "options/suggest.hpp"
#include "report/file.hpp"
#include "report/json.hpp"
#include "report/layout.hpp"
#include "report/verdict.hpp"
#include "sweep/folder.hpp"
#include "system/open_file.hpp"

namespace doorbell::cli {

namespace {

constexpr std::array kOutputs = {"json", "html", "junit"};

std::vector<std::string> metrics_of(const std::string& text) {
  std::vector<std::string> metrics;
  for (const std::string& metric : split(text)) {
    const std::vector<std::string>& known = sweep::metric_names();
    if (std::ranges::find(known, metric) == known.end()) {
      const std::string near = nearest(metric, known);
      throw Error("--metric",
                  fmt::format("unknown metric '{}'{}", metric,
                              near.empty() ? "" : fmt::format("; did you mean '{}'?", near)),
                  fmt::format("the metrics are {}", fmt::join(known, ", ")));
    }
    if (std::ranges::find(metrics, metric) != metrics.end())
      throw Error("--metric", fmt::format("'{}' is given twice", metric));
    metrics.push_back(metric);
  }
  return metrics;
}

bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::ranges::any_of(words, [&](const char* w) { return word == w; });
}

}  // namespace

Rate rate_of(const std::string& text) {
  std::string plain;
  std::ranges::copy_if(text, std::back_inserter(plain), [](char c) { return c != ' '; });
  const auto bad = [&](const char* why) {
    return std::invalid_argument(
        fmt::format("'{}' is no rate: {} (100k ops, 1GB/s, 10Gb/s)", report::printable(text), why));
  };
  double value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (error != std::errc{} || !(value > 0) || value > 1e18) throw bad("it begins with no number above 0");
  std::string rest = plain.substr(static_cast<std::size_t>(end - plain.data()));
  constexpr std::string_view kPrefixes = "kMGT";
  double factor = 1;
  if (!rest.empty() && rest[0] == 'K') rest[0] = 'k';
  if (const std::size_t power = rest.empty() ? std::string_view::npos : kPrefixes.find(rest[0]);
      power != std::string_view::npos) {
    const bool binary = rest.size() > 1 && rest[1] == 'i';
    for (std::size_t i = 0; i <= power; ++i) factor *= binary ? 1024 : 1000;
    rest.erase(0, binary ? 2 : 1);
  }
  value *= factor;
  if (is_one_of(rest, {"", "/s", "op", "ops", "op/s", "ops/s", "IOPS", "iops", "pps"}))
    return {"ops_per_s", value};
  if (is_one_of(rest, {"B", "B/s"})) return {"bytes_per_s", value};
  if (is_one_of(rest, {"b/s", "bit/s", "bps"})) return {"bytes_per_s", value / 8};
  throw bad("its unit is none of ops, B/s, b/s");
}

sweep::Rules rules_of(const Options& options) {
  sweep::Rules rules{.metrics = metrics_of(options.text("metric")),
                     .threshold = options.real("threshold") / 100};
  sweep::Demands& d = rules.demands;
  d.decided = options.text("undecided") == "fail";
  if (options.has("max-latency")) d.max_p99_ns = options.seconds("max-latency") * 1e9;
  if (options.has("min")) try {
      const Rate rate = rate_of(options.text("min"));
      (rate.metric == "ops_per_s" ? d.min_ops_per_s : d.min_bytes_per_s) = rate.value;
    } catch (const std::invalid_argument& e) {
      throw Error("--min", e.what());
    }
  return rules;
}

void check_comparison_outputs(const Options& options, const std::vector<std::string>& inputs) {
  check_junit_name(options);
  for (const std::string name : kOutputs) {
    const std::string& path = options.text(name);
    if (name == "html") check_page(path, {});
    else check_output(name, path);
    for (const std::string& file : inputs)
      if (same_file(path, file))
        throw Error(fmt::format("--{} {}", name, path), fmt::format("it is {}, which is compared", file),
                    "give it another name");
  }
  check_apart(options, {kOutputs.begin(), kOutputs.end()});
}

std::vector<report::TestCase> cases_of(const sweep::Comparison& c) {
  using End = report::TestCase::End;
  std::vector<report::TestCase> cases;
  bool said = false;
  for (const sweep::Compared& cell : c.cells) {
    report::TestCase one{.group = "doorbell.compare", .name = cell.label};
    std::vector<std::string> bad, open;
    if (!cell.why_not_comparable.empty()) {
      one.type = cell.new_data_errors ? "data" : "not comparable";
      bad = cell.why_not_comparable;
    }
    for (const sweep::Ratio& r : cell.ratios) {
      const std::string text = fmt::format("{}: {}, B/A {:.3f} ({:.3f} to {:.3f})", r.metric,
                                           sweep::name(r.change), r.median, r.ci_low, r.ci_high);
      if (r.change == sweep::Change::regression) {
        if (one.type.empty()) one.type = "regression";
        bad.push_back(text);
      }
      if (r.change == sweep::Change::undecided) open.push_back(text);
      one.text += (one.text.empty() ? "" : "\n") + text;
    }
    for (const sweep::Unmet& u : c.unmet)
      if (u.cell == cell.label) {
        if (one.type.empty()) one.type = "demand";
        bad.push_back(sweep::text_of(u, c.rate_unit()));
      }
    if (bad.empty() && c.demands.decided && !open.empty()) {
      one.type = "undecided";
      bad = open;
    }
    if (!bad.empty()) one.end = End::failed;
    else if (!open.empty()) one.end = End::skipped;
    one.message = fmt::format("{}", fmt::join(bad.empty() ? open : bad, "; "));
    said = said || !bad.empty();
    cases.push_back(std::move(one));
  }
  if (const int code = c.exit_code(); code != 0 && !said)
    cases.push_back(report::case_of_end("doorbell.compare", "the whole comparison", code, ""));
  return cases;
}

int deliver_comparison(const ComparisonOutput& o, const Options& options, const Context& context) {
  const std::string &json = options.text("json"), &html = options.text("html");
  const bool silent = options.flag("quiet") || json == "-";
  if (!silent) fmt::print("{}\n", o.text);
  else if (o.code != 0) fmt::print(stderr, "{}\n", o.short_text);
  int code = o.code;
  const auto failed = [&](const std::string& what, ExitCode why) {
    std::fflush(stdout);
    fmt::print(stderr, "{} compare: {}\n", context.program, report::printable(what));
    // The comparison has been made and still counts.
    if (code == 0) code = static_cast<int>(why);
  };
  const std::string text = report::to_string(o.document);
  if (const std::string why = html.empty() ? "" : make_page_of(text, html); !why.empty())
    failed(fmt::format("--html {}: {}", html, why), ExitCode::usage);
  try {
    if (!json.empty()) report::write_file(json, text);
  } catch (const Error& e) {
    failed(e.what(), e.code());
  }
  const int with_junit = write_junit(options, "doorbell compare", o.cases, code);
  return code != 0 ? code : with_junit;
}

}  // namespace doorbell::cli
