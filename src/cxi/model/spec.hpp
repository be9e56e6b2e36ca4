// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The keys of "cxi-modelN:KEY=VALUE,...": one table for parsing and for documentation.
#pragma once

#include <string_view>

#include "cxi/backends.hpp"
#include "cxi/model/config.hpp"
#include "cxi/settings.hpp"
#include "options/option.hpp"

namespace doorbell::cxi {

/// True for "model" and "cxi-modelN", with keys after a ':' or without.
[[nodiscard]] bool is_model(std::string_view spec);

[[nodiscard]] options::OptionTable model_keys();

/// Throws an Error that names an unknown key or a bad value. `device`: the setting that names the device.
[[nodiscard]] ModelConfig parse_model_spec(const std::string& spec,
                                           const std::string& device = setting::device);

}  // namespace doorbell::cxi
