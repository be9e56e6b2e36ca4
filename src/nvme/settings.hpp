// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Settings of controllers, files and the NVMe bench.
#pragma once

#include "measure/settings.hpp"
#include "options/setting.hpp"

namespace doorbell::nvme::setting {

using measure::setting::duration;
using measure::setting::fault;
using measure::setting::initiator;
using measure::setting::others;
using measure::setting::verify;

inline constexpr Setting controller{"controller", "controller"};
inline constexpr Setting memory_mode{"memory mode", "memory-mode"};
inline constexpr Setting write_io{"I/Os to write", "write-io"};
inline constexpr Setting read_io{"I/Os to read", "read-io"};
inline constexpr Setting batch{"batch", "batch-size"};
inline constexpr Setting in_flight{"I/Os in flight", "in-flight"};
inline constexpr Setting queue_length{"queue length", "queue-length"};
inline constexpr Setting num_queues{"queues", "num-queues"};
inline constexpr Setting op{"operation", "op"};
inline constexpr Setting io_bytes{"bytes an I/O", "size"};
inline constexpr Setting lbas_per_io{"blocks an I/O", "lbas-per-io"};
inline constexpr Setting base_lba{"first block", "base-lba"};
inline constexpr Setting allow_write{"permission to write", "allow-write"};
inline constexpr Setting others_file{"file to compare on", "beside-file"};
inline constexpr Setting file{"file ", "controller file:"};
inline constexpr Setting engine{"kernel interface", "backend"};
inline constexpr Setting direct{"direct I/O", "direct"};
inline constexpr Setting fixed_buffers{"registered buffers", "fixed-buffers"};
inline constexpr Setting fixed_files{"registered files", "fixed-files"};
inline constexpr Setting sqpoll{"submission polling", "sqpoll"};
inline constexpr Setting iopoll{"completion polling", "iopoll"};
inline constexpr Setting create_bytes{"file size", "file-size"};

}  // namespace doorbell::nvme::setting
