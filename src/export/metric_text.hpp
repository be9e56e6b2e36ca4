// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The text format that Prometheus reads (version 0.0.4 of its exposition format).
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace doorbell::exporting {

/// Families of metrics, one after the other: the head of each, then its samples.
class MetricText {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  /// `prefix` begins each metric's name.
  explicit MetricText(std::string_view prefix) : prefix_(prefix) {}

  /// The samples that follow are of this family.
  void family(std::string_view metric, std::string_view type, std::string_view help) {
    metric_ = metric;
    fmt::format_to(std::back_inserter(text_), "# HELP {0}{1} {2}\n# TYPE {0}{1} {3}\n", prefix_, metric, help,
                   type);
  }
  void sample(auto value, Labels labels = {}, std::string_view suffix = {}) {
    fmt::format_to(std::back_inserter(text_), "{}{}{}", prefix_, metric_, suffix);
    char before = '{';
    for (const auto& [name, label] : labels) {
      fmt::format_to(std::back_inserter(text_), "{}{}=\"{}\"", std::exchange(before, ','), name,
                     escaped(label));
    }
    fmt::format_to(std::back_inserter(text_), "{} {}\n", labels.size() > 0 ? "}" : "", value);
  }
  /// A family of one sample.
  void one(std::string_view metric, std::string_view type, std::string_view help, auto value) {
    family(metric, type, help);
    sample(value);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  /// A label's value: backslash, quotation mark and line end are escaped.
  static std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
      if (c == '\\' || c == '"') out += '\\';
      if (c == '\n') out += "\\n";
      else out += c;
    }
    return out;
  }

  std::string_view prefix_;
  std::string metric_;
  std::string text_;
};

}  // namespace doorbell::exporting
