// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The wire formats that the tests of queue pairs and of the model NIC are instantiated for: a row a vendor.
#pragma once

#include <gtest/gtest.h>

#include "rdma/vendors.hpp"
#include "rdma/vendors/bnxt.hpp"
#include "rdma/vendors/ernic.hpp"
#include "rdma/vendors/ionic.hpp"
#include "rdma/vendors/mlx5.hpp"

namespace doorbell::rdma {

/// In the order of their Providers.
using Formats = testing::Types<Mlx5, Bnxt, Ionic, Ernic>;

template <class F>
Provider provider_of() {
  for (Provider p{}; vendor_of(p) != nullptr; p = static_cast<Provider>(static_cast<u32>(p) + 1))
    if (name(p) == F::kName) return p;
  ADD_FAILURE() << F::kName << " has no row in rdma/vendors.hpp";
  return Provider::verbs;
}

}  // namespace doorbell::rdma
