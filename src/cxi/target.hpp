// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The target's side of an endpoint: memory behind portals entries, where puts and gets of others reach it.
#pragma once

#include <doorbell/cxi/command_queue.hpp>
#include <doorbell/cxi/event_queue.hpp>
#include <doorbell/cxi/target_commands.hpp>

#include <vector>

#include "cxi/cassini.hpp"

namespace doorbell::cxi {

/// Lets an entry take packets.
[[nodiscard]] SetState enabling(const PortalsEntry& entry);
/// Puts memory behind an entry, byte 0 at its offset 0, for the operations of `operations` (append_flag). It
/// tells of being there, with a LINK event, and of nothing else.
[[nodiscard]] Append exposing(const PortalsEntry& entry, const MemoryDescriptor& memory, u32 operations);

/// Thread rule: one thread. The endpoint must outlive it, and it what it exposes.
class TargetSide {
 public:
  explicit TargetSide(Endpoint& endpoint);

  /// Memory behind an entry of its own, for puts and gets; taken away on destruction, before the memory is
  /// unmapped.
  class Exposed {
   public:
    ~Exposed();
    /// The entry's pid_offset, which a command's DFA names. Byte 0 of the memory is its offset 0.
    [[nodiscard]] u32 offset() const { return offset_; }

   private:
    friend class TargetSide;
    Exposed(TargetSide& side, u32 offset) : side_(side), offset_(offset) {}
    TargetSide& side_;
    u32 offset_;
    std::unique_ptr<PortalsEntry> entry_;
  };
  /// Throws Error when all entries are in use, or when the device does not confirm within a second.
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
