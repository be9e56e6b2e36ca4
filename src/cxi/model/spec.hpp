// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The keys of "cxi-modelN:KEY=VALUE,...": one table, from which they are parsed and documented.
#pragma once

#include <string_view>

#include "cxi/model/config.hpp"
#include "options/option.hpp"

namespace doorbell::cxi {

/// "model" and "cxi-modelN", with keys behind a ':' or without.
[[nodiscard]] bool is_model(std::string_view spec);

[[nodiscard]] options::OptionTable model_keys();

/// An unknown key or a bad value is an Error that names it.
[[nodiscard]] ModelConfig parse_model_spec(const std::string& spec);

}  // namespace doorbell::cxi
