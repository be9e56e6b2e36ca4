// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Finds the queue depth at which a controller stops getting faster: a run a depth, with the same options as
// the command, until one brings less than 10 % more. Exit code 2 if any data was wrong.
#include <doorbell/error.hpp>
#include <doorbell/run.hpp>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  const std::string controller = argc > 1 ? argv[1] : "model:latency=20us";
  const doorbell::RunHooks hooks = {.progress = [](double share, const std::string& phase, doorbell::u64) {
    std::fprintf(stderr, "\r%3.0f %% %-30s\r", 100 * share, phase.c_str());
  }};
  try {
    double before = 0;
    for (int depth = 1; depth <= 64; depth *= 2) {
      const doorbell::RunResult r = doorbell::run("nvme",
                                                  {{"controller", controller},
                                                   {"op", "read"},
                                                   {"size", "4K"},
                                                   {"in-flight", std::to_string(depth)},
                                                   {"duration", "0.2"},
                                                   {"repeats", "3"}},
                                                  hooks);
      if (r.exit_code != 0) {
        std::printf("depth %d: %s\n", depth, r.verdict.c_str());
        return r.exit_code;
      }
      const doorbell::RunFigures& f = r.cells[0].figures;
      std::printf("depth %2d: %9.0f reads/s, p50 %6.1f us\n", depth, f.operations_per_s,
                  f.p50_ns.value_or(0) / 1e3);
      if (f.operations_per_s < 1.1 * before) break;
      before = f.operations_per_s;
    }
  } catch (const doorbell::Error& e) {
    std::fprintf(stderr, "%s\n%s\n", e.what(), e.hint().c_str());
    return static_cast<int>(e.code());
  }
  return 0;
}
