// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The names of the bench's settings in messages of `doorbell net`: its options.
#pragma once

#include "net/bench.hpp"

namespace doorbell::net {

inline SettingNames setting_names() {
  return {.stream = "--stream",
          .engine = "--engine",
          .link = "--link",
          .mode = "--mode",
          .payload = "--payload",
          .flows = "--flows",
          .queues = "--queues",
          .pairs = "--pairs",
          .target_gbps = "--target-gbps",
          .duration = "--duration",
          .cores = "--cores",
          .connect = "--connect",
          .fault = "--fault",
          .others = "--beside"};
}

}  // namespace doorbell::net
