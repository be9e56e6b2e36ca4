// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Intel's GPUs by Level Zero behind the Driver interface: memory, copies, dma-buf. doorbell has no kernels
// for these GPUs, so what only kernels need is refused here.
#include "gpu/driver.hpp"
#include "gpu/level_zero_abi.hpp"
#include "system/library.hpp"

#include <doorbell/error.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

namespace doorbell::gpu {
namespace {

using ze::Handle;

constexpr const char* kOverride = "DOORBELL_LIBZE_LOADER";
constexpr std::array kNames = {"libze_loader.so.1"};
constexpr const char* kInstall = "install the Level Zero loader (libze1) and the GPU's driver";
// Every driver of an Intel GPU reaches it through one of these.
constexpr std::array kKernelInterfaces = {"/dev/dri", "/dev/dxg"};
constexpr std::size_t kAlignment = 64 * 1024, kHostAlignment = 4096;
constexpr u8 kZero = 0;

struct Name {
  u32 result;
  const char* name;
  const char* text;
};
constexpr std::array kResults = {
    Name{ze::kNotFinished, "ZE_RESULT_NOT_READY", "it has not finished"},
    Name{ze::kDeviceLost, "ZE_RESULT_ERROR_DEVICE_LOST", "the GPU hung, was reset, or has gone"},
    Name{ze::kOutOfHostMemory, "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY", "not enough host memory"},
    Name{ze::kOutOfDeviceMemory, "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", "not enough GPU memory"},
    Name{ze::kRequiresReset, "ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET", "the GPU must be reset"},
    Name{ze::kLowPower, "ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE", "the GPU sleeps"},
    Name{ze::kNoPermission, "ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS", "this user may not"},
    Name{ze::kNotAvailable, "ZE_RESULT_ERROR_NOT_AVAILABLE", "another holds it"},
    Name{ze::kNoDependency, "ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE", "a library of the driver is missing"},
    Name{ze::kUninitialized, "ZE_RESULT_ERROR_UNINITIALIZED", "no driver has started"},
    Name{ze::kUnsupportedVersion, "ZE_RESULT_ERROR_UNSUPPORTED_VERSION", "the driver is of another version"},
    Name{ze::kUnsupportedFeature, "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE", "the driver cannot do it"},
    Name{ze::kInvalidArgument, "ZE_RESULT_ERROR_INVALID_ARGUMENT", "an argument is wrong"},
    Name{ze::kNullHandle, "ZE_RESULT_ERROR_INVALID_NULL_HANDLE", "a handle is null"},
    Name{ze::kObjectInUse, "ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE", "the GPU still uses it"},
    Name{ze::kNullPointer, "ZE_RESULT_ERROR_INVALID_NULL_POINTER", "a pointer is null"},
    Name{ze::kInvalidSize, "ZE_RESULT_ERROR_INVALID_SIZE", "a size is wrong"},
    Name{ze::kUnsupportedSize, "ZE_RESULT_ERROR_UNSUPPORTED_SIZE", "more than the GPU gives at once"},
    Name{ze::kUnsupportedAlignment, "ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT", "it cannot align so"},
    Name{ze::kInvalidSync, "ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT", "an event is wrong"},
    Name{ze::kInvalidEnum, "ZE_RESULT_ERROR_INVALID_ENUMERATION", "a structure or number is wrong"},
    Name{ze::kUnsupportedEnum, "ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION", "the driver lacks this kind"},
    Name{ze::kOverlap, "ZE_RESULT_ERROR_OVERLAPPING_REGIONS", "source and destination overlap"},
    Name{ze::kUnknown, "ZE_RESULT_ERROR_UNKNOWN", "the driver gives no reason"},
    // Refused here, not by the driver.
    Name{kNotSupported, "not supported", "doorbell does not do it with GPUs of Level Zero"},
};

struct Table {
  const Library& library;

