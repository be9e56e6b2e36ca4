// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/code_objects.hpp"

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
  return runtime == Runtime::cuda ? cuda_build : hip_build;
}

}  // namespace doorbell::gpu
