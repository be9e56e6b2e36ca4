// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The kernels that the build embedded, or why it embedded none.
#pragma once

#include <doorbell/gpu.hpp>

namespace doorbell::gpu {

/// How one runtime's kernels were compiled.
struct KernelBuild {
  const char* compiler;  ///< "nvcc 13.0.88"; empty if there are no kernels
  const char* targets;   ///< "sm_80, sm_90, PTX"
  const char* left_out;  ///< why there are no kernels; empty if there are some
};
[[nodiscard]] const KernelBuild& kernel_build(Runtime runtime);
/// Whether this build has kernels for GPUs of that runtime.
[[nodiscard]] bool has_kernels(Runtime runtime);

}  // namespace doorbell::gpu
