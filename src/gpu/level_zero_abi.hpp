// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The part of Level Zero that doorbell uses: structures and numbers as the loader's library has them, from
// specification 1.0 on. The declarations are doorbell's own, so that building needs no Level Zero headers.
// Every structure starts with its type and with a link to a further one.
#pragma once

#include <doorbell/config.hpp>

#include <array>
#include <cstddef>

namespace doorbell::gpu::ze {

using Handle = void*;

enum Result : u32 {
  kOk = 0,
  kNotFinished = 1,
  kDeviceLost = 0x70000001,
  kOutOfHostMemory = 0x70000002,
  kOutOfDeviceMemory = 0x70000003,
  kRequiresReset = 0x70000006,
  kLowPower = 0x70000007,
  kNoPermission = 0x70010000,
  kNotAvailable = 0x70010001,
  kNoDependency = 0x70020000,
  kUninitialized = 0x78000001,
  kUnsupportedVersion = 0x78000002,
  kUnsupportedFeature = 0x78000003,
  kInvalidArgument = 0x78000004,
  kNullHandle = 0x78000005,
  kObjectInUse = 0x78000006,
  kNullPointer = 0x78000007,
  kInvalidSize = 0x78000008,
  kUnsupportedSize = 0x78000009,
  kUnsupportedAlignment = 0x7800000a,
  kInvalidSync = 0x7800000b,
  kInvalidEnum = 0x7800000c,
  kUnsupportedEnum = 0x7800000d,
  kOverlap = 0x7800001a,
  kUnknown = 0x7ffffffe,
};

enum class Type : u32 {
  driver_properties = 0x1,
  device_properties = 0x3,
  queue_group_properties = 0x6,
  memory_properties = 0x7,
  external_memory_properties = 0xc,
  context = 0xd,
  queue = 0xe,
  event_pool = 0x10,
  event = 0x11,
  device_allocation = 0x15,
  host_allocation = 0x16,
  allocation_properties = 0x17,
  export_allocation = 0x18,
  export_fd = 0x1a,
  pci_properties = 0x10008,
};

inline constexpr u32 kInitGpuOnly = 1;
inline constexpr u32 kDeviceGpu = 1;
inline constexpr u32 kGroupCompute = 1, kGroupCopy = 2;
inline constexpr u32 kQueueAsynchronous = 2;
inline constexpr u32 kPriorityNormal = 0, kPriorityHigh = 2;
inline constexpr u32 kPoolHostVisible = 1;
inline constexpr u32 kScopeHost = 4;
inline constexpr u32 kMemoryDmaBuf = 2;
inline constexpr std::size_t kNameBytes = 256, kUuidBytes = 16;

struct DriverProperties {
  Type type = Type::driver_properties;
  void* next = nullptr;
  std::array<u8, kUuidBytes> uuid{};
  u32 version = 0;
};

struct DeviceProperties {
  Type type = Type::device_properties;
  void* next = nullptr;
  u32 kind = 0;
  u32 vendor = 0, device = 0;
  u32 flags = 0;
  u32 subdevice = 0;
  u32 core_mhz = 0;
  u64 most_at_once = 0;  ///< bytes of one allocation
  u32 contexts = 0;
  u32 priorities = 0;
  u32 threads_an_eu = 0;
  u32 simd_width = 0;
  u32 eus_a_subslice = 0, subslices_a_slice = 0, slices = 0;
  u64 timer_resolution = 0;
  u32 timestamp_bits = 0, kernel_timestamp_bits = 0;
  std::array<u8, kUuidBytes> uuid{};
  std::array<char, kNameBytes> name{};
};

struct PciProperties {
  Type type = Type::pci_properties;
  void* next = nullptr;
  u32 domain = 0, bus = 0, device = 0, function = 0;
  int generation = 0, width = 0;
  i64 bandwidth = 0;
};

struct QueueGroupProperties {
  Type type = Type::queue_group_properties;
  void* next = nullptr;
  u32 flags = 0;
  std::size_t most_fill_pattern = 0;
  u32 queues = 0;
};

struct MemoryProperties {
  Type type = Type::memory_properties;
  void* next = nullptr;
  u32 flags = 0;
  u32 clock_mhz = 0, bus_bits = 0;
  u64 bytes = 0;
  std::array<char, kNameBytes> name{};
};

struct ExternalMemoryProperties {
  Type type = Type::external_memory_properties;
  void* next = nullptr;
  u32 imports = 0, exports = 0;
  u32 image_imports = 0, image_exports = 0;
};

struct ContextDescription {
  Type type = Type::context;
  const void* next = nullptr;
  u32 flags = 0;
};

struct QueueDescription {
  Type type = Type::queue;
  const void* next = nullptr;
  u32 group = 0, index = 0;
  u32 flags = 0;
  u32 mode = kQueueAsynchronous;
  u32 priority = kPriorityNormal;
};

struct EventPoolDescription {
  Type type = Type::event_pool;
  const void* next = nullptr;
  u32 flags = kPoolHostVisible;
  u32 count = 1;
};

struct EventDescription {
  Type type = Type::event;
  const void* next = nullptr;
  u32 index = 0;
  u32 signal = kScopeHost, wait = kScopeHost;
};

struct DeviceAllocation {
  Type type = Type::device_allocation;
  const void* next = nullptr;
  u32 flags = 0;
  u32 ordinal = 0;
};

struct HostAllocation {
  Type type = Type::host_allocation;
  const void* next = nullptr;
  u32 flags = 0;
};

struct ExportAllocation {
  Type type = Type::export_allocation;
  const void* next = nullptr;
  u32 flags = kMemoryDmaBuf;
};

struct ExportFd {
  Type type = Type::export_fd;
  const void* next = nullptr;
  u32 flags = kMemoryDmaBuf;
  int fd = -1;
};

struct AllocationProperties {
  Type type = Type::allocation_properties;
  void* next = nullptr;
  u32 kind = 0;
  u64 id = 0;
  u64 page = 0;
};

// Compared with ze_api.h 1.4 (Debian's libze-dev 1.8.12), which has the same sizes and places.
static_assert(sizeof(DriverProperties) == 40 && offsetof(DriverProperties, version) == 32);
static_assert(sizeof(DeviceProperties) == 368 && offsetof(DeviceProperties, kind) == 16 &&
              offsetof(DeviceProperties, most_at_once) == 40 &&
              offsetof(DeviceProperties, simd_width) == 60 && offsetof(DeviceProperties, slices) == 72 &&
              offsetof(DeviceProperties, timer_resolution) == 80 && offsetof(DeviceProperties, uuid) == 96 &&
              offsetof(DeviceProperties, name) == 112);
static_assert(sizeof(PciProperties) == 48 && offsetof(PciProperties, function) == 28);
static_assert(sizeof(QueueGroupProperties) == 40 && offsetof(QueueGroupProperties, most_fill_pattern) == 24);
static_assert(sizeof(MemoryProperties) == 296 && offsetof(MemoryProperties, bytes) == 32);
static_assert(sizeof(ExternalMemoryProperties) == 32 && offsetof(ExternalMemoryProperties, exports) == 20);
static_assert(sizeof(ContextDescription) == 24);
static_assert(sizeof(QueueDescription) == 40 && offsetof(QueueDescription, priority) == 32);
static_assert(sizeof(EventPoolDescription) == 24 && offsetof(EventPoolDescription, count) == 20);
static_assert(sizeof(EventDescription) == 32 && offsetof(EventDescription, wait) == 24);
static_assert(sizeof(DeviceAllocation) == 24 && sizeof(HostAllocation) == 24);
static_assert(sizeof(ExportAllocation) == 24 && sizeof(ExportFd) == 24 && offsetof(ExportFd, fd) == 20);
static_assert(sizeof(AllocationProperties) == 40 && offsetof(AllocationProperties, id) == 24);

}  // namespace doorbell::gpu::ze
