// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The controller that a QEMU process is asked to host.
#pragma once

#include <doorbell/config.hpp>

#include <string>

#include "options/option.hpp"

namespace doorbell::nvme {

struct QemuConfig {
  enum class Media { ram, null, drive };
  Media media = Media::ram;
  std::string drive;  ///< path, of Media::drive
  u32 lba_bytes = 512;
  u64 capacity_bytes = u64{1} << 30;  ///< of Media::ram and Media::null
  u32 queues = 64;
  u32 mdts = 7;
  u64 iops = 0;  ///< 0: no limit
  bool has_bad_sector = false;
  u64 bad_sector = 0;                     ///< of 512 bytes; reading it is an error
  std::string binary;                     ///< empty: DOORBELL_QEMU, or qemu-system-x86_64 on PATH
  std::string title = "controller qemu";  ///< what messages call it
};

/// The keys that may follow "qemu:".
[[nodiscard]] options::OptionTable qemu_keys();
/// Throws doorbell::Error for an unknown key or a bad value. `controller`: the setting that names the
/// controller.
[[nodiscard]] QemuConfig parse_qemu_spec(const std::string& spec,
                                         const std::string& controller = "controller");

}  // namespace doorbell::nvme
