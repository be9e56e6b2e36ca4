// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Colours of texts for a terminal.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "report/verdict.hpp"

namespace doorbell::report {

enum class Style { plain, bold, good, bad, warn };

/// Adds ANSI colours, or nothing when it is made without them.
class Paint {
 public:
  explicit Paint(bool colour) : colour_(colour) {}
  [[nodiscard]] std::string operator()(Style style, std::string_view text) const {
    if (!colour_ || style == Style::plain) return std::string(text);
    const char* code = style == Style::bold   ? "1"
                       : style == Style::good ? "32"
                       : style == Style::bad  ? "1;31"
                                              : "33";
    return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
  }

 private:
  bool colour_;
};

[[nodiscard]] inline Style style_of(const Verdict& verdict) {
  if (verdict.kind == Verdict::Kind::ok) return Style::good;
  return verdict.kind == Verdict::Kind::failed ? Style::bad : Style::warn;
}

}  // namespace doorbell::report
