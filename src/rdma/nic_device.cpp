// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/nic_device.hpp"

#include <doorbell/error.hpp>
#include <doorbell/rdma/queue_pair.hpp>
#include <fmt/format.h>

#include "rdma/vendors/vendor.hpp"

namespace doorbell::rdma {

namespace {

const Vendor& vendor_here(Provider p) {
  const Vendor* const vendor = vendor_of(p);
  if (vendor == nullptr) throw Error("queue pairs", "they are rings of no vendor's format");
  return *vendor;
}

}  // namespace

void connect(QueuePairObject& one, QueuePairObject& other, const ConnectionOptions& options) {
  one.initialise(options);
  if (&other != &one) {
    other.initialise(options);
    other.connect(one.address(), options);
  }
  one.connect(other.address(), options);
}

u64 NicDevice::queue_pair_bytes(const QueuePairShape& shape) const {
  // A WQE and a completion of 64 bytes each, and the same again for what the driver keeps for a request.
  constexpr u64 kRequest = 4 * 64;
  return shape.sq_requests * (kRequest + shape.max_inline) + shape.rq_requests * kRequest;
}

std::vector<OpState<QueuePairState>> direct_states(const std::vector<ConnectedEnds>& ends,
                                                   Initiator initiator) {
  std::vector<OpState<QueuePairState>> states;
  for (const ConnectedEnds& e : ends) {
    OpState<QueuePairState> s;
    s.own = initial_state(e.own->memory(initiator));
    s.paired = e.peer != nullptr;
    if (s.paired) s.peer = initial_state(e.peer->memory(initiator));
    states.push_back(s);
  }
  return states;
}

std::unique_ptr<OpRunner> NicDevice::runner(const std::vector<ConnectedEnds>& ends,
                                            const DriverShape& driver) {
  return vendor_here(provider()).runner(ends, driver, kernels_of(provider()));
}

std::unique_ptr<BurstQueue> NicDevice::burst_queue(QueuePairObject& queue_pair) {
  return vendor_here(provider()).burst_queue(queue_pair);
}

}  // namespace doorbell::rdma
