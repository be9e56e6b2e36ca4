// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/nic_kernel.hpp"
#include "rdma/vendors/bnxt.hpp"

DOORBELL_NIC_KERNEL(doorbell_rdma_bnxt_nic, doorbell::rdma::Bnxt)