  Status (*driver_get)(u32*, Handle*) = library.need("zeDriverGet");
  Status (*api_version)(Handle, u32*) = library.need("zeDriverGetApiVersion");
  Status (*driver_properties)(Handle, ze::DriverProperties*) = library.need("zeDriverGetProperties");
  Status (*extension)(Handle, const char*, void**) = library.need("zeDriverGetExtensionFunctionAddress");
  Status (*device_get)(Handle, u32*, Handle*) = library.need("zeDeviceGet");
  Status (*device_properties)(Handle, ze::DeviceProperties*) = library.need("zeDeviceGetProperties");
  Status (*pci_properties)(Handle, ze::PciProperties*) =
      library.find("zeDevicePciGetPropertiesExt");  // since specification 1.3
  Status (*queue_groups)(Handle, u32*,
                         ze::QueueGroupProperties*) = library.need("zeDeviceGetCommandQueueGroupProperties");
  Status (*memories)(Handle, u32*, ze::MemoryProperties*) = library.need("zeDeviceGetMemoryProperties");
  Status (*external_memory)(Handle, ze::ExternalMemoryProperties*) =
      library.need("zeDeviceGetExternalMemoryProperties");
  Status (*can_reach)(Handle, Handle, u8*) = library.need("zeDeviceCanAccessPeer");
  Status (*context_create)(Handle, const ze::ContextDescription*, Handle*) = library.need("zeContextCreate");
  Status (*context_destroy)(Handle) = library.need("zeContextDestroy");
  Status (*list_create)(Handle, Handle, const ze::QueueDescription*,
                        Handle*) = library.need("zeCommandListCreateImmediate");
  Status (*list_destroy)(Handle) = library.need("zeCommandListDestroy");
  Status (*append_copy)(Handle, void*, const void*, std::size_t, Handle, u32,
                        Handle*) = library.need("zeCommandListAppendMemoryCopy");
  Status (*append_fill)(Handle, void*, const void*, std::size_t, std::size_t, Handle, u32,
                        Handle*) = library.need("zeCommandListAppendMemoryFill");
  Status (*append_barrier)(Handle, Handle, u32, Handle*) = library.need("zeCommandListAppendBarrier");
  Status (*pool_create)(Handle, const ze::EventPoolDescription*, u32, Handle*,
                        Handle*) = library.need("zeEventPoolCreate");
  Status (*pool_destroy)(Handle) = library.need("zeEventPoolDestroy");
  Status (*event_create)(Handle, const ze::EventDescription*, Handle*) = library.need("zeEventCreate");
  Status (*event_destroy)(Handle) = library.need("zeEventDestroy");
  Status (*event_reset)(Handle) = library.need("zeEventHostReset");
  Status (*event_query)(Handle) = library.need("zeEventQueryStatus");
  Status (*alloc_device)(Handle, const ze::DeviceAllocation*, std::size_t, std::size_t, Handle,
                         void**) = library.need("zeMemAllocDevice");
  Status (*alloc_host)(Handle, const ze::HostAllocation*, std::size_t, std::size_t,
                       void**) = library.need("zeMemAllocHost");
  Status (*mem_free)(Handle, void*) = library.need("zeMemFree");
  Status (*mem_properties)(Handle, const void*, ze::AllocationProperties*,
                           Handle*) = library.need("zeMemGetAllocProperties");
  Status (*mem_range)(Handle, const void*, void**, std::size_t*) = library.need("zeMemGetAddressRange");
};

struct Device {
  Handle driver = nullptr, device = nullptr;
};

/// A driver's one context, for as long as a GPU of it is open. One GPU reaches memory of another only if both
/// have the same.
struct SharedContext {
  Handle handle = nullptr;
  int users = 0;
};

/// An open GPU.
struct Opened {
  Device of;
  Handle context = nullptr;
  u32 group = 0;         ///< the queues that copy
  bool exports = false;  ///< memory can be made so that a dma-buf of it can be had
  int users = 0;
  // Extensions of Intel's driver: pages that a copy then need not look up and pin each time.
  Status (*import_pointer)(Handle, void*, std::size_t) = nullptr;
  Status (*release_pointer)(Handle, void*) = nullptr;
};

/// A command list that carries out at once, and the event by which the host learns that it is idle. Level
/// Zero leaves it to its callers that one thread at a time uses a list.
struct List {
  std::mutex mutex;
  Handle list = nullptr, pool = nullptr, event = nullptr;
  bool used = false;     ///< something was appended that no event stands for
  bool pending = false;  ///< the event stands for all that was appended before it, and has not been seen
};

thread_local const Opened* current = nullptr;

class LevelZero final : public Driver {
 public:
  explicit LevelZero(std::unique_ptr<Library> library) : library_(std::move(library)), ze_{*library_} {
    found_ = find_devices();
  }

