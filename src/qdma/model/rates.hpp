// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The limits of a software card: two channels, the link that they share, and the halves of HBM. A burst ends
// when the slowest of what it passes has passed it on.
#pragma once

#include <doorbell/qdma/abi.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "model/link.hpp"
#include "qdma/model/config.hpp"

namespace doorbell::qdma {

class CardRates {
 public:
  explicit CardRates(const CardConfig& c) {
    for (u32 d = 0; d < 2; ++d) {
      const char* const way = d == 0 ? "host_to_card" : "card_to_host";
      for (u32 i = 0; i < 2; ++i) {
        channels_[i][d] = Limit(fmt::format("channel_{}_{}", i, way), c.bytes_per_s);
        hbm_[i][d] = Limit(fmt::format("hbm_{}_{}", i == 0 ? "low" : "high", way),
                           d == 0 ? c.hbm_write_bytes_per_s : c.hbm_read_bytes_per_s);
      }
      link_[d] = Limit(fmt::format("link_{}", way), c.link_bytes_per_s);
    }
    duplex_ = Limit("both_directions", c.duplex_bytes_per_s);
  }

  /// When a burst ends that starts at `start_ns`; `start_ns` itself if nothing limits it. A burst lies in one
  /// half of HBM or outside it.
  [[nodiscard]] u64 end_of(u32 channel, Direction direction, u64 address, u64 bytes, u64 start_ns) {
    const u32 d = direction == Direction::host_to_card ? 0 : 1;
    u64 end = channels_[channel][d].pass(start_ns, bytes);
    end = std::max(end, link_[d].pass(start_ns, bytes));
    end = std::max(end, duplex_.pass(start_ns, bytes));
    if (address >= kHbmBase && address < kHbmBase + kHbmBytes)
      end = std::max(end, hbm_[address >= kHbmBoundary ? 1 : 0][d].pass(start_ns, bytes));
    return end;
  }

  /// How long each limit has been at work, by its name.
  [[nodiscard]] nlohmann::ordered_json busy_ns() const {
    nlohmann::ordered_json busy = nlohmann::ordered_json::object();
    const auto add = [&](const Limit& l) {
      if (l.bytes_per_s > 0) busy[l.name] = static_cast<double>(l.bytes) * 1e9 / l.bytes_per_s;
    };
    for (const auto& channel : channels_)
      for (const Limit& l : channel) add(l);
    for (const Limit& l : link_) add(l);
    add(duplex_);
    for (const auto& half : hbm_)
      for (const Limit& l : half) add(l);
    return busy;
  }

 private:
  struct Limit {
    std::string name;
    double bytes_per_s = 0;
    u64 bytes = 0;  ///< that have passed
    std::unique_ptr<model::Link> link;
    Limit() = default;
    Limit(std::string n, double rate)
        : name(std::move(n)), bytes_per_s(rate), link(std::make_unique<model::Link>(rate, 0)) {}
    u64 pass(u64 start_ns, u64 n) {
      bytes += n;
      return link->finish_time(start_ns, n);
    }
  };
  std::array<std::array<Limit, 2>, 2> channels_, hbm_;
  std::array<Limit, 2> link_;
  Limit duplex_;
};

}  // namespace doorbell::qdma
