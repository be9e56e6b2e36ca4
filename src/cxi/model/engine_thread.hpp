// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The engine on a thread of the CPU. What it cannot reach itself, in a GPU's memory, a DMA agent moves for
// it.
#pragma once

#include <memory>

#include "cxi/model/engine_base.hpp"
#include "model/dma.hpp"

namespace doorbell::cxi {

/// Its poll() is called by one thread only.
[[nodiscard]] std::unique_ptr<EngineBase> engine_on_thread(ModelShared& shared,
                                                           const SoftwareAddressSpace& space,
                                                           model::DmaAgent* agent);

}  // namespace doorbell::cxi
