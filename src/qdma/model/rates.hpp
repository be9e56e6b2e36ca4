// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What limits a software card: two channels, the link that they share, and the halves of HBM. A burst ends
// when the slowest of what it passes has passed it on.
#pragma once

#include <doorbell/qdma/abi.hpp>

#include <algorithm>
#include <array>

#include "model/link.hpp"
#include "qdma/model/config.hpp"

namespace doorbell::qdma {

class CardRates {
 public:
  explicit CardRates(const CardConfig& c)
      : channels_{{{Link{c.bytes_per_s, 0}, Link{c.bytes_per_s, 0}},
                   {Link{c.bytes_per_s, 0}, Link{c.bytes_per_s, 0}}}},
        link_{Link{c.link_bytes_per_s, 0}, Link{c.link_bytes_per_s, 0}},
        duplex_(c.duplex_bytes_per_s, 0),
        hbm_{{{Link{c.hbm_write_bytes_per_s, 0}, Link{c.hbm_read_bytes_per_s, 0}},
              {Link{c.hbm_write_bytes_per_s, 0}, Link{c.hbm_read_bytes_per_s, 0}}}} {}

  /// When a burst ends that starts at `start_ns`; `start_ns` itself if nothing limits it. A burst lies in one
  /// half of HBM or outside it.
  [[nodiscard]] u64 end_of(u32 channel, Direction direction, u64 address, u64 bytes, u64 start_ns) {
    const u32 d = direction == Direction::host_to_card ? 0 : 1;
    u64 end = channels_[channel][d].finish_time(start_ns, bytes);
    end = std::max(end, link_[d].finish_time(start_ns, bytes));
    end = std::max(end, duplex_.finish_time(start_ns, bytes));
    if (address >= kHbmBase && address < kHbmBase + kHbmBytes)
      end = std::max(end, hbm_[address >= kHbmBoundary ? 1 : 0][d].finish_time(start_ns, bytes));
    return end;
  }

 private:
  using Link = model::Link;
  std::array<std::array<Link, 2>, 2> channels_;
  std::array<Link, 2> link_;
  Link duplex_;
  std::array<std::array<Link, 2>, 2> hbm_;
};

}  // namespace doorbell::qdma
