// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Cassini NIC from its user's side: an endpoint with mapped memory, queues, counters and portals entries.
// Each back end (model, libcxi) implements it; all code above is the same for all. Objects are destroyed in
// the reverse order of their creation, and before the object that created them.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/cxi/types.hpp>
#include <doorbell/error.hpp>
#include <doorbell/region.hpp>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

namespace doorbell::cxi {

/// The NIC's library refused a call: which call, and the errno. Models refuse with the same numbers.
class CallError : public Error {
 public:
  enum class Call { open, service, map, other };
  /// `what` as in Error; `code` is a positive errno.
  CallError(Call call, int code, std::string what, std::string hint = {}, ExitCode exit = ExitCode::usage)
      : Error(std::move(what), std::generic_category().message(code), std::move(hint), exit),
        call_(call),
        code_(code) {}
  [[nodiscard]] Call call() const noexcept { return call_; }
  [[nodiscard]] int errno_code() const noexcept { return code_; }

 private:
  Call call_;
  int code_;
};

/// The destination of puts: a process's endpoint on a NIC.
struct Address {
  u32 nid = 0;  ///< 20 bits
  u32 pid = 0;
  unsigned pid_bits = 9;
  u16 vni = 0;
};

/// Memory that the NIC may use (an "MD"), until this object is destroyed; the region must live as long.
class MemoryDescriptor {
 public:
  virtual ~MemoryDescriptor() = default;
  /// The address of byte 0 of the region in a command's local_addr or an append's start.
  [[nodiscard]] Iova iova() const { return iova_; }
  /// The address context.
  [[nodiscard]] u32 lac() const { return lac_; }
  [[nodiscard]] u64 bytes() const { return bytes_; }

 protected:
  Iova iova_ = 0;
  u32 lac_ = 0;
  u64 bytes_ = 0;
};

class EventQueueObject {
 public:
  virtual ~EventQueueObject() = default;
  /// Throws Error if `initiator` cannot reach the queue.
  [[nodiscard]] virtual EventQueueMemory memory(Initiator initiator) = 0;
};

struct CommandQueueShape {
  CommandQueueKind kind = CommandQueueKind::transmit;
  u32 slots = 64;                        ///< the number asked for; the queue may be larger
  EventQueueObject* events = nullptr;    ///< for command failures; may be null
  Place queue_memory = Place::pageable;  ///< libcxi offers no choice: it throws for other places
};

class CommandQueueObject {
 public:
  virtual ~CommandQueueObject() = default;
  [[nodiscard]] virtual CommandQueueMemory memory(Initiator initiator) = 0;
};

/// A counting event, both counts 0 when created.
class CounterObject {
 public:
  virtual ~CounterObject() = default;
  [[nodiscard]] virtual CounterMemory memory(Initiator initiator) = 0;
};

/// A portals table entry, mapped to an index of its endpoint; disabled until a SETSTATE command.
class PortalsEntry {
 public:
  virtual ~PortalsEntry() = default;
  [[nodiscard]] u32 index() const { return index_; }

 protected:
  u32 index_ = 0;
};

/// A process's access to the NIC: the LNI of a service, its domain (VNI and PID) and communication profile.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  [[nodiscard]] virtual Address address() const = 0;
  [[nodiscard]] virtual std::unique_ptr<MemoryDescriptor> map(const Region& region, Access access) = 0;
  /// `bytes` are rounded up to pages.
  [[nodiscard]] virtual std::unique_ptr<EventQueueObject> create_event_queue(u64 bytes, Place place) = 0;
  [[nodiscard]] virtual std::unique_ptr<CommandQueueObject> create_command_queue(
      const CommandQueueShape& shape) = 0;
  /// With a write-back the initiator can read the counts from memory.
  [[nodiscard]] virtual std::unique_ptr<CounterObject> create_counter(bool writeback, Place place) = 0;
  /// A non-matching entry at `pid_offset` of this endpoint.
  [[nodiscard]] virtual std::unique_ptr<PortalsEntry> create_portals_entry(EventQueueObject& events,
                                                                           u32 pid_offset) = 0;
};

struct Limits {
  u32 max_slots = 65536;
  u64 max_transfer = 0xffff'ffffULL;  ///< bytes of one put or get
  u32 max_buffers = ~u32{0};  ///< that others can reach at the same time; a device may have fewer left
  bool gpu_memory = false;
  bool gpu_initiator = false;
};

class Cassini {
 public:
  virtual ~Cassini() = default;
  /// "model" or "hardware".
  [[nodiscard]] virtual std::string kind() const = 0;
  /// The device's full name, for what the user wrote.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Limits limits() const = 0;
  /// Memory that endpoints of this device can map; with `gpu`, memory of that GPU or reachable by it.
  [[nodiscard]] virtual Region allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu) = 0;
  /// Opens an endpoint of service `service`. Throws Error if there is no such service or it has no VNI.
  [[nodiscard]] virtual std::unique_ptr<Endpoint> open(u32 service) = 0;
  /// A word that stays 1 while the device is there, in the initiator's addresses; null if the device has
  /// none.
  [[nodiscard]] virtual const u32* alive(Initiator) { return nullptr; }
  /// The device's own counters, for the Result; null if it has none.
  [[nodiscard]] virtual nlohmann::ordered_json counters() { return nullptr; }
};

}  // namespace doorbell::cxi
