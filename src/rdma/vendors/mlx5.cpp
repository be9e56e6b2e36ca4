// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/vendors/mlx5.hpp"

#include "rdma/mlx5dv/nic.hpp"
#include "rdma/vendors/vendor.hpp"
#include "rdma/verbs/library.hpp"

namespace doorbell::rdma {

extern const Vendor mlx5_vendor;
constinit const Vendor mlx5_vendor = [] {
  Vendor v = vendor<Mlx5>();
  v.status = mlx5_status;
  v.open = [](const VerbsConfig& config, const std::shared_ptr<gpu::Gpu>& gpu) -> std::unique_ptr<NicDevice> {
    return std::make_unique<Mlx5Nic>(config, gpu);
  };
  return v;
}();

}  // namespace doorbell::rdma
