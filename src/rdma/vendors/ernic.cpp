// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/vendors/ernic.hpp"

#include "rdma/vendors/vendor.hpp"

namespace doorbell::rdma {

extern const Vendor ernic_vendor;
constinit const Vendor ernic_vendor = [] {
  Vendor v = vendor<Ernic>();
  v.missing =
      "no back end: ERNIC is a block of FPGA designs, and no common user library hands out its queues";
  return v;
}();

}  // namespace doorbell::rdma
