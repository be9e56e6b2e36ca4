// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Whoever drives connections through a phase: CPU threads or a GPU kernel, over any kind of queue.
#pragma once

#include <doorbell/rdma/op_types.hpp>

#include "measure/runner.hpp"

namespace doorbell::rdma {

using OpRunner = measure::Runner<OpPhase, OpQueue>;

}  // namespace doorbell::rdma
