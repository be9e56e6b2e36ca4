// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/vendors/ionic.hpp"

#include "rdma/vendors/vendor.hpp"

namespace doorbell::rdma {

extern const Vendor ionic_vendor;
constinit const Vendor ionic_vendor = [] {
  Vendor v = vendor<Ionic>();
  v.missing = "no back end: it would need AMD's own libionic with the ionic_dv functions, which Debian lacks";
  return v;
}();

}  // namespace doorbell::rdma
