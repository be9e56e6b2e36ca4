// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/qdma/policy.hpp>

#include <algorithm>
#include <utility>

namespace doorbell::qdma {

namespace {

constexpr u32 kBothChannels = 3;

constexpr std::array<MemoryRegion, 4> kV80Regions = {{
    {.name = "HBM, lower half", .base = kHbmBase, .bytes = kHbmBoundary - kHbmBase, .preferred = 0},
    {.name = "HBM, upper half",
     .base = kHbmBoundary,
     .bytes = kHbmBase + kHbmBytes - kHbmBoundary,
     .preferred = 1},
    {.name = "DDR", .base = kDdrBase, .bytes = kDdrBytes},
    {.name = "PDI", .base = kPdiBase, .bytes = kPdiBytes, .preferred = 0, .directions = kDirH2C},
}};

constexpr std::array<std::pair<std::string_view, PolicyKind>, 4> kNames = {{
    {"balanced", PolicyKind::balanced},
    {"v80-compat", PolicyKind::v80_compat},
    {"channel0", PolicyKind::channel0},
    {"channel1", PolicyKind::channel1},
}};

/// `offset` or the nearest place before it where the host's offset is a multiple of the step; 0 if there is
/// none.
u64 cut_before(const TransferShape& t, u64 offset) {
  const u64 beyond = (t.host_offset % t.step + offset % t.step) % t.step;
  return offset > beyond ? offset - beyond : 0;
}

const MemoryRegion* region_at(std::span<const MemoryRegion> regions, u64 address) {
  for (const MemoryRegion& r : regions)
    if (address >= r.base && address - r.base < r.bytes) return &r;
  return nullptr;
}

/// The part of a transfer that lies in one region.
struct Piece {
  const MemoryRegion* region;
  u64 offset;
};

/// The regions that the transfer goes through, in order; none if a byte cannot go this way.
std::vector<Piece> pieces_of(const TransferShape& t, std::span<const MemoryRegion> regions) {
  std::vector<Piece> pieces;
  if (t.bytes == 0 || t.queue_pairs == 0 || t.address + (t.bytes - 1) < t.address) return {};
  for (u64 done = 0; done < t.bytes;) {
    const u64 at = t.address + done;
    const MemoryRegion* const r = region_at(regions, at);
    if (r == nullptr || (r->directions & static_cast<u32>(t.direction)) == 0) return {};
    pieces.push_back({r, done});
    done += std::min(r->bytes - (at - r->base), t.bytes - done);
  }
  return pieces;
}

/// One choice of segments for one transfer.
class Cutter {
 public:
  Cutter(const TransferShape& t, const BalancedPolicy& policy, const ChannelLoad& queued)
      : t_(t),
        least_(std::max<u64>(policy.smallest_split / 2, 1)),
        same_(t.direction == Direction::host_to_card ? queued.host_to_card : queued.card_to_host),
        other_(t.direction == Direction::host_to_card ? queued.card_to_host : queued.host_to_card) {}

  [[nodiscard]] std::vector<Segment> whole(u32 channel) const { return {{channel, 0, t_.bytes}}; }

  [[nodiscard]] u32 idlest(u32 preferred) const {
    if (same_[0] != same_[1]) return same_[0] < same_[1] ? 0 : 1;
    if (other_[0] != other_[1]) return other_[0] < other_[1] ? 0 : 1;
    return preferred == 1 ? 1 : 0;
  }

  /// Two parts, after which both channels have the same left to do. `first`: the channel of the lower part.
  [[nodiscard]] std::vector<Segment> balanced(u32 first) const {
    const u64 ahead = same_[first], behind = same_[1 - first];
    u64 lower = t_.bytes / 2;
    if (behind >= ahead) lower += std::min((behind - ahead) / 2, t_.bytes - lower);
    else lower -= std::min((ahead - behind) / 2, lower);
    lower = cut_before(t_, lower);
    if (lower < least_ || t_.bytes - lower < least_) return whole(idlest(first));
    return {{first, 0, lower}, {1 - first, lower, t_.bytes - lower}};
  }

