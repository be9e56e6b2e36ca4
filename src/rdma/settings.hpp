// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Settings of NICs and of the RDMA bench, beside those of one-sided operations.
#pragma once

#include "exchange/settings.hpp"
#include "options/setting.hpp"
#include "rma/settings.hpp"

namespace doorbell::rdma::setting {

using exchange::setting::connect;
using exchange::setting::listen;
using rma::setting::in_flight;
using rma::setting::initiator;
using rma::setting::size;

inline constexpr Setting device{"device", "device"};
inline constexpr Setting provider{"provider", "provider"};
inline constexpr Setting queues{"queues", "num-qps"};

}  // namespace doorbell::rdma::setting
