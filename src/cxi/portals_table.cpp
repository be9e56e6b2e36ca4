// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/cxi/cassini.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "cxi/names.hpp"
#include "system/clock.hpp"

namespace doorbell::cxi {

namespace {

constexpr OneLane lane;
constexpr u64 kConfirmNs = 1'000'000'000;
constexpr u32 kSlots = 64;
constexpr u64 kEventQueueBytes = 4096;

/// The number of entries that a DFA can name in a process.
u32 entries_of(const Address& a) {
  return (1u << (12 - a.pid_bits)) * 32;
}

}  // namespace

SetState enabling(const PortalsEntry& entry) {
  SetState state;
  state.ptlte_index = entry.index();
  state.ptlte_state = PtlteState::enabled;
  return state;
}

Append exposing(const PortalsEntry& entry, const MemoryDescriptor& memory, u32 operations) {
  Append append;
  append.ptl_list = PortalsList::priority;
  append.ptlte_index = entry.index();
  append.flags =
      append_flag::success_disable | append_flag::comm_disable | append_flag::unlink_disable | operations;
  append.lac = memory.lac();
  append.start = memory.iova();
  append.length = memory.bytes();
  append.ignore_bits = 1;  // the bit for PCIe's relaxed ordering in restricted packets
  return append;
}

PortalsTable::PortalsTable(Endpoint& endpoint)
    : endpoint_(endpoint),
      events_object_(endpoint.create_event_queue(kEventQueueBytes, Place::pageable)),
      commands_object_(endpoint.create_command_queue(
          {.kind = CommandQueueKind::target, .slots = kSlots, .events = events_object_.get()})),
      events_(initial_state(*events_object_, Initiator::cpu)),
      commands_(initial_state(*commands_object_, Initiator::cpu)),
      used_(entries_of(endpoint.address())) {}

PortalsTable::Exposed::~Exposed() {
  entry_.reset();
  table_.used_[offset_] = false;
}

std::unique_ptr<PortalsTable::Exposed> PortalsTable::expose(const MemoryDescriptor& memory) {
  const auto free = std::ranges::find(used_, false);
  if (free == used_.end())
    throw Error("a portals entry", fmt::format("all {} of the endpoint are in use", used_.size()),
                "use fewer queues");
  const auto offset = static_cast<u32>(free - used_.begin());
  used_[offset] = true;
  std::unique_ptr<Exposed> exposed(new Exposed(*this, offset));
  exposed->entry_ = endpoint_.create_portals_entry(*events_object_, offset);

  submit(enabling(*exposed->entry_));
  expect(EventType::state_change, "enabling a portals entry");
  submit(exposing(*exposed->entry_, memory, append_flag::op_put | append_flag::op_get));
  expect(EventType::link, "putting memory behind a portals entry");
  return exposed;
}

template <class C>
void PortalsTable::submit(const C& command) {
  if (!commands_.post(lane, command))
    throw Error("a command to the target", "its queue stays full: the device does not read it");
  (void)commands_.ring(lane);
}

void PortalsTable::expect(EventType type, const char* what) {
  const u64 end = wall_ns() + kConfirmNs;
  auto event = events_.poll(lane);
  while (event.bytes == 0) {
    if (wall_ns() > end) throw Error(what, fmt::format("the event {} did not come in time", name(type)));
    std::this_thread::yield();
    event = events_.poll(lane);
  }
  const EventType got = event.type;
  const ReturnCode code = event.return_code;
  (void)events_.ack(lane);
  if (got != type || code != ReturnCode::ok)
    throw Error(what, fmt::format("the device answers {} with {}", name(got), name(code)));
}

}  // namespace doorbell::cxi
