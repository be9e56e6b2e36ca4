// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Options that take several sizes.
#pragma once

#include <doorbell/config.hpp>

#include <string>
#include <vector>

namespace doorbell::cli {

/// Accepts "A", "A,B,C" or "A:B" with sizes in least..most. A range means its lower end, then the powers of
/// two up to its upper end. Throws Error naming `option`.
[[nodiscard]] std::vector<u64> sizes_of(const std::string& option, const std::string& text, u64 least,
                                        u64 most);

}  // namespace doorbell::cli
