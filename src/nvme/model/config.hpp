// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The configuration of a model controller.
#pragma once

#include <doorbell/config.hpp>

#include <string>

#include "model/config.hpp"

namespace doorbell::nvme {

struct ModelConfig : model::Config {
  enum class Media { null, ram, file };
  bool rung_by_gpu = false;  ///< with Engine::gpu: I/O doorbells lie in GPU memory
  Media media = Media::ram;
  std::string path;        ///< for Media::file
  bool writes = true;      ///< the file is locked for writing,
  bool must_write = true;  ///< and one that may only be read is refused
  u32 lba_bytes = 512;
  u32 formats = 1;  ///< LBA formats that are reported; the last is in use
  u64 capacity_bytes = u64{1} << 30;
  bool capacity_given = true;  ///< false: an existing media file sets the size
  u32 max_queues = 64;         ///< granted I/O queue pairs
  u32 max_entries = 4096;      ///< CAP.MQES + 1
  u32 stride = 0;              ///< CAP.DSTRD
  u32 mdts = 9;                ///< largest transfer: 4 KiB << mdts; 0: no limit
  bool contiguous = true;      ///< CAP.CQR
  bool shadow_doorbells = true;
  bool format = false;  ///< Format NVM and Sanitize are carried out
  std::string serial = "DOORBELL-MODEL-1";
};

}  // namespace doorbell::nvme
