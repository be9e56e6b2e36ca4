// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The names of the bench's settings in messages of `doorbell net`: its options.
#pragma once

#include "net/bench.hpp"

namespace doorbell::net {

inline SettingNames setting_names() {
  SettingNames n;
  n.stream = "--stream";
  n.engine = "--engine";
  n.link = "--link";
  n.payload = "--payload";
  n.flows = "--flows";
  n.split = "--split";
  n.rss = "--rss";
  n.memory = "--host-memory";
  n.device = "--device";
  n.provider = "--provider";
  n.connect = "--connect";
  n.listen = "--listen";
  n.windows = {.payload = "--payload",
               .window = "--window",
               .convert = "--convert",
               .check_every = "--check-every 1",
               .to_gpu = "--to-gpu",
               .memory = "--host-memory"};
  n.mode = "--mode";
  n.queues = "--queues";
  n.pairs = "--pairs";
  n.target_gbps = "--target-gbps";
  n.duration = "--duration";
  n.cores = "--cores";
  n.fault = "--fault";
  n.repeats = "--repeats";
  n.others = "--beside";
  return n;
}

}  // namespace doorbell::net
