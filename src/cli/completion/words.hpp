// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The facts of the option tables that the completion scripts of all shells are made from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace doorbell::cli {

/// All ways to write an option that is no operand: "--controller", "--device", "-d".
[[nodiscard]] std::vector<std::string> spellings(const Option& o);
/// The choices of an option; "sample=" for one that takes a number.
[[nodiscard]] std::vector<std::string> choice_words(const Option& o);
/// The options that words without an option before them are values of, in order.
[[nodiscard]] std::vector<const Option*> free_words(const OptionTable& table);
/// An option in a few words, for a list.
[[nodiscard]] std::string short_text(const Option& o);
/// The words that make another command with this one's name: "link" of "net", for net-link.
[[nodiscard]] std::vector<std::string> second_words(const std::vector<Command>& commands,
                                                    const std::string& name);
/// "nvme controller": what the program is asked by for the values of an option.
[[nodiscard]] std::string asked_by(const Command& command, const Option& o);

/// In single quotes, for bash and zsh.
[[nodiscard]] std::string shell_quoted(std::string_view text);
/// Each word in single quotes if it needs them, with a space before it.
[[nodiscard]] std::string shell_words(const std::vector<std::string>& words);

/// `text` with each `from` replaced.
[[nodiscard]] std::string replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace doorbell::cli