  Runtime runtime() const override { return Runtime::level_zero; }

  std::string version() const override {
    if (devices_.empty()) return "Level Zero";
    u32 api = 0;
    ze::DriverProperties p;
    if (ze_.api_version(devices_.front().driver, &api) != kSuccess ||
        ze_.driver_properties(devices_.front().driver, &p) != kSuccess)
      return "Level Zero";
    return fmt::format("{}.{}.{} (Level Zero {}.{})", p.version >> 24, p.version >> 16 & 0xff,
                       p.version & 0xffff, api >> 16, api & 0xffff);
  }

  std::string explain(Status status) const override {
    const auto known = std::ranges::find(kResults, static_cast<u32>(status), &Name::result);
    if (known == kResults.end()) return fmt::format("unknown Level Zero result (0x{:x})", status);
    return fmt::format("{} (0x{:x}): {}", known->name, status, known->text);
  }

  std::string hint(Status status) const override {
    switch (static_cast<u32>(status)) {
      case ze::kUninitialized:
      case ze::kNoDependency:
        return "install the GPU's driver for Level Zero (libze-intel-gpu1, or Intel's intel-level-zero-gpu)";
      case ze::kNoPermission:
        return "check that the user is in the group render and may open /dev/dri/renderD*";
      case ze::kDeviceLost:
      case ze::kRequiresReset:
        return "see `dmesg`; the GPU may need a reset, or the machine to be started again";
      default:
        return {};
    }
  }

  Status count(int& gpus) const override {
    gpus = static_cast<int>(devices_.size());
    return found_;
  }

  Status describe(int ordinal, Info& info) const override {
    const Device& d = devices_[static_cast<std::size_t>(ordinal)];
    ze::DeviceProperties p;
    Status status = ze_.device_properties(d.device, &p);
    u32 n = 0;
    if (status == kSuccess) status = ze_.memories(d.device, &n, nullptr);
    std::vector<ze::MemoryProperties> memories(n);
    if (status == kSuccess && n > 0) status = ze_.memories(d.device, &n, memories.data());
    for (u32 i = 0; i < n && i < memories.size(); ++i) info.memory_bytes += memories[i].bytes;
    ze::PciProperties pci;
    if (ze_.pci_properties != nullptr && ze_.pci_properties(d.device, &pci) == kSuccess)
      info.pci_address =
          fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.device, pci.function);
    p.name.back() = '\0';
    info.runtime = Runtime::level_zero;
    info.name = p.name.data();
    info.arch = fmt::format("{:04x}:{:04x}", p.vendor, p.device);
    info.driver = version();
    info.multiprocessors = static_cast<int>(p.slices * p.subslices_a_slice);
    info.warp_size = static_cast<int>(p.simd_width);
    return status;
  }

  Status retain(int ordinal, Context& context) const override {
    const std::lock_guard lock(mutex_);
    Opened& o = opened_[ordinal];
    if (o.users == 0) {
      if (const Status status = open(devices_[static_cast<std::size_t>(ordinal)], o); status != kSuccess)
        return status;
    }
    ++o.users;
    context = reinterpret_cast<Context>(&o);
    return kSuccess;
  }

