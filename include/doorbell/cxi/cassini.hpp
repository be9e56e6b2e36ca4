// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Cassini NIC from its user's side: an endpoint with mapped memory, queues, counters and portals entries.
// The software Cassini and the one behind libcxi are opened by the same names as on the command line. Host
// code only, for set-up; the initiator itself drives the queues (command_queue.hpp, event_queue.hpp,
// put_queue.hpp).
//
// Ownership: objects are destroyed in the reverse order of their creation, and before the object that created
// them; a region outlives its mapping.
// Thread rule: set-up calls come from one thread at a time, whatever the initiators do meanwhile.
// Errors: all throw doorbell::Error, of which CallError has an errno; with ExitCode::absent something is not
// on this machine.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/cxi/commands.hpp>
#include <doorbell/cxi/put_queue.hpp>
#include <doorbell/error.hpp>

#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace doorbell::cxi {

/// The NIC's library refused a call: which call, and the errno. Models refuse with the same numbers.
class CallError : public Error {
 public:
  /// Which call was refused.
  enum class Call {
    open,     ///< of the device
    service,  ///< look-up of the service
    map,      ///< of memory
    other,    ///< any other
  };
  /// `what` as in Error; `code` is a positive errno.
  CallError(Call call, int code, std::string what, std::string hint = {}, ExitCode exit = ExitCode::usage)
      : Error(std::move(what), std::generic_category().message(code), std::move(hint), exit),
        call_(call),
        code_(code) {}
  /// The call that was refused.
  [[nodiscard]] Call call() const noexcept { return call_; }
  /// A positive errno.
  [[nodiscard]] int errno_code() const noexcept { return code_; }

 private:
  Call call_;
  int code_;
};

/// The destination of puts: a process's endpoint on a NIC.
struct Address {
  u32 nid = 0;            ///< 20 bits
  u32 pid = 0;            ///< of the process on that NIC, `pid_bits` wide
  unsigned pid_bits = 9;  ///< of the NIC
  u16 vni = 0;            ///< virtual network: that of both ends
};

/// Memory that the NIC may use (an "MD"), until this object is destroyed; the region must live as long.
class MemoryDescriptor {
 public:
  virtual ~MemoryDescriptor() = default;
  /// The address of byte 0 of the region in a command's local_addr or an append's start.
  [[nodiscard]] Iova iova() const { return iova_; }
  /// The address context.
  [[nodiscard]] u32 lac() const { return lac_; }
  /// The region's.
  [[nodiscard]] u64 bytes() const { return bytes_; }

 protected:
  Iova iova_ = 0;
  u32 lac_ = 0;
  u64 bytes_ = 0;
};

/// A queue of events that the NIC writes.
class EventQueueObject {
 public:
  virtual ~EventQueueObject() = default;
  /// Throws Error if `initiator` cannot reach the queue.
  [[nodiscard]] virtual EventQueueMemory memory(Initiator initiator) = 0;
};

/// The parameters with which a command queue is created.
struct CommandQueueShape {
  CommandQueueKind kind = CommandQueueKind::transmit;  ///< the commands that it takes
  u32 slots = 64;                                      ///< the number asked for; the queue may be larger
  EventQueueObject* events = nullptr;                  ///< for command failures; may be null
  /// Of libcxi, Place::gpu needs symbol set 1.11; it throws for other places.
  Place queue_memory = Place::pageable;
};

/// A queue of commands that the initiator writes.
class CommandQueueObject {
 public:
  virtual ~CommandQueueObject() = default;
  /// Throws Error if `initiator` cannot reach the queue, as the others do.
  [[nodiscard]] virtual CommandQueueMemory memory(Initiator initiator) = 0;
};

/// A counting event, both counts 0 when created.
class CounterObject {
 public:
  virtual ~CounterObject() = default;
  /// Throws Error if `initiator` cannot reach the counter.
  [[nodiscard]] virtual CounterMemory memory(Initiator initiator) = 0;
};

/// A portals table entry, mapped to an index of its endpoint; disabled until a SETSTATE command.
class PortalsEntry {
 public:
  virtual ~PortalsEntry() = default;
  /// Its number in commands, as Append::ptlte_index.
  [[nodiscard]] u32 index() const { return index_; }

