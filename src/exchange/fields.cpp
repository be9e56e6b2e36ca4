// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "exchange/fields.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

namespace doorbell::exchange {

using Json = nlohmann::ordered_json;

u64 number(const Json& message, const char* key, u64 low, u64 high) {
  const auto it = message.find(key);
  if (it == message.end() || !it->is_number_unsigned())
    throw Error(kOtherEnd, fmt::format("its message has no whole number '{}'", key));
  const u64 v = it->get<u64>();
  if (v < low || v > high)
    throw Error(kOtherEnd, fmt::format("its '{}' is {}, not in {}..{}", key, v, low, high));
  return v;
}

u32 small(const Json& message, const char* key, u32 low, u32 high) {
  return static_cast<u32>(number(message, key, low, high));
}

std::string text(const Json& m, const char* key, std::size_t longest) {
  const auto at = m.find(key);
  if (at == m.end() || !at->is_string() || at->get<std::string>().size() > longest)
    throw Error(kOtherEnd, fmt::format("its message has no text '{}'", key));
  return at->get<std::string>();
}

double real(const Json& m, const char* key, double low, double high) {
  const auto at = m.find(key);
  if (at == m.end() || !at->is_number() || !(at->get<double>() >= low && at->get<double>() <= high))
    throw Error(kOtherEnd, fmt::format("'{}' is not a number in {:g}..{:g}", key, low, high));
  return at->get<double>();
}

const Json& list(const Json& m, const char* key, std::size_t most) {
  const auto at = m.find(key);
  if (at == m.end() || !at->is_array() || at->size() > most)
    throw Error(kOtherEnd, fmt::format("'{}' is not a list of at most {}", key, most));
  return *at;
}

bool flag(const Json& message, const char* key) {
  const auto it = message.find(key);
  if (it == message.end() || !it->is_boolean())
    throw Error(kOtherEnd, fmt::format("its message has no '{}'", key));
  return it->get<bool>();
}

}  // namespace doorbell::exchange
