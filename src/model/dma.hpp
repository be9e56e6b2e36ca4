// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A model's DMA engine: moves bytes between the device and the memory that its AddressSpace maps.
//
// The device thread copies host memory at once. A CPU thread cannot load or store GPU memory, so transfers to
// and from GPU memory are collected, and the DMA agent, a persistent kernel, does them in commit(). A device
// thread therefore works in rounds: queue transfers, commit, use the data. Of a GPU for which this build has
// no kernels the copy engine does them all, which is slower.
#pragma once

#include <doorbell/gpu.hpp>

#include <functional>
#include <memory>
#include <vector>

#include "memory/software_address_space.hpp"
#include "model/dma_place.hpp"
#include "model/dma_types.hpp"

namespace doorbell::model {

/// One agent kernel with a ring for each device thread; started and stopped by the device. Without a kernel
/// it stands for the GPU's copy engine.
class DmaAgent {
 public:
  /// `kernel`: if this build has one for the GPU.
  DmaAgent(std::shared_ptr<gpu::Gpu> gpu, u32 rings, bool kernel = true);
  ~DmaAgent();
  DmaAgent(const DmaAgent&) = delete;
  DmaAgent& operator=(const DmaAgent&) = delete;
  /// Null where there is no kernel.
  [[nodiscard]] DmaRing* ring(u32 i);
  [[nodiscard]] const std::shared_ptr<gpu::Gpu>& gpu() const { return gpu_; }

 private:
  struct Impl;
  std::shared_ptr<gpu::Gpu> gpu_;
  std::unique_ptr<Impl> impl_;  // null without a kernel
};

/// One for each device thread.
class DmaEngine {
 public:
  /// `agent` may be null: then an access to GPU memory is a fault.
  DmaEngine(const SoftwareAddressSpace& space, DmaAgent* agent, u32 ring);
  ~DmaEngine();

  struct Lookup {
    bool reachable = false;  ///< as reachable() says
    u8* host = nullptr;      ///< as host() says
  };
  /// Where memory is. A look is no access: what is not there is not counted as a fault.
  [[nodiscard]] Lookup look(Iova iova, u64 bytes, Access access);
  /// The host address of memory that lies in one piece in this process, else null. For rings, which are read
  /// in place.
  [[nodiscard]] u8* host(Iova iova, u64 bytes, Access access);
  /// True if the memory exists and allows `access`: in one mapping or in several side by side, on the host,
  /// on the GPU or in another process.
  [[nodiscard]] bool reachable(Iova iova, u64 bytes, Access access);

  /// Copies host memory to a device buffer. False: fault. Bytes from GPU memory are there after commit(); for
  /// those of another process it waits.
  [[nodiscard]] bool fetch(Iova from, void* to, u64 bytes);
  /// Copies a device buffer to host memory. False: fault. In GPU memory the bytes are there after commit();
  /// `from` may be reused at once.
  [[nodiscard]] bool deliver(Iova to, const void* from, u64 bytes);
  /// Copies between two places, at least one of which is in GPU memory; directly, if the GPU reaches both.
  /// False without an agent. The bytes are there after commit(). Until then `from` must not change, unless it
  /// is host memory that the GPU cannot reach. Copies of one commit may happen in any order.
  [[nodiscard]] bool copy(const DmaPlace& to, const DmaPlace& from, u64 bytes);
  /// True if something waits for commit().
  [[nodiscard]] bool pending() const { return queued_ > 0 || !engine_.empty(); }
  /// Finishes every queued transfer. False if the copy engine failed or the agent did not answer within a
  /// second.
  [[nodiscard]] bool commit();
  /// Called again and again while fetch() or deliver() waits for another process.
  void while_waiting(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }
  [[nodiscard]] u64 faults() const { return view_.faults(); }

 private:
  struct Landing {
    void* to;
    const u8* from;
    u64 bytes;
  };
  [[nodiscard]] bool full() const { return queued_ == kCopyRing || engine_.size() == kCopyRing; }
  [[nodiscard]] bool fetch_part(const SoftwareAddressSpace::View::Target& t, Iova from, void* to);
  [[nodiscard]] bool deliver_part(const SoftwareAddressSpace::View::Target& t, Iova to, const void* from);
  u8* stage(u64 bytes);
  void submit(void* to, const void* from, u64 bytes, const u8* within);
  [[nodiscard]] bool agent_is_done();
  // `within`: where the mapping of the GPU memory ends; null: not known.
  void collect(void* to, const u8* gpu_from, u64 bytes, const u8* within);
  void spread(u8* gpu_to, const void* from, u64 bytes, const u8* within);

  SoftwareAddressSpace::View view_;
  std::function<void()> meanwhile_;
  DmaRing* ring_ = nullptr;  // null: the copy engine does everything
  gpu::Gpu* gpu_ = nullptr;
  Region staging_;
  u64 staged_ = 0;
  u32 ticket_ = 0;
  u32 queued_ = 0;
  bool broken_ = false;  // the GPU failed or missed a deadline: nothing that it moves can be trusted
  std::vector<Landing> landings_;  // what commit() copies from staging to its place
  std::vector<gpu::Copy> engine_;  // what commit() gives to the GPU's copy engine
  const u8* within_ = nullptr;     // where the mapping of the last of these ends
};

}  // namespace doorbell::model
