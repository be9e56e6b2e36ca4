// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/nic_kernel.hpp"
#include "rdma/vendors/ernic.hpp"

DOORBELL_NIC_KERNEL(doorbell_rdma_ernic_nic, doorbell::rdma::Ernic)
