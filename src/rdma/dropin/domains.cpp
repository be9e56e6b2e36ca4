// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Protection domains, thread domains and parent domains.
#include "rdma/dropin/devices.hpp"

namespace doorbell::dropin {

namespace {

Pd* keep(ibv_context* base, std::unique_ptr<Pd> domain) {
  Context& context = of(base);
  domain->base.context = base;
  const std::lock_guard lock(context.mutex);
  context.domains.insert(domain.get());
  return domain.release();
}

ibv_td* alloc_thread_domain(ibv_context* context, ibv_td_init_attr* attributes) {
  if (attributes->comp_mask != 0) return refused(EINVAL);
  auto* domain = new Td;
  domain->base.context = context;
  return &domain->base;
}

int dealloc_thread_domain(ibv_td* base) {
  Td& domain = of<Td>(base);
  if (const int error = busy(domain.users)) return error;
  delete &domain;
  return 0;
}

/// Queues that are made with a parent domain would use its allocators for their rings. This NIC has no rings
/// in the program's memory, so it calls none.
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes) {
  constexpr u32 kKnown = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  if (attributes->pd == nullptr || (attributes->comp_mask & ~kKnown) != 0) return refused(EINVAL);
  if ((attributes->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0 &&
      (attributes->alloc == nullptr || attributes->free == nullptr))
    return refused(EINVAL);
  Pd& inner = of<Pd>(attributes->pd);
  auto domain = std::make_unique<Pd>();
  domain->of = &inner;
  domain->number = inner.number;
  domain->base.handle = inner.base.handle;
  inner.users.fetch_add(1);
  if (attributes->td != nullptr) {
    domain->thread_domain = &of<Td>(attributes->td);
    domain->thread_domain->users.fetch_add(1);
  }
  return &keep(context, std::move(domain))->base;
}

}  // namespace

void set_domain_operations(Context& context) {
  context.verbs.alloc_td = alloc_thread_domain;
  context.verbs.dealloc_td = dealloc_thread_domain;
  context.verbs.alloc_parent_domain = alloc_parent_domain;
}

}  // namespace doorbell::dropin

using namespace doorbell::dropin;

DOORBELL_VERBS ibv_pd* ibv_alloc_pd(ibv_context* base) {
  Context& context = of(base);
  if (context.dead) return refused(EIO);
  auto domain = std::make_unique<Pd>();
  domain->number = context.adapter->next_handle();
  domain->base.handle = domain->number;
  return &keep(base, std::move(domain))->base;
}

DOORBELL_VERBS int ibv_dealloc_pd(ibv_pd* base) {
  Pd& domain = of<Pd>(base);
  if (const int error = busy(domain.users)) return error;
  if (domain.of != nullptr) domain.of->users.fetch_sub(1);
  if (domain.thread_domain != nullptr) domain.thread_domain->users.fetch_sub(1);
  Context& context = of(base->context);
  {
    const std::lock_guard lock(context.mutex);
    context.domains.erase(&domain);
  }
  delete &domain;
  return 0;
}

DOORBELL_VERBS ibv_pd* ibv_import_pd(ibv_context* base, doorbell::u32 handle) {
  Context& context = of(base);
  if (context.dead) return refused(EIO);
  const Pd* original = Devices::get().domain(context, handle);
  if (original == nullptr) return refused(EINVAL);
  auto domain = std::make_unique<Pd>();
  domain->number = original->number;
  domain->base.handle = handle;
  return &keep(base, std::move(domain))->base;
}

DOORBELL_VERBS void ibv_unimport_pd(ibv_pd* pd) {
  (void)ibv_dealloc_pd(pd);
}
