// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory regions, memory windows and device memory.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "rdma/dropin/devices.hpp"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace doorbell::dropin {

namespace {

constexpr unsigned kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED;
/// Hints that a CPU's memory needs none of.
constexpr unsigned kNoEffect = unsigned{IBV_ACCESS_HUGETLB} | unsigned{IBV_ACCESS_OPTIONAL_RANGE};

/// The rights as the NIC has them; EOPNOTSUPP for what it does not have (on-demand paging).
int access_of(unsigned access, u32& into) {
  if ((access & ~(kKnownAccess | kNoEffect)) != 0) return EOPNOTSUPP;
  into = access & kKnownAccess;
  return 0;
}

/// A NIC pins memory when it is registered, and refuses what cannot be: an address where nothing is, or
/// memory of a device, which only that device's library may copy. Later the engine would fault on it.
int touch(void* start, u64 bytes, unsigned access) {
  if (bytes == 0) return 0;
  const u64 page = static_cast<u64>(::sysconf(_SC_PAGESIZE));
  const u64 address = reinterpret_cast<u64>(start);
  const u64 first = address / page * page;
  if (address + bytes < address) return EINVAL;
  const u64 length = (address + bytes - first + page - 1) / page * page;
  const int advice = (access & IBV_ACCESS_LOCAL_WRITE) != 0 ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  static const bool fills = [page] {
    u8 here = 0;
    return ::madvise(reinterpret_cast<void*>(reinterpret_cast<u64>(&here) / page * page), page,
                     MADV_POPULATE_READ) == 0;
  }();
  if (fills) return ::madvise(reinterpret_cast<void*>(first), length, advice) == 0 ? 0 : EFAULT;
  // A kernel before 5.14: is anything there?
  u8 pages[1024];
  for (u64 at = first; at < first + length; at += sizeof pages * page) {
    const u64 piece = std::min<u64>(first + length - at, sizeof pages * page);
    if (::mincore(reinterpret_cast<void*>(at), piece, pages) != 0) return EFAULT;
  }
  return 0;
}

void keep(Context& context, Mr& region) {
  const std::lock_guard lock(context.mutex);
  context.regions.insert(&region);
}

Mr* register_bytes(Pd& domain, void* start, u64 bytes, u64 iova, unsigned access) {
  Context& context = of(domain.base.context);
  u32 rights = 0;
  if (const int error = access_of(access, rights)) return refused(error);
  if ((rights & IBV_ACCESS_ZERO_BASED) != 0) iova = 0;
  roce::RegisteredMemory keys;
  if (const int error = context.nic->register_memory(domain.number, start, bytes, iova,
                                                     rights & ~IBV_ACCESS_ZERO_BASED, keys))
    return refused(error);
  auto region = std::make_unique<Mr>();
  region->base = {.context = domain.base.context,
                  .pd = &domain.base,
                  .addr = start,
                  .length = bytes,
                  .handle = context.adapter->next_handle(),
                  .lkey = keys.local_key,
                  .rkey = keys.remote_key};
  domain.users.fetch_add(1);
  keep(context, *region);
  return region.release();
}

ibv_mr* register_memory(ibv_pd* pd, void* start, std::size_t bytes, u64 iova, unsigned access) {
  if (of(pd->context).dead) return refused(EIO);
  if (const int error = touch(start, bytes, access)) return refused(error);
  Mr* region = register_bytes(of<Pd>(pd), start, bytes, iova, access);
  return region == nullptr ? nullptr : &region->base;
}

ibv_mw* alloc_window(ibv_pd* pd, ibv_mw_type type) {
  Context& context = of(pd->context);
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) return refused(EINVAL);
  u32 key = 0;
  if (const int error = context.nic->make_window(of<Pd>(pd).number, static_cast<u8>(type), key))
    return refused(error);
  auto* window = new ibv_mw{
      .context = pd->context, .pd = pd, .rkey = key, .handle = context.adapter->next_handle(), .type = type};
  of<Pd>(pd).users.fetch_add(1);
  const std::lock_guard lock(context.mutex);
  context.windows.insert(window);
  return window;
}

int dealloc_window(ibv_mw* window) {
  Context& context = of(window->context);
  if (!context.dead)
    if (const int error = context.nic->free_window(window->rkey)) return error;
  of<Pd>(window->pd).users.fetch_sub(1);
  const std::lock_guard lock(context.mutex);
  context.windows.erase(window);
  delete window;
  return 0;
}

