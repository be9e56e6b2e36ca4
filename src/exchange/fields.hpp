// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The values in a message from the other process, or in another JSON object that anybody may have written,
// checked. They throw doorbell::Error, which names the value.
#pragma once

#include <doorbell/config.hpp>

#include <nlohmann/json.hpp>
#include <string>

namespace doorbell::exchange {

/// The subject of an Error about a message.
inline constexpr const char* kOtherEnd = "the other end";

/// The value `key`, of any kind. Each of these takes the subject of its Error.
[[nodiscard]] const nlohmann::ordered_json& member(const nlohmann::ordered_json& object, const char* key,
                                                   const char* subject = kOtherEnd);
/// The whole number `key`, which must lie in low..high.
[[nodiscard]] u64 number(const nlohmann::ordered_json& object, const char* key, u64 low, u64 high,
                         const char* subject = kOtherEnd);
[[nodiscard]] u32 small(const nlohmann::ordered_json& object, const char* key, u32 low, u32 high,
                        const char* subject = kOtherEnd);
[[nodiscard]] double real(const nlohmann::ordered_json& object, const char* key, double low, double high,
                          const char* subject = kOtherEnd);
/// A text of at most `longest` bytes.
[[nodiscard]] std::string text(const nlohmann::ordered_json& object, const char* key, std::size_t longest,
                               const char* subject = kOtherEnd);
/// A list of at most `most` values.
[[nodiscard]] const nlohmann::ordered_json& list(const nlohmann::ordered_json& object, const char* key,
                                                 std::size_t most, const char* subject = kOtherEnd);
[[nodiscard]] bool flag(const nlohmann::ordered_json& object, const char* key,
                        const char* subject = kOtherEnd);

}  // namespace doorbell::exchange
