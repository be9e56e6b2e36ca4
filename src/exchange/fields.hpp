// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The values in a message from the other process, checked. They throw doorbell::Error, which names the value.
#pragma once

#include <doorbell/config.hpp>

#include <nlohmann/json.hpp>
#include <string>

namespace doorbell::exchange {

/// The subject of an Error about a message.
inline constexpr const char* kOtherEnd = "the other end";

/// The whole number `key`, which must lie in low..high.
[[nodiscard]] u64 number(const nlohmann::ordered_json& message, const char* key, u64 low, u64 high);
[[nodiscard]] u32 small(const nlohmann::ordered_json& message, const char* key, u32 low, u32 high);
[[nodiscard]] double real(const nlohmann::ordered_json& message, const char* key, double low, double high);
/// A text of at most `longest` bytes.
[[nodiscard]] std::string text(const nlohmann::ordered_json& message, const char* key, std::size_t longest);
/// A list of at most `most` values.
[[nodiscard]] const nlohmann::ordered_json& list(const nlohmann::ordered_json& message, const char* key,
                                                 std::size_t most);
[[nodiscard]] bool flag(const nlohmann::ordered_json& message, const char* key);

}  // namespace doorbell::exchange
