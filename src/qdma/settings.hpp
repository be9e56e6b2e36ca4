// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Settings of QDMA cards and of what measures them.
#pragma once

#include "measure/settings.hpp"
#include "options/setting.hpp"

namespace doorbell::qdma::setting {

using measure::setting::fault;

inline constexpr Setting card{"card", "device"};
inline constexpr Setting served_card{"card", "card"};
inline constexpr Setting starting_offset{"first place", "starting-offset"};
inline constexpr Setting raw_memory{"raw access to card memory", "raw-memory"};
inline constexpr Setting allow_write{"permission to overwrite", "allow-write"};
inline constexpr Setting transfers{"transfers in flight", "size, --in-flight, --num-queues"};
inline constexpr Setting ddr_only{"DDR alone", "ddr-only"};
inline constexpr Setting hbm_only{"HBM alone", "hbm-only"};
inline constexpr Setting together_only{"both memories together alone", "together-only"};
inline constexpr Setting threads{"threads", "threads"};
inline constexpr Setting buffer_bytes{"buffer size", "buffer-size"};
inline constexpr Setting offset{"distance of places", "offset"};
inline constexpr Setting channels{"channels", "mm-channel"};
inline constexpr Setting channel_allocation{"paired places", "channel-allocation"};
inline constexpr Setting region_stride{"distance of paired places", "channel-region-stride"};
inline constexpr Setting smallest{"smallest size", "smallest"};
inline constexpr Setting largest{"largest size", "largest"};

}  // namespace doorbell::qdma::setting