  void release(int ordinal) const noexcept override {
    const std::lock_guard lock(mutex_);
    Opened& o = opened_[ordinal];
    if (--o.users > 0) return;
    SharedContext& shared = contexts_[o.of.driver];
    if (--shared.users == 0) ze_.context_destroy(std::exchange(shared.handle, nullptr));
  }

  // Nothing is current in Level Zero: every call names its context and device.
  Status enter(Context context, Context& previous) const override {
    previous = reinterpret_cast<Context>(current);
    current = reinterpret_cast<const Opened*>(context);
    return kSuccess;
  }
  void leave(Context previous) const noexcept override {
    current = reinterpret_cast<const Opened*>(previous);
  }

  Status allocate(void*& p, u64 bytes) const override {
    const ze::ExportAllocation exported;
    ze::DeviceAllocation description;
    if (current->exports) description.next = &exported;
    return ze_.alloc_device(current->context, &description, bytes, kAlignment, current->of.device, &p);
  }
  Status free(void* p) const noexcept override { return ze_.mem_free(current->context, p); }
  Status allocate_pinned(void*& p, u64 bytes) const override {
    const ze::HostAllocation description;
    return ze_.alloc_host(current->context, &description, bytes, kHostAlignment, &p);
  }
  Status free_pinned(void* p) const noexcept override { return ze_.mem_free(current->context, p); }

  // Copies take any host memory, and nothing else uses the address.
  Status register_host(void* p, u64 bytes, bool mmio) const override {
    if (mmio) return kNotSupported;
    return current->import_pointer == nullptr ? kSuccess
                                              : current->import_pointer(current->of.driver, p, bytes);
  }
  Status unregister_host(void* p) const noexcept override {
    return current->release_pointer == nullptr ? kSuccess : current->release_pointer(current->of.driver, p);
  }
  Status device_pointer(void* host, void*& device) const override {
    device = host;
    return kSuccess;
  }

  Status copy(void* to, const void* from, u64 bytes, void* stream) const override {
    return append(stream,
                  [&](Handle list) { return ze_.append_copy(list, to, from, bytes, nullptr, 0, nullptr); });
  }
  Status zero(void* p, u64 bytes, void* stream) const override {
    return append(stream, [&](Handle list) {
      return ze_.append_fill(list, p, &kZero, sizeof kZero, bytes, nullptr, 0, nullptr);
    });
  }

  Status create_stream(void*& stream) const override { return create(stream, ze::kPriorityNormal); }
  Status create_urgent_stream(void*& stream) const override { return create(stream, ze::kPriorityHigh); }
  Status destroy_stream(void* stream) const noexcept override {
    List* const l = static_cast<List*>(stream);
    const Status status = destroy(*l);
    delete l;
    return status;
  }

  Status create_event(void*&) const override { return kNotSupported; }
  Status destroy_event(void*) const noexcept override { return kNotSupported; }
  Status record(void*, void*) const override { return kNotSupported; }
  Status follow(void*, void*) const override { return kNotSupported; }

  Status query(void* stream) const override {
    List& l = *static_cast<List*>(stream);
    const std::lock_guard lock(l.mutex);
    if (const Status status = look(l); status != kSuccess || !l.used) return status;
    // A barrier with an event is the one way to ask that every version of the interface has.
    Status status = ze_.event_reset(l.event);
    if (status == kSuccess) status = ze_.append_barrier(l.list, l.event, 0, nullptr);
    if (status != kSuccess) return status;
    l.used = false;
    l.pending = true;
    return look(l);
  }

  Status load_module(const void*, void*&) const override { return kNotSupported; }
  Status unload_module(void*) const noexcept override { return kNotSupported; }
  Status function(void*, const char*, void*&) const override { return kNotSupported; }
  Status allow_shared(void*, u32) const override { return kNotSupported; }
  Status launch(void*, const Gpu::Launch&, void*, void**) const override { return kNotSupported; }

  Status reach(int ordinal, int peer, Context) const override {
    const Device& from = devices_[static_cast<std::size_t>(ordinal)];
    const Device& to = devices_[static_cast<std::size_t>(peer)];
    if (from.driver != to.driver) return kNotSupported;
    u8 can = 0;
    const Status status = ze_.can_reach(from.device, to.device, &can);
    return status == kSuccess && can == 0 ? kNotSupported : status;
  }

