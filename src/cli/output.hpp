// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The output of a Result, the same in every measuring command.
#pragma once

#include <doorbell/error.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"
#include "report/junit.hpp"
#include "report/result.hpp"

namespace doorbell::cli {

/// Refuses files of --json, --csv, --junit and --html that cannot be written, before the run begins, and a
/// page that this machine cannot make. Also refuses files that are equal to each other or to one of `inputs`
/// (files that the run reads or writes), and "-" where standard output is not doorbell's.
void check_outputs(const Options& options, const std::vector<std::string>& inputs = {},
                   bool own_output = true);

/// Refuses two of the options `names` that write to the same file. /dev/null and a pipe may be shared.
void check_apart(const Options& options, const std::vector<std::string>& names);

/// The same check for one option; "-" and an empty path are allowed.
void check_output(std::string_view name, const std::string& path,
                  const std::vector<std::string>& inputs = {});

/// Refuses `--junit -`. Throws doorbell::Error.
void check_junit_name(const Options& options);

/// Writes --junit, if the command has it and it is given. Returns `code`, or a worse one if the file cannot
/// be written, which is said in `warnings`, or on standard error.
int write_junit(const Options& options, const std::string& suite, const std::vector<report::TestCase>& cases,
                int code, std::vector<std::string>* warnings = nullptr);

/// The same for a command that ended with an error and code `code` before it had cells. A file that is there
/// and is no JUnit file stays as it is: the error may have been that it is to be kept.
void write_junit_of_error(const Options& options, const std::string& command, const Error& error, int code);

/// A Result with argv and environment filled in.
[[nodiscard]] report::Result new_result(const Context& context);

/// Prints the error on standard error; returns the matching exit code.
int print_error(const std::string& prefix, const Error& e);

/// A command's own table in place of report::to_text().
using View = std::string (*)(const report::Result& result);

/// Sets the exit code, prints the table (with --details the blocks) or `view`, then writes --json, --csv and
/// --html, and --junit. `--json -` uses stdout, so no table is printed. Without a table, errors go to
/// standard error. Errors of a file that cannot be written go there too, and do not prevent the other
/// outputs. Returns the worst exit code. With a Host nothing is printed: it gets the Result, among whose
/// warnings are those errors.
int deliver(report::Result& result, const Options& options, const Context& context, View view = nullptr);

}  // namespace doorbell::cli
