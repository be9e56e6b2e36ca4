// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The declarations are doorbell's own, so the build needs no NVML headers. A suffix in a name is the version
// of the call that the declaration matches.
#include "gpu/nvml.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "system/library.hpp"

namespace doorbell::gpu {

namespace {

constexpr std::array kNvmlNames = {"libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1"};
constexpr u64 kLookEveryNs = 50'000'000;

}  // namespace

struct Nvml::Library {
  using NvmlStatus = int;
  using NvmlDevice = void*;
  struct NvmlUtilization {
    unsigned gpu, memory;
  };
  struct NvmlMemory {
    unsigned long long total, free, used;
  };

  doorbell::Library library{"DOORBELL_LIBNVML", kNvmlNames, "install or update the GPU's driver"};
  NvmlStatus (*init)() = library.need("nvmlInit_v2");
  NvmlStatus (*shutdown)() = library.need("nvmlShutdown");
  const char* (*error_string)(NvmlStatus) = library.need("nvmlErrorString");
  NvmlStatus (*by_pci)(const char*, NvmlDevice*) = library.need("nvmlDeviceGetHandleByPciBusId_v2");
  NvmlStatus (*utilization)(NvmlDevice, NvmlUtilization*) = library.need("nvmlDeviceGetUtilizationRates");
  NvmlStatus (*memory)(NvmlDevice, NvmlMemory*) = library.need("nvmlDeviceGetMemoryInfo");

  void check(NvmlStatus status, const char* call) const {
    if (status == 0) return;
    const char* const text = error_string(status);
    throw Error(fmt::format("NVML: {}", call), text != nullptr ? text : fmt::format("status {}", status), {},
                ExitCode::absent);
  }
};

Nvml::Nvml(const Info& gpu) {
  if (gpu.runtime != Runtime::cuda)
    throw Error("NVML", fmt::format("GPU {} is not NVIDIA's", gpu.index), {}, ExitCode::absent);
  library_ = std::make_unique<Library>();
  library_->check(library_->init(), "nvmlInit");
  try {
    library_->check(library_->by_pci(gpu.pci_address.c_str(), &device_), "nvmlDeviceGetHandleByPciBusId");
  } catch (...) {
    library_->shutdown();
    throw;
  }
}

Nvml::~Nvml() {
  library_->shutdown();
}

Utilisation Nvml::utilisation() {
  Library::NvmlUtilization now{};
  library_->check(library_->utilization(device_, &now), "nvmlDeviceGetUtilizationRates");
  return {now.gpu, now.memory};
}

u64 Nvml::memory_used() {
  Library::NvmlMemory now{};
  library_->check(library_->memory(device_, &now), "nvmlDeviceGetMemoryInfo");
  return now.used;
}

UtilisationMeter::UtilisationMeter(const Info& gpu) {
  try {
    nvml_ = std::make_unique<Nvml>(gpu);
  } catch (const Error& e) {
    why_not_ = e.what();
  }
}

void UtilisationMeter::look(u64 now_ns, bool last) {
  if (!nvml_ || (!last && last_ns_ != 0 && now_ns - last_ns_ < kLookEveryNs)) return;
  last_ns_ = now_ns;
  try {
    const Utilisation u = nvml_->utilisation();
    memory_used_ = std::max(memory_used_, nvml_->memory_used());
    sm_ += u.sm_percent, memory_ += u.memory_percent, ++looks_;
  } catch (const Error& e) {
    // A driver that refuses once will refuse again: what was read by then stands.
    why_not_ = e.what();
    nvml_.reset();
  }
}

std::optional<UtilisationMeter::Mean> UtilisationMeter::mean() const {
  if (looks_ == 0) return std::nullopt;
  return Mean{static_cast<double>(sm_) / looks_, static_cast<double>(memory_) / looks_, memory_used_, looks_};
}

}  // namespace doorbell::gpu
