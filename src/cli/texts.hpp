// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The texts made from the option tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace doorbell::cli {

inline constexpr std::size_t kHelpWidth = 80;

/// `text` in lines of at most `width` columns; all lines except the first are indented by `indent`.
[[nodiscard]] std::string wrap(std::string_view text, std::size_t width, std::size_t indent);

/// "doorbell nvme", or the name of a program with its own name.
[[nodiscard]] std::string typed_name(const Command& command);
/// The name of the command's manual page.
[[nodiscard]] std::string page_name(const Command& command);
/// "nvme [OPTION]... FILE": operands are in brackets unless they are required.
[[nodiscard]] std::string usage_line(const Command& command);
/// The facts after an option's help text in --help: unit, default, range, choices.
[[nodiscard]] std::string option_facts(const Option& o);

/// The keys in one option's value, as a paragraph of a command's description: `title` and each key.
[[nodiscard]] std::string key_text(const std::string& title, const OptionTable& keys);

/// `doorbell help`: every command with its summary.
[[nodiscard]] std::string program_help(const std::vector<Command>& commands);
/// `doorbell COMMAND --help all`: everything.
[[nodiscard]] std::string command_help(const Command& command);
/// `doorbell COMMAND --help`: the options with a `brief` text, a line each, and three examples, on one
/// screen; of a command that has none, everything.
[[nodiscard]] std::string brief_help(const Command& command);

/// doorbell.1 and doorbell-COMMAND.1, in the man macros of roff. `programs`: those with names of their own.
[[nodiscard]] std::string program_man(const std::vector<Command>& commands,
                                      const std::vector<Command>& programs = {});
[[nodiscard]] std::string command_man(const Command& command);

/// Completion scripts. The one for bash needs bash 4 and nothing else, the others zsh 5 and fish 3. For
/// values that only the machine knows (Option::offers) they ask `doorbell completion SHELL --values`.
[[nodiscard]] std::string bash_completion(const std::vector<Command>& commands,
                                          const std::vector<Command>& programs = {});
[[nodiscard]] std::string zsh_completion(const std::vector<Command>& commands,
                                         const std::vector<Command>& programs = {});
[[nodiscard]] std::string fish_completion(const std::vector<Command>& commands,
                                          const std::vector<Command>& programs = {});

inline constexpr ExitStatus kExitStatuses[] = {
    {0, "success"},
    {1, "usage or environment: a bad option, a missing file, no permission"},
    {2, "data, completion or timeout errors, or a figure above a physical limit"},
    {3, "a comparison found a regression"},
    {77, "the hardware asked for is not here"},
    {130, "interrupted: the report is of what was done until then, and has no errors"},
};

/// One paragraph each.
inline constexpr std::string_view kProgramDescription[] = {
    "doorbell moves bytes between accelerators and the devices around them and measures what each path "
    "delivers. The work is started by a CPU thread or by a GPU kernel, and every byte is verified.",
    "Every device also exists as a software model that speaks the device's own wire format, so each command "
    "runs on any Linux machine. Which device is used is named on the command line and in every result.",
};

}  // namespace doorbell::cli
