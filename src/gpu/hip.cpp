// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// AMD's HIP runtime behind the Driver interface, for ROCm 5 and later. The declarations are doorbell's
// own, so that building needs no ROCm headers.
#include "gpu/driver.hpp"
#include "system/library.hpp"

#include <doorbell/error.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace doorbell::gpu {
namespace {

constexpr const char* kOverride = "DOORBELL_LIBAMDHIP64";
constexpr std::array kNames = {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                               "/opt/rocm/lib/libamdhip64.so"};
constexpr const char* kInstall = "install or update the GPU's driver";
// Every ROCm process reaches the GPU through this file. Without it, loading the runtime, which is large, is
// of no use.
constexpr const char* kKernelInterface = "/dev/kfd";

constexpr int kAttributeMultiprocessors = 63;
constexpr unsigned kHostPortable = 1;
constexpr unsigned kHostMapped = 2;
constexpr unsigned kHostIoMemory = 4;
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventDisableTiming = 2;
constexpr int kRangeDmaBuf = 1;
constexpr int kCopyByAddress = 4;  // the runtime finds out from the address whether it is host or GPU memory

constexpr Status kNoDevice = 100;
constexpr Status kInvalidDevice = 101;

struct Table {
  const Library& library;

  const char* (*error_name)(Status) = library.need("hipGetErrorName");
  const char* (*error_string)(Status) = library.need("hipGetErrorString");
  Status (*driver_version)(int*) = library.need("hipDriverGetVersion");
  Status (*device_count)(int*) = library.need("hipGetDeviceCount");
  Status (*device_name)(char*, int, int) = library.need("hipDeviceGetName");
  Status (*device_memory)(std::size_t*, int) = library.need("hipDeviceTotalMem");
  Status (*device_attribute)(int*, int, int) = library.need("hipDeviceGetAttribute");
  Status (*device_pci)(char*, int, int) = library.need("hipDeviceGetPCIBusId");
  Status (*device_properties)(void*, int) = library.need("hipGetDeviceProperties",
                                                         "hipGetDevicePropertiesR0600");
  Status (*set_device)(int) = library.need("hipSetDevice");
  Status (*get_device)(int*) = library.need("hipGetDevice");
  Status (*mem_alloc)(void**, std::size_t) = library.need("hipMalloc");
  Status (*mem_free)(void*) = library.need("hipFree");
  Status (*host_alloc)(void**, std::size_t, unsigned) = library.need("hipHostMalloc");
  Status (*host_free)(void*) = library.need("hipHostFree");
  Status (*host_register)(void*, std::size_t, unsigned) = library.need("hipHostRegister");
  Status (*host_unregister)(void*) = library.need("hipHostUnregister");
  Status (*host_pointer)(void**, void*, unsigned) = library.need("hipHostGetDevicePointer");
  Status (*copy_async)(void*, const void*, std::size_t, int, void*) = library.need("hipMemcpyAsync");
  Status (*set_async)(void*, int, std::size_t, void*) = library.need("hipMemsetAsync");
  Status (*stream_create)(void**, unsigned) = library.need("hipStreamCreateWithFlags");
  Status (*priority_range)(int*, int*) = library.need("hipDeviceGetStreamPriorityRange");
  Status (*stream_create_with)(void**, unsigned, int) = library.need("hipStreamCreateWithPriority");
  Status (*stream_destroy)(void*) = library.need("hipStreamDestroy");
  Status (*stream_wait)(void*, void*, unsigned) = library.need("hipStreamWaitEvent");
  Status (*event_create)(void**, unsigned) = library.need("hipEventCreateWithFlags");
  Status (*event_record)(void*, void*) = library.need("hipEventRecord");
  Status (*event_destroy)(void*) = library.need("hipEventDestroy");
  Status (*stream_query)(void*) = library.need("hipStreamQuery");
  Status (*module_load)(void**, const void*) = library.need("hipModuleLoadData");
  Status (*module_unload)(void*) = library.need("hipModuleUnload");
  Status (*module_function)(void**, void*, const char*) = library.need("hipModuleGetFunction");
  Status (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                   void**) = library.need("hipModuleLaunchKernel");
  Status (*can_reach)(int*, int, int) = library.need("hipDeviceCanAccessPeer");
  Status (*reach)(int, unsigned) = library.need("hipDeviceEnablePeerAccess");
  Status (*range_handle)(void*, void*, std::size_t, int, unsigned long long) =
      library.find("hipMemGetHandleForAddressRange");  // in recent versions of ROCm only
};

class Hip final : public Driver {
 public:
  explicit Hip(std::unique_ptr<Library> library) : library_(std::move(library)), hip_{*library_} {}