 protected:
  u32 index_ = 0;
};

/// A process's access to the NIC: the LNI of a service, its domain (VNI and PID) and communication profile.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  /// The address that the other end needs to know.
  [[nodiscard]] virtual Address address() const = 0;
  /// Lets this endpoint's commands use the region, and others reach it through a portals entry.
  [[nodiscard]] virtual std::unique_ptr<MemoryDescriptor> map(const Region& region, Access access) = 0;
  /// Where an event queue can lie beside command queues at `wanted`.
  [[nodiscard]] virtual Place event_queue_place(Place wanted) const { return wanted; }
  /// `bytes` are rounded up to pages.
  [[nodiscard]] virtual std::unique_ptr<EventQueueObject> create_event_queue(u64 bytes, Place place) = 0;
  /// A queue with the endpoint's communication profile.
  [[nodiscard]] virtual std::unique_ptr<CommandQueueObject> create_command_queue(
      const CommandQueueShape& shape) = 0;
  /// With a write-back the initiator can read the counts from memory.
  [[nodiscard]] virtual std::unique_ptr<CounterObject> create_counter(bool writeback, Place place) = 0;
  /// True if a counter's write-back shows a success only when a GET command has asked for the counts; false
  /// if it shows each count by itself.
  [[nodiscard]] virtual bool counts_on_request() const { return false; }
  /// An entry at `pid_offset` of this endpoint. Matching: its memories take what has their match bits.
  [[nodiscard]] virtual std::unique_ptr<PortalsEntry> create_portals_entry(EventQueueObject& events,
                                                                           u32 pid_offset,
                                                                           bool matching = false) = 0;
};

/// Limits of the device, to check before anything is created.
struct Limits {
  u32 max_slots = 65536;              ///< of a command queue
  u64 max_transfer = 0xffff'ffffULL;  ///< bytes of one put or get
  u32 max_buffers = ~u32{0};   ///< that others can reach at the same time; a device may have fewer left
  bool gpu_memory = false;     ///< can map GPU memory
  bool gpu_initiator = false;  ///< a GPU can reach its queues and doorbells
};

/// The state of a queue that has just been created, in addresses of its initiator.
[[nodiscard]] inline EventQueueState initial_state(EventQueueObject& queue, Initiator initiator) {
  EventQueueState s;
  s.memory = queue.memory(initiator);
  return s;
}
/// Likewise.
[[nodiscard]] inline CommandQueueState initial_state(CommandQueueObject& queue, Initiator initiator) {
  CommandQueueState s;
  s.memory = queue.memory(initiator);
  return s;
}

/// The service that every user may open.
inline constexpr u32 kDefaultService = 1;

/// An open NIC. It outlives the objects that it made.
class Cassini {
 public:
  virtual ~Cassini() = default;
  /// "model" or "hardware".
  [[nodiscard]] virtual std::string kind() const = 0;
  /// The device's full name, for what the user wrote.
  [[nodiscard]] virtual std::string name() const = 0;
  /// To check before anything is created.
  [[nodiscard]] virtual Limits limits() const = 0;
  /// `bytes` of zeroed memory that endpoints of this device can map; with `gpu`, memory of that GPU or
  /// reachable by it.
  [[nodiscard]] virtual Region allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu = nullptr) = 0;
  /// Opens an endpoint of service `service`. Throws Error if there is no such service or it has no VNI.
  [[nodiscard]] virtual std::unique_ptr<Endpoint> open(u32 service = kDefaultService) = 0;
  /// A word that stays 1 while the device is there, in the initiator's addresses; null if the device has
  /// none.
  [[nodiscard]] virtual const u32* alive(Initiator) { return nullptr; }
};

/// Names a Cassini, and what it is opened for. A model adapts to that; hardware ignores it.
struct CassiniRequest {
  /// As `doorbell cxi` takes it: "cxi-model0", "cxi-model0:latency=2us", "cxi0".
  std::string device = "cxi-model0";
  /// The GPUs whose memory the device must reach; the first one may also drive its queues.
  std::vector<std::shared_ptr<gpu::Gpu>> gpus = {};
  Initiator initiator = Initiator::cpu;  ///< Initiator::gpu needs one of `gpus`
  bool gpu_memory = false;               ///< queues or data may lie in the memory of `gpus`
};

