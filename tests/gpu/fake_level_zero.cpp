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

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/level_zero_abi.hpp"

namespace ze = doorbell::gpu::ze;
using doorbell::u32;
using doorbell::u64;
using doorbell::u8;
using ze::Handle;
using ze::Type;

namespace {

constexpr u64 kMemory = u64{1} << 30;
constexpr std::size_t kPage = 4096;

// Handles are addresses of these.
struct Driver {
  int number;
};
struct Device {
  int number;
  u32 kind;
};
Driver drivers[2] = {{0}, {1}};
Device gpus[4] = {{0, ze::kDeviceGpu}, {1, ze::kDeviceGpu}, {2, ze::kDeviceGpu}, {3, ze::kDeviceGpu}};
Device others[2] = {{10, 2}, {11, 5}};

struct Context {
  Handle driver;
};
struct Allocation {
  u8* storage = nullptr;  ///< where its bytes are; the same address for host memory
  std::size_t bytes = 0;
  Handle context = nullptr;
  Device* device = nullptr;  ///< null: host memory
  int memory_fd = -1, exported_fd = -1;
  bool exports = false;
};
struct Event {
  bool signalled = false;
  int waiting = 0;  ///< commands that will signal it
  Handle pool = nullptr;
};
struct Command {
  enum class Kind { barrier, copy, fill } kind;
  u8* to = nullptr;
  const u8* from = nullptr;
  std::size_t bytes = 0;
  Handle event = nullptr;
  u8 value = 0;
};
struct List {
  Handle context = nullptr;
  u32 group = 0;
  bool urgent = false;
  std::vector<Command> waiting;
  int running = 0;
  std::atomic<bool> in_call{false};
};

struct State {
  std::mutex mutex;
  std::condition_variable work;
  bool initialized = false, worker = false, lost = false;
  bool holds = false;   // FAKE_ZE_HOLD and
  int lost_after = -1;  // FAKE_ZE_LOST_AFTER at the last call: the worker reads no environment
  std::set<Handle> contexts, pools;
  std::map<Handle, Event*> events;
  std::map<Handle, List*> lists;
  std::map<u8*, Allocation> allocations;
  std::map<void*, std::size_t> imported;
  int mistakes = 0, done = 0, exported = 0;
  std::string first_mistake;
  u64 to_device = 0, from_device = 0;
};

// Never destroyed: the worker goes on to the end of the process.
State& state() {
  static State* s = new State;
  return *s;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}
bool without(std::string_view what) {
  return variable("FAKE_ZE_WITHOUT").find(what) != std::string::npos;
}
u32 shown_gpus() {
  const std::string n = variable("FAKE_ZE_DEVICES");
  return n.empty() ? 2 : std::min<u32>(static_cast<u32>(std::atoi(n.c_str())), 4);
}

/// Call with the mutex held.
u32 mistake(const std::string& what, u32 result) {
  State& s = state();
  if (s.mistakes++ == 0) s.first_mistake = what;
  return result;
}

/// At the begin of each call: the mutex, and whether the environment or the past lets it fail.
class Call {
 public:
  explicit Call(std::string_view name) : lock_(state().mutex) {
    State& s = state();
    if (s.holds != !variable("FAKE_ZE_HOLD").empty()) {
      s.holds = !s.holds;
      s.work.notify_one();
    }
    const std::string limit = variable("FAKE_ZE_LOST_AFTER");
    s.lost_after = limit.empty() ? -1 : std::atoi(limit.c_str());
    const std::string fail = variable("FAKE_ZE_FAIL");
    const std::size_t equals = fail.find('=');
    if (equals != std::string::npos && fail.substr(0, equals) == name)
      result_ = static_cast<u32>(std::stoul(fail.substr(equals + 1), nullptr, 0));
    else if (!s.initialized) result_ = mistake(std::string(name) + " before zeInit", ze::kUninitialized);
  }
  [[nodiscard]] bool fails() const { return result_ != ze::kOk; }
  [[nodiscard]] u32 result() const { return result_; }
  std::unique_lock<std::mutex>& lock() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
  u32 result_ = ze::kOk;
};

template <class T>
bool wrong_type(const T* d, Type wanted) {
  if (d != nullptr && d->type == wanted) return false;
  mistake("a description's type", 0);
  return true;
}

std::map<u8*, Allocation>::iterator allocation_of(const void* p) {
  auto& all = state().allocations;
  auto after = all.upper_bound(const_cast<u8*>(static_cast<const u8*>(p)));
  if (after == all.begin()) return all.end();
  const auto it = std::prev(after);
  return static_cast<const u8*>(p) < it->first + it->second.bytes ? it : all.end();
}

/// Where the bytes at `p` really are; null if a copy of `list` must not use them.
u8* storage_of(const void* p, std::size_t bytes, Handle context) {
  const auto it = allocation_of(p);
  u8* const at = const_cast<u8*>(static_cast<const u8*>(p));
  if (it == state().allocations.end()) return at;  // memory of the program's own
  if (it->second.context != context || bytes > it->second.bytes - static_cast<std::size_t>(at - it->first)) {
    mistake("a range outside its allocation or context", 0);
    return nullptr;
  }
  return it->second.storage + (at - it->first);
}
bool on_device(const void* p) {
  const auto it = allocation_of(p);
  return it != state().allocations.end() && it->second.device != nullptr;
}

void carry_out(const Command& c) {
  if (c.kind == Command::Kind::copy) std::memmove(c.to, c.from, c.bytes);
  else if (c.kind == Command::Kind::fill) std::memset(c.to, c.value, c.bytes);
}

/// The commands up to the first barrier, which may overtake each other; then the barrier.
void run_segment(List& list, std::unique_lock<std::mutex>& lock) {
  State& s = state();
  const auto is_barrier = [](const Command& c) { return c.kind == Command::Kind::barrier; };
  const auto end = std::find_if(list.waiting.begin(), list.waiting.end(), is_barrier);
  std::vector<Command> now(list.waiting.begin(), end);
  std::reverse(now.begin(), now.end());
  if (end != list.waiting.end()) now.push_back(*end);
  list.waiting.erase(list.waiting.begin(), list.waiting.begin() + static_cast<std::ptrdiff_t>(now.size()));
  list.running = static_cast<int>(now.size());
  for (const Command& c : now) {
    if (s.lost_after >= 0 && s.done >= s.lost_after) s.lost = true;
    if (!s.lost) {
      lock.unlock();
      carry_out(c);
      lock.lock();
      ++s.done;
      if (const auto e = s.events.find(c.event); e != s.events.end()) {
        e->second->signalled = true;
        --e->second->waiting;
      }
    }
  }
  list.running = 0;
}

void work() {
  State& s = state();
  std::unique_lock lock(s.mutex);
  for (;;) {
    const auto busy = std::ranges::find_if(s.lists, [](const auto& l) { return !l.second->waiting.empty(); });
    if (s.holds || busy == s.lists.end()) s.work.wait(lock);
    else run_segment(*busy->second, lock);
  }
}

/// The use of a list by one thread at a time, which is the caller's to see to.
class Use {
 public:
  explicit Use(Handle list) {
    State& s = state();
    const std::scoped_lock lock(s.mutex);
    const auto it = s.lists.find(list);
    if (it == s.lists.end()) {
      mistake("a list that is none", 0);
      return;
    }
    list_ = it->second;
    if (list_->in_call.exchange(true)) mistake("a list in two threads at once", 0);
  }
  ~Use() {
    if (list_ != nullptr) list_->in_call = false;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  [[nodiscard]] List* list() const { return list_; }

 private:
  List* list_ = nullptr;
};

u32 append(const char* name, Handle handle, Command c, Handle signal, u32 waits) {
  const Use use(handle);
  Call call(name);
  State& s = state();
  if (use.list() == nullptr) return ze::kNullHandle;
  if (call.fails()) return call.result();
  if (s.lost) return ze::kDeviceLost;
  if (waits != 0) return mistake("waits are not known here", ze::kInvalidSize);
  if (c.kind != Command::Kind::barrier) {
    const bool to_device = on_device(c.to);
    const bool from_device = c.from != nullptr && on_device(c.from);
    u8* const to = storage_of(c.to, c.bytes, use.list()->context);
    u8* const from = c.from != nullptr ? storage_of(c.from, c.bytes, use.list()->context) : to;
    if (to == nullptr || from == nullptr || c.bytes == 0) return ze::kInvalidArgument;
    if (to_device && c.from != nullptr) s.to_device += c.bytes;
    if (from_device) s.from_device += c.bytes;
    c.to = to;
    if (c.from != nullptr) c.from = from;
  }
  if (signal != nullptr) {
    const auto e = s.events.find(signal);
    if (e == s.events.end()) return mistake("an event that is none", ze::kNullHandle);
    if (e->second->signalled || e->second->waiting > 0)
      return mistake("an event that was not reset", ze::kInvalidSync);
    ++e->second->waiting;
    c.event = signal;
  }
  use.list()->waiting.push_back(c);
  if (!s.worker) {
    s.worker = true;
    std::thread(work).detach();
  }
  s.work.notify_one();
  return ze::kOk;
}

u8* reserve(std::size_t bytes, std::size_t alignment) {
  void* const p = ::mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  // What is left over is never used again, so no other mapping looks like a part of device memory.
  return reinterpret_cast<u8*>((reinterpret_cast<u64>(p) + alignment - 1) / alignment * alignment);
}

int count_of(std::string_view name) {
  const State& s = state();
  const auto count = [&](auto of) {
    return static_cast<int>(
        std::ranges::count_if(s.allocations, [&](const auto& a) { return of(a.second); }));
  };
  if (name == "device") return count([](const Allocation& a) { return a.device != nullptr; });
  if (name == "pinned") return count([](const Allocation& a) { return a.device == nullptr; });
  if (name == "imported") return static_cast<int>(s.imported.size());
  if (name == "lists") return static_cast<int>(s.lists.size());
  if (name == "urgent")
    return static_cast<int>(std::ranges::count_if(s.lists, [](const auto& l) { return l.second->urgent; }));
  if (name == "events") return static_cast<int>(s.events.size());
  if (name == "pools") return static_cast<int>(s.pools.size());
  if (name == "contexts") return static_cast<int>(s.contexts.size());
  if (name == "group") return s.lists.empty() ? -1 : static_cast<int>(s.lists.begin()->second->group);
  if (name == "commands") return s.done;
  if (name == "mistakes") return s.mistakes;
  return -1;
}

void report() {
  const std::string file = variable("FAKE_ZE_REPORT");
  if (file.empty()) return;
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  std::ofstream out(file);
  for (const char* name :
       {"device", "pinned", "imported", "lists", "events", "pools", "contexts", "commands", "mistakes"})
    out << name << ' ' << count_of(name) << '\n';
  out << "to_device " << s.to_device << "\nfrom_device " << s.from_device << '\n';
  if (s.mistakes > 0) out << "first " << s.first_mistake << '\n';
}

}  // namespace

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
