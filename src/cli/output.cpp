// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/output.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "cli/report_page.hpp"
#include "cli/terminal.hpp"
#include "report/cell_table.hpp"
#include "report/csv.hpp"
#include "report/environment.hpp"
#include "report/file.hpp"
#include "report/json.hpp"
#include "report/layout.hpp"
#include "report/text.hpp"
#include "report/verdict.hpp"
#include "system/open_file.hpp"
#include "system/sysfs.hpp"

namespace doorbell::cli {

namespace {

/// Runs `write` and reports what it throws, so that other outputs are not lost: in `warnings`, or on standard
/// error. Returns `code`, or a worse one.
template <class Write>
int try_to(Write write, int code, std::vector<std::string>* warnings = nullptr) {
  try {
    write();
    return code;
  } catch (const Error& e) {
    if (warnings == nullptr) return report::worse_of(code, print_error("doorbell: ", e));
    warnings->emplace_back(e.what());
    return report::worse_of(code, static_cast<int>(e.code()));
  }
}

/// Returns why there is no page, or "".
std::string page_of(const report::Result& result, const std::string& html) {
  try {
    return make_page_of(report::to_string(report::to_json(result)), html);
  } catch (const Error& e) {  // a Result that cannot be JSON
    return e.what();
  }
}

/// Two options may name /dev/null, or a pipe.
bool may_be_shared(const std::string& file) {
  std::error_code ignored;
  const auto type = std::filesystem::status(file, ignored).type();
  return type != std::filesystem::file_type::regular && type != std::filesystem::file_type::not_found;
}

/// An earlier --junit file may be replaced.
bool is_new_or_junit(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) return true;
  const Opened file = open_file(path, O_RDONLY, FileKinds::regular);
  if (!file) return false;
  char start[256];
  const ssize_t n = read(file.fd.get(), start, sizeof start);
  return n > 0 &&
         std::string_view(start, static_cast<std::size_t>(n)).find("<testsuites ") != std::string_view::npos;
}

}  // namespace

void check_output(std::string_view name, const std::string& path, const std::vector<std::string>& inputs) {
  namespace fs = std::filesystem;
  const fs::path file = path;
  if (file.empty() || file == "-") return;
  std::error_code ignored;
  const std::string option = fmt::format("--{} {}", name, path);
  for (const std::string& input : inputs)
    if (same_file(path, input))
      throw Error(option, fmt::format("it is {}, which the run uses itself", input), "name another file");
  if (fs::is_directory(file, ignored)) throw Error(option, "it is a folder");
  if (fs::is_block_file(file, ignored)) throw Error(option, "it is a block device");
  if (fs::exists(file, ignored) && !fs::is_regular_file(file, ignored)) {  // a pipe, /dev/null
    if (access(file.c_str(), W_OK) != 0) throw Error(option, reason(errno));
    return;
  }
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error(option, fmt::format("its folder: {}", reason(errno)));
}

void check_apart(const Options& options, const std::vector<std::string>& names) {
  for (auto name = names.begin(); name != names.end(); ++name) {
    const std::string& file = options.text(*name);
    const auto other = std::find_if(names.begin(), name, [&](const std::string& before) {
      return same_file(options.text(before), file) && !may_be_shared(file);
    });
    if (other != name)
      throw Error(fmt::format("--{} {}", *name, file), fmt::format("--{} writes to the same file", *other),
                  "give them two files");
  }
}

void check_outputs(const Options& options, const std::vector<std::string>& inputs, bool own_output) {
  for (const char* name : {"json", "csv"})
    if (!own_output && options.text(name) == "-")
      throw Error(fmt::format("--{} -", name), "standard output is the calling program's", "name a file");
  if (options.text("json") == "-" && options.text("csv") == "-")
    throw Error("--csv", "--json has standard output already", "give one of them a file");
  check_apart(options, {"json", "csv", "html", "junit"});
  check_output("json", options.text("json"), inputs);
  check_output("csv", options.text("csv"), inputs);
  check_output("junit", options.text("junit"), inputs);
  check_junit_name(options);
  const std::string& html = options.text("html");
  check_page(html, inputs);
  if (const std::string why = html.empty() ? "" : why_no_page(); !why.empty())
    throw Error("--html " + html, why,
                "install what is missing, or give --json and make the page of that file later");
}

void check_junit_name(const Options& options) {
  if (options.text("junit") == "-") throw Error("--junit -", "it needs a file of its own", "name one");
}

int write_junit(const Options& options, const std::string& suite, const std::vector<report::TestCase>& cases,
                int code, std::vector<std::string>* warnings) {
  if (options.table().find("junit") == nullptr || !options.has("junit")) return code;
  return try_to([&] { report::write_file(options.text("junit"), report::to_junit(suite, cases)); }, code,
                warnings);
}

void write_junit_of_error(const Options& options, const std::string& command, const Error& e, int code) {
  if (options.table().find("junit") == nullptr || !options.has("junit")) return;
  const std::string& path = options.text("junit");
  std::error_code ignored;
  if (path == "-" || !is_new_or_junit(path)) return;
  (void)write_junit(options, "doorbell " + command,
                    {report::case_of_end("doorbell." + command, "the whole run", code, e.what())}, code);
}

report::Result new_result(const Context& context) {
  report::Result r;
  r.argv = context.argv;
  r.environment = report::collect_environment();
  r.warnings = report::environment_warnings(r.environment);
  return r;
}

namespace {

void print_result(const report::Result& result, const Options& options, const Context& context, View view) {
  // Errors of this stream are reported at the end, when the files are written.
  const report::Look look(context.colour, options.text("units") == "bits",
                          table_columns(stdout, report::kTableColumns));
  const std::string text = options.flag("details") ? report::to_text(result, look)
                           : view != nullptr       ? view(result)
                                                   : report::to_short_text(result, look);
  print(stdout, text);
  std::fflush(stdout);
}

}  // namespace

int deliver(report::Result& result, const Options& options, const Context& context, View view) {
  result.exit_code = report::exit_code_for(result);
  int code = result.exit_code;
  const std::string& json = options.text("json");
  const std::string& csv = options.text("csv");
  std::vector<std::string>* const warnings = context.host == nullptr ? nullptr : &result.warnings;
  if (context.host == nullptr) {
    if (!options.flag("quiet") && json != "-" && csv != "-") print_result(result, options, context, view);
    else if (code != 0) fmt::print(stderr, "{}", report::failure_text(result));
  }
  if (!json.empty()) code = try_to([&] { report::write_json(result, json); }, code, warnings);
  if (!csv.empty()) code = try_to([&] { report::write_csv(result, csv); }, code, warnings);
  const std::string& html = options.text("html");
  if (const std::string why = html.empty() ? "" : page_of(result, html); !why.empty()) {
    const int failed = try_to([&] { throw Error("--html " + html, why); }, 0, warnings);
    if (code == 0) code = failed;
  }
  if (options.has("junit")) {
    const std::string suite =
        fmt::format("doorbell {}", fmt::join(context.argv.begin() + 1, context.argv.end(), " "));
    std::vector<report::TestCase> cases;
    code = try_to([&] { cases = report::cases_of(report::to_json(result)); }, code, warnings);
    if (!cases.empty()) code = write_junit(options, suite, cases, code, warnings);
  }
  if (context.host != nullptr) {
    result.exit_code = code;
    context.host->take(result);
  }
  return code;
}

}  // namespace doorbell::cli