/// Opens the Cassini that the request names; never another one in its place. Throws Error: a name or key that
/// is unknown; with ExitCode::absent, a device or library that is not here.
[[nodiscard]] std::unique_ptr<Cassini> open_cassini(const CassiniRequest& request = {});

// --- portals entries -----------------------------------------------------------------------------------

/// A command that lets an entry take packets.
[[nodiscard]] SetState enabling(const PortalsEntry& entry);
/// A command that appends memory to an entry, for the operations in `operations` (append_flag). Byte 0 of the
/// memory is the entry's offset 0. The memory causes one LINK event when it is in place, and no other events.
[[nodiscard]] Append exposing(const PortalsEntry& entry, const MemoryDescriptor& memory, u32 operations);

/// The portals table of an endpoint: memory that puts and gets of others reach, each in an entry of its own.
/// Thread rule: one thread. The endpoint must outlive this object, which must outlive what it exposes.
class PortalsTable {
 public:
  /// Makes the queues with which entries are set up. Throws Error.
  explicit PortalsTable(Endpoint& endpoint);

  /// Memory in an entry of its own, for puts and gets. The destructor removes it, which must happen before
  /// the memory is unmapped.
  class Exposed {
   public:
    ~Exposed();
    /// The entry's pid_offset, which is part of a command's DFA. Byte 0 of the memory is the entry's offset
    /// 0.
    [[nodiscard]] u32 offset() const { return offset_; }

   private:
    friend class PortalsTable;
    Exposed(PortalsTable& table, u32 offset) : table_(table), offset_(offset) {}
    PortalsTable& table_;
    u32 offset_;
    std::unique_ptr<PortalsEntry> entry_;
  };
  /// Throws Error if all entries are in use, or if the device does not confirm within a second.
  [[nodiscard]] std::unique_ptr<Exposed> expose(const MemoryDescriptor& memory);

 private:
  void expect(EventType type, const char* what);
  template <class C>
  void submit(const C& command);

  Endpoint& endpoint_;
  std::unique_ptr<EventQueueObject> events_object_;
  std::unique_ptr<CommandQueueObject> commands_object_;
  EventQueue<OneLane> events_;
  CommandQueue<OneLane> commands_;
  std::vector<bool> used_;
};

// --- put queues ----------------------------------------------------------------------------------------

/// The parameters with which the queues of a PutQueue are created.
struct PutQueueShape {
  u32 requests = 64;   ///< operations in flight
  u32 max_inline = 0;  ///< bytes that a put may carry inlined, at most idc_limit(restricted)
  Place queue_memory = Place::pageable;  ///< event queues of libcxi lie in host memory in any case
  bool restricted = true;                ///< 32-byte commands, whose packets need no order
};

/// The queues below a PutQueue: a transmit queue, the counter of its acknowledgements, an event queue for
/// failures, and, where counts come on request, a queue of these requests. The endpoint outlives it.
class PutQueueObject {
 public:
  /// Makes the queues. Throws Error: a number out of range, no memory.
  PutQueueObject(Endpoint& endpoint, const PutQueueShape& shape);
  /// The state of a PutQueue over fresh queues, which puts to `to` and gets from there, in addresses of
  /// `initiator`. Every call but the first one makes the queues anew, and what was made of the one before is
  /// void. Throws Error if the initiator cannot reach the queues.
  [[nodiscard]] PutQueueState start(Initiator initiator, const Address& to);

 private:
  void create();

  Endpoint& endpoint_;
  PutQueueShape shape_;
  bool fresh_ = true;
  std::unique_ptr<EventQueueObject> events_;
  std::unique_ptr<CounterObject> counter_;
  std::unique_ptr<CommandQueueObject> commands_;
  std::unique_ptr<CommandQueueObject> asks_;  ///< null where nobody need ask for the counts
};

}  // namespace doorbell::cxi
