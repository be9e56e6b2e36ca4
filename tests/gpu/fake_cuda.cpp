// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A libcuda.so.1 that needs no GPU: device memory is host memory, streams are idle at once, and the only
// kernel is doorbell_probe. It is stricter than the real one where that finds mistakes: calls without a
// current context fail, and a free that would wait for a running kernel is counted.
//
// Environment variables, which are read at every call, control it:
//   FAKE_CUDA_DEVICES=N        GPUs shown (2); with 0, cuInit finds no device
//   FAKE_CUDA_VERSION=V        the result of cuDriverGetVersion (13000)
//   FAKE_CUDA_FAIL=CALL=CODE   that call returns that code
//   FAKE_CUDA_SPLIT=1          pinned memory has another address on the GPU
//   FAKE_CUDA_APART=1          no GPU reaches memory of another
//   FAKE_CUDA_HOLD=1           launched kernels run until this is unset

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/probe.hpp"

namespace {

constexpr int kInvalidValue = 1;
constexpr int kNoDevice = 100;
constexpr int kInvalidImage = 200;
constexpr int kInvalidContext = 201;
constexpr int kNotFound = 500;
constexpr int kNotReady = 600;
constexpr int kPeerReached = 704;
constexpr std::size_t kMemory = std::size_t{8} << 30;

struct FakeStream {
  bool launched = false;
  FakeStream* after = nullptr;  ///< works as long as that one does
  int priority = 0;
};

struct State {
  std::mutex mutex;
  std::map<void*, void*> device;  // address -> block, which starts earlier
  std::map<void*, std::size_t> pinned;
  std::map<void*, unsigned> registered;  // -> flags
  std::vector<FakeStream*> streams;
  std::set<std::pair<void*, void*>> reached;  // contexts: from, to
  int events = 0;
  int modules = 0;
  int contexts = 0;
  int blocked = 0;
  int max_shared = 0;
};

// Never destroyed: the library may be asked after the program's own exit handlers.
State& state() {
  static State* s = new State;
  return *s;
}

thread_local std::vector<void*> current;

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

int number(const char* name, int otherwise) {
  const char* value = variable(name);
  return *value != '\0' ? std::atoi(value) : otherwise;
}

/// The status that the environment wants `call` to return, or 0.
int wanted(std::string_view call) {
  const std::string_view fail = variable("FAKE_CUDA_FAIL");
  const std::size_t equals = fail.find('=');
  if (equals == std::string_view::npos || fail.substr(0, equals) != call) return 0;
  return std::atoi(std::string(fail.substr(equals + 1)).c_str());
}

int enter(std::string_view call) {
  if (const int status = wanted(call); status != 0) return status;
  return current.empty() ? kInvalidContext : 0;
}

bool holding() {
  return *variable("FAKE_CUDA_HOLD") != '\0';
}

bool running(const FakeStream* stream) {
  return (stream->launched && holding()) || (stream->after != nullptr && running(stream->after));
}

// Where the real driver would wait for ever.
void note_blocking() {
  State& s = state();
  if (std::any_of(s.streams.begin(), s.streams.end(), running)) ++s.blocked;
}

int text(const char* from, char* to, int size) {
  if (static_cast<int>(std::strlen(from)) >= size) return kInvalidValue;
  std::strcpy(to, from);
  return 0;
}

}  // namespace

extern "C" {

/// The count of live objects under a name, for the tests.
int fake_cuda_live(const char* what) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const std::string_view name = what;
  if (name == "device") return static_cast<int>(s.device.size());
  if (name == "pinned") return static_cast<int>(s.pinned.size());
  if (name == "registered") return static_cast<int>(s.registered.size());
  if (name == "mmio")
    return static_cast<int>(std::count_if(s.registered.begin(), s.registered.end(),
                                          [](const auto& entry) { return (entry.second & 4) != 0; }));
  if (name == "streams") return static_cast<int>(s.streams.size());
  if (name == "urgent")
    return static_cast<int>(std::count_if(s.streams.begin(), s.streams.end(),
                                          [](const FakeStream* f) { return f->priority < 0; }));
  if (name == "events") return s.events;
  if (name == "modules") return s.modules;
  if (name == "reached") return static_cast<int>(s.reached.size());
  if (name == "contexts") return s.contexts;
  if (name == "blocked") return s.blocked;
  if (name == "max_shared") return s.max_shared;
  if (name == "current") return static_cast<int>(current.size());
  return -1;
}

