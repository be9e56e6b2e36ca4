// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/vendors/bnxt.hpp"

#include "rdma/vendors/vendor.hpp"

namespace doorbell::rdma {

extern const Vendor bnxt_vendor;
constinit const Vendor bnxt_vendor = [] {
  Vendor v = vendor<Bnxt>();
  v.missing =
      "no back end: it would need Broadcom's own libbnxt_re with the bnxt_re_dv functions, which Debian's "
      "lacks";
  return v;
}();

}  // namespace doorbell::rdma
