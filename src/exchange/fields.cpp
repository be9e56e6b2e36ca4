// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "exchange/fields.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

namespace doorbell::exchange {

using Json = nlohmann::ordered_json;

const Json& member(const Json& object, const char* key, const char* subject) {
  const auto it = object.find(key);
  if (it == object.end()) throw Error(subject, fmt::format("'{}' is missing", key));
  return *it;
}

u64 number(const Json& object, const char* key, u64 low, u64 high, const char* subject) {
  const Json& v = member(object, key, subject);
  if (!v.is_number_unsigned() || v.get<u64>() < low || v.get<u64>() > high)
    throw Error(subject, fmt::format("'{}' is no whole number in {}..{}", key, low, high));
  return v.get<u64>();
}

u32 small(const Json& object, const char* key, u32 low, u32 high, const char* subject) {
  return static_cast<u32>(number(object, key, low, high, subject));
}

std::string text(const Json& object, const char* key, std::size_t longest, const char* subject) {
  const Json& v = member(object, key, subject);
  if (!v.is_string()) throw Error(subject, fmt::format("'{}' is no text", key));
  std::string value = v.get<std::string>();
  if (value.size() > longest) throw Error(subject, fmt::format("'{}' has more than {} bytes", key, longest));
  return value;
}

double real(const Json& object, const char* key, double low, double high, const char* subject) {
  const Json& v = member(object, key, subject);
  if (!v.is_number() || !(v.get<double>() >= low && v.get<double>() <= high))
    throw Error(subject, fmt::format("'{}' is no number in {:g}..{:g}", key, low, high));
  return v.get<double>();
}

const Json& list(const Json& object, const char* key, std::size_t most, const char* subject) {
  const Json& v = member(object, key, subject);
  if (!v.is_array() || v.size() > most)
    throw Error(subject, fmt::format("'{}' is no list of at most {}", key, most));
  return v;
}

bool flag(const Json& object, const char* key, const char* subject) {
  const Json& v = member(object, key, subject);
  if (!v.is_boolean()) throw Error(subject, fmt::format("'{}' is neither true nor false", key));
  return v.get<bool>();
}

}  // namespace doorbell::exchange
