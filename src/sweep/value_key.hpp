// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One spelling for all spellings of an option's value.
#pragma once

#include <string>

#include "options/option.hpp"

namespace doorbell::sweep {

/// The same text for the same value: "1KiB" and "1024". Sizes in plain text, which may be a list or ranges of
/// them ("1KiB,4KiB:1MiB"), count as sizes. What is no value of the option is its own key.
[[nodiscard]] std::string value_key(const options::Option& option, const std::string& text);

}  // namespace doorbell::sweep
