// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "options/spec.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <stdexcept>

#include "options/suggest.hpp"

namespace doorbell::options {

namespace {

/// Where a comma ends the first item: "\," is one that belongs to a value, such as the name of a file.
std::size_t end_of_item(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') ++at;
    else if (text[at] == ',') return at;
  }
  return std::string_view::npos;
}

std::string without_escapes(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 1 < text.size() && (text[at + 1] == ',' || text[at + 1] == '\\')) ++at;
    out += text[at];
  }
  return out;
}

}  // namespace

Options parse_spec(const std::string& title, const OptionTable& keys, std::string_view spec) {
  Options values(keys);
  const auto colon = spec.find(':');
  if (colon == std::string_view::npos) return values;
  for (std::string_view rest = spec.substr(colon + 1);;) {
    const auto comma = end_of_item(rest);
    const std::string item = without_escapes(rest.substr(0, comma));
    const auto equals = item.find('=');
    const std::string key = item.substr(0, equals);
    const Option* const option = keys.find(key);
    if (option == nullptr) {
      std::vector<std::string> names;
      for (const Option& o : keys.all()) names.push_back(o.name);
      const std::string near = nearest(key, names);
      throw Error(title, fmt::format("unknown key '{}'", key),
                  near.empty() ? fmt::format("the keys are {}", fmt::join(names, ", "))
                               : fmt::format("did you mean '{}'?", near));
    }
    if (equals == std::string_view::npos)
      throw Error(fmt::format("{}: {}", title, key), "it needs a value", fmt::format("write {}=VALUE", key));
    if (values.given(option->name)) throw Error(fmt::format("{}: {}", title, key), "it is given twice");
    try {
      values.set(key, item.substr(equals + 1));
    } catch (const std::invalid_argument& e) {
      throw Error(fmt::format("{}: {}", title, key), e.what());
    }
    if (comma == std::string_view::npos) return values;
    rest = rest.substr(comma + 1);
  }
}

}  // namespace doorbell::options
