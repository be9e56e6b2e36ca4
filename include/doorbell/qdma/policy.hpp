// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Which of a card's two channels carries which part of a transfer. Pure functions; any thread.
#pragma once

#include <doorbell/qdma/abi.hpp>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell::qdma {

/// One part of a transfer: `bytes` bytes from `offset` bytes after the transfer's start.
struct Segment {
  u32 queue_pair = 0;  ///< index into the descriptor's queue pairs; 0 is channel 0, 1 is channel 1
  u64 offset = 0;      ///< in the transfer
  u64 bytes = 0;       ///< never 0
};

/// A transfer that is to be cut.
struct TransferShape {
  Direction direction = Direction::host_to_card;  ///< of all its parts
  u64 buffer_base = 0;  ///< the card address where the allocation begins (v80-compat decides by it)
  u64 address = 0;      ///< on the card
  u64 bytes = 0;        ///< of the whole transfer
  u64 host_offset = 0;  ///< of the transfer's start in the host's buffer
  u64 step = kGranule;  ///< what host offsets must be multiples of; 0: there are no cuts
  u32 queue_pairs = 2;  ///< of the descriptor
};

/// The load that is already queued on each channel: bytes by direction.
struct ChannelLoad {
  std::array<u64, 2> host_to_card{};  ///< by channel
  std::array<u64, 2> card_to_host{};  ///< by channel
};

/// MemoryRegion::preferred: no channel is nearer than the other.
inline constexpr u32 kNoPreference = ~0u;

/// A range of the card's addresses and how it is reached.
struct MemoryRegion {
  std::string_view name;               ///< for messages
  u64 base = 0;                        ///< its first address
  u64 bytes = 0;                       ///< its length
  u32 channels = 3;                    ///< bit c: channel c reaches this memory
  u32 preferred = kNoPreference;       ///< the channel that upstream routes it through
  u32 directions = kDirH2C | kDirC2H;  ///< that it has
};

/// The regions of a V80 as doorbell routes them: HBM's lower half, its upper half, DDR, the PDI port.
[[nodiscard]] std::span<const MemoryRegion> v80_regions();

/// Which channels carry a region's bytes.
enum class Routing : u32 {
  shared,   ///< all that reach it
  by_half,  ///< its preferred channel, if it has one: each half of HBM through a channel of its own
};

/// How doorbell's own policy cuts.
struct BalancedPolicy {
  u64 smallest_split = 256 << 10;  ///< transfers below this stay whole; `doorbell qdma tune` measures it
  u64 stripe = 0;                  ///< the channels in turn every so many bytes; 0: one part for each channel
  Routing routing = Routing::shared;                      ///< for regions that both channels reach
  std::span<const MemoryRegion> regions = v80_regions();  ///< the card's; outlive the policy
};

/// As upstream's client does (SLASH v80_policy.h), case by case as in tests/golden/qdma.json: kind
/// policy_v80. One or two segments; EINVAL's cases (length 0) give none.
[[nodiscard]] std::vector<Segment> v80_compat(const TransferShape& t);

/// doorbell's own. No segments if a byte is outside every region, if a region does not have the direction, or
/// if no channel reaches all of the transfer. Otherwise the segments cover the transfer exactly, in order; at
/// every cut the host's offset is a multiple of `step`; no segment is under half of smallest_split unless it
/// is alone. The parts are such that both channels end at the same time, given what is queued in the same
/// direction: directions do not slow each other down. A transfer longer than a stripe that has no room for
/// a stripe and the smallest part is cut as without stripes. A transfer that stays whole takes the channel
/// with the least queued in its direction, then in the other one, then the region's preferred channel.
[[nodiscard]] std::vector<Segment> balanced(const TransferShape& t, const BalancedPolicy& policy,
                                            const ChannelLoad& queued = {});

/// A policy by its name.
enum class PolicyKind : u32 {
  balanced,    ///< balanced()
  v80_compat,  ///< v80_compat()
  channel0,    ///< all through channel 0
  channel1,    ///< all through channel 1
};
/// As options name it: "v80-compat".
[[nodiscard]] std::string_view name(PolicyKind p);
/// The policy of a name: "balanced", "v80-compat", "channel0", "channel1".
[[nodiscard]] std::optional<PolicyKind> policy_named(std::string_view name);

}  // namespace doorbell::qdma
