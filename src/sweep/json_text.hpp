// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Reads JSON that anybody may have written: what is wrong is said in plain words.
#pragma once

#include <doorbell/config.hpp>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace doorbell::sweep {

/// Throws std::invalid_argument: "it is no JSON (column 7)". Also refuses arrays and objects so deep in each
/// other that what walks over them would need too much stack.
[[nodiscard]] nlohmann::ordered_json parse_json(std::string_view text);

/// The member of an object. These throw std::invalid_argument if it is absent, of another type or out of
/// range: "'cell' is no whole number in 0..4294967295".
[[nodiscard]] const nlohmann::ordered_json& member_of(const nlohmann::ordered_json& object, const char* key);
[[nodiscard]] std::string text_in(const nlohmann::ordered_json& object, const char* key);
[[nodiscard]] double number_in(const nlohmann::ordered_json& object, const char* key);
[[nodiscard]] u32 whole_in(const nlohmann::ordered_json& object, const char* key, u32 most = ~u32{0});

}  // namespace doorbell::sweep
