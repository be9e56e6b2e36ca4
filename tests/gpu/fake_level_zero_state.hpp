// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts of the fake Level Zero (fake_level_zero.cpp): its objects, the thread that carries out
// commands, and the mistakes that it counts.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>
#include "gpu/level_zero_abi.hpp"

namespace fake_ze {

namespace ze = doorbell::gpu::ze;
using doorbell::u32;
using doorbell::u64;
using doorbell::u8;
using ze::Handle;
using ze::Type;

inline constexpr u64 kMemory = u64{1} << 30;
inline constexpr std::size_t kPage = 4096;

// Handles are addresses of these.
struct Driver {
  int number;
};
struct Device {
  int number;
  u32 kind;
};
inline Driver drivers[2] = {{0}, {1}};
inline Device gpus[4] = {{0, ze::kDeviceGpu}, {1, ze::kDeviceGpu}, {2, ze::kDeviceGpu}, {3, ze::kDeviceGpu}};
inline Device others[2] = {{10, 2}, {11, 5}};

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
inline State& state() {
  static State* s = new State;
  return *s;
}

inline std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}
inline bool without(std::string_view what) {
  return variable("FAKE_ZE_WITHOUT").find(what) != std::string::npos;
}
inline u32 shown_gpus() {
  const std::string n = variable("FAKE_ZE_DEVICES");
  return n.empty() ? 2 : std::min<u32>(static_cast<u32>(std::atoi(n.c_str())), 4);
}

/// Call with the mutex held.
inline u32 mistake(const std::string& what, u32 result) {
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
inline bool wrong_type(const T* d, Type wanted) {
  if (d != nullptr && d->type == wanted) return false;
  mistake("a description's type", 0);
  return true;
}

inline std::map<u8*, Allocation>::iterator allocation_of(const void* p) {
  auto& all = state().allocations;
  auto after = all.upper_bound(const_cast<u8*>(static_cast<const u8*>(p)));
  if (after == all.begin()) return all.end();
  const auto it = std::prev(after);
  return static_cast<const u8*>(p) < it->first + it->second.bytes ? it : all.end();
}

/// Where the bytes at `p` really are; null if a copy of `list` must not use them.
inline u8* storage_of(const void* p, std::size_t bytes, Handle context) {
  const auto it = allocation_of(p);
  u8* const at = const_cast<u8*>(static_cast<const u8*>(p));
  if (it == state().allocations.end()) return at;  // memory of the program's own
  if (it->second.context != context || bytes > it->second.bytes - static_cast<std::size_t>(at - it->first)) {
    mistake("a range outside its allocation or context", 0);
    return nullptr;
  }
  return it->second.storage + (at - it->first);
}
inline bool on_device(const void* p) {
  const auto it = allocation_of(p);
  return it != state().allocations.end() && it->second.device != nullptr;
}

inline void carry_out(const Command& c) {
  if (c.kind == Command::Kind::copy) std::memmove(c.to, c.from, c.bytes);
  else if (c.kind == Command::Kind::fill) std::memset(c.to, c.value, c.bytes);
}

/// The commands up to the first barrier, which may overtake each other; then the barrier.
inline void run_segment(List& list, std::unique_lock<std::mutex>& lock) {
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

inline void work() {
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

inline u32 append(const char* name, Handle handle, Command c, Handle signal, u32 waits) {
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

inline u8* reserve(std::size_t bytes, std::size_t alignment) {
  void* const p = ::mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  // The rest is never used again, so no other mapping looks like a part of device memory.
  return reinterpret_cast<u8*>((reinterpret_cast<u64>(p) + alignment - 1) / alignment * alignment);
}

inline int count_of(std::string_view name) {
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

inline void report() {
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

}  // namespace fake_ze