  Status export_dmabuf(void* p, u64 bytes, int& fd) const override {
    if (!current->exports) return static_cast<Status>(ze::kUnsupportedFeature);
    // A file is of a whole allocation, and its users count from its begin.
    void* base = nullptr;
    std::size_t size = 0;
    if (const Status status = ze_.mem_range(current->context, p, &base, &size); status != kSuccess)
      return status;
    if (base != p || bytes > size) return static_cast<Status>(ze::kInvalidArgument);
    ze::ExportFd file;
    ze::AllocationProperties properties;
    properties.next = &file;
    Handle owner = nullptr;
    const Status status = ze_.mem_properties(current->context, p, &properties, &owner);
    if (status != kSuccess) return status;
    // Intel's driver gives the same descriptor each time and keeps it with the allocation.
    fd = ::fcntl(file.fd, F_DUPFD_CLOEXEC, 0);
    return fd >= 0 ? kSuccess : static_cast<Status>(ze::kNotAvailable);
  }

 private:
  Status find_devices() {
    u32 drivers = 0;
    Status status = ze_.driver_get(&drivers, nullptr);
    std::vector<Handle> handles(drivers);
    if (status == kSuccess && drivers > 0) status = ze_.driver_get(&drivers, handles.data());
    if (status != kSuccess) return status;
    for (const Handle driver : handles) {
      u32 n = 0;
      Status here = ze_.device_get(driver, &n, nullptr);
      std::vector<Handle> devices(n);
      if (here == kSuccess && n > 0) here = ze_.device_get(driver, &n, devices.data());
      if (here != kSuccess) {
        status = here;
        continue;
      }
      for (const Handle device : devices) {
        // A driver may also show processors and NPUs. A device that cannot be read keeps its number.
        ze::DeviceProperties p;
        if (ze_.device_properties(device, &p) != kSuccess || p.kind == ze::kDeviceGpu)
          devices_.push_back({driver, device});
      }
    }
    // One driver's failure is no reason to leave out the GPUs of another.
    return devices_.empty() ? status : kSuccess;
  }

  /// Call with the mutex held.
  Status open(const Device& d, Opened& o) const {
    o.of = d;
    if (const Status status = copying_group(d.device, o.group); status != kSuccess) return status;
    ze::ExternalMemoryProperties external;
    o.exports =
        ze_.external_memory(d.device, &external) == kSuccess && (external.exports & ze::kMemoryDmaBuf) != 0;
    void* import = nullptr;
    void* release = nullptr;
    const bool imports = ze_.extension(d.driver, "zexDriverImportExternalPointer", &import) == kSuccess &&
                         ze_.extension(d.driver, "zexDriverReleaseImportedPointer", &release) == kSuccess;
    o.import_pointer = Symbol(imports ? import : nullptr);
    o.release_pointer = Symbol(imports ? release : nullptr);
    SharedContext& shared = contexts_[d.driver];
    if (shared.users == 0) {
      const ze::ContextDescription description;
      if (const Status status = ze_.context_create(d.driver, &description, &shared.handle);
          status != kSuccess)
        return status;
    }
    ++shared.users;
    o.context = shared.handle;
    return kSuccess;
  }

  /// The group whose engines only copy, if there is one: copies then run beside what others compute.
  Status copying_group(Handle device, u32& group) const {
    u32 n = 0;
    Status status = ze_.queue_groups(device, &n, nullptr);
    std::vector<ze::QueueGroupProperties> groups(n);
    if (status == kSuccess && n > 0) status = ze_.queue_groups(device, &n, groups.data());
    if (status != kSuccess) return status;
    const auto copies = [](const ze::QueueGroupProperties& g) {
      return (g.flags & ze::kGroupCopy) != 0 && g.queues > 0 && g.most_fill_pattern >= sizeof kZero;
    };
    const auto only_copies = [&](const ze::QueueGroupProperties& g) {
      return copies(g) && (g.flags & ze::kGroupCompute) == 0;
    };
    auto chosen = std::ranges::find_if(groups, only_copies);
    if (chosen == groups.end()) chosen = std::ranges::find_if(groups, copies);
    if (chosen == groups.end()) return static_cast<Status>(ze::kUnsupportedFeature);
    group = static_cast<u32>(chosen - groups.begin());
    return kSuccess;
  }

