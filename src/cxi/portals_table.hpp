// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The portals table of an endpoint: memory that puts and gets of others reach, each in an entry of its own.
#pragma once

#include <doorbell/cxi/command_queue.hpp>
#include <doorbell/cxi/commands.hpp>
#include <doorbell/cxi/event_queue.hpp>

#include <vector>

#include "cxi/cassini.hpp"

namespace doorbell::cxi {

/// A command that lets an entry take packets.
[[nodiscard]] SetState enabling(const PortalsEntry& entry);
/// A command that appends memory to an entry, for the operations in `operations` (append_flag). Byte 0 of the
/// memory is the entry's offset 0. The memory causes one LINK event when it is in place, and no other events.
[[nodiscard]] Append exposing(const PortalsEntry& entry, const MemoryDescriptor& memory, u32 operations);

/// Thread rule: one thread. The endpoint must outlive this object, which must outlive what it exposes.
class PortalsTable {
 public:
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

}  // namespace doorbell::cxi
