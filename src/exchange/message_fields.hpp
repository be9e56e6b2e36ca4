// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The fields of a message, listed once for both ways. A function template calls the same members of a
// FieldWriter, which takes values into a message, or of a FieldReader, which takes them out of one and checks
// them.
#pragma once

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <concepts>
#include <span>
#include <utility>
#include <vector>

#include "exchange/fields.hpp"

namespace doorbell::exchange {

/// Ranges and lengths say what a reader accepts; a writer takes values as they are.
class FieldWriter {
 public:
  void number(const char* key, std::unsigned_integral auto value, u64 /*low*/, u64 /*high*/) {
    message_[key] = value;
  }
  void real(const char* key, double value, double /*low*/, double /*high*/) { message_[key] = value; }
  void flag(const char* key, bool value) { message_[key] = value; }
  void text(const char* key, const std::string& value, std::size_t /*longest*/) { message_[key] = value; }
  /// An enumeration whose values are 0..count-1.
  template <class Enum>
  void choice(const char* key, Enum value, std::size_t /*count*/) {
    message_[key] = static_cast<u32>(value);
  }
  /// Two values, as a flag that is true for the second.
  template <class Enum>
  void either(const char* key, Enum value, Enum /*no*/, Enum yes) {
    message_[key] = value == yes;
  }
  void reals(const char* key, std::span<const double> values, double /*low*/, double /*high*/) {
    message_[key] = std::vector<double>(values.begin(), values.end());
  }

  [[nodiscard]] nlohmann::ordered_json take() { return std::move(message_); }

 private:
  nlohmann::ordered_json message_ = nlohmann::ordered_json::object();
};

/// Throws doorbell::Error, which names the field, for one that is absent, of another type or out of range.
/// The message outlives the reader.
class FieldReader {
 public:
  explicit FieldReader(const nlohmann::ordered_json& message) : message_(message) {}

  template <std::unsigned_integral T>
  void number(const char* key, T& value, u64 low, u64 high) const {
    value = static_cast<T>(exchange::number(message_, key, low, high));
  }
  void real(const char* key, double& value, double low, double high) const {
    value = exchange::real(message_, key, low, high);
  }
  void flag(const char* key, bool& value) const { value = exchange::flag(message_, key); }
  void text(const char* key, std::string& value, std::size_t longest) const {
    value = exchange::text(message_, key, longest);
  }
  template <class Enum>
  void choice(const char* key, Enum& value, std::size_t count) const {
    value = static_cast<Enum>(exchange::number(message_, key, 0, count - 1));
  }
  template <class Enum>
  void either(const char* key, Enum& value, Enum no, Enum yes) const {
    value = exchange::flag(message_, key) ? yes : no;
  }
  void reals(const char* key, std::span<double> values, double low, double high) const {
    const nlohmann::ordered_json& list = exchange::list(message_, key, values.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_number() || !(list[i].get<double>() >= low && list[i].get<double>() <= high))
        throw Error(kOtherEnd,
                    fmt::format("'{}' has something else than numbers in {:g}..{:g}", key, low, high));
      values[i] = list[i].get<double>();
    }
  }

 private:
  const nlohmann::ordered_json& message_;
};

}  // namespace doorbell::exchange
