// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/value_key.hpp"

#include <fmt/format.h>
#include <stdexcept>

namespace doorbell::sweep {

namespace {

using options::Kind;
using options::Option;

/// In the form of the JSON echo.
std::string one_key(const Option& o, const std::string& text) {
  options::OptionTable table;
  table.add({.name = o.name, .kind = o.kind, .min = o.min, .max = o.max, .choices = o.choices});
  options::Options value(table);
  try {
    value.set(o.name, text);
  } catch (const std::invalid_argument&) {
    return text;
  }
  if (o.kind == Kind::choice) {
    const auto number = value.choice_number(o.name);
    return number ? fmt::format("{}={}", text.substr(0, text.find('=')), *number) : text;
  }
  const nlohmann::ordered_json echo = value.echo().front();
  return echo.is_string() ? text : echo.dump();
}

}  // namespace

std::string value_key(const Option& o, const std::string& text) {
  if (o.kind == Kind::flag || text.empty()) return text;
  if (o.kind != Kind::text) return one_key(o, text);
  const Option size = {.name = o.name, .kind = Kind::size};
  std::string key;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find_first_of(",:", at);
    key += one_key(size, text.substr(at, end - at));
    if (end == std::string::npos) return key;
    key += text[end];
    at = end + 1;
  }
}

}  // namespace doorbell::sweep
