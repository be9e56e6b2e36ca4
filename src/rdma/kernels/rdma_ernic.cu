// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/rdma/ernic.hpp>
#include <doorbell/rdma/queue_pair.hpp>

#include "rma/op_kernel.hpp"

DOORBELL_OP_KERNELS(doorbell_rdma_ernic, doorbell::rdma::QueuePair<doorbell::GpuWarp, doorbell::rdma::Ernic>)
