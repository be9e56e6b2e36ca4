// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/cxi/put_queue.hpp>

#include "rma/op_kernel.hpp"

DOORBELL_OP_KERNELS(doorbell_cxi_puts, doorbell::cxi::PutQueue<doorbell::GpuWarp>)
