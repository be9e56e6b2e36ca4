// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Whether an MPI launcher (mpirun, mpiexec, srun) has started this process.
#pragma once

#include <doorbell/config.hpp>

#include <optional>
#include <string>

namespace doorbell::sweep {

struct Launcher {
  std::string name;  ///< "Open MPI"
  u32 rank = 0;
  u32 size = 1;
};

/// The launcher by the environment's variables, which launchers set for each rank. Nothing is loaded.
/// Variables of a batch system do not count: a job's script has them, too, and is no rank. Throws
/// doorbell::Error for a rank or a size that is no number.
[[nodiscard]] std::optional<Launcher> launcher();

}  // namespace doorbell::sweep
