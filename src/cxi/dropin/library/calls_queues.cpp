// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// libcxi's calls: memory, event queues, command queues, counters, portals entries.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bit>
#include <cstring>

#include "cxi/dropin/library/handles.hpp"

namespace doorbell::cxi::dropin {
namespace {

constexpr u32 kMapWrite = 1 << 2, kMapDevice = 1 << 9;
constexpr u64 kEventQueuePassthrough = 1 << 1;
constexpr u32 kLaunchWindow64 = 1024, kLaunchWindowAligned = 2048, kLaunchWindowUnaligned = 3072;

u64 page_of(const void* p) {
  return reinterpret_cast<u64>(p) / kPage * kPage;
}
u64 number_of(const void* p) {
  return reinterpret_cast<u64>(p);
}

/// Where a program's EQ begins after set-up or resizing.
void begin_queue(libcxi::Eq& eq, u8* memory, u32 bytes) {
  eq.bytes = bytes;
  eq.rd_offset = eq.prev_rd_offset = 64;
  eq.events = memory;
}

}  // namespace

// --- memory ------------------------------------------------------------------------------------------------

DOORBELL_LIBCXI int cxil_map(void* lni, void* va, size_t len, u32 flags, libcxi::MdHints* hints, void** md) {
  if (lni == nullptr || va == nullptr || len == 0 || md == nullptr) return -EINVAL;
  if ((flags & kMapDevice) != 0 || (hints != nullptr && hints->dmabuf_valid))
    return missing("cxil_map", EOPNOTSUPP, "the software Cassini does not reach a GPU's memory here");
  const u64 address = number_of(va);
  if (len > ~u64{0} - address - 2 * kPage) return -EINVAL;
  const u64 first = page_of(va), bytes = (address + len - first + kPage - 1) / kPage * kPage;
  if (const int error = Sharing::check(first, bytes, (flags & kMapWrite) != 0); error != 0) return error;
  auto given = std::make_unique<MapGiven>();
  const Handle& parent = LniGiven::of(lni)->object;
  Ask ask(*parent.connection, Call::map, {parent.handle, address, len, flags});
  if (const int error = ask.memory(0, first, bytes, "cxil_map"); error != 0) return error;
  Reply reply;
  if (const int error = take(ask, parent, given, reply); error != 0) return error;
  given->shown = {reply.value[0], reply.value[1], reply.value[2], static_cast<u8>(reply.value[3])};
  *md = given.release();
  return 0;
}

DOORBELL_LIBCXI int cxil_unmap(void* md) {
  return give_back<MapGiven>(md, Kind::mapping);
}

DOORBELL_LIBCXI int cxil_update_md(void* md, void* va, size_t len, u32) {
  if (md == nullptr || va == nullptr || len == 0) return -EINVAL;
  return missing("cxil_update_md", EOPNOTSUPP, "mappings of the software Cassini do not change");
}

// --- wait objects ------------------------------------------------------------------------------------------

DOORBELL_LIBCXI int cxil_alloc_wait_obj(void* lni, void** wait) {
  if (lni == nullptr || wait == nullptr) return -EINVAL;
  // poll() reports out-of-band data as POLLPRI.
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return -errno;
  const Descriptor theirs(ends[1]);
  Descriptor ours(ends[0]);
  auto given = std::make_unique<WaitGiven>();
  const Handle& parent = LniGiven::of(lni)->object;
  Ask ask(*parent.connection, Call::alloc_wait_object, {parent.handle});
  ask.file(theirs.get());
  Reply reply;
  if (const int error = take(ask, parent, given, reply); error != 0) return error;
  given->shown.file = ours.release();
  *wait = given.release();
  return 0;
}

DOORBELL_LIBCXI void cxil_clear_wait_obj(void* wait) {
  if (wait == nullptr) return;
  const int fd = WaitGiven::of(wait)->shown.file;
  char bytes[256];
  // A byte that another has overtaken is an ordinary one.
  while (::recv(fd, bytes, 1, MSG_OOB | MSG_DONTWAIT) > 0 ||
         ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
    continue;
}

DOORBELL_LIBCXI int cxil_destroy_wait_obj(void* wait) {
  if (wait == nullptr) return -EINVAL;
  const int fd = WaitGiven::of(wait)->shown.file;
  const int error = give_back<WaitGiven>(wait, Kind::wait_object);
  if (error == 0) (void)::close(fd);
  return error;
}

DOORBELL_LIBCXI int cxil_get_wait_obj_fd(void* wait) {
  return wait == nullptr ? -EINVAL : WaitGiven::of(wait)->shown.file;
}

// --- event queues ------------------------------------------------------------------------------------------

DOORBELL_LIBCXI int cxil_alloc_evtq(void* lni, const void* md, const libcxi::EqAttributes* attr,
                                    void* event_wait, void* status_wait, void** evtq) {
  if (lni == nullptr || attr == nullptr || evtq == nullptr || attr->queue == nullptr || attr->bytes == 0)
    return -EINVAL;
  if (md == nullptr) {
    if ((attr->flags & kEventQueuePassthrough) != 0)
      (void)missing("cxil_alloc_evtq", EINVAL, "event queues of the software Cassini lie in mapped memory");
    return -EINVAL;
  }
  auto given = std::make_unique<EventQueueGiven>();
  const Handle& parent = LniGiven::of(lni)->object;
  if (const int error = given->csr.make(kPage, parent.connection->remote()); error != 0) return error;
  const auto handle_of = [](void* wait) {
    return wait == nullptr ? u64{0} : u64{WaitGiven::of(wait)->object.handle};
  };
  Ask ask(*parent.connection, Call::alloc_event_queue,
          {parent.handle, MapGiven::of(md)->object.handle, number_of(attr->queue), attr->bytes, attr->flags,
           handle_of(event_wait), handle_of(status_wait)});
  ask.memory(1, given->csr);
  // A refused queue stays as it is.
  if (attr->bytes % kPage != 0 || number_of(attr->queue) % kPage != 0) return -EINVAL;
  std::memset(attr->queue, 0, attr->bytes);
  Reply reply;
  if (const int error = take(ask, parent, given, reply); error != 0) return error;
  libcxi::Eq& eq = given->shown;
  begin_queue(eq, static_cast<u8*>(attr->queue), static_cast<u32>(attr->bytes));
  eq.csr = reinterpret_cast<u64*>(given->csr.data());
  eq.index = static_cast<u32>(reply.value[0]);
  *evtq = given.release();
  return 0;
}

DOORBELL_LIBCXI int cxil_destroy_evtq(void* evtq) {
  return give_back<EventQueueGiven>(evtq, Kind::event_queue);
}

DOORBELL_LIBCXI int cxil_evtq_adjust_reserved_fc(void* evtq, int value) {
  if (evtq == nullptr) return -EINVAL;
  const Handle& q = EventQueueGiven::of(evtq)->object;
  const Reply r =
      Ask(*q.connection, Call::reserve_events, {q.handle, static_cast<u64>(std::int64_t{value})}).send();
  return r.result != 0 ? r.result : static_cast<int>(r.value[0]);
}

DOORBELL_LIBCXI int cxil_evtq_resize(void* evtq, void* queue, size_t bytes, void* md) {
  if (evtq == nullptr || queue == nullptr || bytes == 0 || md == nullptr) return -EINVAL;
  auto* const q = static_cast<EventQueueGiven*>(evtq);
  if (bytes % kPage != 0 || number_of(queue) % kPage != 0 || bytes > ~u32{0}) return -EINVAL;
  std::memset(queue, 0, bytes);
  const int error = Ask(*q->object.connection, Call::resize_event_queue,
                        {q->object.handle, MapGiven::of(md)->object.handle, number_of(queue), bytes})
                        .send()
                        .result;
  if (error != 0) return error;
  q->next = static_cast<u8*>(queue);
  q->next_bytes = static_cast<u32>(bytes);
  return 0;
}

DOORBELL_LIBCXI int cxil_evtq_resize_complete(void* evtq) {
  if (evtq == nullptr) return -EINVAL;
  auto* const q = static_cast<EventQueueGiven*>(evtq);
  const int error = Ask(*q->object.connection, Call::finish_resize, {q->object.handle}).send().result;
  if (error != 0) return error;
  constexpr u64 kReadingBufferB = u64{1} << 31;
  begin_queue(q->shown, q->next, q->next_bytes);
  q->shown.sw_state ^= kReadingBufferB;
  return 0;
}

// --- command queues ----------------------------------------------------------------------------------------

DOORBELL_LIBCXI int cxil_alloc_buf_cmdq(void* lni, void* evtq, const libcxi::CqBufferOptions* opts,
                                        void** cmdq) {
  if (lni == nullptr || opts == nullptr || cmdq == nullptr) return -EINVAL;
  if (opts->options.slots > kMaxSlots) return -EINVAL;
  // As the driver does: the size is a power of two in pages.
  u32 slots = kMinSlots;
  while (slots < opts->options.slots) slots *= 2;
  auto given = std::make_unique<CommandQueueGiven>();
  const Handle& parent = LniGiven::of(lni)->object;
  const bool remote = parent.connection->remote();
  Ask ask(*parent.connection, Call::alloc_command_queue,
          {parent.handle, evtq == nullptr ? 0 : EventQueueGiven::of(evtq)->object.handle, slots,
           opts->options.update_policy, opts->options.flags, opts->options.lcid});
  const u64 bytes = u64{slots} * kSlotBytes;
  u8* ring = nullptr;
  if (opts->buffer != nullptr) {
    if (!opts->is_host_memory)
      return missing("cxil_alloc_buf_cmdq", EOPNOTSUPP,
                     "the software Cassini does not reach a GPU's memory here");
    if (number_of(opts->buffer) % kPage != 0 || slots != opts->options.slots) return -EINVAL;
    ring = static_cast<u8*>(opts->buffer);
    if (const int error = Sharing::check(number_of(ring), bytes, true); error != 0) return error;
    if (const int error = ask.memory(0, number_of(ring), bytes, "cxil_alloc_buf_cmdq"); error != 0)
      return error;
  } else {
    if (const int error = given->ring.make(bytes, remote); error != 0) return error;
    ring = given->ring.data();
    ask.memory(0, given->ring);
  }
  if (const int error = given->launch.make(kLaunchBytes, remote); error != 0) return error;
  ask.memory(1, given->launch);
  Reply reply;
  if (const int error = take(ask, parent, given, reply); error != 0) return error;
  libcxi::Cq& cq = given->shown;
  u8* const launch = given->launch.data();
  cq.slots = slots;
  cq.wp_address = reinterpret_cast<u64*>(launch);
  cq.ll_64 = launch + kLaunchWindow64;
  cq.ll_128a = launch + kLaunchWindowAligned;
  cq.ll_128u = launch + kLaunchWindowUnaligned;
  cq.ring = ring;
  cq.index = static_cast<u32>(reply.value[0]);
  cq.size32 = 2 * slots;
  cq.rp32 = cq.wp32 = cq.hw_wp32 = 2 * kStatusSlots;
  *cmdq = given.release();
  return 0;
}

DOORBELL_LIBCXI int cxil_alloc_cmdq(void* lni, void* evtq, const libcxi::CqOptions* opts, void** cmdq) {
  if (opts == nullptr) return -EINVAL;
  const libcxi::CqBufferOptions with{*opts, nullptr, true, -1, 0};
  return cxil_alloc_buf_cmdq(lni, evtq, &with, cmdq);
}

DOORBELL_LIBCXI int cxil_destroy_cmdq(void* cmdq) {
  return give_back<CommandQueueGiven>(cmdq, Kind::command_queue);
}

DOORBELL_LIBCXI int cxil_cmdq_ack_counter(void* cmdq, unsigned* count) {
  if (cmdq == nullptr || count == nullptr) return -EINVAL;
  *count = 0;  // packets that wait for their acknowledgement: none waits in this Cassini
  return 0;
}

// --- counters ----------------------------------------------------------------------------------------------

DOORBELL_LIBCXI int cxil_alloc_ct(void* lni, void* writeback, void** ct) {
  if (lni == nullptr || ct == nullptr || number_of(writeback) % 8 != 0) return -EINVAL;
  auto given = std::make_unique<CounterGiven>();
  const Handle& parent = LniGiven::of(lni)->object;
  if (const int error = given->doorbell.make(kPage, parent.connection->remote()); error != 0) return error;
  Ask ask(*parent.connection, Call::alloc_counter, {parent.handle, number_of(writeback)});
  if (writeback != nullptr) {
    if (const int error = Sharing::check(page_of(writeback), kPage, true); error != 0) return error;
    if (const int error = ask.memory(0, page_of(writeback), kPage, "cxil_alloc_ct"); error != 0) return error;
  }
  ask.memory(1, given->doorbell);
  Reply reply;
  if (const int error = take(ask, parent, given, reply); error != 0) return error;
  given->shown = {reinterpret_cast<u64*>(given->doorbell.data()), static_cast<u32>(reply.value[0]),
                  writeback};
  *ct = given.release();
  return 0;
}

DOORBELL_LIBCXI int cxil_ct_wb_update(void* ct, void* writeback) {
  if (ct == nullptr || writeback == nullptr || number_of(writeback) % 8 != 0) return -EINVAL;
  auto* const counter = static_cast<CounterGiven*>(ct);
  Ask ask(*counter->object.connection, Call::move_writeback, {counter->object.handle, number_of(writeback)});
  if (const int error = Sharing::check(page_of(writeback), kPage, true); error != 0) return error;
  if (const int error = ask.memory(0, page_of(writeback), kPage, "cxil_ct_wb_update"); error != 0)
    return error;
  const int error = ask.send().result;
  if (error == 0) counter->shown.writeback = writeback;
  return error;
}

DOORBELL_LIBCXI int cxil_destroy_ct(void* ct) {
  return give_back<CounterGiven>(ct, Kind::counter);
}

// --- portals entries ---------------------------------------------------------------------------------------

DOORBELL_LIBCXI int cxil_alloc_pte(void* lni, void* evtq, const u64* opts, void** pte) {
  if (lni == nullptr || opts == nullptr || pte == nullptr) return -EINVAL;
  auto given = std::make_unique<EntryGiven>();
  const Handle& parent = LniGiven::of(lni)->object;
  Ask ask(*parent.connection, Call::alloc_portals_entry,
          {parent.handle, evtq == nullptr ? 0 : EventQueueGiven::of(evtq)->object.handle, *opts});
  Reply reply;
  if (const int error = take(ask, parent, given, reply); error != 0) return error;
  given->shown = {static_cast<u32>(reply.value[0])};
  *pte = given.release();
  return 0;
}

DOORBELL_LIBCXI int cxil_destroy_pte(void* pte) {
  return give_back<EntryGiven>(pte, Kind::portals_entry);
}

DOORBELL_LIBCXI int cxil_map_pte(void* pte, void* domain, unsigned index, bool multicast, void** map) {
  if (pte == nullptr || domain == nullptr || map == nullptr) return -EINVAL;
  if (multicast) return missing("cxil_map_pte", EOPNOTSUPP, "the software Cassini has no multicast");
  auto given = std::make_unique<EntryMapGiven>();
  const Handle& parent = EntryGiven::of(pte)->object;
  Ask ask(*parent.connection, Call::map_portals_entry,
          {parent.handle, DomainGiven::of(domain)->object.handle, index, u64{0}});
  Reply reply;
  if (const int error = take(ask, parent, given, reply); error != 0) return error;
  *map = given.release();
  return 0;
}

DOORBELL_LIBCXI int cxil_unmap_pte(void* map) {
  return give_back<EntryMapGiven>(map, Kind::entry_name);
}

DOORBELL_LIBCXI int cxil_pte_status(void* pte, libcxi::PteStatus* status) {
  if (pte == nullptr || status == nullptr) return -EINVAL;
  const Handle& p = EntryGiven::of(pte)->object;
  // As many offsets as a reply holds at a time. Messages may come and go between two of them.
  constexpr u64 kAtOnce = sizeof(Reply::data) / sizeof(u64);
  const u32 room = status->offsets != nullptr ? status->offset_count : 0;
  Reply r;
  for (u64 first = 0; first == 0 || first < std::min<u64>(room, r.value[2]); first += kAtOnce) {
    const u64 most = std::min<u64>(room - std::min<u64>(first, room), kAtOnce);
    r = Ask(*p.connection, Call::entry_status, {p.handle, first, most}).send();
    if (r.result != 0) return r.result;
    const u64 given = std::min<u64>(most, r.value[2] - std::min<u64>(first, r.value[2]));
    if (given > 0) std::memcpy(status->offsets + first, r.data, given * sizeof(u64));
  }
  status->drop_count = 0;
  status->state = static_cast<u8>(r.value[0]);
  status->reserved = 0;
  status->allocated = static_cast<u16>(std::min<u64>(r.value[1], 0xffff));
  status->most = 16384;
  status->offset_count =
      status->offsets != nullptr ? static_cast<u16>(std::min<u64>(r.value[2], 0xffff)) : u16{0};
  return 0;
}

DOORBELL_LIBCXI int cxil_invalidate_pte_le(void* pte, unsigned, int) {
  return pte == nullptr ? -EINVAL : 0;  // no operation is under way in a buffer between two rounds
}

DOORBELL_LIBCXI int cxil_pte_transition_sm(void* pte, unsigned) {
  if (pte == nullptr) return -EINVAL;
  return missing("cxil_pte_transition_sm", EOPNOTSUPP, "the software Cassini leaves no matching to software");
}

}  // namespace doorbell::cxi::dropin
