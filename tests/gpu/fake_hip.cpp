// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A libamdhip64.so on top of the fake CUDA driver, with which it is linked: HIP's calls with the same memory,
// streams and environment variables.
#include <array>
#include <cstdlib>
#include <cstring>

extern "C" {

int cuGetErrorName(int, const char**);
int cuGetErrorString(int, const char**);
int cuMemAlloc_v2(unsigned long long*, std::size_t);
int cuMemFree_v2(unsigned long long);
int cuMemHostAlloc(void**, std::size_t, unsigned);
int cuMemFreeHost(void*);
int cuMemHostRegister_v2(void*, std::size_t, unsigned);
int cuMemHostUnregister(void*);
int cuMemHostGetDevicePointer_v2(unsigned long long*, void*, unsigned);
int cuMemcpyAsync(unsigned long long, unsigned long long, std::size_t, void*);
int cuMemsetD8Async(unsigned long long, unsigned char, std::size_t, void*);
int cuStreamCreate(void**, unsigned);
int cuCtxGetStreamPriorityRange(int*, int*);
int cuStreamCreateWithPriority(void**, unsigned, int);
int cuEventCreate(void**, unsigned);
int cuEventRecord(void*, void*);
int cuStreamWaitEvent(void*, void*, unsigned);
int cuEventDestroy_v2(void*);
int cuStreamDestroy_v2(void*);
int cuStreamQuery(void*);
int cuCtxPushCurrent_v2(void*);
int cuCtxPopCurrent_v2(void**);
int cuDeviceCanAccessPeer(int*, int, int);
int cuCtxEnablePeerAccess(void*, unsigned);

}  // extern "C"

namespace {

// HIP always has a current device; the fake driver below wants a context around each call.
class InContext {
 public:
  InContext() { cuCtxPushCurrent_v2(this); }
  ~InContext() {
    void* popped = nullptr;
    cuCtxPopCurrent_v2(&popped);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
};

thread_local int device = 0;

unsigned long long word(const void* p) {
  return reinterpret_cast<unsigned long long>(p);
}

}  // namespace

extern "C" {

int fake_hip_device() {
  return device;
}

int hipInit(unsigned) {
  return 0;
}
int hipDriverGetVersion(int* version) {
  *version = 60'324'134;
  return 0;
}
const char* hipGetErrorName(int status) {
  const char* name = nullptr;
  cuGetErrorName(status, &name);
  return name;
}
const char* hipGetErrorString(int status) {
  const char* text = nullptr;
  cuGetErrorString(status, &text);
  return text;
}
int hipGetDeviceCount(int* count) {
  *count = 2;
  return 0;
}
int hipDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "Fake gfxcard MI250X", static_cast<std::size_t>(size));
  return 0;
}
int hipDeviceTotalMem(std::size_t* bytes, int) {
  *bytes = std::size_t{1} << 30;
  return 0;
}
int hipDeviceGetAttribute(int* value, int attribute, int) {
  *value = 110;
  return attribute == 63 ? 0 : 1;
}
int hipDeviceGetPCIBusId(char* id, int size, int) {
  std::strncpy(id, "0000:c1:00.0", static_cast<std::size_t>(size));
  return 0;
}
int hipGetDeviceProperties(void* record, int ordinal) {
  std::memset(record, 0xEE, 700);
  std::strcpy(static_cast<char*>(record), "Fake gfxcard MI250X");
  std::strcpy(static_cast<char*>(record) + 396, ordinal == 0 ? "gfx90a:sramecc+:xnack-" : "gfx1030");
  return 0;
}
int hipSetDevice(int ordinal) {
  device = ordinal;
  return 0;
}
int hipGetDevice(int* ordinal) {
  *ordinal = device;
  return 0;
}
int hipMalloc(void** p, std::size_t bytes) {
  const InContext context;
  unsigned long long address = 0;
  const int status = cuMemAlloc_v2(&address, bytes);
  *p = reinterpret_cast<void*>(address);
  return status;
}
int hipFree(void* p) {
  const InContext context;
  return cuMemFree_v2(word(p));
}
int hipHostMalloc(void** p, std::size_t bytes, unsigned flags) {
  const InContext context;
  return cuMemHostAlloc(p, bytes, flags);
}
int hipDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  return cuDeviceCanAccessPeer(can, ordinal, peer);
}
int hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  const InContext context;
  return cuCtxEnablePeerAccess(reinterpret_cast<void*>(static_cast<std::size_t>(peer) * 16), flags);
}
int hipHostFree(void* p) {
  const InContext context;
  return cuMemFreeHost(p);
}
int hipHostRegister(void* p, std::size_t bytes, unsigned flags) {
  const InContext context;
  return cuMemHostRegister_v2(p, bytes, flags);
}
int hipHostUnregister(void* p) {
  const InContext context;
  return cuMemHostUnregister(p);
}
int hipHostGetDevicePointer(void** gpu, void* host, unsigned flags) {
  const InContext context;
  unsigned long long address = 0;
  const int status = cuMemHostGetDevicePointer_v2(&address, host, flags);
  *gpu = reinterpret_cast<void*>(address);
  return status;
}
int hipMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream) {
  const InContext context;
  return kind == 4 ? cuMemcpyAsync(word(to), word(from), bytes, stream) : 21;
}
int hipMemsetAsync(void* p, int value, std::size_t bytes, void* stream) {
  const InContext context;
  return cuMemsetD8Async(word(p), static_cast<unsigned char>(value), bytes, stream);
}
int hipStreamCreateWithFlags(void** stream, unsigned flags) {
  const InContext context;
  return cuStreamCreate(stream, flags);
}
int hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  const InContext context;
  return cuCtxGetStreamPriorityRange(least, greatest);
}
int hipStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  const InContext context;
  return cuStreamCreateWithPriority(stream, flags, priority);
}
int hipEventCreateWithFlags(void** event, unsigned flags) {
  const InContext context;
  return cuEventCreate(event, flags);
}
int hipEventRecord(void* event, void* stream) {
  const InContext context;
  return cuEventRecord(event, stream);
}
int hipStreamWaitEvent(void* stream, void* event, unsigned flags) {
  const InContext context;
  return cuStreamWaitEvent(stream, event, flags);
}
int hipEventDestroy(void* event) {
  const InContext context;
  return cuEventDestroy_v2(event);
}
int hipStreamDestroy(void* stream) {
  const InContext context;
  return cuStreamDestroy_v2(stream);
}
int hipStreamQuery(void* stream) {
  const InContext context;
  return cuStreamQuery(stream);
}
int hipModuleLoadData(void** module, const void* image) {
  if (std::memcmp(image, "__CLANG_OFFLOAD_BUNDLE__", 24) != 0) return 200;
  *module = const_cast<void*>(image);
  return 0;
}
int hipModuleUnload(void*) {
  return 0;
}
int hipModuleGetFunction(void** function, void* module, const char* name) {
  *function = module;
  return std::strcmp(name, "doorbell_probe") == 0 ? 0 : 500;
}
int hipModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                          void**, void**) {
  return 0;
}

}  // extern "C"
