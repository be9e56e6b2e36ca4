// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/ranks/launcher.hpp"

#include <array>
#include <charconv>
#include <cstdlib>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <string_view>

namespace doorbell::sweep {

namespace {

struct Variables {
  const char* name;
  const char* rank;
  const char* size;
};

constexpr std::array kVariables = {
    Variables{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    // srun --mpi=pmix, for programs of Open MPI. A batch script has the number of tasks, but no rank of PMIx.
    Variables{"Open MPI", "PMIX_RANK", "SLURM_NTASKS"},
    // Hydra, which MPICH and Intel MPI come with, and srun --mpi=pmi2.
    Variables{"MPICH", "PMI_RANK", "PMI_SIZE"},
};

u32 number_of(const char* variable, const char* value, u32 least) {
  const std::string_view text(value);
  u32 n = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), n);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || n < least)
    throw Error(variable, fmt::format("'{}' is no number from {}", text, least),
                "an MPI launcher sets it; without one, unset it");
  return n;
}

}  // namespace

std::optional<Launcher> launcher() {
  for (const Variables& v : kVariables) {
    const char* rank = std::getenv(v.rank);
    const char* size = std::getenv(v.size);
    if (rank == nullptr || size == nullptr) continue;
    const Launcher found = {v.name, number_of(v.rank, rank, 0), number_of(v.size, size, 1)};
    if (found.rank >= found.size)
      throw Error(v.rank, fmt::format("rank {} of {} ranks", found.rank, found.size));
    return found;
  }
  return std::nullopt;
}

}  // namespace doorbell::sweep
