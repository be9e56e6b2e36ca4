// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A libze_loader.so.1 that needs no GPU. It is stricter than a real one where that finds mistakes: no load or
// store reaches device memory, a thread of its own carries out commands, those of a list that no barrier
// separates in reverse order, and whatever the interface does not allow is counted under "mistakes".
//
// Environment variables, which are read at every call, control it:
//   FAKE_ZE_DEVICES=N        GPUs shown (2), of 1 GiB each, beside a processor and an NPU
//   FAKE_ZE_FAIL=CALL=CODE   that call returns that code
//   FAKE_ZE_LOST_AFTER=N     the GPUs are lost when they have carried out N commands
//   FAKE_ZE_HOLD=1           commands wait until a call after this is unset
//   FAKE_ZE_WITHOUT=WORD     lacks: "import", "export", "copy-engine", "peer"
//   FAKE_ZE_REPORT=FILE      at exit, all counts go there, one a line
#include "fake_level_zero_state.hpp"

using namespace fake_ze;

extern "C" {

/// The count of live objects under a name, for the tests.
int fake_ze_live(const char* what) {
  const std::scoped_lock lock(state().mutex);
  return count_of(what);
}
const char* fake_ze_mistake() {
  const std::scoped_lock lock(state().mutex);
  return state().first_mistake.c_str();
}
/// Forgets that the GPUs were lost, and what was found.
void fake_ze_restore() {
  const std::scoped_lock lock(state().mutex);
  state().lost = false;
  state().mistakes = state().done = 0;
}

u32 zeInit(u32 flags) {
  State& s = state();
  {
    const std::scoped_lock lock(s.mutex);
    if (!std::exchange(s.initialized, true)) std::atexit(report);
  }
  const Call call("zeInit");
  if (call.fails()) return call.result();
  if (flags != ze::kInitGpuOnly) return mistake("zeInit's flags", ze::kInvalidEnum);
  return shown_gpus() == 0 ? static_cast<u32>(ze::kUninitialized) : static_cast<u32>(ze::kOk);
}

u32 zeDriverGet(u32* count, Handle* handles) {
  const Call call("zeDriverGet");
  if (call.fails()) return call.result();
  if (handles != nullptr)
    for (u32 i = 0; i < *count && i < 2; ++i) handles[i] = &drivers[1 - i];  // the one without GPUs is first
  *count = 2;
  return ze::kOk;
}

u32 zeDriverGetApiVersion(Handle, u32* version) {
  const Call call("zeDriverGetApiVersion");
  *version = 1u << 16 | 4;
  return call.result();
}

u32 zeDriverGetProperties(Handle, ze::DriverProperties* p) {
  const Call call("zeDriverGetProperties");
  if (wrong_type(p, Type::driver_properties)) return ze::kInvalidEnum;
  p->version = 1u << 24 | 3u << 16 | 24595;
  return call.result();
}

u32 zeDeviceGet(Handle driver, u32* count, Handle* handles) {
  const Call call("zeDeviceGet");
  if (call.fails()) return call.result();
  const bool first = driver == &drivers[0];
  const u32 n = first ? shown_gpus() : 2;
  if (handles != nullptr)
    for (u32 i = 0; i < *count && i < n; ++i) handles[i] = first ? &gpus[i] : &others[i];
  *count = n;
  return ze::kOk;
}

u32 zeDeviceGetProperties(Handle device, ze::DeviceProperties* p) {
  const Call call("zeDeviceGetProperties");
  if (wrong_type(p, Type::device_properties)) return ze::kInvalidEnum;
  const Device& d = *static_cast<Device*>(device);
  p->kind = d.kind;
  p->vendor = 0x8086;
  p->device = 0x0bd5;
  p->most_at_once = kMemory;
  p->simd_width = 16;
  p->threads_an_eu = 8;
  p->eus_a_subslice = 8;
  p->subslices_a_slice = 16;
  p->slices = 8;
  std::strcpy(p->name.data(), d.number == 0 ? "Fake Max 1550" : "Fake Arc A770");
  return call.result();
}

u32 zeDevicePciGetPropertiesExt(Handle device, ze::PciProperties* p) {
  const Call call("zeDevicePciGetPropertiesExt");
  if (wrong_type(p, Type::pci_properties)) return ze::kInvalidEnum;
  p->bus = 0x3a + static_cast<u32>(static_cast<Device*>(device)->number);
  return call.result();
}

u32 zeDeviceGetCommandQueueGroupProperties(Handle, u32* count, ze::QueueGroupProperties* p) {
  const Call call("zeDeviceGetCommandQueueGroupProperties");
  if (call.fails()) return call.result();
  // Compute, an engine that cannot fill, and the copy engine.
  const u32 flags[] = {ze::kGroupCompute | ze::kGroupCopy, ze::kGroupCopy, ze::kGroupCopy};
  const std::size_t fills[] = {64, 0, 1};
  const u32 n = without("copy-engine") ? 2 : 3;
  for (u32 i = 0; p != nullptr && i < *count && i < n; ++i) {
    if (wrong_type(p + i, Type::queue_group_properties)) return ze::kInvalidEnum;
    p[i].flags = flags[i];
    p[i].most_fill_pattern = fills[i];
    p[i].queues = 1;
  }
  *count = n;
  return ze::kOk;
}

u32 zeDeviceGetMemoryProperties(Handle, u32* count, ze::MemoryProperties* p) {
  const Call call("zeDeviceGetMemoryProperties");
  if (call.fails()) return call.result();
  for (u32 i = 0; p != nullptr && i < *count && i < 2; ++i) {
    if (wrong_type(p + i, Type::memory_properties)) return ze::kInvalidEnum;
    p[i].bytes = kMemory / 2;
  }
  *count = 2;
  return ze::kOk;
}

u32 zeDeviceGetExternalMemoryProperties(Handle, ze::ExternalMemoryProperties* p) {
  const Call call("zeDeviceGetExternalMemoryProperties");
  if (wrong_type(p, Type::external_memory_properties)) return ze::kInvalidEnum;
  p->exports = without("export") ? 0 : ze::kMemoryDmaBuf;
  return call.result();
}

u32 zeDeviceCanAccessPeer(Handle, Handle, u8* value) {
  const Call call("zeDeviceCanAccessPeer");
  *value = without("peer") ? 0 : 1;
  return call.result();
}

u32 fake_import(Handle, void* p, std::size_t bytes) {
  const Call call("zexDriverImportExternalPointer");
  if (call.fails()) return call.result();
  if (!state().imported.emplace(p, bytes).second) return mistake("imported twice", ze::kInvalidArgument);
  return ze::kOk;
}
u32 fake_release(Handle, void* p) {
  const Call call("zexDriverReleaseImportedPointer");
  if (state().imported.erase(p) == 0) return mistake("released what was not imported", ze::kInvalidArgument);
  return call.result();
}

u32 zeDriverGetExtensionFunctionAddress(Handle, const char* name, void** address) {
  const Call call("zeDriverGetExtensionFunctionAddress");
  if (without("import")) return ze::kInvalidArgument;
  const std::string_view wanted = name;
  *address = wanted == "zexDriverImportExternalPointer"    ? reinterpret_cast<void*>(fake_import)
             : wanted == "zexDriverReleaseImportedPointer" ? reinterpret_cast<void*>(fake_release)
                                                           : nullptr;
  return *address == nullptr ? static_cast<u32>(ze::kInvalidArgument) : call.result();
}

u32 zeContextCreate(Handle driver, const ze::ContextDescription* d, Handle* context) {
  const Call call("zeContextCreate");
  if (call.fails()) return call.result();
  if (wrong_type(d, Type::context)) return ze::kInvalidEnum;
  *context = new Context{driver};
  state().contexts.insert(*context);
  return ze::kOk;
}

u32 zeContextDestroy(Handle context) {
  const Call call("zeContextDestroy");
  State& s = state();
  if (s.contexts.erase(context) == 0) return mistake("a context that is none", ze::kNullHandle);
  if (!s.allocations.empty() || !s.lists.empty() || !s.pools.empty())
    mistake("a context destroyed before what was made in it", 0);
  delete static_cast<Context*>(context);
  return call.result();
}

u32 zeCommandListCreateImmediate(Handle context, Handle, const ze::QueueDescription* d, Handle* list) {
  const Call call("zeCommandListCreateImmediate");
  State& s = state();
  if (call.fails()) return call.result();
  if (!s.contexts.contains(context)) return mistake("a context that is none", ze::kNullHandle);
  if (wrong_type(d, Type::queue)) return ze::kInvalidEnum;
  if (d->group > 2 || d->index != 0 || d->mode != ze::kQueueAsynchronous)
    return mistake("a queue's group, index or mode", ze::kInvalidEnum);
  auto* const made = new List;
  made->context = context;
  made->group = d->group;
  made->urgent = d->priority == ze::kPriorityHigh;
  *list = made;
  s.lists[made] = made;
  return ze::kOk;
}

u32 zeCommandListDestroy(Handle list) {
  const Call call("zeCommandListDestroy");
  State& s = state();
  const auto it = s.lists.find(list);
  if (it == s.lists.end()) return mistake("a list that is none", ze::kNullHandle);
  if (!s.lost && (!it->second->waiting.empty() || it->second->running > 0))
    return mistake("a list destroyed while it works", ze::kObjectInUse);
  delete it->second;
  s.lists.erase(it);
  return call.result();
}

u32 zeCommandListAppendMemoryCopy(Handle list, void* to, const void* from, std::size_t bytes, Handle signal,
                                  u32 waits, Handle*) {
  return append("zeCommandListAppendMemoryCopy", list,
                {Command::Kind::copy, static_cast<u8*>(to), static_cast<const u8*>(from), bytes}, signal,
                waits);
}

u32 zeCommandListAppendMemoryFill(Handle list, void* to, const void* pattern, std::size_t pattern_bytes,
                                  std::size_t bytes, Handle signal, u32 waits, Handle*) {
  if (pattern_bytes != 1) return ze::kInvalidSize;
  Command c{Command::Kind::fill, static_cast<u8*>(to), nullptr, bytes};
  c.value = *static_cast<const u8*>(pattern);
  return append("zeCommandListAppendMemoryFill", list, c, signal, waits);
}

u32 zeCommandListAppendBarrier(Handle list, Handle signal, u32 waits, Handle*) {
  return append("zeCommandListAppendBarrier", list, {Command::Kind::barrier}, signal, waits);
}

u32 zeEventPoolCreate(Handle context, const ze::EventPoolDescription* d, u32, Handle*, Handle* pool) {
  const Call call("zeEventPoolCreate");
  if (call.fails()) return call.result();
  if (!state().contexts.contains(context)) return mistake("a context that is none", ze::kNullHandle);
  if (wrong_type(d, Type::event_pool)) return ze::kInvalidEnum;
  if (d->flags != ze::kPoolHostVisible || d->count == 0) return mistake("an event pool", ze::kInvalidEnum);
  *pool = new int(0);
  state().pools.insert(*pool);
  return ze::kOk;
}

u32 zeEventPoolDestroy(Handle pool) {
  const Call call("zeEventPoolDestroy");
  State& s = state();
  if (s.pools.erase(pool) == 0) return mistake("a pool that is none", ze::kNullHandle);
  if (std::ranges::any_of(s.events, [&](const auto& e) { return e.second->pool == pool; }))
    mistake("a pool destroyed before its events", 0);
  delete static_cast<int*>(pool);
  return call.result();
}

u32 zeEventCreate(Handle pool, const ze::EventDescription* d, Handle* event) {
  const Call call("zeEventCreate");
  State& s = state();
  if (call.fails()) return call.result();
  if (!s.pools.contains(pool)) return mistake("a pool that is none", ze::kNullHandle);
  if (wrong_type(d, Type::event)) return ze::kInvalidEnum;
  // Without the host in its scope, the host might not see what was copied.
  if ((d->signal & ze::kScopeHost) == 0) return mistake("an event's scope", ze::kInvalidEnum);
  auto* const made = new Event;
  made->pool = pool;
  *event = made;
  s.events[made] = made;
  return ze::kOk;
}

u32 zeEventDestroy(Handle event) {
  const Call call("zeEventDestroy");
  State& s = state();
  const auto it = s.events.find(event);
  if (it == s.events.end()) return mistake("an event that is none", ze::kNullHandle);
  if (it->second->waiting > 0 && !s.lost) mistake("an event destroyed before it is signalled", 0);
  delete it->second;
  s.events.erase(it);
  return call.result();
}

u32 zeEventHostReset(Handle event) {
  const Call call("zeEventHostReset");
  State& s = state();
  if (call.fails()) return call.result();
  const auto it = s.events.find(event);
  if (it == s.events.end()) return mistake("an event that is none", ze::kNullHandle);
  if (it->second->waiting > 0) return mistake("an event reset before it is signalled", ze::kInvalidSync);
  it->second->signalled = false;
  return ze::kOk;
}

u32 zeEventQueryStatus(Handle event) {
  const Call call("zeEventQueryStatus");
  State& s = state();
  if (call.fails()) return call.result();
  const auto it = s.events.find(event);
  if (it == s.events.end()) return mistake("an event that is none", ze::kNullHandle);
  if (s.lost) return ze::kDeviceLost;
  return it->second->signalled ? static_cast<u32>(ze::kOk) : static_cast<u32>(ze::kNotFinished);
}

u32 zeMemAllocDevice(Handle context, const ze::DeviceAllocation* d, std::size_t bytes, std::size_t alignment,
                     Handle device, void** p) {
  const Call call("zeMemAllocDevice");
  State& s = state();
  if (call.fails()) return call.result();
  if (!s.contexts.contains(context)) return mistake("a context that is none", ze::kNullHandle);
  if (wrong_type(d, Type::device_allocation)) return ze::kInvalidEnum;
  if (bytes == 0) return ze::kUnsupportedSize;
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) return ze::kUnsupportedAlignment;
  const auto* const exported = static_cast<const ze::ExportAllocation*>(d->next);
  if (exported != nullptr && (exported->type != Type::export_allocation || exported->next != nullptr ||
                              exported->flags != ze::kMemoryDmaBuf || without("export")))
    return mistake("what follows a description", ze::kInvalidEnum);
  u64 used = 0;
  for (const auto& [at, a] : s.allocations)
    if (a.device == device) used += a.bytes;
  if (used + bytes > kMemory) return ze::kOutOfDeviceMemory;
  Allocation a;
  a.bytes = (bytes + kPage - 1) / kPage * kPage;
  a.context = context;
  a.device = static_cast<Device*>(device);
  a.exports = exported != nullptr;
  a.memory_fd = ::memfd_create("fake-device-memory", MFD_CLOEXEC);
  if (a.memory_fd < 0 || ::ftruncate(a.memory_fd, static_cast<off_t>(a.bytes)) != 0)
    return ze::kOutOfHostMemory;
  void* const storage = ::mmap(nullptr, a.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a.memory_fd, 0);
  u8* const at = reserve(a.bytes, alignment);
  if (storage == MAP_FAILED || at == nullptr) return ze::kOutOfHostMemory;
  a.storage = static_cast<u8*>(storage);
  std::memset(a.storage, 0xA5, std::min<std::size_t>(a.bytes, 1 << 20));
  s.allocations[at] = a;
  *p = at;
  return ze::kOk;
}

