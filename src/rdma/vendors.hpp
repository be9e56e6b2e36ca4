// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The NIC vendors whose queue formats doorbell writes and its model reads: one row each here, and one
// translation unit, vendors/NAME.cpp, which holds every instance of code that the format is a parameter of.
#pragma once

#include <doorbell/rdma/types.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "measure/gpu_runner.hpp"
#include "rma/port.hpp"
#include "system/backend.hpp"

// The name that --provider takes; doorbell/rdma/NAME.hpp has the format and kernels/rdma_NAME.cu its kernels.
#define DOORBELL_RDMA_VENDORS(ROW) ROW(mlx5) ROW(bnxt) ROW(ionic) ROW(ernic)

namespace doorbell::rdma {

#define DOORBELL_ROW(name) name,
/// Whose queues; verbs: whatever libibverbs posts to.
enum class Provider { DOORBELL_RDMA_VENDORS(DOORBELL_ROW) verbs };
#undef DOORBELL_ROW

[[nodiscard]] std::string_view name(Provider p);
/// All of them, in order.
[[nodiscard]] const std::vector<std::string>& provider_names();

class Nic;
struct ConnectedEnds;
struct FormatShape;
struct VerbsConfig;

struct Vendor {
  /// What the model NIC must know of the format.
  const FormatShape& (*shape)();
  /// Drives queue pairs whose rings the initiator writes itself.
  std::unique_ptr<OpRunner> (*runner)(const std::vector<ConnectedEnds>& ends, const DriverShape& driver,
                                      const measure::KernelNames& kernels);
  /// Hardware: whether it can be driven here, and opens it. Null without a back end; `missing` says why then.
  BackendStatus (*status)() = nullptr;
  std::unique_ptr<Nic> (*open)(const VerbsConfig& config, const std::shared_ptr<gpu::Gpu>& gpu) = nullptr;
  const char* missing = "";
};

/// Null for Provider::verbs, which is no vendor.
[[nodiscard]] const Vendor* vendor_of(Provider p);

/// Every vendor by name: "mlx5, bnxt, ionic LAST ernic".
[[nodiscard]] std::string vendors_text(const char* last);

/// What drives a provider's queues on a GPU.
[[nodiscard]] measure::KernelNames kernels_of(Provider p);

}  // namespace doorbell::rdma
