// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The back ends that this program knows, path by path. A new device adds a line here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace doorbell::cli {

struct Model {
  std::string_view path;  ///< the command that uses it
  std::string_view name;  ///< as --controller and its like take it
  std::string_view summary;
};
inline constexpr Model kModels[] = {
    {"nvme", "model", "software NVMe controller; media null, ram or file:PATH"},
    {"rdma", "model", "software NIC; the queues of mlx5, bnxt, ionic or ernic"},
};

struct Backend {
  std::string path;  ///< "nvme", or "gpu" for what runs GPU initiators
  std::string name;
  bool usable = false;
  std::string detail;  ///< what it is, or why it cannot be used
};

/// Every path and back end, usable or not. Loads the GPU runtimes; never throws.
[[nodiscard]] std::vector<Backend> backends();

}  // namespace doorbell::cli
