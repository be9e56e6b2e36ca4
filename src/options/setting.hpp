// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A setting and its two names: words for programs that use the library, an option for users of a command.
#pragma once

#include <doorbell/config.hpp>
#include <fmt/core.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

namespace doorbell {

/// Names a setting in messages, and the row of the option that sets it. Each part has its settings as
/// constants, in its settings.hpp.
class Setting {
 public:
  /// `words`: "queue length", a constant. `option`: "queue-length", without dashes; with further options or a
  /// value where a message needs them: "size, --in-flight", "controller file:".
  consteval Setting(std::string_view words, std::string_view option)
      : words_(words), characters_(static_cast<u32>(option.size()) + 2) {
    if (characters_ > option_.size()) throw std::length_error("the option's name");
    option_[0] = option_[1] = '-';
    for (std::size_t i = 0; i < option.size(); ++i) option_[i + 2] = option[i];
  }

  /// The option's name without dashes, for its row in a command's table.
  [[nodiscard]] std::string option() const { return {option_.data() + 2, characters_ - 2}; }
  /// The name in messages: the words, or "--queue-length" where settings are named by options.
  [[nodiscard]] std::string_view text() const noexcept {
    return named_by_options() ? std::string_view(option_.data(), characters_) : words_;
  }
  operator std::string() const {
    return std::string(text());
  }  // NOLINT(google-explicit-constructor): an Error's subject

  /// From now on messages of this process name settings by options. For the main function of a program whose
  /// users give options. Any thread.
  static void name_by_options(bool on = true) noexcept;
  [[nodiscard]] static bool named_by_options() noexcept;

 private:
  static constexpr std::size_t kLongest = 48;
  std::string_view words_;
  std::array<char, kLongest> option_{};
  u32 characters_;
};

[[nodiscard]] inline std::string operator+(const Setting& setting, std::string_view text) {
  return std::string(setting).append(text);
}

}  // namespace doorbell

template <>
struct fmt::formatter<doorbell::Setting> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const doorbell::Setting& setting, Context& context) const {
    return fmt::formatter<std::string_view>::format(setting.text(), context);
  }
};