u32 zeMemAllocHost(Handle context, const ze::HostAllocation* d, std::size_t bytes, std::size_t alignment,
                   void** p) {
  const Call call("zeMemAllocHost");
  State& s = state();
  if (call.fails()) return call.result();
  if (!s.contexts.contains(context)) return mistake("a context that is none", ze::kNullHandle);
  if (wrong_type(d, Type::host_allocation)) return ze::kInvalidEnum;
  if (bytes == 0 || alignment < kPage) return ze::kUnsupportedSize;
  Allocation a;
  a.bytes = (bytes + alignment - 1) / alignment * alignment;
  a.context = context;
  a.storage = static_cast<u8*>(std::aligned_alloc(alignment, a.bytes));
  if (a.storage == nullptr) return ze::kOutOfHostMemory;
  std::memset(a.storage, 0x5A, a.bytes);
  s.allocations[a.storage] = a;
  *p = a.storage;
  return ze::kOk;
}

u32 zeMemFree(Handle context, void* p) {
  const Call call("zeMemFree");
  State& s = state();
  const auto it = s.allocations.find(static_cast<u8*>(p));
  if (it == s.allocations.end() || it->second.context != context)
    return mistake("memory freed that is none", ze::kInvalidArgument);
  const Allocation a = it->second;
  const auto inside = [&](const u8* at) { return at >= a.storage && at < a.storage + a.bytes; };
  for (const auto& [handle, list] : s.lists)
    if (!s.lost &&
        std::ranges::any_of(list->waiting, [&](const Command& c) { return inside(c.to) || inside(c.from); }))
      mistake("memory freed that a command waits for", 0);
  s.allocations.erase(it);
  if (a.device == nullptr) {
    std::free(a.storage);
  } else {
    ::munmap(a.storage, a.bytes);
    if (a.exported_fd >= 0) ::close(a.exported_fd);
    ::close(a.memory_fd);
  }
  return call.result();
}

