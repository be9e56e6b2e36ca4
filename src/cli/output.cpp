// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/output.hpp"

#include <fmt/format.h>

#include "report/csv.hpp"
#include "report/environment.hpp"
#include "report/json.hpp"
#include "report/text.hpp"
#include "report/verdict.hpp"

namespace doorbell::cli {

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
