// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/mlx5dv/library.hpp"

#include <doorbell/error.hpp>

#include <array>

namespace doorbell::rdma {

namespace {

constexpr const char* kOverride = "DOORBELL_LIBMLX5";
constexpr std::array kNames = {"libmlx5.so.1"};
constexpr const char* kInstall = "install ibverbs-providers";
constexpr const char* kNotRun = "not yet run on hardware";

}  // namespace

Mlx5Library::Mlx5Library()
    : library(kOverride, kNames, kInstall),
      is_supported(library.need("mlx5dv_is_supported")),
      init_obj(library.need("mlx5dv_init_obj")),
      create_qp(library.need("mlx5dv_create_qp")) {}

BackendStatus mlx5_status() {
  try {
    const Mlx5Library mlx5;
    bool others = false;
    BackendStatus status = verbs_status([&](ibv_device* device) {
      const bool mine = mlx5.is_supported(device);
      others = others || !mine;
      return mine;
    });
    if (status.detail.empty() && others) status.detail = "none of the RDMA devices is a ConnectX (mlx5)";
    status.detail += std::string("; ") + kNotRun;
    return status;
  } catch (const Error& e) {
    return {false, e.what()};
  }
}

}  // namespace doorbell::rdma
