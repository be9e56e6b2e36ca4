// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <fmt/format.h>

#include <array>

#include "gpu/driver.hpp"

namespace doorbell::gpu {
namespace {

struct Loader {
  Runtime runtime;
  const char* name;
  std::shared_ptr<Driver> (*load)();
};

// In the order of the indices that --gpu takes.
constexpr std::array kLoaders = {Loader{Runtime::cuda, "CUDA", load_cuda},
                                 Loader{Runtime::hip, "HIP", load_hip},
                                 Loader{Runtime::level_zero, "Level Zero", load_level_zero}};

/// A runtime that was tried: its driver, or the reason why there is none.
struct Found {
  std::shared_ptr<Driver> driver;
  int gpus = 0;
  std::string missing;
  std::string hint;
};

Found find(const Loader& loader) {
  Found found;
  try {
    auto driver = loader.load();
    if (const Status status = driver->count(found.gpus); status != kSuccess)
      throw Error(fmt::format("{} cannot count its GPUs", loader.name), driver->explain(status),
                  driver->hint(status), ExitCode::absent);
    if (found.gpus <= 0)
      throw Error(fmt::format("{} (driver {})", loader.name, driver->version()), "it shows no GPU", {},
                  ExitCode::absent);
    found.driver = std::move(driver);
  } catch (const Error& e) {
    found.missing = e.what();
    found.hint = e.hint();
  } catch (const std::exception& e) {
    found.missing = e.what();
  }
  return found;
}

// A GPU that cannot be read keeps its index, so that the indices of the others do not change.
Info describe(const Driver& driver, int ordinal, int index) {
  Info info;
  const Status status = driver.describe(ordinal, info);
  info.index = index;
  info.runtime = driver.runtime();
  if (status != kSuccess) info.name = fmt::format("unreadable, {}", driver.explain(status));
  return info;
}

}  // namespace

std::string_view name(Runtime runtime) {
  switch (runtime) {
    case Runtime::cuda:
      return "cuda";
    case Runtime::hip:
      return "hip";
    case Runtime::level_zero:
      return "level_zero";
  }
  return "?";
}

std::vector<Info> enumerate() {
  std::vector<Info> all;
  for (const Loader& loader : kLoaders) {
    const Found found = find(loader);
    for (int i = 0; i < found.gpus && found.driver; ++i)
      all.push_back(describe(*found.driver, i, static_cast<int>(all.size())));
  }
  return all;
}

std::vector<RuntimeStatus> runtimes() {
  std::vector<RuntimeStatus> all;
  for (const Loader& loader : kLoaders) {
    const Found found = find(loader);
    RuntimeStatus status{loader.runtime, found.driver != nullptr, found.missing};
    if (status.usable)
      status.detail =
          fmt::format("driver {}, {} GPU{}", found.driver->version(), found.gpus, found.gpus == 1 ? "" : "s");
    else if (!found.hint.empty()) status.detail += fmt::format(" ({})", found.hint);
    all.push_back(std::move(status));
  }
  return all;
}

std::shared_ptr<Gpu> open(int index) {
  const std::string what = fmt::format("open GPU {}", index);
  if (index < 0) throw Error(what, "the index of a GPU is 0 or more");
  int before = 0;
  std::string missing;
  std::string hint;
  for (const Loader& loader : kLoaders) {
    Found found = find(loader);
    if (found.driver == nullptr) {
      missing += fmt::format("{}{}: {}", missing.empty() ? "" : "; ", loader.name, found.missing);
      // The first runtime's advice, because that runtime is more common.
      if (hint.empty()) hint = found.hint;
      continue;
    }
    const int ordinal = index - before;
    before += found.gpus;
    if (ordinal < found.gpus) {
      Info info = describe(*found.driver, ordinal, index);
      return open_gpu(std::move(found.driver), ordinal, std::move(info));
    }
  }
  if (before > 0)
    throw Error(what,
                fmt::format("this machine has {} GPU{}, numbered from 0", before, before == 1 ? "" : "s"),
                "`doorbell list` shows them", ExitCode::absent);
  throw Error(what, fmt::format("no GPU is usable ({})", missing), hint, ExitCode::absent);
}

}  // namespace doorbell::gpu
