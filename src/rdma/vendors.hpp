// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The NIC vendors whose queue formats doorbell writes and its model reads. Each has one row here and one
// translation unit, vendors/NAME.cpp, which holds every instance of code that has the format as a parameter.
#pragma once

#include <doorbell/rdma/types.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "measure/runner.hpp"
#include "rma/port.hpp"
#include "system/backend.hpp"

// The name that --provider takes; doorbell/rdma/NAME.hpp has the format and kernels/rdma_NAME.cu its kernels.
#define DOORBELL_RDMA_VENDORS(ROW) ROW(mlx5) ROW(bnxt) ROW(ionic) ROW(ernic)

namespace doorbell::rdma {

#define DOORBELL_ROW(name) name,
/// The owner of the queue format; verbs: queues to which libibverbs posts.
enum class Provider { DOORBELL_RDMA_VENDORS(DOORBELL_ROW) verbs };
#undef DOORBELL_ROW

[[nodiscard]] std::string_view name(Provider p);
/// Throws Error for a name of none.
[[nodiscard]] Provider provider_named(std::string_view wanted);
/// All providers' names, in order.
[[nodiscard]] const std::vector<std::string>& provider_names();

class BurstQueue;
class NicDevice;
class QueuePairObject;
struct ConnectedEnds;
struct FormatShape;
struct VerbsConfig;

struct Vendor {
  /// The facts about the format that the model NIC must know.
  const FormatShape& (*shape)();
  /// Drives queue pairs whose rings the initiator writes itself.
  std::unique_ptr<OpRunner> (*runner)(const std::vector<ConnectedEnds>& ends, const DriverShape& driver,
                                      const measure::KernelNames& kernels);
  /// One such queue pair, freshly connected, for a CPU thread.
  std::unique_ptr<BurstQueue> (*burst_queue)(QueuePairObject& queue_pair);
  /// For hardware: whether it can be driven here, and the function that opens it. Null if there is no back
  /// end; `missing` then says why.
  BackendStatus (*status)() = nullptr;
  std::unique_ptr<NicDevice> (*open)(const VerbsConfig& config,
                                     const std::shared_ptr<gpu::Gpu>& gpu) = nullptr;
  const char* missing = "";
};

/// Null for Provider::verbs, which is not a vendor.
[[nodiscard]] const Vendor* vendor_of(Provider p);

/// Every vendor, in order, and their names in a sentence: "mlx5, bnxt, ionic or ernic".
[[nodiscard]] const std::vector<Provider>& vendors();
[[nodiscard]] std::string vendors_text(std::string_view conjunction);

/// The kernels that drive a provider's queues on a GPU.
[[nodiscard]] measure::KernelNames kernels_of(Provider p);

}  // namespace doorbell::rdma
