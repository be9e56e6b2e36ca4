// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A model's DMA engine: moves bytes between the device and whatever its AddressSpace maps.
//
// Host memory is copied by the device thread at once. GPU memory cannot be loaded or stored by a CPU
// thread, so those transfers are collected and done by the DMA agent, a persistent kernel, in
// commit(). A device thread therefore works in rounds: queue transfers, commit, use the data.
#pragma once

#include "memory/software_address_space.hpp"
#include "model/dma_types.hpp"

#include <memory>
#include <vector>

namespace doorbell::gpu {
class Gpu;
}

namespace doorbell::model {

/// One agent kernel with a ring for each device thread; started and stopped by the device.
class DmaAgent {
 public:
  DmaAgent(std::shared_ptr<gpu::Gpu> gpu, u32 rings);
  ~DmaAgent();
  DmaAgent(const DmaAgent&) = delete;
  DmaAgent& operator=(const DmaAgent&) = delete;
  [[nodiscard]] DmaRing& ring(u32 i);
  [[nodiscard]] const std::shared_ptr<gpu::Gpu>& gpu() const { return gpu_; }

 private:
  struct Impl;
  std::shared_ptr<gpu::Gpu> gpu_;
  std::unique_ptr<Impl> impl_;
};

/// One per device thread.
class DmaEngine {
 public:
  /// `agent` may be null: then GPU memory is a fault.
  DmaEngine(const SoftwareAddressSpace& space, DmaAgent* agent, u32 ring);
  ~DmaEngine();

  /// The host address of device-readable memory that lies whole in one host mapping, else null. For
  /// rings, which are read in place.
  [[nodiscard]] u8* host(Iova iova, u64 bytes, Access access);
  /// The memory exists and allows `access`, on the host or on the GPU.
  [[nodiscard]] bool reachable(Iova iova, u64 bytes, Access access) {
    return view_.find(iova, bytes, access).address != nullptr;
  }

  /// Host memory to device buffer. False: fault. From GPU memory the bytes are there after commit().
  [[nodiscard]] bool fetch(Iova from, void* to, u64 bytes);
  /// Device buffer to host memory. False: fault. In GPU memory the bytes are there after commit();
  /// `from` may be reused at once.
  [[nodiscard]] bool deliver(Iova to, const void* from, u64 bytes);
  /// True when something waits for commit().
  [[nodiscard]] bool pending() const { return queued_ > 0; }
  /// Finishes every queued transfer. False when the agent did not answer within a second.
  [[nodiscard]] bool commit();
  [[nodiscard]] u64 faults() const { return view_.faults(); }

 private:
  struct Landing {
    void* to;
    const u8* from;
    u64 bytes;
  };
  u8* stage(u64 bytes);
  void submit(void* to, const void* from, u64 bytes);

  SoftwareAddressSpace::View view_;
  DmaRing* ring_ = nullptr;
  Region staging_;
  u64 staged_ = 0;
  u32 ticket_ = 0;
  u32 queued_ = 0;
  bool broken_ = false;            // the agent missed a deadline: nothing it moves can be trusted any more
  std::vector<Landing> landings_;  // what commit() copies from staging to its place
};

}  // namespace doorbell::model
