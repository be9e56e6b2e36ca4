// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// State that all device threads of one model share.
#pragma once

#include "model/config.hpp"
#include "model/fault_injector.hpp"
#include "model/link.hpp"

namespace doorbell::model {

/// `C` is a model's own Config.
template <class C>
struct Shared {
  const C config;
  Link link;
  FaultInjector faults;
  Presence presence;
  explicit Shared(const C& c)
      : config(c), link(c.bytes_per_s, c.latency_ns), faults(c.faults, c.seed, c.delay_ns) {}
};

}  // namespace doorbell::model
