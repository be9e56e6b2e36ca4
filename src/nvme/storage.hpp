// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The storage that a bench drives: an NVMe controller through queue pairs of our own, or a file through the
// kernel.
#pragma once

#include <doorbell/nvme/controller.hpp>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "measure/tally.hpp"
#include "nvme/bench.hpp"
#include "nvme/io_work.hpp"
#include "nvme/queue_buffers.hpp"

namespace doorbell::nvme {

class Storage {
 public:
  virtual ~Storage() = default;
  /// "model", "emulated", "hardware", or "kernel".
  [[nodiscard]] virtual std::string kind() = 0;
  [[nodiscard]] virtual std::string name() = 0;
  /// Limits; zeros where there are none.
  [[nodiscard]] virtual ControllerInfo info() = 0;
  [[nodiscard]] virtual NamespaceInfo name_space(u32 nsid) = 0;
  /// Of so many queues wanted, how many there can be.
  [[nodiscard]] virtual u32 grant(u32 queues) = 0;
  /// False where there is nothing to verify.
  [[nodiscard]] virtual bool moves_data() { return true; }
  /// True when it holds no data that is not doorbell's own. May read everything that is stored.
  [[nodiscard]] virtual bool scratch() { return false; }
  /// The regular file whose bytes are the namespace's blocks; "" where they lie elsewhere.
  [[nodiscard]] virtual std::string image() { return {}; }
  /// True once the device is to be given back (a hot-unplug request).
  [[nodiscard]] virtual bool leaving() { return false; }

  /// Once. The buffers live as long as the storage.
  [[nodiscard]] virtual QueueBuffers& create_queues(const QueueShape& shape) = 0;
  [[nodiscard]] virtual std::unique_ptr<IoRunner> runner(u32 window) = 0;
  /// The register that the loops watch for a device that is gone; null where there is none.
  [[nodiscard]] virtual const u32* status_register() { return nullptr; }
  /// No completion comes after this.
  virtual void end_queues() {}

  /// The device's own counts; null when it counts nothing.
  [[nodiscard]] virtual nlohmann::ordered_json counters() { return nullptr; }
  /// Gives a completion's status its name.
  [[nodiscard]] virtual measure::StatusName status_names() const = 0;
};

/// An NVMe controller, reset and enabled. `gpu` may be null.
[[nodiscard]] std::unique_ptr<Storage> open_controller(const BenchOptions& options,
                                                       std::shared_ptr<gpu::Gpu> gpu);
/// A file or block device, through the kernel.
[[nodiscard]] std::unique_ptr<Storage> open_file(const BenchOptions& options);

}  // namespace doorbell::nvme