  /// The channels in turn.
  [[nodiscard]] std::vector<Segment> striped(u64 asked, u32 first) const {
    const u64 stripe = std::max(asked, least_ + t_.step);  // a cut may move back by less than a step
    std::vector<Segment> segments;
    u64 begin = 0;
    for (u32 channel = first; t_.bytes - begin >= least_ && t_.bytes - begin - least_ >= stripe;
         channel = 1 - channel) {
      const u64 end = cut_before(t_, begin + stripe);
      segments.push_back({channel, begin, end - begin});
      begin = end;
    }
    // With the smallest part behind it no stripe has room here, which is no reason to leave a channel idle.
    if (segments.empty()) return asked >= t_.bytes ? whole(idlest(first)) : balanced(first);
    segments.push_back({1 - segments.back().queue_pair, begin, t_.bytes - begin});
    return segments;
  }

  /// Each piece through its region's preferred channel. What is too small goes with its neighbour.
  [[nodiscard]] std::vector<Segment> by_preference(std::span<const Piece> pieces) const {
    std::vector<Segment> segments;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const u32 channel = pieces[i].region->preferred;
      const u64 begin = i == 0 ? 0 : cut_before(t_, pieces[i].offset);
      if (!segments.empty() && (segments.back().queue_pair == channel || t_.bytes - begin < least_)) continue;
      if (!segments.empty() && begin - segments.back().offset < least_) segments.back().queue_pair = channel;
      else segments.push_back({channel, begin, 0});
    }
    for (std::size_t i = 0; i < segments.size(); ++i)
      segments[i].bytes = (i + 1 < segments.size() ? segments[i + 1].offset : t_.bytes) - segments[i].offset;
    return segments;
  }

 private:
  const TransferShape& t_;
  u64 least_;
  const std::array<u64, 2>& same_;   // queued in the transfer's direction, by channel
  const std::array<u64, 2>& other_;  // and in the other one
};

}  // namespace

std::span<const MemoryRegion> v80_regions() {
  return kV80Regions;
}

std::vector<Segment> v80_compat(const TransferShape& t) {
  if (t.bytes == 0) return {};
  const std::vector<Segment> on_first = {{0, 0, t.bytes}};
  if (t.queue_pairs < 2 || t.step == 0) return on_first;
  u64 lower = 0;
  if (t.buffer_base >= kDdrBase && t.buffer_base - kDdrBase < kDdrBytes) {
    lower = t.bytes / 2;
  } else if (t.address >= kHbmBoundary) {
    return {{1, 0, t.bytes}};
  } else if (t.bytes <= kHbmBoundary - t.address) {
    return on_first;
  } else {
    lower = kHbmBoundary - t.address;
  }
  lower -= lower % t.step;
  if (lower == 0 || lower >= t.bytes) return on_first;
  return {{0, 0, lower}, {1, lower, t.bytes - lower}};
}

std::vector<Segment> balanced(const TransferShape& t, const BalancedPolicy& policy,
                              const ChannelLoad& queued) {
  const std::vector<Piece> pieces = pieces_of(t, policy.regions);
  if (pieces.empty()) return {};
  u32 channels = kBothChannels;
  bool prefers = policy.routing == Routing::by_half;
  for (const Piece& p : pieces) {
    channels &= p.region->channels;
    prefers = prefers && p.region->preferred < 2;
  }
  if (channels == 0) return {};
  const Cutter cut(t, policy, queued);
  // With one queue pair, the descriptor has decided.
  if (t.queue_pairs == 1) return cut.whole(0);
  if (channels != kBothChannels) return cut.whole(channels == 1 ? 0 : 1);
  const u32 preferred = pieces.front().region->preferred;
  const bool small = t.bytes < policy.smallest_split || t.step == 0;
  if (prefers) return small ? cut.whole(preferred) : cut.by_preference(pieces);
  if (small) return cut.whole(cut.idlest(preferred));
  if (policy.stripe != 0) return cut.striped(policy.stripe, cut.idlest(preferred));
  return cut.balanced(preferred == 1 ? 1 : 0);
}

std::string_view name(PolicyKind p) {
  for (const auto& [name, kind] : kNames)
    if (kind == p) return name;
  return "";
}

std::optional<PolicyKind> policy_named(std::string_view name) {
  for (const auto& [own, kind] : kNames)
    if (own == name) return kind;
  return std::nullopt;
}

}  // namespace doorbell::qdma
