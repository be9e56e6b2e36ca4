// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Cassini NIC through libcxi; doorbell itself writes and rings its queues. Not yet run on hardware.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cxi/backends.hpp"
#include "cxi/cassini_device.hpp"

namespace doorbell::cxi {

struct LibcxiContext;

class LibcxiCassini final : public CassiniDevice {
 public:
  /// `name` is "cxi0". The first of `gpus` may also drive the queues. Throws CallError{open}:
  /// ExitCode::absent without libcxi or without such a device.
  explicit LibcxiCassini(const std::string& name, std::vector<std::shared_ptr<gpu::Gpu>> gpus = {});

  [[nodiscard]] std::string kind() const override { return "hardware"; }
  [[nodiscard]] std::string name() const override;
  [[nodiscard]] Limits limits() const override;
  [[nodiscard]] Region allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu) override;
  [[nodiscard]] std::unique_ptr<Endpoint> open(u32 service) override;

 private:
  std::vector<std::shared_ptr<gpu::Gpu>> gpus_;
  std::shared_ptr<const LibcxiContext> context_;
};

/// For the table of back ends: opens the device that the request names.
[[nodiscard]] std::unique_ptr<CassiniDevice> open_libcxi(const DeviceRequest& request);

}  // namespace doorbell::cxi
