// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/output.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "report/csv.hpp"
#include "report/environment.hpp"
#include "report/json.hpp"
#include "report/text.hpp"
#include "report/verdict.hpp"

namespace doorbell::cli {

void check_output(std::string_view name, const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path file = path;
  if (file.empty() || file == "-") return;
  std::error_code ignored;
  const std::string option = fmt::format("--{} {}", name, path);
  if (fs::is_directory(file, ignored)) throw Error(option, "it is a folder");
  if (fs::exists(file, ignored) && !fs::is_regular_file(file, ignored)) {  // a pipe, /dev/null
    if (access(file.c_str(), W_OK) != 0) throw Error(option, std::strerror(errno));
    return;
  }
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error(option, fmt::format("its folder: {}", std::strerror(errno)));
}

void check_outputs(const Options& options) {
  if (options.text("json") == "-" && options.text("csv") == "-")
    throw Error("--csv", "--json has standard output already", "give one of them a file");
  for (const char* name : {"json", "csv"}) check_output(name, options.text(name));
}

report::Result new_result(const Context& context) {
  report::Result r;
  r.argv = context.argv;
  r.environment = report::collect_environment();
  r.warnings = report::environment_warnings(r.environment);
  return r;
}

int deliver(report::Result& result, const Options& options, const Context& context) {
  result.exit_code = report::exit_code_for(result);
  const std::string& json = options.text("json");
  const std::string& csv = options.text("csv");
  if (!json.empty()) report::write_json(result, json);
  if (!csv.empty()) report::write_csv(result, csv);
  if (!options.flag("quiet") && json != "-" && csv != "-")
    fmt::print("{}", report::to_text(result, context.stdout_tty));
  return result.exit_code;
}

}  // namespace doorbell::cli
