// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Settings of streams and of the network bench.
#pragma once

#include "exchange/settings.hpp"
#include "measure/settings.hpp"
#include "options/setting.hpp"

namespace doorbell::net::setting {

using exchange::setting::listen;
using measure::setting::duration;
using measure::setting::fault;
using measure::setting::others;
using measure::setting::repeats;

inline constexpr Setting stream{"stream", "stream"};
inline constexpr Setting engine{"engine", "engine"};
inline constexpr Setting link{"link", "link"};
inline constexpr Setting payload{"payload", "payload"};
inline constexpr Setting flows{"flows", "flows"};
inline constexpr Setting split{"header-data split", "split"};
inline constexpr Setting rss{"RSS", "rss"};
inline constexpr Setting memory{"memory of received packets", "host-memory"};
inline constexpr Setting device{"device", "device"};
inline constexpr Setting provider{"provider", "provider"};
inline constexpr Setting connect{"address of the other process", "connect"};
inline constexpr Setting window{"window", "window"};
inline constexpr Setting convert{"conversion", "convert"};
inline constexpr Setting every_window{"checking every window", "check-every 1"};
inline constexpr Setting to_gpu{"way to the GPU", "to-gpu"};
inline constexpr Setting mode{"mode", "mode"};
inline constexpr Setting queues{"queues", "queues"};
inline constexpr Setting pairs{"pairs", "pairs"};
inline constexpr Setting way_loss{"loss on the way", "max-way-loss"};
inline constexpr Setting target_gbps{"target rate", "target-gbps"};
inline constexpr Setting cores{"cores", "cores"};

}  // namespace doorbell::net::setting
