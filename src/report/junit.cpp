// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/junit.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/csv.hpp"
#include "report/layout.hpp"
#include "report/result.hpp"

namespace doorbell::report {

namespace {

using Json = nlohmann::ordered_json;
using End = TestCase::End;

/// For an attribute or for text. A line end inside an attribute would be read as a blank.
std::string escaped(const std::string& text) {
  std::string out;
  std::size_t begin = 0;
  // Line by line: to printable() a line end is a control character.
  for (;;) {
    const std::size_t end = text.find('\n', begin);
    for (const char c : printable(text.substr(begin, end == std::string::npos ? end : end - begin)))
      switch (c) {
        case '&':
          out += "&amp;";
          break;
        case '<':
          out += "&lt;";
          break;
        case '>':
          out += "&gt;";
          break;
        case '"':
          out += "&quot;";
          break;
        case '\'':
          out += "&apos;";
          break;
        default:
          out += c;
      }
    // U+FFFE and U+FFFF are good UTF-8 and no characters of XML.
    for (const char* none : {"\xef\xbf\xbe", "\xef\xbf\xbf"})
      for (std::size_t at = out.find(none); at != std::string::npos; at = out.find(none, at))
        out.replace(at, 3, "?");
    if (end == std::string::npos) return out;
    out += "&#10;";
    begin = end + 1;
  }
}

std::string seconds(double s) {
  return fmt::format("{:.3f}", std::isfinite(s) && s > 0 ? s : 0);
}

const char* element(End end) {
  return end == End::failed ? "failure" : end == End::errored ? "error" : "skipped";
}

std::string xml_of(const TestCase& c) {
  std::string out = fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{}\"", escaped(c.group),
                                escaped(c.name), seconds(c.time_s));
  if (c.end == End::passed) return out + "/>\n";
  // In the schemas only failures and errors have a type.
  const std::string type =
      c.end == End::skipped ? std::string() : fmt::format(" type=\"{}\"", escaped(c.type));
  return out + fmt::format(">\n    <{0}{1} message=\"{2}\">{3}</{0}>\n  </testcase>\n", element(c.end), type,
                           escaped(c.message), escaped(c.text));
}

const Json& member(const Json& object, const char* key) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

double number(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_number() ? value.get<double>() : 0;
}

std::string word(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// "3 corrupt", for each class that is not 0.
std::vector<std::string> failures_of(const Json& cell, bool complete) {
  std::vector<std::string> found;
  const auto add = [&](double count, const std::string& name) {
    if (count != 0) found.push_back(fmt::format("{:.0f} {}", count, name));
  };
  for (const auto& [kind, count] : Verify::kFailures) add(number(member(cell, "verify"), kind), kind);
  const Json& errors = member(cell, "errors");
  if (errors.is_object())
    for (const auto& [kind, count] : errors.items())
      if (count.is_number()) add(count.get<double>(), kind);
  const Json& repeats = member(cell, "repeats");
  if (complete && repeats.is_array() && !repeats.empty() && number(member(cell, "metrics"), "ops") == 0)
    found.emplace_back("nothing was measured");
  return found;
}

/// Where the first failures of verification lie, a line each.
std::string places_of(const Json& cell) {
  std::string text;
  const Json& first = member(member(cell, "verify"), "first");
  if (!first.is_array()) return text;
  for (const Json& place : first)
    text += (text.empty() ? "" : "\n") + place.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text;
}

double time_of(const Json& cell) {
  return number(member(cell, "metrics"), "elapsed_s") *
         static_cast<double>(std::max<std::size_t>(1, member(cell, "repeats").size()));
}

}  // namespace

std::string to_junit(const std::string& suite, const std::vector<TestCase>& cases) {
  double time_s = 0;
  for (const TestCase& c : cases) time_s += c.time_s;
  const auto count = [&](End end) { return std::ranges::count(cases, end, &TestCase::end); };
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  const std::string facts =
      fmt::format("name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\"", escaped(suite), cases.size(),
                  count(End::failed), count(End::errored));
  out += fmt::format("<testsuites {0} time=\"{1}\">\n<testsuite {0} skipped=\"{2}\" time=\"{1}\">\n", facts,
                     seconds(time_s), count(End::skipped));
  for (const TestCase& c : cases) out += xml_of(c);
  return out + "</testsuite>\n</testsuites>\n";
}

TestCase case_of_end(const std::string& group, const std::string& name, int code, const std::string& why) {
  TestCase c{.group = group, .name = name, .message = why.substr(0, why.find('\n')), .text = why};
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::absent:
      c.end = End::skipped;
      break;
    case ExitCode::usage:
      c.end = End::errored;
      c.type = "usage or environment";
      break;
    case ExitCode::interrupted:
      c.end = End::errored;
      c.type = "interrupted";
      break;
    default:
      c.end = End::failed;
      c.type = "data";
  }
  if (c.message.empty()) c.message = fmt::format("exit code {}", code);
  return c;
}

std::vector<TestCase> cases_of(const Json& result) {
  std::vector<TestCase> cases;
  const bool complete = member(result, "complete") == true;
  bool said = false;
  const Json& cells = member(result, "cells");
  std::string path;
  if (cells.is_array())
    for (const Json& cell : cells) {
      path = word(cell, "path");
      TestCase c{.group = "doorbell." + path,
                 .name = parameters_of(member(cell, "cell"), " "),
                 .time_s = time_of(cell)};
      if (const std::string way = word(member(cell, "beside"), "label"); !way.empty())
        c.name += " way=" + way;
      if (c.name.empty()) c.name = path;
      if (const auto failures = failures_of(cell, complete); !failures.empty()) {
        c.end = End::failed;
        c.type = "data";
        c.message = fmt::format("{}", fmt::join(failures, ", "));
        c.text = places_of(cell);
        said = true;
      }
      cases.push_back(std::move(c));
    }
  const auto code = static_cast<int>(number(result, "exit_code"));
  if ((code != 0 && !said) || !complete || cases.empty()) {
    const std::string why = complete ? fmt::format("the run ended with exit code {}", code)
                                     : fmt::format("the run is incomplete, stopped by {}; exit code {}",
                                                   word(result, "stop_reason"), code);
    // A run that ended early without an error of its own has not shown what it was to show.
    cases.push_back(case_of_end(path.empty() ? "doorbell" : "doorbell." + path, "the whole run",
                                code == 0 ? static_cast<int>(ExitCode::interrupted) : code, why));
  }
  return cases;
}

}  // namespace doorbell::report
