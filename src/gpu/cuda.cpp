// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// NVIDIA's driver library behind the Driver interface. The declarations are doorbell's own, so the build
// needs no CUDA headers. A suffix in a name is the version of the call that the declaration matches.
#include "gpu/driver.hpp"
#include "system/library.hpp"

#include <doorbell/error.hpp>

#include <fmt/format.h>

#include <array>
#include <fstream>

namespace doorbell::gpu {
namespace {

using DevicePtr = unsigned long long;
using DeviceHandle = int;

constexpr const char* kOverride = "DOORBELL_LIBCUDA";
// Container runtimes and managed clusters put the driver's libraries into the second path.
constexpr std::array kNames = {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"};
constexpr const char* kInstall = "install or update the GPU's driver";
constexpr int kOldest = 11000;  // CUDA 11.0, the first driver with cuDevicePrimaryCtxRelease_v2

constexpr int kAttributeWarpSize = 10;
constexpr int kAttributeMultiprocessors = 16;
constexpr int kAttributeMajor = 75;
constexpr int kAttributeMinor = 76;
constexpr int kFunctionMaxDynamicShared = 8;
constexpr unsigned kHostPortable = 1;
constexpr unsigned kHostDeviceMap = 2;
constexpr unsigned kHostIoMemory = 4;
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventDisableTiming = 2;
constexpr int kRangeDmaBuf = 1;

constexpr Status kStubLibrary = 34;
constexpr Status kDeviceUnavailable = 46;
constexpr Status kNoDevice = 100;
constexpr Status kNotPermitted = 800;
constexpr Status kSystemNotReady = 802;
constexpr Status kDriverMismatch = 803;

/// The functions in use, one line each. Without one of them the library cannot be used, except for those that
/// find() looks up.
struct Table {
  const Library& library;

  Status (*error_name)(Status, const char**) = library.need("cuGetErrorName");
  Status (*error_string)(Status, const char**) = library.need("cuGetErrorString");
  Status (*device_count)(int*) = library.need("cuDeviceGetCount");
  Status (*device_get)(DeviceHandle*, int) = library.need("cuDeviceGet");
  Status (*device_name)(char*, int, DeviceHandle) = library.need("cuDeviceGetName");
  Status (*device_memory)(std::size_t*, DeviceHandle) = library.need("cuDeviceTotalMem_v2");
  Status (*device_attribute)(int*, int, DeviceHandle) = library.need("cuDeviceGetAttribute");
  Status (*device_pci)(char*, int, DeviceHandle) = library.need("cuDeviceGetPCIBusId");
  Status (*context_retain)(void**, DeviceHandle) = library.need("cuDevicePrimaryCtxRetain");
  Status (*context_release)(DeviceHandle) = library.need("cuDevicePrimaryCtxRelease_v2");
  Status (*context_push)(void*) = library.need("cuCtxPushCurrent_v2");
  Status (*context_pop)(void**) = library.need("cuCtxPopCurrent_v2");
  Status (*mem_alloc)(DevicePtr*, std::size_t) = library.need("cuMemAlloc_v2");
  Status (*mem_free)(DevicePtr) = library.need("cuMemFree_v2");
  Status (*host_alloc)(void**, std::size_t, unsigned) = library.need("cuMemHostAlloc");
  Status (*host_free)(void*) = library.need("cuMemFreeHost");
  Status (*host_register)(void*, std::size_t, unsigned) = library.need("cuMemHostRegister_v2");
  Status (*host_unregister)(void*) = library.need("cuMemHostUnregister");
  Status (*host_pointer)(DevicePtr*, void*, unsigned) = library.need("cuMemHostGetDevicePointer_v2");
  Status (*copy_async)(DevicePtr, DevicePtr, std::size_t, void*) = library.need("cuMemcpyAsync");
  Status (*set_async)(DevicePtr, unsigned char, std::size_t, void*) = library.need("cuMemsetD8Async");
  Status (*stream_create)(void**, unsigned) = library.need("cuStreamCreate");
  Status (*priority_range)(int*, int*) = library.need("cuCtxGetStreamPriorityRange");
  Status (*stream_create_with)(void**, unsigned, int) = library.need("cuStreamCreateWithPriority");
  Status (*stream_destroy)(void*) = library.need("cuStreamDestroy_v2");
  Status (*stream_wait)(void*, void*, unsigned) = library.need("cuStreamWaitEvent");
  Status (*event_create)(void**, unsigned) = library.need("cuEventCreate");
  Status (*event_record)(void*, void*) = library.need("cuEventRecord");
  Status (*event_destroy)(void*) = library.need("cuEventDestroy_v2");
  Status (*stream_query)(void*) = library.need("cuStreamQuery");
  Status (*module_load)(void**, const void*) = library.need("cuModuleLoadData");
  Status (*module_unload)(void*) = library.need("cuModuleUnload");
  Status (*module_function)(void**, void*, const char*) = library.need("cuModuleGetFunction");
  Status (*function_set)(void*, int, int) = library.need("cuFuncSetAttribute");
  Status (*function_load)(void*) = library.find("cuFuncLoad");  // since CUDA 12.4
  Status (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                   void**) = library.need("cuLaunchKernel");
  Status (*can_reach)(int*, DeviceHandle, DeviceHandle) = library.need("cuDeviceCanAccessPeer");
  Status (*reach)(void*, unsigned) = library.need("cuCtxEnablePeerAccess");
  Status (*range_handle)(void*, DevicePtr, std::size_t, int, unsigned long long) =
      library.find("cuMemGetHandleForAddressRange");  // since CUDA 11.7
};

DevicePtr device_ptr(const void* p) {
  return reinterpret_cast<DevicePtr>(p);
}
void* host_ptr(DevicePtr p) {
  return reinterpret_cast<void*>(p);
}
void* context_ptr(Context c) {
  return reinterpret_cast<void*>(c);
}

std::string api_version(int version) {
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

class Cuda final : public Driver {
 public:
  explicit Cuda(std::unique_ptr<Library> library, int api)
      : library_(std::move(library)), cu_{*library_}, api_(api) {}

  Runtime runtime() const override { return Runtime::cuda; }

  std::string version() const override {
    std::string module;
    std::ifstream("/sys/module/nvidia/version") >> module;
    return module.empty() ? api_version(api_) : fmt::format("{} ({})", module, api_version(api_));
  }

  std::string explain(Status status) const override {
    const char* name = nullptr;
    const char* text = nullptr;
    if (cu_.error_name(status, &name) != kSuccess || name == nullptr) name = "unknown CUDA error";
    if (cu_.error_string(status, &text) != kSuccess || text == nullptr)
      text = "the driver has no text for it";
    return fmt::format("{} ({}): {}", name, status, text);
  }

  std::string hint(Status status) const override {
    switch (status) {
      case kStubLibrary:
        return fmt::format("{} is the toolkit's link-time stub: install the driver, or set {}",
                           library_->name(), kOverride);
      case kDeviceUnavailable:
        return "another process holds the GPU: see `nvidia-smi`";
      case kNoDevice:
        return "check that `nvidia-smi` lists a GPU and that CUDA_VISIBLE_DEVICES allows it";
      case kNotPermitted:
        return "run as root, or allow this process to use the GPU's device files";
      case kSystemNotReady:
        return "the NVSwitch fabric is not up: start nvidia-fabricmanager";
      case kDriverMismatch:
        return "the driver's library and its kernel module differ in version: reload the module or reboot";
      default:
        return {};
    }
  }

  Status count(int& gpus) const override { return cu_.device_count(&gpus); }

  Status describe(int ordinal, Info& info) const override {
    std::array<char, 256> name{};
    std::array<char, 32> pci{};
    std::size_t memory = 0;
    int major = 0;
    int minor = 0;
    DeviceHandle device = 0;
    Status status = cu_.device_get(&device, ordinal);
    const auto then = [&status](Status next) {
      if (status == kSuccess) status = next;
    };
    then(cu_.device_name(name.data(), static_cast<int>(name.size()) - 1, device));
    then(cu_.device_pci(pci.data(), static_cast<int>(pci.size()) - 1, device));
    then(cu_.device_memory(&memory, device));
    then(cu_.device_attribute(&major, kAttributeMajor, device));
    then(cu_.device_attribute(&minor, kAttributeMinor, device));
    then(cu_.device_attribute(&info.warp_size, kAttributeWarpSize, device));
    then(cu_.device_attribute(&info.multiprocessors, kAttributeMultiprocessors, device));
    info.runtime = Runtime::cuda;
    info.name = name.data();
    info.arch = fmt::format("sm_{}{}", major, minor);
    info.pci_address = pci.data();
    info.driver = version();
    info.memory_bytes = memory;
    return status;
  }

  Status retain(int ordinal, Context& context) const override {
    void* primary = nullptr;
    DeviceHandle device = 0;
    Status status = cu_.device_get(&device, ordinal);
    // The CUDA runtime API uses the primary context too, so memory and streams are shared with a program that
    // also calls that API.
    if (status == kSuccess) status = cu_.context_retain(&primary, device);
    context = reinterpret_cast<Context>(primary);
    return status;
  }

  void release(int ordinal) const noexcept override {
    DeviceHandle device = 0;
    if (cu_.device_get(&device, ordinal) == kSuccess) cu_.context_release(device);
  }

  // The driver keeps a stack of contexts for each thread; the previous context is on it.
  Status enter(Context context, Context& previous) const override {
    previous = 0;
    return cu_.context_push(context_ptr(context));
  }
  void leave(Context) const noexcept override {
    void* popped = nullptr;
    cu_.context_pop(&popped);
  }

  Status allocate(void*& p, u64 bytes) const override {
    DevicePtr address = 0;
    const Status status = cu_.mem_alloc(&address, bytes);
    p = host_ptr(address);
    return status;
  }
  Status free(void* p) const noexcept override { return cu_.mem_free(device_ptr(p)); }
  Status allocate_pinned(void*& p, u64 bytes) const override {
    return cu_.host_alloc(&p, bytes, kHostPortable | kHostDeviceMap);
  }
  Status free_pinned(void* p) const noexcept override { return cu_.host_free(p); }
  Status register_host(void* p, u64 bytes, bool mmio) const override {
    return cu_.host_register(p, bytes, kHostPortable | kHostDeviceMap | (mmio ? kHostIoMemory : 0));
  }
  Status unregister_host(void* p) const noexcept override { return cu_.host_unregister(p); }
  Status device_pointer(void* host, void*& device) const override {
    DevicePtr address = 0;
    const Status status = cu_.host_pointer(&address, host, 0);
    device = host_ptr(address);
    return status;
  }

  Status copy(void* to, const void* from, u64 bytes, void* stream) const override {
    return cu_.copy_async(device_ptr(to), device_ptr(from), bytes, stream);
  }
  Status zero(void* p, u64 bytes, void* stream) const override {
    return cu_.set_async(device_ptr(p), 0, bytes, stream);
  }

  Status create_stream(void*& stream) const override {
    return cu_.stream_create(&stream, kStreamNonBlocking);
  }
  Status create_urgent_stream(void*& stream) const override {
    int least = 0, greatest = 0;
    const Status status = cu_.priority_range(&least, &greatest);
    return status != kSuccess ? status : cu_.stream_create_with(&stream, kStreamNonBlocking, greatest);
  }
  Status destroy_stream(void* stream) const noexcept override { return cu_.stream_destroy(stream); }
  Status create_event(void*& event) const override { return cu_.event_create(&event, kEventDisableTiming); }
  Status destroy_event(void* event) const noexcept override { return cu_.event_destroy(event); }
  Status record(void* stream, void* event) const override { return cu_.event_record(event, stream); }
  Status follow(void* stream, void* event) const override { return cu_.stream_wait(stream, event, 0); }
  Status query(void* stream) const override { return cu_.stream_query(stream); }

  Status load_module(const void* image, void*& module) const override {
    return cu_.module_load(&module, image);
  }
  Status unload_module(void* module) const noexcept override { return cu_.module_unload(module); }
  Status function(void* module, const char* name, void*& function) const override {
    const Status status = cu_.module_function(&function, module, name);
    if (status != kSuccess || cu_.function_load == nullptr) return status;
    return cu_.function_load(function);
  }
  Status allow_shared(void* function, u32 bytes) const override {
    return cu_.function_set(function, kFunctionMaxDynamicShared, static_cast<int>(bytes));
  }
  Status launch(void* function, const Gpu::Launch& shape, void* stream, void** args) const override {
    return cu_.launch(function, shape.blocks, 1, 1, shape.threads, 1, 1, shape.shared_bytes, stream, args,
                      nullptr);
  }
  Status reach(int ordinal, int peer, Context peer_context) const override {
    int can = 0;
    DeviceHandle from = 0;
    DeviceHandle to = 0;
    Status status = cu_.device_get(&from, ordinal);
    if (status == kSuccess) status = cu_.device_get(&to, peer);
    if (status == kSuccess) status = cu_.can_reach(&can, from, to);
    if (status != kSuccess) return status;
    return can == 0 ? kNotSupported : cu_.reach(context_ptr(peer_context), 0);
  }
  Status export_dmabuf(void* p, u64 bytes, int& fd) const override {
    if (cu_.range_handle == nullptr) return kNotSupported;
    return cu_.range_handle(&fd, device_ptr(p), bytes, kRangeDmaBuf, 0);
  }

 private:
  std::unique_ptr<Library> library_;
  Table cu_;
  int api_;
};

}  // namespace

std::shared_ptr<Driver> load_cuda() {
  auto library = std::make_unique<Library>(kOverride, kNames, kInstall);
  Status (*driver_version)(int*) = library->need("cuDriverGetVersion");
  Status (*init)(unsigned) = library->need("cuInit");
  int api = 0;
  // The version is checked first: an old driver also lacks functions, but that message would help less.
  if (driver_version(&api) == kSuccess && api < kOldest)
    throw Error(fmt::format("{} cannot be used", library->name()),
                fmt::format("the NVIDIA driver supports {}, doorbell needs {}", api_version(api),
                            api_version(kOldest)),
                "update the NVIDIA driver", ExitCode::absent);
  const std::string name = library->name();
  auto driver = std::make_shared<Cuda>(std::move(library), api);
  if (const Status status = init(0); status != kSuccess)
    throw Error(fmt::format("{} finds no usable NVIDIA GPU", name), driver->explain(status),
                driver->hint(status), ExitCode::absent);
  return driver;
}

}  // namespace doorbell::gpu