u32 zeMemGetAddressRange(Handle, const void* p, void** base, std::size_t* bytes) {
  const Call call("zeMemGetAddressRange");
  if (call.fails()) return call.result();
  const auto it = allocation_of(p);
  if (it == state().allocations.end()) return ze::kInvalidArgument;
  *base = it->first;
  *bytes = it->second.bytes;
  return ze::kOk;
}

/// The descriptor is one for each allocation, and closed with it: so does Intel's driver.
u32 zeMemGetAllocProperties(Handle, const void* p, ze::AllocationProperties* out, Handle* device) {
  const Call call("zeMemGetAllocProperties");
  if (call.fails()) return call.result();
  if (wrong_type(out, Type::allocation_properties)) return ze::kInvalidEnum;
  const auto it = allocation_of(p);
  if (it == state().allocations.end()) return ze::kInvalidArgument;
  Allocation& a = it->second;
  out->kind = a.device != nullptr ? 2 : 1;
  *device = a.device;
  auto* const file = static_cast<ze::ExportFd*>(out->next);
  if (file == nullptr) return ze::kOk;
  if (file->type != Type::export_fd || file->flags != ze::kMemoryDmaBuf || !a.exports)
    return mistake("the export of memory", ze::kInvalidEnum);
  if (a.exported_fd < 0) a.exported_fd = ::fcntl(a.memory_fd, F_DUPFD_CLOEXEC, 0);
  file->fd = a.exported_fd;
  return ze::kOk;
}

}  // extern "C"
