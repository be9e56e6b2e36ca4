// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/dropin/client.hpp"

#include <doorbell/error.hpp>

#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

namespace doorbell::cxi::dropin {

namespace {

constexpr u64 kMostBytes = u64{1} << 40;
constexpr u64 kMostEventBytes = u64{1} << 31;
constexpr u64 kObjectsOfAClient = 20'000;
constexpr std::ptrdiff_t kLnisOfAClient = 16;
// Flags of the library's calls.
constexpr u64 kMapWrite = 1 << 2, kMapRead = 1 << 3;
constexpr u64 kTransmit = 1 << 1, kEthernet = 1 << 2, kTriggered = 1 << 3;
constexpr u64 kLongInitiator = 1 << 2, kLongTarget = 1 << 3;
constexpr u64 kLastPolicy = 3, kLastClassType = 3, kLastLcidType = 2;
constexpr u64 kTriggeredLcid = 0, kOtherLcid = 1;
constexpr u64 kUseLongEvent = 1 << 3, kMatching = 1 << 7, kEthernetEntry = 1 << 11;
constexpr int kMostReserved = 1 << 14;

[[noreturn]] void refuse(int error, const char* why = "") {
  throw CallError(CallError::Call::other, error, "a request to the Cassini", why);
}

bool whole_pages(u64 n) {
  return n != 0 && n % kPage == 0;
}

}  // namespace

Client::~Client() {
  // An event queue may have moved to a mapping that is newer than itself.
  while (!objects_.empty()) {
    auto at = std::prev(objects_.end());
    while (at->second->users != 0) --at;
    objects_.erase(at);
  }
}

template <class O>
O& Client::find(u64 handle) const {
  const auto at = handle <= ~u32{0} ? objects_.find(static_cast<u32>(handle)) : objects_.end();
  if (at == objects_.end() || at->second->kind != O::kKind) refuse(EINVAL, "no such object");
  return static_cast<O&>(*at->second);
}

template <class O, class... A>
O& Client::add(Asked& a, A&&... arguments) {
  if (objects_.size() >= kObjectsOfAClient || next_ == 0) refuse(ENOSPC, "too many objects");
  auto object = std::make_unique<O>(std::forward<A>(arguments)...);
  O& made = *object;
  a.reply.handle = next_;
  objects_.emplace(next_++, std::move(object));
  return made;
}

Pieces Client::memory(const Asked& a, u32 which, u64 at_least) const {
  Pieces p(a.request, a.request.memory[which], a.files, foreign_);
  if (p.bytes() < at_least || p.data() == nullptr) refuse(EINVAL, "less memory than the object needs");
  return p;
}

Reply Client::answer(const Request& request, std::span<Descriptor> files) noexcept {
  Asked a{request, files, {}};
  try {
    perform(a);
  } catch (const CallError& e) {
    a.reply = {};
    a.reply.result = -e.errno_code();
  } catch (const std::bad_alloc&) {
    a.reply = {};
    a.reply.result = -ENOMEM;
  } catch (const std::exception&) {
    a.reply = {};
    a.reply.result = -EIO;
  }
  return a.reply;
}

void Client::perform(Asked& a) {
  switch (a.request.call) {
    case Call::hello:
      if (a[0] != kProtocol) refuse(EPROTO, "another version");
      a.reply.value[0] = nic_.shared.nid;
      a.reply.value[1] = nic_.shared.config.pid_bits;
      return;
    case Call::get_service:
      return get_service(a);
    case Call::alloc_lni:
      return alloc_lni(a);
    case Call::alloc_profile:
      return alloc_profile(a);
    case Call::change_profile:
      return change_profile(a);
    case Call::reserve_pids:
      return reserve_pids(a);
    case Call::alloc_domain:
      return alloc_domain(a);
    case Call::map:
      return map(a);
    case Call::alloc_wait_object:
      return alloc_wait_object(a);
    case Call::alloc_event_queue:
      return alloc_event_queue(a);
    case Call::resize_event_queue:
      return resize_event_queue(a);
    case Call::finish_resize: {
      auto& q = find<Events>(a[0]);
      if (q.former == nullptr) refuse(EINVAL, "it is not being resized");
      q.leave_former();
      return;
    }
    case Call::reserve_events:
      return reserve_events(a);
    case Call::alloc_command_queue:
      return alloc_command_queue(a);
    case Call::alloc_counter:
      return alloc_counter(a);
    case Call::move_writeback:
      return move_writeback(a);
    case Call::alloc_portals_entry:
      return alloc_portals_entry(a);
    case Call::map_portals_entry:
      return map_portals_entry(a);
    case Call::entry_status:
      return entry_status(a);
    case Call::destroy:
      return destroy(a);
    case Call::counters: {
      const std::string text = nic_.counts().dump();
      std::memcpy(a.reply.data, text.data(), std::min(text.size(), sizeof a.reply.data - 1));
      return;
    }
  }
  refuse(ENOTSUP, "no such request");
}

/// By number; or, with a second argument, the one at that position of all.
void Client::get_service(Asked& a) {
  const bool by_position = a[1] != 0;
  a.reply.value[0] = nic_.services.size();
  if (by_position && a[0] >= nic_.services.size()) refuse(EINVAL, "no such service");
  const Service* const s = by_position ? &nic_.services[a[0]] : nic_.service(a[0]);
  if (s == nullptr) refuse(EINVAL, "no such service");
  a.reply.value[1] = s->id;
  a.reply.value[2] = s->traffic_classes;
  a.reply.value[3] = s->vnis.size();
  std::memcpy(a.reply.data, s->vnis.data(), std::min(s->vnis.size() * 2, sizeof a.reply.data));
}

void Client::alloc_lni(Asked& a) {
  const Service* const s = nic_.service(a[0]);
  if (s == nullptr) refuse(EINVAL, "no such service");
  if (std::ranges::count_if(objects_, [](const auto& o) { return o.second->kind == Kind::lni; }) >=
      kLnisOfAClient)
    refuse(ENOSPC, "the others of this Cassini are for other clients");
  a.reply.value[0] = add<Lni>(a, nic_, *s).owner;
}

void Client::alloc_profile(Asked& a) {
  auto& lni = find<Lni>(a[0]);
  const u64 vni = a[1], traffic_class = a[2], type = a[3], lcid_type = a[4];
  if (!lni.service.allows(vni)) refuse(EINVAL, "not a VNI of the service");
  if (traffic_class > 31 || (lni.service.traffic_classes >> traffic_class & 1) == 0 ||
      type > kLastClassType || lcid_type > kLastLcidType)
    refuse(EINVAL, "not a traffic class of the service");
  // Only the first number is taken by triggered commands.
  const u32 first = lcid_type == kOtherLcid ? 1 : 0, end = lcid_type == kTriggeredLcid ? 1 : kMaxProfiles;
  for (u32 lcid = first; lcid < end; ++lcid) {
    if (lni.profiles[lcid] != 0) continue;
    (void)add<ProfileObject>(a, lni, lcid, static_cast<u32>(vni));
    a.reply.value[0] = lcid;
    return;
  }
  refuse(ENOSPC, "all profiles are in use");
}

void Client::change_profile(Asked& a) {
  auto& lni = find<Lni>(a[0]);
  auto& profile = find<ProfileObject>(a[1]);
  if (&profile.lni != &lni || !lni.service.allows(a[2])) refuse(EINVAL, "not a VNI of the service");
  profile.name(static_cast<u32>(a[2]));
}

void Client::reserve_pids(Asked& a) {
  auto& lni = find<Lni>(a[0]);
  const u64 vni = a[1], wanted = a[2], count = a[3];
  if (!lni.service.allows(vni)) refuse(EINVAL, "not a VNI of the service");
  if (count == 0 || count > nic_.pid_count() || (wanted != kAnyPid && wanted >= nic_.pid_count()))
    refuse(EINVAL, "a PID that is out of range");
  const int first = nic_.free_pids(static_cast<u32>(vni), wanted, count);
  if (first < 0) refuse(wanted == kAnyPid ? ENOSPC : EEXIST, "a PID is in use");
  for (u32 i = 0; i < count; ++i)
    nic_.pids[{static_cast<u32>(vni), static_cast<u32>(first) + i}].reserved_by = lni.owner;
  a.reply.value[0] = static_cast<u64>(first);
}

void Client::alloc_domain(Asked& a) {
  auto& lni = find<Lni>(a[0]);
  const u64 vni = a[1];
  if (!lni.service.allows(vni)) refuse(EINVAL, "not a VNI of the service");
  if (a[2] != kAnyPid && a[2] >= nic_.pid_count()) refuse(EINVAL, "a PID that is out of range");
  const auto network = static_cast<u32>(vni);
  int pid = nic_.free_pids(network, a[2], 1);
  if (pid < 0 && a[2] != kAnyPid) {
    const auto at = nic_.pids.find({network, static_cast<u32>(a[2])});
    if (at != nic_.pids.end() && at->second.reserved_by == lni.owner && !at->second.used)
      pid = static_cast<int>(a[2]);
  }
  if (pid < 0) refuse(a[2] == kAnyPid ? ENOSPC : EEXIST, "the PID is in use");
  (void)add<DomainObject>(a, lni, network, static_cast<u32>(pid));
  a.reply.value[0] = static_cast<u64>(pid);
}

void Client::map(Asked& a) {
  auto& lni = find<Lni>(a[0]);
  const u64 address = a[1], bytes = a[2], flags = a[3];
  if (bytes == 0 || bytes > kMostBytes || address > ~u64{0} - bytes - kPage) refuse(EINVAL, "no memory");
  const u64 first = address / kPage * kPage, size = (address + bytes - first + kPage - 1) / kPage * kPage;
  // Neither of them is a mapping too, which nothing writes to.
  const Access access = (flags & kMapWrite) == 0  ? Access::read
                        : (flags & kMapRead) == 0 ? Access::write
                                                  : Access::read_write;
  const auto& m = add<Mapping>(a, lni, memory(a, 0, size), first, size, access);
  a.reply.value[0] = m.iova;
  a.reply.value[1] = m.address;
  a.reply.value[2] = m.bytes;
  a.reply.value[3] = Mapping::kContext;
}

void Client::alloc_wait_object(Asked& a) {
  auto& lni = find<Lni>(a[0]);
  if (a.files.empty()) refuse(EINVAL, "no file");
  (void)add<WaitObject>(a, lni, std::move(a.files[0]));
}

void Client::alloc_event_queue(Asked& a) {
  auto& lni = find<Lni>(a[0]);
  auto& mapping = find<Mapping>(a[1]);
  const u64 address = a[2], bytes = a[3], flags = a[4];
  if (address % kPage != 0 || !whole_pages(bytes) || bytes > kMostEventBytes)
    refuse(EINVAL, "not of whole pages");
  u8* const at = mapping.at(address, bytes);
  if (at == nullptr) refuse(EINVAL, "it is not in the mapping");
  auto& q = add<Events>(a, lni, &mapping, find_or_none<WaitObject>(a[5]), find_or_none<WaitObject>(a[6]), at,
                        bytes, memory(a, 1, kPage), (flags & kLongInitiator) != 0);
  a.reply.value[0] = q.number;
}

void Client::resize_event_queue(Asked& a) {
  auto& q = find<Events>(a[0]);
  auto& mapping = find<Mapping>(a[1]);
  const u64 address = a[2], bytes = a[3];
  if (q.former != nullptr) refuse(EBUSY, "it is being resized");
  if (address % kPage != 0 || !whole_pages(bytes) || bytes > kMostEventBytes)
    refuse(EINVAL, "not of whole pages");
  u8* const at = mapping.at(address, bytes);
  if (at == nullptr) refuse(EINVAL, "it is not in the mapping");
  q.resize(mapping, at, bytes);
}

void Client::reserve_events(Asked& a) {
  auto& q = find<Events>(a[0]);
  const auto more = static_cast<std::int64_t>(a[1]);
  if (more >= kMostReserved || more <= -kMostReserved || q.reserved + more < 0)
    refuse(EINVAL, "a number that is out of range");
  if (static_cast<u64>(q.reserved + more) > q.bytes / kSlotBytes / 2)
    refuse(ENOSPC, "the queue is too small");
  q.reserved += static_cast<int>(more);
  a.reply.value[0] = static_cast<u64>(q.reserved);
}

void Client::alloc_command_queue(Asked& a) {
  auto& lni = find<Lni>(a[0]);
  auto* const events = find_or_none<Events>(a[1]);
  const u64 slots = a[2], policy = a[3], flags = a[4], lcid = a[5];
  if (policy > kLastPolicy || (flags & kEthernet) != 0)
    refuse(EINVAL, "a policy or a kind that there is not");
  if (slots < kMinSlots || slots > kMaxSlots || !std::has_single_bit(slots)) refuse(EINVAL, "slots");
  const auto kind = (flags & kTransmit) == 0    ? CommandQueueKind::target
                    : (flags & kTriggered) != 0 ? CommandQueueKind::triggered
                                                : CommandQueueKind::transmit;
  u32 vni = 0;
  if (kind != CommandQueueKind::target) {
    if (lcid >= kMaxProfiles || lni.profiles[lcid] == 0) refuse(EINVAL, "no such profile");
    vni = lni.vnis[lcid];
  }
  const auto& q = add<Commands>(a, lni, events, kind, static_cast<u32>(slots), vni,
                                memory(a, 0, slots * kSlotBytes), memory(a, 1, kLaunchBytes), foreign_);
  a.reply.value[0] = q.number;
}

void Client::alloc_counter(Asked& a) {
  auto& lni = find<Lni>(a[0]);
  Pieces page;
  u8* at = nullptr;
  if (a[1] != 0) {
    if (a[1] % 8 != 0) refuse(EINVAL, "a write-back that is not aligned");
    page = memory(a, 0, kPage);
    at = page.data() + a[1] % kPage;
  }
  a.reply.value[0] = add<Count>(a, lni, memory(a, 1, kPage), std::move(page), at).number;
}

void Client::move_writeback(Asked& a) {
  auto& counter = find<Count>(a[0]);
  if (a[1] % 8 != 0) refuse(EINVAL, "a write-back that is not aligned");
  Pieces page;
  u8* at = nullptr;
  if (a[1] != 0) {
    page = memory(a, 0, kPage);
    at = page.data() + a[1] % kPage;
  }
  counter.move(std::move(page), at);
}

void Client::alloc_portals_entry(Asked& a) {
  auto& lni = find<Lni>(a[0]);
  auto* const events = find_or_none<Events>(a[1]);
  if ((a[2] & kEthernetEntry) != 0) refuse(EINVAL, "Ethernet");
  a.reply.value[0] = add<Entry>(a, lni, events, (a[2] & kUseLongEvent) != 0, (a[2] & kMatching) != 0).number;
}

void Client::map_portals_entry(Asked& a) {
  auto& entry = find<Entry>(a[0]);
  auto& domain = find<DomainObject>(a[1]);
  const u64 last = std::min<u64>(kMaxPidOffset, (1u << (12 - nic_.shared.config.pid_bits)) * 32 - 1);
  if (a[3] != 0) refuse(ENOTSUP, "multicast");
  if (a[2] > last) refuse(EINVAL, "an index that is out of range");
  if (nic_.entry_names.contains({domain.vni, domain.pid, static_cast<u32>(a[2])}))
    refuse(EEXIST, "the index is in use");
  if (entry.users != 0) refuse(EBUSY, "the entry has a name");
  (void)add<EntryName>(a, entry, domain, static_cast<u32>(a[2]));
}

void Client::entry_status(Asked& a) {
  const EntryReport r = nic_.engine->entry(find<Entry>(a[0]).number);
  a.reply.value[0] = static_cast<u64>(r.state);
  a.reply.value[1] = r.buffers;
  u64 offsets[sizeof a.reply.data / sizeof(u64)] = {};
  const u64 most = std::min<u64>(a[2], std::size(offsets));
  a.reply.value[2] = nic_.engine->unexpected(
      find<Entry>(a[0]).number, static_cast<u32>(std::min<u64>(a[1], kNobody)), std::span(offsets, most));
  std::memcpy(a.reply.data, offsets, most * sizeof(u64));
}

void Client::destroy(Asked& a) {
  const auto at = a[0] <= ~u32{0} ? objects_.find(static_cast<u32>(a[0])) : objects_.end();
  if (at == objects_.end() || static_cast<u64>(at->second->kind) != a[1]) refuse(EINVAL, "no such object");
  if (at->second->users != 0) refuse(EBUSY, "others use it");
  objects_.erase(at);
}

}  // namespace doorbell::cxi::dropin
