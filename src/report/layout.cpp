// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace doorbell::report {

std::string printable(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return out;
}

std::string digits(double v) {
  if (!std::isfinite(v)) return "-";
  const double magnitude = std::abs(v);
  if (magnitude == 0) return "0";
  if (magnitude >= 999.95) return fmt::format("{:.0f}", v);
  if (magnitude >= 99.995) return fmt::format("{:.1f}", v);
  if (magnitude >= 9.9995) return fmt::format("{:.2f}", v);
  if (magnitude >= 0.9995) return fmt::format("{:.3f}", v);
  return fmt::format("{:#.3g}", v);
}

std::string digits(const std::optional<double>& v, double unit) {
  return v ? digits(*v / unit) : "-";
}

Scale scale_for(double largest) {
  if (largest >= 1e9) return {1e9, "G"};
  if (largest >= 1e6) return {1e6, "M"};
  if (largest >= 1e4) return {1e3, "k"};
  return {};
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    out += "  " + fmt::format("{:<{}}", row[0], width[0]);
    for (std::size_t i = 1; i < row.size(); ++i) out += "  " + fmt::format("{:>{}}", row[i], width[i]);
    out += '\n';
  }
  return out;
}

}  // namespace doorbell::report
