// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The vendors that the tests of queue pairs, of the model NIC and of `doorbell rdma` are instantiated for.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "rdma/model/shape.hpp"
#include "rdma/vendors.hpp"
#include "rdma/vendors/bnxt.hpp"
#include "rdma/vendors/ernic.hpp"
#include "rdma/vendors/ionic.hpp"
#include "rdma/vendors/mlx5.hpp"
#include "sanitized.hpp"

namespace doorbell::rdma {

/// In the order of their Providers.
using Formats = testing::Types<Mlx5, Bnxt, Ionic, Ernic>;

/// For what the NIC does alike for each of them. A sanitizer watches one whose flushed requests complete each
/// by itself, and one where a single completion stands for all.
using FormatsAlike = std::conditional_t<test::kSanitized, testing::Types<Mlx5, Bnxt>, Formats>;

/// The vendors whose requests can carry their bytes; ernic has no layout for it.
inline std::vector<Provider> inlining_providers() {
  std::vector<Provider> all = vendors();
  std::erase_if(all, [](Provider p) { return shape_of(p).max_inline == 0; });
  return all;
}
inline std::string provider_name(const testing::TestParamInfo<Provider>& p) {
  return std::string(name(p.param));
}

/// A model with the engine that is tested: the programs are registered once more with this variable. Device
/// threads share their copies with one more each.
inline std::string tested(const std::string& spec = "model") {
  const char* const engine = std::getenv("DOORBELL_TEST_NIC_ENGINE");
  return spec + (spec == "model" ? ":" : ",") +
         (engine == nullptr ? std::string("copy-threads=2") : std::string("engine=") + engine);
}

template <class F>
Provider provider_of() {
  for (const Provider p : vendors())
    if (name(p) == F::kName) return p;
  ADD_FAILURE() << F::kName << " has no row in rdma/vendors.hpp";
  return Provider::verbs;
}

}  // namespace doorbell::rdma
