// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/doorbell.h>
#include <doorbell/run.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <stop_token>

#include "c_api/error.hpp"

struct doorbell_result {
  doorbell::RunResult result;
};

namespace {

using doorbell::c_api::guarded;
using doorbell::c_api::require;

double or_nan(const std::optional<double>& value) {
  return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

const doorbell::RunCell& cell_of(const doorbell_result* result, std::size_t cell) {
  const auto& cells = require(result, "result").result.cells;
  if (cell >= cells.size()) throw doorbell::Error("cell", "the result has no cell of this number");
  return cells[cell];
}

}  // namespace

DOORBELL_C_API doorbell_result* doorbell_run(const char* path, const struct doorbell_option* options,
                                             std::size_t count, doorbell_progress progress, void* user) {
  return guarded([&] {
    doorbell::OptionValues values;
    if (count > 0) (void)require(options, "options");
    for (std::size_t i = 0; i < count; ++i) {
      const doorbell_option& o = options[i];
      values.emplace_back(&require(o.name, "an option's name"), &require(o.value, "an option's value"));
    }
    std::stop_source stop;
    doorbell::RunHooks hooks = {.stop = stop.get_token()};
    if (progress != nullptr)
      hooks.progress = [&](double share, const std::string& phase, doorbell::u64 operations) {
        if (progress(user, share, phase.c_str(), operations) != 0) stop.request_stop();
      };
    return new doorbell_result{doorbell::run(&require(path, "path"), values, hooks)};
  });
}

DOORBELL_C_API void doorbell_result_free(doorbell_result* result) {
  delete result;
}

DOORBELL_C_API int doorbell_result_exit_code(const doorbell_result* result) {
  return guarded([&] { return require(result, "result").result.exit_code; });
}

DOORBELL_C_API const char* doorbell_result_verdict(const doorbell_result* result) {
  return guarded([&] { return require(result, "result").result.verdict.c_str(); });
}

DOORBELL_C_API const char* doorbell_result_json(const doorbell_result* result) {
  return guarded([&] { return require(result, "result").result.json.c_str(); });
}

DOORBELL_C_API std::size_t doorbell_result_warnings(const doorbell_result* result) {
  return result == nullptr ? 0 : result->result.warnings.size();
}

DOORBELL_C_API const char* doorbell_result_warning(const doorbell_result* result, std::size_t index) {
  return guarded([&]() -> const char* {
    const auto& all = require(result, "result").result.warnings;
    if (index >= all.size()) throw doorbell::Error("warning", "the result has none of this number");
    return all[index].c_str();
  });
}

DOORBELL_C_API std::size_t doorbell_result_cells(const doorbell_result* result) {
  return result == nullptr ? 0 : result->result.cells.size();
}

DOORBELL_C_API int doorbell_result_figures(const doorbell_result* result, std::size_t cell,
                                           struct doorbell_figures* figures) {
  return guarded([&] {
    const std::size_t size = require(figures, "figures").size;
    if (size < sizeof size) throw doorbell::Error("doorbell_figures", "its size is not set");
    const doorbell::RunCell& c = cell_of(result, cell);
    const doorbell::RunFigures& f = c.figures;
    const doorbell_figures all = {.size = size,
                                  .operations = f.operations,
                                  .bytes = f.bytes,
                                  .elapsed_s = f.elapsed_s,
                                  .operations_per_s = f.operations_per_s,
                                  .bytes_per_s = f.bytes_per_s,
                                  .min_ns = or_nan(f.min_ns),
                                  .mean_ns = or_nan(f.mean_ns),
                                  .p50_ns = or_nan(f.p50_ns),
                                  .p90_ns = or_nan(f.p90_ns),
                                  .p99_ns = or_nan(f.p99_ns),
                                  .p99_9_ns = or_nan(f.p99_9_ns),
                                  .max_ns = or_nan(f.max_ns),
                                  .checked = c.checks.checked,
                                  .failed = c.checks.failed(),
                                  .unverifiable = c.checks.unverifiable};
    std::memcpy(figures, &all, std::min(size, sizeof all));
    return 0;
  });
}

DOORBELL_C_API const char* doorbell_result_parameter(const doorbell_result* result, std::size_t cell,
                                                     const char* key) {
  return guarded([&]() -> const char* {
    const auto& all = cell_of(result, cell).parameters;
    const auto found = all.find(&require(key, "key"));
    if (found == all.end()) throw doorbell::Error(key, "the cell has no such parameter");
    return found->second.c_str();
  });
}
