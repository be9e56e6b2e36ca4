// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Reads JSON that anybody may have written: what is wrong is said in plain words.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace doorbell::sweep {

/// Throws doorbell::Error about `subject`: "it is no JSON (column 7)". Also refuses arrays and objects so
/// deep in each other that what walks over them would need too much stack. exchange/fields.hpp reads the
/// values.
[[nodiscard]] nlohmann::ordered_json parse_json(std::string_view text, const std::string& subject);

}  // namespace doorbell::sweep
