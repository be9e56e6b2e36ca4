// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/layout.hpp"

#include <fmt/format.h>

#include <doorbell/config.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace doorbell::report {

namespace {

/// The bytes of the UTF-8 character at the beginning of `text`, if it is one that a terminal shows; else 0.
/// Nothing is taken that could be written in fewer bytes, no half of a surrogate pair, and of the control
/// characters neither C0 nor C1, which a terminal obeys like an escape.
std::size_t shown_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<u32>(static_cast<unsigned char>(text[i])); };
  const u32 lead = byte(0);
  if (lead < 0x80) return lead < 0x20 || lead == 0x7f ? 0 : 1;
  const std::size_t n = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < n) return 0;
  u32 code = lead & (0x7fu >> n);
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::array<u32, 5> kLeast = {0, 0, 0xa0, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kLeast[n] || code > 0x10ffff || surrogate ? 0 : n;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t n = shown_bytes(text);
    if (n > 0) out += text.substr(0, n);
    else out += '?';
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return out;
}

std::size_t columns(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b') at = std::min(text.find('m', at), text.size());
    else if ((static_cast<unsigned char>(text[at]) & 0xc0) != 0x80) ++count;
  }
  return count;
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
