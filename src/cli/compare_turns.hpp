// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Two settings of one command, run in turns: `doorbell compare -- ...` and --versus of the measuring
// commands.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace doorbell::cli {

/// Runs the settings in `rest` ("nvme --in-flight 1 -- --in-flight 32") as `options`, those of
/// compare_command(), have it. Returns the exit code. Throws doorbell::Error before anything runs for what is
/// wrong with a side, which it names.
[[nodiscard]] int run_turns(const Options& options, const std::vector<std::string>& rest, Context& context);

/// --versus of the commands that measure.
[[nodiscard]] Option versus_option();
/// The value of --versus begins with a dash, which a value of its own word must not: puts both into one word.
[[nodiscard]] std::vector<std::string> join_versus(std::span<const std::string> words);
[[nodiscard]] bool asks_for_versus(const Options& options);
/// Runs `command` with `words` (A), and with the options in --versus in place of its own or besides them (B).
/// The command's outputs are the comparison's.
[[nodiscard]] int run_versus(const Command& command, const Options& options,
                             std::span<const std::string> words, Context& context);

/// `words` without the options in `names` and their values. Every word must be as parse() takes it.
[[nodiscard]] std::vector<std::string> without(const OptionTable& table, std::span<const std::string> words,
                                               const std::vector<std::string>& names);

/// The words of a text: blanks part them, '...' and "..." keep them together. Throws doorbell::Error for a
/// quote without an end.
[[nodiscard]] std::vector<std::string> words_of(const std::string& text, const std::string& setting);

}  // namespace doorbell::cli