int cuGetErrorName(int status, const char** name) {
  static const std::map<int, const char*> names = {{1, "CUDA_ERROR_INVALID_VALUE"},
                                                   {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                   {34, "CUDA_ERROR_STUB_LIBRARY"},
                                                   {100, "CUDA_ERROR_NO_DEVICE"},
                                                   {200, "CUDA_ERROR_INVALID_IMAGE"},
                                                   {201, "CUDA_ERROR_INVALID_CONTEXT"},
                                                   {500, "CUDA_ERROR_NOT_FOUND"},
                                                   {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                                   {800, "CUDA_ERROR_NOT_PERMITTED"},
                                                   {801, "CUDA_ERROR_NOT_SUPPORTED"},
                                                   {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}};
  const auto found = names.find(status);
  if (found == names.end()) return kInvalidValue;
  *name = found->second;
  return 0;
}

int cuGetErrorString(int status, const char** description) {
  static thread_local std::string made;
  made = "fake text " + std::to_string(status);
  *description = made.c_str();
  return 0;
}

int cuDriverGetVersion(int* version) {
  *version = number("FAKE_CUDA_VERSION", 13000);
  return wanted("cuDriverGetVersion");
}

int cuInit(unsigned) {
  if (number("FAKE_CUDA_DEVICES", 2) == 0) return kNoDevice;
  return wanted("cuInit");
}

int cuDeviceGetCount(int* count) {
  *count = number("FAKE_CUDA_DEVICES", 2);
  return wanted("cuDeviceGetCount");
}

int cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= number("FAKE_CUDA_DEVICES", 2)) return kInvalidValue;
  *device = ordinal + 40;  // a handle is not the ordinal
  return 0;
}

int cuDeviceGetName(char* name, int size, int device) {
  return text(device == 40 ? "Fake H200" : "Fake A100", name, size);
}

int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = kMemory;
  return wanted("cuDeviceTotalMem_v2");
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  switch (attribute) {
    case 10:
      *value = 32;
      return 0;
    case 16:
      *value = 132;
      return 0;
    case 75:
      *value = device == 40 ? 9 : 8;
      return 0;
    case 76:
      *value = 0;
      return 0;
    default:
      return kInvalidValue;
  }
}

int cuDeviceGetPCIBusId(char* id, int size, int device) {
  return text(device == 40 ? "0000:18:00.0" : "0000:2A:00.0", id, size);
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (const int status = wanted("cuDevicePrimaryCtxRetain"); status != 0) return status;
  *context = reinterpret_cast<void*>(static_cast<std::size_t>(device) * 16);
  const std::lock_guard lock(state().mutex);
  ++state().contexts;
  return 0;
}

int cuDevicePrimaryCtxRelease_v2(int) {
  const std::lock_guard lock(state().mutex);
  --state().contexts;
  return 0;
}

int cuCtxPushCurrent_v2(void* context) {
  current.push_back(context);
  return 0;
}

int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return kInvalidContext;
  *context = current.back();
  current.pop_back();
  return 0;
}

#if !defined(FAKE_CUDA_WITHOUT_MEM_ALLOC)
int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  if (const int status = enter("cuMemAlloc_v2"); status != 0) return status;
  // As the driver does for small blocks, the address is a multiple of 512 and of nothing larger.
  constexpr std::size_t kPage = 65536;
  constexpr std::size_t kOffset = 512;
  void* block = std::aligned_alloc(kPage, (bytes + kOffset + kPage - 1) / kPage * kPage);
  if (block == nullptr) return 2;
  std::memset(block, 0xA5, bytes + kOffset);
  void* p = static_cast<char*>(block) + kOffset;
  const std::lock_guard lock(state().mutex);
  state().device[p] = block;
  *address = reinterpret_cast<unsigned long long>(p);
  return 0;
}
#endif

