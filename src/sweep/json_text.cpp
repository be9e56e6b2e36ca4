// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/json_text.hpp"

#include <algorithm>
#include <doorbell/error.hpp>
#include <fmt/format.h>

namespace doorbell::sweep {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 100;

/// "column 7", or "line 2, column 3" of a text with several lines. `byte` counts from 1.
std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const std::size_t begin = before.rfind('\n');
  if (begin == std::string_view::npos) return fmt::format("column {}", before.size() + 1);
  return fmt::format("line {}, column {}", std::ranges::count(before, '\n') + 1, before.size() - begin);
}

}  // namespace

Json parse_json(std::string_view text, const std::string& subject) {
  const auto shallow = [&](int depth, Json::parse_event_t, const Json&) {
    if (depth > kMaxDepth) throw Error(subject, fmt::format("it is more than {} levels deep", kMaxDepth));
    return true;
  };
  try {
    return Json::parse(text, shallow);
  } catch (const Json::parse_error& e) {
    const bool utf8 = std::string_view(e.what()).find("UTF-8") != std::string_view::npos;
    throw Error(subject,
                fmt::format("it is no {} ({})", utf8 ? "JSON in UTF-8" : "JSON", place_of(text, e.byte)));
  } catch (const Json::out_of_range&) {
    throw Error(subject, "a number in it is too large");
  }
}

}  // namespace doorbell::sweep
