// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The checks of `doorbell doctor`. They only read and change nothing.
#pragma once

#include <doorbell/config.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace doorbell::cli {

enum class Level {
  ok,
  warn,  ///< something cannot be used here, or figures may be worse
  fix,   ///< until it is changed, something does not work or figures are wrong
};

struct Check {
  std::string name;
  Level level = Level::ok;
  std::string finding = {};
  std::string fix = {};  ///< one command; empty if there is nothing to do
};

/// A GPU runtime's state, from gpu::runtimes().
struct RuntimeState {
  std::string name;
  bool usable = false;
  std::string detail;
};

/// The machine that the checks look at, so that tests can replace it by a simulated one.
struct Machine {
  std::filesystem::path root = "/";
  std::optional<u64> locked_limit_bytes;  ///< RLIMIT_MEMLOCK; empty: unlimited
  unsigned cpus = 1;
  std::vector<RuntimeState> runtimes;
  bool optimized = true;
  std::string sanitizer;
};

[[nodiscard]] Check check_locked_memory(const Machine& m);
[[nodiscard]] Check check_huge_pages(const Machine& m, bool gigantic);
[[nodiscard]] Check check_transparent_huge_pages(const Machine& m);
[[nodiscard]] Check check_iommu(const Machine& m);
[[nodiscard]] Check check_vfio(const Machine& m);
[[nodiscard]] Check check_governor(const Machine& m);
[[nodiscard]] Check check_load(const Machine& m);
[[nodiscard]] Check check_gpu(const Machine& m);
[[nodiscard]] Check check_dmabuf(const Machine& m);
[[nodiscard]] Check check_build(const Machine& m);

/// The checks above and those of all paths, each once.
[[nodiscard]] std::vector<Check> all_checks(const Machine& m);

}  // namespace doorbell::cli