int cuMemFree_v2(unsigned long long address) {
  if (const int status = enter("cuMemFree_v2"); status != 0) return status;
  const std::lock_guard lock(state().mutex);
  note_blocking();
  const auto found = state().device.find(reinterpret_cast<void*>(address));
  if (found == state().device.end()) return kInvalidValue;
  std::free(found->second);
  state().device.erase(found);
  return 0;
}

int cuMemHostAlloc(void** p, std::size_t bytes, unsigned flags) {
  if (const int status = enter("cuMemHostAlloc"); status != 0) return status;
  if ((flags & 3u) != 3u) return kInvalidValue;
  *p = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::memset(*p, 0x5A, bytes);
  const std::lock_guard lock(state().mutex);
  state().pinned[*p] = bytes;
  return 0;
}

int cuMemFreeHost(void* p) {
  if (const int status = enter("cuMemFreeHost"); status != 0) return status;
  const std::lock_guard lock(state().mutex);
  note_blocking();
  if (state().pinned.erase(p) == 0) return kInvalidValue;
  std::free(p);
  return 0;
}

int cuMemHostRegister_v2(void* p, std::size_t, unsigned flags) {
  if (const int status = enter("cuMemHostRegister_v2"); status != 0) return status;
  const std::lock_guard lock(state().mutex);
  return state().registered.emplace(p, flags).second ? 0 : 712;
}

int cuMemHostUnregister(void* p) {
  if (const int status = enter("cuMemHostUnregister"); status != 0) return status;
  const std::lock_guard lock(state().mutex);
  note_blocking();
  return state().registered.erase(p) == 1 ? 0 : 713;
}

int cuMemHostGetDevicePointer_v2(unsigned long long* address, void* p, unsigned) {
  if (const int status = enter("cuMemHostGetDevicePointer_v2"); status != 0) return status;
  *address = reinterpret_cast<unsigned long long>(p) + (*variable("FAKE_CUDA_SPLIT") != '\0' ? 4096 : 0);
  return 0;
}

int cuMemcpyAsync(unsigned long long to, unsigned long long from, std::size_t bytes, void*) {
  if (const int status = enter("cuMemcpyAsync"); status != 0) return status;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return 0;
}

int cuMemsetD8Async(unsigned long long to, unsigned char value, std::size_t bytes, void*) {
  if (const int status = enter("cuMemsetD8Async"); status != 0) return status;
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return 0;
}

int cuStreamCreate(void** stream, unsigned flags) {
  if (const int status = enter("cuStreamCreate"); status != 0) return status;
  if (flags != 1) return kInvalidValue;
  const std::lock_guard lock(state().mutex);
  *stream = state().streams.emplace_back(new FakeStream);
  return 0;
}

int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return enter("cuCtxGetStreamPriorityRange");
}

int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  if (const int status = enter("cuStreamCreateWithPriority"); status != 0) return status;
  const int status = cuStreamCreate(stream, flags);
  if (status == 0) static_cast<FakeStream*>(*stream)->priority = priority;
  return status;
}

// An event remembers the stream that it was recorded in.
int cuEventCreate(void** event, unsigned flags) {
  if (const int status = enter("cuEventCreate"); status != 0) return status;
  if (flags != 2) return kInvalidValue;
  const std::lock_guard lock(state().mutex);
  ++state().events;
  *event = new FakeStream*(nullptr);
  return 0;
}

int cuEventRecord(void* event, void* stream) {
  if (const int status = enter("cuEventRecord"); status != 0) return status;
  *static_cast<FakeStream**>(event) = static_cast<FakeStream*>(stream);
  return 0;
}

