// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Cassini in the shape of an RDMA NIC: puts are WRITEs and gets READs through PutQueue, so that sessions,
// loops, verification and records are those of src/rdma. Every connection leads back to this endpoint.
#pragma once

#include <doorbell/cxi/put_queue.hpp>

#include "cxi/backends.hpp"
#include "rdma/bench.hpp"

namespace doorbell::cxi {

inline constexpr u32 kDefaultService = 1;

/// Opens what rdma::DeviceRequest::spec names, at the default service.
[[nodiscard]] std::unique_ptr<rdma::Device> open_rma_device(const rdma::DeviceRequest& request);

/// The same with unrestricted puts and gets.
[[nodiscard]] std::unique_ptr<rdma::Device> open_unrestricted_rma_device(const rdma::DeviceRequest& request);

/// What a bench of puts says of itself: src/rdma's, on the first model, with this path's names.
[[nodiscard]] rdma::BenchOptions rma_bench();

/// Where a queue of such a device stands before its first operation; one that was used before begins anew.
[[nodiscard]] PutQueueState put_state(rdma::QueuePairObject& queue, Initiator initiator);

}  // namespace doorbell::cxi