  Runtime runtime() const override { return Runtime::hip; }

  std::string version() const override {
    int v = 0;
    if (hip_.driver_version(&v) != kSuccess) return "HIP";
    return fmt::format("HIP {}.{}", v / 10'000'000, v / 100'000 % 100);
  }

  std::string explain(Status status) const override {
    const char* name = hip_.error_name(status);
    const char* text = hip_.error_string(status);
    return fmt::format("{} ({}): {}", name != nullptr ? name : "unknown HIP error", status,
                       text != nullptr ? text : "the runtime has no text for it");
  }

  std::string hint(Status status) const override {
    if (status == kNoDevice || status == kInvalidDevice)
      return "check that `rocminfo` lists a GPU, that the user is in the groups render and video, and that "
             "HIP_VISIBLE_DEVICES allows it";
    return {};
  }

  Status count(int& gpus) const override { return hip_.device_count(&gpus); }

  Status describe(int ordinal, Info& info) const override {
    std::array<char, 256> name{};
    std::array<char, 32> pci{};
    std::size_t memory = 0;
    Status status = hip_.device_name(name.data(), static_cast<int>(name.size()) - 1, ordinal);
    const auto then = [&status](Status next) {
      if (status == kSuccess) status = next;
    };
    then(hip_.device_pci(pci.data(), static_cast<int>(pci.size()) - 1, ordinal));
    then(hip_.device_memory(&memory, ordinal));
    then(hip_.device_attribute(&info.multiprocessors, kAttributeMultiprocessors, ordinal));
    then(arch_of(ordinal, info.arch));
    info.runtime = Runtime::hip;
    info.name = name.data();
    info.pci_address = pci.data();
    info.driver = version();
    info.memory_bytes = memory;
    // The compiler's default: wave64 on CDNA and older (gfx9), wave32 from gfx10 on.
    info.warp_size = info.arch.starts_with("gfx9") ? 64 : 32;
    return status;
  }

  Status retain(int ordinal, Context& context) const override {
    context = static_cast<Context>(ordinal);
    Context previous = 0;
    const Status status = enter(context, previous);
    if (status == kSuccess) leave(previous);
    return status;
  }
  void release(int) const noexcept override {}

  Status enter(Context context, Context& previous) const override {
    int current = 0;
    if (const Status status = hip_.get_device(&current); status != kSuccess) return status;
    previous = static_cast<Context>(current);
    return previous == context ? kSuccess : hip_.set_device(static_cast<int>(context));
  }
  void leave(Context previous) const noexcept override { hip_.set_device(static_cast<int>(previous)); }

  Status allocate(void*& p, u64 bytes) const override { return hip_.mem_alloc(&p, bytes); }
  Status free(void* p) const noexcept override { return hip_.mem_free(p); }
  Status allocate_pinned(void*& p, u64 bytes) const override {
    return hip_.host_alloc(&p, bytes, kHostPortable | kHostMapped);
  }
  Status free_pinned(void* p) const noexcept override { return hip_.host_free(p); }
  Status register_host(void* p, u64 bytes, bool mmio) const override {
    return hip_.host_register(p, bytes, kHostPortable | kHostMapped | (mmio ? kHostIoMemory : 0));
  }
  Status unregister_host(void* p) const noexcept override { return hip_.host_unregister(p); }
  Status device_pointer(void* host, void*& device) const override {
    return hip_.host_pointer(&device, host, 0);
  }

  Status copy(void* to, const void* from, u64 bytes, void* stream) const override {
    return hip_.copy_async(to, from, bytes, kCopyByAddress, stream);
  }
  Status zero(void* p, u64 bytes, void* stream) const override { return hip_.set_async(p, 0, bytes, stream); }

  Status create_stream(void*& stream) const override {
    return hip_.stream_create(&stream, kStreamNonBlocking);
  }
  Status create_urgent_stream(void*& stream) const override {
    int least = 0, greatest = 0;
    const Status status = hip_.priority_range(&least, &greatest);
    return status != kSuccess ? status : hip_.stream_create_with(&stream, kStreamNonBlocking, greatest);
  }
  Status destroy_stream(void* stream) const noexcept override { return hip_.stream_destroy(stream); }
  Status create_event(void*& event) const override { return hip_.event_create(&event, kEventDisableTiming); }
  Status destroy_event(void* event) const noexcept override { return hip_.event_destroy(event); }
  Status record(void* stream, void* event) const override { return hip_.event_record(event, stream); }
  Status follow(void* stream, void* event) const override { return hip_.stream_wait(stream, event, 0); }
  Status query(void* stream) const override { return hip_.stream_query(stream); }

  Status load_module(const void* image, void*& module) const override {
    return hip_.module_load(&module, image);
  }
  Status unload_module(void* module) const noexcept override { return hip_.module_unload(module); }
  Status function(void* module, const char* name, void*& function) const override {
    return hip_.module_function(&function, module, name);
  }
  // A workgroup may use all 64 KiB of LDS without a request.
  Status allow_shared(void*, u32) const override { return kSuccess; }
  Status launch(void* function, const Gpu::Launch& shape, void* stream, void** args) const override {
    return hip_.launch(function, shape.blocks, 1, 1, shape.threads, 1, 1, shape.shared_bytes, stream, args,
                       nullptr);
  }
  Status reach(int ordinal, int peer, Context) const override {
    int can = 0;
    const Status status = hip_.can_reach(&can, ordinal, peer);
    if (status != kSuccess) return status;
    return can == 0 ? kNotSupported : hip_.reach(peer, 0);
  }
  Status export_dmabuf(void* p, u64 bytes, int& fd) const override {
    if (hip_.range_handle != nullptr) return hip_.range_handle(&fd, p, bytes, kRangeDmaBuf, 0);
    return kNotSupported;
  }

 private:
  // The properties record differs between HIP 5 and 6 in size and order. In both it starts with the 256 bytes
  // of the name, and the only other text that starts with "gfx" is the architecture.
  Status arch_of(int ordinal, std::string& arch) const {
    constexpr std::size_t kNameBytes = 256;
    std::array<char, 16384> record{};
    const Status status = hip_.device_properties(record.data(), ordinal);
    std::string_view text(record.data() + kNameBytes, record.size() - kNameBytes - 1);
    const std::size_t at = text.find("gfx");
    if (status == kSuccess && at != std::string_view::npos) {
      arch = text.data() + at;
      arch.resize(std::min(arch.find(':'), arch.size()));  // "gfx90a:sramecc+:xnack-" -> "gfx90a"
    }
    return status;
  }

  std::unique_ptr<Library> library_;
  Table hip_;
};

}  // namespace

std::shared_ptr<Driver> load_hip() {
  const char* chosen = std::getenv(kOverride);
  if ((chosen == nullptr || *chosen == '\0') && ::access(kKernelInterface, F_OK) != 0)
    throw Error("no AMD GPU", fmt::format("{} does not exist", kKernelInterface),
                "load the amdgpu kernel driver, or pass /dev/kfd and /dev/dri into the container",
                ExitCode::absent);
  auto library = std::make_unique<Library>(kOverride, kNames, kInstall);
  Status (*init)(unsigned) = library->need("hipInit");
  const std::string name = library->name();
  auto driver = std::make_shared<Hip>(std::move(library));
  if (const Status status = init(0); status != kSuccess)
    throw Error(fmt::format("{} finds no usable AMD GPU", name), driver->explain(status),
                driver->hint(status), ExitCode::absent);
  return driver;
}

}  // namespace doorbell::gpu