int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  if (const int status = enter("cuStreamWaitEvent"); status != 0) return status;
  static_cast<FakeStream*>(stream)->after = *static_cast<FakeStream**>(event);
  return 0;
}

int cuEventDestroy_v2(void* event) {
  if (const int status = enter("cuEventDestroy_v2"); status != 0) return status;
  const std::lock_guard lock(state().mutex);
  --state().events;
  delete static_cast<FakeStream**>(event);
  return 0;
}

int cuStreamDestroy_v2(void* stream) {
  if (const int status = enter("cuStreamDestroy_v2"); status != 0) return status;
  const std::lock_guard lock(state().mutex);
  auto* fake = static_cast<FakeStream*>(stream);
  if (std::erase(state().streams, fake) == 0) return kInvalidValue;
  delete fake;
  return 0;
}

int cuStreamQuery(void* stream) {
  if (const int status = enter("cuStreamQuery"); status != 0) return status;
  return running(static_cast<FakeStream*>(stream)) ? kNotReady : 0;
}

int cuModuleLoadData(void** module, const void* image) {
  if (const int status = enter("cuModuleLoadData"); status != 0) return status;
  unsigned magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  if (magic != 0xBA55ED50u) return kInvalidImage;  // how a fat binary starts
  const std::lock_guard lock(state().mutex);
  ++state().modules;
  *module = const_cast<void*>(image);
  return 0;
}

int cuModuleUnload(void*) {
  const std::lock_guard lock(state().mutex);
  --state().modules;
  return 0;
}

// Every module knows the one kernel; the code object that really holds it is not looked into.
int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (const int status = enter("cuModuleGetFunction"); status != 0) return status;
  if (std::string_view(name) != "doorbell_probe") return kNotFound;
  *function = module;
  return 0;
}

int cuFuncSetAttribute(void*, int attribute, int value) {
  if (const int status = enter("cuFuncSetAttribute"); status != 0) return status;
  if (attribute != 8) return kInvalidValue;
  state().max_shared = value;
  return 0;
}

int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                   void* stream, void** args, void**) {
  if (const int status = enter("cuLaunchKernel"); status != 0) return status;
  if (shared > 48 * 1024 && static_cast<int>(shared) > state().max_shared) return kInvalidValue;
  static_cast<FakeStream*>(stream)->launched = true;
  if (args == nullptr) return 0;
  auto* out = *static_cast<unsigned**>(args[0]);
  auto* clocks = *static_cast<unsigned long long**>(args[1]);
  out[0] = doorbell::kProbeValue;
  clocks[doorbell::kProbeNsBegin] = 1'000'000;
  clocks[doorbell::kProbeCyclesBegin] = 5'000;
  clocks[doorbell::kProbeNsEnd] = 2'000'000;
  clocks[doorbell::kProbeCyclesEnd] = 1'985'000;
  return 0;
}

int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  if (const int status = wanted("cuDeviceCanAccessPeer"); status != 0) return status;
  *can = device != peer && *variable("FAKE_CUDA_APART") == '\0' ? 1 : 0;
  return 0;
}

int cuCtxEnablePeerAccess(void* context, unsigned) {
  if (const int status = enter("cuCtxEnablePeerAccess"); status != 0) return status;
  const std::lock_guard lock(state().mutex);
  return state().reached.emplace(current.back(), context).second ? 0 : kPeerReached;
}

int cuMemGetHandleForAddressRange(void* handle, unsigned long long address, std::size_t bytes, int type,
                                  unsigned long long) {
  if (const int status = enter("cuMemGetHandleForAddressRange"); status != 0) return status;
  if (type != 1 || address % 4096 != 0 || bytes % 4096 != 0) return kInvalidValue;
  const int fd = ::memfd_create("fake-dmabuf", MFD_CLOEXEC);
  std::memcpy(handle, &fd, sizeof fd);
  return fd < 0 ? 801 : 0;
}

}  // extern "C"
