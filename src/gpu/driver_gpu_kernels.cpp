// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/code_objects.hpp"
#include "gpu/driver_gpu.hpp"

#include <doorbell/error.hpp>

#include <fmt/format.h>

namespace doorbell::gpu {
namespace {

constexpr u32 kSharedByDefault = 48 * 1024;  // CUDA's limit for a kernel that has not asked for more
constexpr u32 kMaxThreads = 1024;

}  // namespace

void DriverGpu::load_modules() {
  if (modules_loaded_) return;
  const KernelBuild& build = kernel_build(info_.runtime);
  for (const CodeObject& object : code_objects()) {
    if (object.runtime != info_.runtime) continue;
    void* module = nullptr;
    if (const Status status = driver_->load_module(object.image.data(), module); status != kSuccess)
      raise(
          status, fmt::format("load the kernels of {} on {}", object.name, place()), ExitCode::absent,
          fmt::format("they are built by {} for {}, and this GPU is {} with driver {}: update the driver, or "
                      "build doorbell for this GPU",
                      build.compiler, build.targets, info_.arch, info_.driver));
    modules_.push_back(module);
  }
  modules_loaded_ = true;
}

Kernel DriverGpu::kernel(const std::string& name) {
  const Current current(*this);
  const std::lock_guard lock(mutex_);
  if (const auto known = kernels_.find(name); known != kernels_.end()) return {known->second};
  const std::string what = fmt::format("kernel {} for {}", name, place());
  load_modules();
  if (info_.runtime == Runtime::level_zero)
    throw Error(what, kernel_build(info_.runtime).left_out,
                "such a GPU holds data only: let CPU threads initiate and compute", ExitCode::absent);
  if (modules_.empty())
    throw Error(what,
                fmt::format("this build has no kernels for it: {}", kernel_build(info_.runtime).left_out),
                "build doorbell where a GPU compiler is, or with `make GPU=1`", ExitCode::absent);
  for (void* module : modules_) {
    void* function = nullptr;
    const Status status = driver_->function(module, name.c_str(), function);
    if (status == kNotFound) continue;
    if (status != kSuccess) raise(status, what);
    kernels_[name] = function;
    return {function};
  }
  refuse(what, fmt::format("none of the {} embedded code objects has it", modules_.size()),
         "the name and this build do not belong together: rebuild doorbell");
}

void DriverGpu::launch(Kernel k, const Launch& shape, Stream s, std::span<void*> args) {
  if (k.handle == nullptr || s.handle == nullptr || shape.blocks == 0 || shape.threads == 0 ||
      shape.threads > kMaxThreads)
    refuse(fmt::format("launch {} blocks of {} threads on {}", shape.blocks, shape.threads, place()),
           fmt::format("it takes a kernel, a stream, 1 block or more and 1 to {} threads", kMaxThreads));
  const auto what = [&] {
    return fmt::format("launch {} blocks of {} threads with {} bytes of shared memory on {}", shape.blocks,
                       shape.threads, shape.shared_bytes, place());
  };
  const Current current(*this);
  // The mutex keeps a kernel from starting between sweep()'s check and its release calls.
  const std::lock_guard lock(mutex_);
  if (shape.shared_bytes > kSharedByDefault) {
    u32& allowed = shared_allowed_[k.handle];
    if (shape.shared_bytes > allowed) {
      if (const Status status = driver_->allow_shared(k.handle, shape.shared_bytes); status != kSuccess)
        raise(status, what(), ExitCode::usage, "ask for less shared memory");
      allowed = shape.shared_bytes;
    }
  }
  const Status status = driver_->launch(k.handle, shape, s.handle, args.empty() ? nullptr : args.data());
  if (status != kSuccess) raise(status, what(), ExitCode::data);
}

}  // namespace doorbell::gpu
