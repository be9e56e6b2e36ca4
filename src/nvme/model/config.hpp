// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What a model controller is asked to be.
#pragma once

#include <doorbell/config.hpp>

#include <string>

#include "model/fault.hpp"

namespace doorbell::nvme {

struct ModelConfig {
  enum class Media { null, ram, file };
  Media media = Media::ram;
  std::string path;  ///< of Media::file
  u32 lba_bytes = 512;
  u64 capacity_bytes = u64{1} << 30;
  bool capacity_given = true;  ///< false: a media file that is there has its own size
  u64 latency_ns = 0;
  double bytes_per_s = 0;  ///< 0: as fast as it goes
  u32 threads = 1;         ///< device threads that serve I/O queues
  u32 max_queues = 64;     ///< granted I/O queue pairs
  u32 max_entries = 4096;  ///< CAP.MQES + 1
  u32 stride = 0;          ///< CAP.DSTRD
  u32 mdts = 9;            ///< largest transfer: 4 KiB << mdts; 0: no limit
  bool contiguous = true;  ///< CAP.CQR
  bool shadow_doorbells = true;
  bool gpu_memory = true;  ///< with a GPU: start the DMA agent that reaches its memory
  model::FaultRates faults;
  u64 seed = 1;
  u64 delay_ns = 1'500'000'000;  ///< by how much Fault::delay holds a completion back
};

}  // namespace doorbell::nvme
