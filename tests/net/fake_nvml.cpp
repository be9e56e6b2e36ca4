// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Stands in for libnvidia-ml.so: one GPU, at the PCI address of FAKE_NVML_PCI, whose readings count up. A
// test sees in FAKE_NVML_LOG's file which calls were made, and FAKE_NVML_FAIL names one that fails.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kGood = 0, kNotSupported = 3, kNotFound = 6;

int called(const char* name) {
  if (const char* const path = std::getenv("FAKE_NVML_LOG"); path != nullptr)
    if (std::FILE* const log = std::fopen(path, "a"); log != nullptr) {
      std::fprintf(log, "%s\n", name);
      std::fclose(log);
    }
  const char* const fail = std::getenv("FAKE_NVML_FAIL");
  return fail != nullptr && std::strcmp(fail, name) == 0 ? kNotSupported : kGood;
}

int device;
unsigned readings;

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int nvmlInit_v2() {
  return called("init");
}
EXPORTED int nvmlShutdown() {
  return called("shutdown");
}
EXPORTED const char* nvmlErrorString(int status) {
  return status == kNotFound ? "Not Found" : "Not Supported";
}
EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, void** out) {
  const char* const ours = std::getenv("FAKE_NVML_PCI");
  if (ours == nullptr || std::strcmp(ours, pci) != 0) return kNotFound;
  *out = &device;
  return called("by_pci");
}
EXPORTED int nvmlDeviceGetUtilizationRates(void* of, unsigned* gpu_and_memory) {
  if (of != &device) return kNotFound;
  ++readings;
  gpu_and_memory[0] = 10 * readings, gpu_and_memory[1] = readings;
  return called("utilization");
}
EXPORTED int nvmlDeviceGetMemoryInfo(void* of, unsigned long long* total_free_used) {
  if (of != &device) return kNotFound;
  total_free_used[0] = 1000, total_free_used[1] = 400, total_free_used[2] = 600;
  return called("memory");
}