  Status create(void*& stream, u32 priority) const {
    auto l = std::make_unique<List>();
    ze::QueueDescription queue;
    queue.group = current->group;
    queue.priority = priority;
    const ze::EventPoolDescription pool;
    const ze::EventDescription event;
    Handle device = current->of.device;
    Status status = ze_.list_create(current->context, device, &queue, &l->list);
    if (status == kSuccess) status = ze_.pool_create(current->context, &pool, 1, &device, &l->pool);
    if (status == kSuccess) status = ze_.event_create(l->pool, &event, &l->event);
    if (status != kSuccess) {
      (void)destroy(*l);
      return status;
    }
    stream = l.release();
    return kSuccess;
  }
  /// As far as it was made.
  Status destroy(List& l) const noexcept {
    Status status = l.list != nullptr ? ze_.list_destroy(l.list) : kSuccess;
    const auto then = [&status](Status next) {
      if (status == kSuccess) status = next;
    };
    if (l.event != nullptr) then(ze_.event_destroy(l.event));
    if (l.pool != nullptr) then(ze_.pool_destroy(l.pool));
    return status;
  }

  /// Behind what is in the list: commands of a list may otherwise overtake each other.
  template <class Call>
  Status append(void* stream, Call call) const {
    List& l = *static_cast<List*>(stream);
    const std::lock_guard lock(l.mutex);
    if (l.used || l.pending) {
      if (const Status status = ze_.append_barrier(l.list, nullptr, 0, nullptr); status != kSuccess)
        return status;
    }
    const Status status = call(l.list);
    if (status == kSuccess) l.used = true;
    return status;
  }
  /// At the event, with the list's mutex held.
  Status look(List& l) const {
    if (!l.pending) return kSuccess;
    const Status status = ze_.event_query(l.event);
    if (status == static_cast<Status>(ze::kNotFinished)) return kNotReady;
    if (status == kSuccess) l.pending = false;
    return status;
  }

  std::unique_ptr<Library> library_;
  Table ze_;
  std::vector<Device> devices_;
  Status found_ = kSuccess;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::map<int, Opened> opened_;
  mutable std::map<Handle, SharedContext> contexts_;
};

}  // namespace

std::shared_ptr<Driver> load_level_zero() {
  // All open GPUs share it, for the sake of their common context.
  static std::mutex mutex;
  static std::weak_ptr<LevelZero> loaded;
  const std::lock_guard lock(mutex);
  if (auto driver = loaded.lock()) return driver;
  const char* chosen = std::getenv(kOverride);
  const auto there = [](const char* path) { return ::access(path, F_OK) == 0; };
  if ((chosen == nullptr || *chosen == '\0') && std::ranges::none_of(kKernelInterfaces, there))
    throw Error("no Intel GPU", fmt::format("neither {} exists", fmt::join(kKernelInterfaces, " nor ")),
                "load the kernel's driver (i915 or xe), or pass /dev/dri into the container",
                ExitCode::absent);
  auto library = std::make_unique<Library>(kOverride, kNames, kInstall);
  Status (*init)(u32) = library->need("zeInit");
  const std::string name = library->name();
  const Status status = init(ze::kInitGpuOnly);
  auto driver = std::make_shared<LevelZero>(std::move(library));
  if (status != kSuccess)
    throw Error(fmt::format("{} finds no usable Intel GPU", name), driver->explain(status),
                driver->hint(status), ExitCode::absent);
  loaded = driver;
  return driver;
}

}  // namespace doorbell::gpu
