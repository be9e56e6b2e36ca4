// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/dropin/hand_out.h"

#include <algorithm>
#include <exception>

#include "rdma/dropin/devices.hpp"

using namespace doorbell::dropin;

namespace {

/// Calls that make rings refuse with an errno value: no memory, or no thread.
template <class Call>
int guarded(Call call) {
  try {
    return call();
  } catch (const std::exception&) {
    return ENOMEM;
  }
}

}  // namespace

DOORBELL_VERBS int doorbell_verbs_owns(ibv_device* device) {
  const auto& list = Devices::get().list();
  return std::ranges::any_of(list, [device](const auto& d) { return &d->base == device; }) ? 1 : 0;
}

DOORBELL_VERBS int doorbell_verbs_queue_rings(ibv_qp* base, doorbell_queue_rings* into) {
  Qp& qp = of<Qp>(base);
  Context& context = of(base->context);
  if (context.dead) return EIO;
  // Rings of shared receive queues are of another form.
  if (qp.service == doorbell::roce::Service::ud || qp.service == doorbell::roce::Service::xrc ||
      base->srq != nullptr)
    return EOPNOTSUPP;
  return guarded([&] {
    const ibv_qp_cap& sizes = qp.made.cap;
    const auto& rings = context.adapter->rings().rings_of(*qp.queue, sizes.max_send_wr, sizes.max_recv_wr,
                                                          sizes.max_inline_data);
    *into = {.send = rings.send,
             .send_blocks = rings.send_blocks,
             .receive = rings.receive,
             .receive_entries = rings.receive_entries,
             .record = rings.record,
             .doorbell = reinterpret_cast<uint64_t*>(rings.doorbell)};
    return 0;
  });
}

DOORBELL_VERBS int doorbell_verbs_completion_ring(ibv_cq* base, doorbell_completion_ring* into) {
  Cq& cq = of<Cq>(base);
  Context& context = of(base->context);
  if (context.dead) return EIO;
  return guarded([&] {
    const auto& ring = context.adapter->rings().ring_of(*cq.queue);
    *into = {.entries = ring.entries, .count = ring.count, .record = ring.record, .number = base->handle};
    return 0;
  });
}
