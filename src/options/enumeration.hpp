// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Names in a sentence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace doorbell::options {

/// "A, B or C" with "or" as the conjunction.
[[nodiscard]] inline std::string enumeration(const std::vector<std::string>& names,
                                             std::string_view conjunction) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0 && i + 1 == names.size()) (text += ' ').append(conjunction) += ' ';
    else if (i > 0) text += ", ";
    text += names[i];
  }
  return text;
}

}  // namespace doorbell::options
