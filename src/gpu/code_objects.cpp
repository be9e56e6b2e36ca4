// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/code_objects.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace doorbell::gpu {
namespace {

struct Image {
  Runtime runtime;
  const char* name;
  const std::byte* begin;
  const std::byte* end;
};

}  // namespace

// cmake/gpu.cmake writes this file with `images`, `cuda_build` and `hip_build`. The bytes are in an assembly
// file next to it.
#include "code_object_table.inc"

std::span<const CodeObject> code_objects() {
  static const std::vector<CodeObject> objects = [] {
    std::vector<CodeObject> made;
    made.reserve(images.size());
    for (const Image& image : images) made.push_back({image.runtime, image.name, {image.begin, image.end}});
    return made;
  }();
  return objects;
}

const KernelBuild& kernel_build(Runtime runtime) {
  static constexpr KernelBuild none{"", "", "doorbell has no kernels for Intel's GPUs"};
  return runtime == Runtime::cuda ? cuda_build : runtime == Runtime::hip ? hip_build : none;
}

bool has_kernels(Runtime runtime) {
  return std::ranges::find(code_objects(), runtime, &CodeObject::runtime) != code_objects().end();
}

}  // namespace doorbell::gpu
