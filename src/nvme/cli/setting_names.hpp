// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The names of the bench's settings in messages of `doorbell nvme`: its options.
#pragma once

#include "nvme/bench.hpp"

namespace doorbell::nvme {

inline void name_settings_by_options(BenchOptions& o) {
  o.names = {.controller = "--controller",
             .initiator = "--initiator",
             .memory_mode = "--memory-mode",
             .write_io = "--write-io",
             .read_io = "--read-io",
             .batch = "--batch-size",
             .in_flight = "--in-flight",
             .queue_length = "--queue-length",
             .num_queues = "--num-queues",
             .lbas_per_io = "--lbas-per-io",
             .base_lba = "--base-lba",
             .duration = "--duration",
             .verify = "--verify",
             .allow_write = "--allow-write",
             .fault = "--fault",
             .others = "--beside",
             .others_file = "--beside-file"};
  o.file_options.names = {.file = "--controller file:",
                          .engine = "--backend",
                          .direct = "--direct",
                          .fixed_buffers = "--fixed-buffers",
                          .fixed_files = "--fixed-files",
                          .sqpoll = "--sqpoll",
                          .iopoll = "--iopoll",
                          .create_bytes = "--file-size",
                          .read_io = "--read-io"};
}

}  // namespace doorbell::nvme
