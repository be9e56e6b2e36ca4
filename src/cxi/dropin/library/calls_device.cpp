// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// libcxi's calls: devices, services, LNIs, profiles, domains.
#include <cstdlib>
#include <cstring>
#include <new>

#include "cxi/dropin/library/handles.hpp"
#include "cxi/model/engine_rule.hpp"

namespace doorbell::cxi::dropin {
namespace {

constexpr u32 kDevices = 1;

libcxi::DeviceInfo info_of(const Connection& c) {
  libcxi::DeviceInfo d{};
  d.id = 0;
  d.nid = c.nid();
  d.pid_bits = c.pid_bits();
  d.pid_count = (1u << c.pid_bits()) - 1;
  d.pid_granule = (1u << (12 - c.pid_bits())) * 32;
  d.min_free_shift = kMinFreeShift;
  d.rdzv_get_idx = d.pid_granule - 1;
  std::memcpy(d.device_name, "cxi0", sizeof "cxi0");
  std::memcpy(d.driver_name, "doorbell", sizeof "doorbell");
  d.vendor_id = 0x17db;
  d.device_id = 0x0501;
  d.ptes = kMaxPortalsEntries;
  d.transmit_queues = kMaxTransmitQueues;
  d.target_queues = kMaxTargetQueues;
  d.event_queues = kMaxEventQueues;
  d.counters = kMaxCounters;
  d.contexts = kMaxContexts;
  d.triggers = kMaxTriggers;
  d.list_entries = 16384;
  d.link_mtu = 9216;
  d.link_speed = 200'000;
  d.link_state = 1;
  d.retry_event_queue = 1;  // programs take 0 for a retry handler that is missing; no packet is lost here
  d.version = 18;
  std::memcpy(d.part, "doorbell model", sizeof "doorbell model");
  return d;
}

DeviceHandle* of(const void* device) {
  return static_cast<DeviceHandle*>(const_cast<void*>(device));
}

int get_service(Connection& c, u64 which, bool by_position, libcxi::ServiceDescription& out, u64& count) {
  const Reply r = Ask(c, Call::get_service, {which, by_position ? u64{1} : u64{0}}).send();
  if (r.result != 0) return r.result;
  count = r.value[0];
  out = {};
  out.flags = libcxi::ServiceDescription::kRestrictedVnis | libcxi::ServiceDescription::kRestrictedClasses |
              libcxi::ServiceDescription::kEnabled | libcxi::ServiceDescription::kSystem;
  out.vni_count = static_cast<u8>(std::min<u64>(r.value[3], 4));
  std::memcpy(out.vnis, r.data, out.vni_count * sizeof out.vnis[0]);
  for (u32 i = 0; i < 5; ++i) out.traffic_classes[i] = (r.value[2] >> i & 1) != 0;
  const u16 most[8] = {kMaxPortalsEntries, kMaxTransmitQueues, kMaxTargetQueues,
                       kMaxEventQueues,    kMaxCounters,       16384,
                       kMaxTriggers,       kMaxContexts};
  for (u32 i = 0; i < 8; ++i) out.limits[2 * i] = most[i];
  out.id = static_cast<u32>(r.value[1]);
  return 0;
}

}  // namespace

DOORBELL_LIBCXI int cxil_open_device(u32 id, void** device) {
  if (device == nullptr) return -EINVAL;
  if (id >= kDevices) return -ENOENT;
  auto d = std::make_unique<DeviceHandle>();
  if (const int error = Connection::of_this_process(d->connection); error != 0) return error;
  d->shown = info_of(*d->connection);
  *device = d.release();
  return 0;
}

DOORBELL_LIBCXI void cxil_close_device(void* device) {
  delete of(device);
}

DOORBELL_LIBCXI int cxil_get_device_list(void** list) {
  if (list == nullptr) return -EINVAL;
  std::shared_ptr<Connection> c;
  if (const int error = Connection::of_this_process(c); error != 0) return error;
  struct List {
    u32 count;
    libcxi::DeviceInfo device;
  };
  static_assert(offsetof(List, device) == 8);
  auto* const made = static_cast<List*>(std::calloc(1, sizeof(List)));
  if (made == nullptr) return -ENOMEM;
  *made = {kDevices, info_of(*c)};
  *list = made;
  return 0;
}

DOORBELL_LIBCXI void cxil_free_device_list(void* list) {
  std::free(list);
}

DOORBELL_LIBCXI int cxil_get_svc(void* device, unsigned id, libcxi::ServiceDescription* out) {
  u64 count = 0;
  if (device == nullptr || out == nullptr || id == 0) return -EINVAL;
  return get_service(*of(device)->connection, id, false, *out, count);
}

DOORBELL_LIBCXI int cxil_get_svc_list(void* device, void** list) {
  if (device == nullptr || list == nullptr) return -EINVAL;
  libcxi::ServiceDescription one{};
  u64 count = 0;
  if (const int error = get_service(*of(device)->connection, 0, true, one, count); error != 0) return error;
  auto* const made = static_cast<u8*>(std::calloc(1, 4 + count * sizeof one));
  if (made == nullptr) return -ENOMEM;
  const auto number = static_cast<u32>(count);
  std::memcpy(made, &number, sizeof number);
  for (u64 i = 0; i < count; ++i) {
    if (get_service(*of(device)->connection, i, true, one, count) != 0) break;
    std::memcpy(made + 4 + i * sizeof one, &one, sizeof one);
  }
  *list = made;
  return 0;
}

DOORBELL_LIBCXI void cxil_free_svc_list(void* list) {
  std::free(list);
}

DOORBELL_LIBCXI int cxil_alloc_lni(void* device, void** lni, unsigned service) {
  if (device == nullptr || lni == nullptr) return -EINVAL;
  auto given = std::make_unique<LniGiven>();
  const Handle parent{of(device)->connection, 0};
  Ask ask(*parent.connection, Call::alloc_lni, {service});
  Reply reply;
  if (const int error = take(ask, parent, given, reply); error != 0) return error;
  given->shown.id = static_cast<u32>(reply.value[0]);
  given->device = of(device);
  *lni = &given.release()->shown;
  return 0;
}

DOORBELL_LIBCXI int cxil_destroy_lni(void* lni) {
  return lni == nullptr ? -EINVAL : give_back<LniGiven>(LniGiven::of(lni), Kind::lni);
}

DOORBELL_LIBCXI int cxil_alloc_trig_cp(void* lni, unsigned vni, int tc, int type, int lcid_type, void** cp) {
  if (lni == nullptr || cp == nullptr || tc < 0 || type < 0 || lcid_type < 0) return -EINVAL;
  auto given = std::make_unique<ProfileGiven>();
  const Handle& parent = LniGiven::of(lni)->object;
  Ask ask(*parent.connection, Call::alloc_profile,
          {parent.handle, vni, static_cast<u64>(tc), static_cast<u64>(type), static_cast<u64>(lcid_type)});
  Reply reply;
  if (const int error = take(ask, parent, given, reply); error != 0) return error;
  given->shown = {vni, static_cast<u32>(tc), static_cast<u32>(type), static_cast<u32>(reply.value[0])};
  *cp = given.release();
  return 0;
}

DOORBELL_LIBCXI int cxil_alloc_cp(void* lni, unsigned vni, int tc, int type, void** cp) {
  constexpr int kAny = 2;
  return cxil_alloc_trig_cp(lni, vni, tc, type, kAny, cp);
}

DOORBELL_LIBCXI int cxil_destroy_cp(void* cp) {
  return give_back<ProfileGiven>(cp, Kind::profile);
}

DOORBELL_LIBCXI int cxil_modify_cp(void* lni, void* cp, unsigned vni) {
  if (lni == nullptr || cp == nullptr) return -EINVAL;
  const Handle& parent = LniGiven::of(lni)->object;
  auto* const profile = ProfileGiven::of(cp);
  const int error =
      Ask(*parent.connection, Call::change_profile, {parent.handle, profile->object.handle, vni})
          .send()
          .result;
  if (error == 0) profile->shown.vni = vni;
  return error;
}

DOORBELL_LIBCXI int cxil_reserve_domain(void* lni, unsigned vni, unsigned pid, unsigned count) {
  if (lni == nullptr) return -EINVAL;
  const Handle& parent = LniGiven::of(lni)->object;
  const Reply r = Ask(*parent.connection, Call::reserve_pids, {parent.handle, vni, pid, count}).send();
  return r.result != 0 ? r.result : static_cast<int>(r.value[0]);
}

DOORBELL_LIBCXI int cxil_alloc_domain(void* lni, unsigned vni, unsigned pid, void** domain) {
  if (lni == nullptr || domain == nullptr) return -EINVAL;
  auto given = std::make_unique<DomainGiven>();
  const Handle& parent = LniGiven::of(lni)->object;
  Ask ask(*parent.connection, Call::alloc_domain, {parent.handle, vni, pid});
  Reply reply;
  if (const int error = take(ask, parent, given, reply); error != 0) return error;
  given->shown = {vni, static_cast<u32>(reply.value[0])};
  *domain = given.release();
  return 0;
}

DOORBELL_LIBCXI int cxil_destroy_domain(void* domain) {
  return give_back<DomainGiven>(domain, Kind::domain);
}

}  // namespace doorbell::cxi::dropin
