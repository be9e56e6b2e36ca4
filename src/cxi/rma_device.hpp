// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Cassini in the shape of an RDMA NIC: puts are WRITEs and gets READs through PutQueue, so that sessions,
// loops, verification and records are those of src/rdma. Every connection leads back to this endpoint.
#pragma once

#include "cxi/backends.hpp"
#include "rdma/backends.hpp"

namespace doorbell::cxi {

inline constexpr u32 kDefaultService = 1;

/// Opens what rdma::DeviceRequest::spec names, at the default service.
[[nodiscard]] std::unique_ptr<rdma::Device> open_rma_device(const rdma::DeviceRequest& request);

}  // namespace doorbell::cxi