/// Windows of type 1 have a call of their own, and get a new key by each.
int bind_window(ibv_qp* qp, ibv_mw* window, ibv_mw_bind* bind) {
  ibv_send_wr wr = {};
  wr.wr_id = bind->wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind->send_flags;
  wr.bind_mw.mw = window;
  wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  wr.bind_mw.bind_info = bind->bind_info;
  ibv_send_wr* bad = nullptr;
  if (const int error = window->context->ops.post_send(qp, &wr, &bad)) return error;
  window->rkey = wr.bind_mw.rkey;
  return 0;
}

bool inside(const Dm& memory, u64 offset, u64 bytes) {
  return offset % 4 == 0 && bytes % 4 == 0 && offset <= memory.length && bytes <= memory.length - offset;
}

int copy_to_device(ibv_dm* base, u64 offset, const void* from, std::size_t bytes) {
  const Dm& memory = of<Dm>(base);
  if (!inside(memory, offset, bytes)) return EINVAL;
  std::memcpy(memory.bytes.get() + offset, from, bytes);
  return 0;
}

int copy_from_device(void* into, ibv_dm* base, u64 offset, std::size_t bytes) {
  const Dm& memory = of<Dm>(base);
  if (!inside(memory, offset, bytes)) return EINVAL;
  std::memcpy(into, memory.bytes.get() + offset, bytes);
  return 0;
}

ibv_dm* keep(ibv_context* base, std::unique_ptr<Dm> memory) {
  Context& context = of(base);
  memory->base.context = base;
  memory->base.memcpy_to_dm = copy_to_device;
  memory->base.memcpy_from_dm = copy_from_device;
  const std::lock_guard lock(context.mutex);
  context.memories.insert(memory.get());
  return &memory.release()->base;
}

ibv_dm* alloc_device_memory(ibv_context* context, ibv_alloc_dm_attr* attributes) {
  if (attributes->comp_mask != 0 || attributes->length == 0 || attributes->log_align_req > 20)
    return refused(EINVAL);
  if (attributes->length > kDeviceMemory) return refused(ENOMEM);
  const std::size_t alignment = std::max<std::size_t>(4096, std::size_t{1} << attributes->log_align_req);
  void* bytes = nullptr;
  if (::posix_memalign(&bytes, alignment, attributes->length) != 0) return refused(ENOMEM);
  std::memset(bytes, 0, attributes->length);
  auto memory = std::make_unique<Dm>();
  memory->bytes.reset(static_cast<u8*>(bytes), [](u8* its) { std::free(its); });
  memory->length = attributes->length;
  memory->base.handle = of(context).adapter->next_handle();
  return keep(context, std::move(memory));
}

int free_device_memory(ibv_dm* base) {
  Dm& memory = of<Dm>(base);
  if (const int error = busy(memory.users)) return error;
  Context& context = of(base->context);
  {
    const std::lock_guard lock(context.mutex);
    context.memories.erase(&memory);
  }
  delete &memory;
  return 0;
}

ibv_mr* register_device_memory(ibv_pd* pd, ibv_dm* base, u64 offset, std::size_t bytes, unsigned access) {
  Dm& memory = of<Dm>(base);
  // The program cannot know an address of it, so requests count from 0.
  if ((access & IBV_ACCESS_ZERO_BASED) == 0 || offset > memory.length || bytes > memory.length - offset)
    return refused(EINVAL);
  Mr* region = register_bytes(of<Pd>(pd), memory.bytes.get() + offset, bytes, 0, access);
  if (region == nullptr) return nullptr;
  region->base.addr = nullptr;
  region->memory = &memory;
  memory.users.fetch_add(1);
  return &region->base;
}

}  // namespace

void set_memory_operations(Context& context) {
  context.base()->ops.alloc_mw = alloc_window;
  context.base()->ops.bind_mw = bind_window;
  context.base()->ops.dealloc_mw = dealloc_window;
  context.verbs.alloc_dm = alloc_device_memory;
  context.verbs.free_dm = free_device_memory;
  context.verbs.reg_dm_mr = register_device_memory;
  set_domain_operations(context);
}

}  // namespace doorbell::dropin

using namespace doorbell::dropin;
using doorbell::u32;
using doorbell::u64;

DOORBELL_VERBS ibv_mr* ibv_reg_mr(ibv_pd* pd, void* start, std::size_t bytes, int access) {
  return register_memory(pd, start, bytes, reinterpret_cast<u64>(start), static_cast<unsigned>(access));
}

DOORBELL_VERBS ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* start, std::size_t bytes, u64 iova, int access) {
  return register_memory(pd, start, bytes, iova, static_cast<unsigned>(access));
}

DOORBELL_VERBS ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* start, std::size_t bytes, u64 iova,
                                        unsigned access) {
  return register_memory(pd, start, bytes, iova, access);
}

DOORBELL_VERBS ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, u64, std::size_t, u64, int, int) {
  // Memory of a device, which only its own library may copy.
  return refused(EOPNOTSUPP);
}

DOORBELL_VERBS int ibv_rereg_mr(ibv_mr* base, int flags, ibv_pd* pd, void* start, std::size_t bytes,
                                int access) {
  Context& context = of(base->context);
  Mr& region = of<Mr>(base);
  const auto refuse = [](int error) {
    errno = error;
    return static_cast<int>(IBV_REREG_MR_ERR_INPUT);
  };
  if (context.dead) return refuse(EIO);
  if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 || region.imported ||
      region.memory != nullptr)
    return refuse(EINVAL);
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool changes_domain = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  if ((moves && bytes == 0) || (changes_domain && pd == nullptr)) return refuse(EINVAL);
  u32 rights = 0;
  if (const int error = access_of(static_cast<unsigned>(access), rights)) return refuse(error);
  if (moves)
    if (const int error = touch(start, bytes, static_cast<unsigned>(access))) return refuse(error);
  doorbell::roce::RegisteredMemory keys{base->lkey, base->rkey};
  if (const int error = context.nic->reregister_memory(
          base->lkey, static_cast<u32>(flags), changes_domain ? of<Pd>(pd).number : 0, start, bytes,
          reinterpret_cast<u64>(start), rights & ~IBV_ACCESS_ZERO_BASED, keys))
    return refuse(error);
  base->lkey = keys.local_key;
  base->rkey = keys.remote_key;
  if (moves) {
    base->addr = start;
    base->length = bytes;
  }
  if (changes_domain) {
    of<Pd>(pd).users.fetch_add(1);
    of<Pd>(base->pd).users.fetch_sub(1);
    base->pd = pd;
  }
  return 0;
}

DOORBELL_VERBS int ibv_dereg_mr(ibv_mr* base) {
  Context& context = of(base->context);
  Mr& region = of<Mr>(base);
  if (!context.dead && !region.imported)
    if (const int error = context.nic->deregister_memory(base->lkey)) return error;
  of<Pd>(base->pd).users.fetch_sub(1);
  if (region.memory != nullptr) region.memory->users.fetch_sub(1);
  {
    const std::lock_guard lock(context.mutex);
    context.regions.erase(&region);
  }
  delete &region;
  return 0;
}

DOORBELL_VERBS ibv_mr* ibv_import_mr(ibv_pd* pd, u32 handle) {
  Context& context = of(pd->context);
  if (context.dead) return refused(EIO);
  const Mr* original = Devices::get().region(context, handle);
  if (original == nullptr) return refused(EINVAL);
  auto region = std::make_unique<Mr>();
  region->base = original->base;
  region->base.context = pd->context;
  region->base.pd = pd;
  region->base.addr = nullptr;
  region->imported = true;
  of<Pd>(pd).users.fetch_add(1);
  keep(context, *region);
  return &region.release()->base;
}

DOORBELL_VERBS void ibv_unimport_mr(ibv_mr* base) {
  (void)ibv_dereg_mr(base);
}

DOORBELL_VERBS ibv_dm* ibv_import_dm(ibv_context* context, u32 handle) {
  if (of(context).dead) return refused(EIO);
  const Dm* original = Devices::get().memory(of(context), handle);
  if (original == nullptr) return refused(EINVAL);
  auto memory = std::make_unique<Dm>();
  memory->bytes = original->bytes;
  memory->length = original->length;
  memory->base.handle = handle;
  return keep(context, std::move(memory));
}
DOORBELL_VERBS void ibv_unimport_dm(ibv_dm* memory) {
  (void)free_device_memory(memory);
}
