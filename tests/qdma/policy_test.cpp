// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Which channel carries what: v80-compat against recorded cases, doorbell's own policy by its properties.

#include <doorbell/qdma/policy.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "golden/golden.hpp"

namespace doorbell::qdma {
namespace {

using golden::number;

TEST(V80Compat, CutsAsRecorded) {
  const auto recorded = golden::read_file("qdma");
  u32 cases = 0;
  for (const auto& v : recorded.at("vectors")) {
    if (v.at("kind") != "policy_v80") continue;
    SCOPED_TRACE(v.at("name").get<std::string>());
    ++cases;
    const auto& in = v.at("inputs");
    const u64 address = number(in.at("dev_addr"));
    ASSERT_EQ(number(in.at("buffer_base")) + number(in.at("offset")), address);
    const auto cut = v80_compat({.buffer_base = number(in.at("buffer_base")),
                                 .address = address,
                                 .bytes = number(in.at("length")),
                                 .host_offset = number(in.at("offset")),
                                 .step = number(in.at("step")),
                                 .queue_pairs = static_cast<u32>(number(in.at("qpair_count")))});
    if (number(in.at("length")) == 0) {  // upstream makes an empty segment, which the driver refuses
      EXPECT_TRUE(cut.empty());
      continue;
    }
    const auto& expected = v.at("expected");
    ASSERT_EQ(cut.size(), expected.size());
    for (std::size_t i = 0; i < cut.size(); ++i) {
      EXPECT_EQ(cut[i].queue_pair, number(expected[i].at("channel")));
      EXPECT_EQ(address + cut[i].offset, number(expected[i].at("dev_addr")));
      EXPECT_EQ(cut[i].bytes, number(expected[i].at("length")));
    }
  }
  EXPECT_EQ(cases, 24u);
}

/// The sheet's case that no vector has: a base below DDR counts as HBM, although the start is in DDR.
TEST(V80Compat, DecidesByTheBase) {
  const auto cut = v80_compat({.buffer_base = kDdrBase - 4096, .address = kDdrBase, .bytes = 1 << 20});
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].queue_pair, 1u);
}

TEST(V80Compat, AnEndBeyondTheLastAddressDoesNotWrap) {
  const auto cut = v80_compat({.address = ~u64{0} - 4095, .bytes = 8192});
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].bytes, 8192u);
}

/// Draws a shape: near the regions' ends as often as in the middle, aligned as often as not.
class Shapes {
 public:
  explicit Shapes(u32 seed) : random_(seed) {}
  u64 below(u64 n) { return random_() % n; }
  /// Small as likely as large.
  u64 size(u32 bits) { return (random_() >> (64 - bits)) >> below(bits); }

  TransferShape shape() {
    TransferShape t;
    t.direction = below(2) == 0 ? Direction::host_to_card : Direction::card_to_host;
    t.step = u64{1} << below(18);
    t.host_offset = below(2) == 0 ? 0 : size(30);
    if (below(4) != 0) t.host_offset -= t.host_offset % t.step;
    t.queue_pairs = below(8) == 0 ? 1 : 2;
    t.bytes = 1 + size(35);
    const u64 anchors[] = {
        kHbmBase, kHbmBoundary,        kHbmBase + kHbmBytes, kDdrBase, kDdrBase + kDdrBytes,
        kPdiBase, kHbmBase + size(34), kDdrBase + size(34)};
    t.address = anchors[below(std::size(anchors))];
    const u64 back = below(3) == 0 ? t.bytes : below(3) == 0 ? size(25) : 0;
    t.address -= std::min(back, t.address);
    t.buffer_base = t.address;
    return t;
  }
  ChannelLoad load() {
    ChannelLoad l;
    if (below(2) == 0) return l;
    for (auto* side : {&l.host_to_card, &l.card_to_host})
      for (u64& bytes : *side) bytes = below(2) == 0 ? 0 : size(34);
    return l;
  }
  BalancedPolicy policy() {
    BalancedPolicy p;
    p.smallest_split = below(4) == 0 ? 0 : size(24);
    p.stripe = below(2) == 0 ? 0 : (u64{64} << 10) + size(28);
    p.routing = below(2) == 0 ? Routing::shared : Routing::by_half;
    return p;
  }

 private:
  std::mt19937_64 random_;
};

/// Said independently of the policy: the address range is one that the card's memory has in this direction.
bool possible(const TransferShape& t) {
  const auto inside = [&](u64 base, u64 bytes) {
    return t.address >= base && t.address - base < bytes && t.bytes <= bytes - (t.address - base);
  };
  return inside(kHbmBase, kHbmBytes) || inside(kDdrBase, kDdrBytes) ||
         (inside(kPdiBase, kPdiBytes) && t.direction == Direction::host_to_card);
}

/// The conditions that any cut must meet. `least`: no segment is smaller unless it is alone; 0: any.
void expect_covers(const std::vector<Segment>& cut, const TransferShape& t, u64 least) {
  ASSERT_FALSE(cut.empty());
  u64 at = 0;
  for (const Segment& s : cut) {
    ASSERT_EQ(s.offset, at);
    ASSERT_GT(s.bytes, 0u);
    ASSERT_LT(s.queue_pair, t.queue_pairs);
    ASSERT_TRUE(at == 0 || (t.host_offset + at) % t.step == 0);
    ASSERT_TRUE(cut.size() == 1 || s.bytes >= least);
    at += s.bytes;
  }
  ASSERT_EQ(at, t.bytes);
}

std::string text(const TransferShape& t, const BalancedPolicy& p) {
  char out[300];
  std::snprintf(out, sizeof out,
                "address %#llx, bytes %llu, host offset %llu, step %llu, queue pairs %u, direction %u, "
                "smallest %llu, stripe %llu, routing %u",
                static_cast<unsigned long long>(t.address), static_cast<unsigned long long>(t.bytes),
                static_cast<unsigned long long>(t.host_offset), static_cast<unsigned long long>(t.step),
                t.queue_pairs, static_cast<u32>(t.direction),
                static_cast<unsigned long long>(p.smallest_split), static_cast<unsigned long long>(p.stripe),
                static_cast<u32>(p.routing));
  return out;
}

TEST(Balanced, EveryCutCoversTheTransferInOrderAndOnTheGrid) {
  Shapes draw(1);
  u32 cut_in_two = 0, refused = 0, striped = 0;
  for (u32 i = 0; i < 100'000; ++i) {
    const TransferShape t = draw.shape();
    BalancedPolicy p = draw.policy();
    if (p.stripe != 0) p.stripe = std::max(p.stripe, t.bytes / 64);  // keeps the lists short
    const ChannelLoad load = draw.load();
    const auto cut = balanced(t, p, load);
    SCOPED_TRACE(text(t, p));
    ASSERT_EQ(cut.empty(), !possible(t));
    refused += cut.empty();
    if (cut.empty()) continue;
    expect_covers(cut, t, p.smallest_split / 2);
    if (HasFatalFailure()) return;
    ASSERT_TRUE(t.bytes >= p.smallest_split || cut.size() == 1);
    ASSERT_TRUE(p.stripe != 0 || cut.size() <= 2);
    cut_in_two += cut.size() == 2;
    striped += cut.size() > 2;
    // The same answer to the same question.
    const auto again = balanced(t, p, load);
    ASSERT_TRUE(std::ranges::equal(cut, again, [](const Segment& a, const Segment& b) {
      return a.queue_pair == b.queue_pair && a.offset == b.offset && a.bytes == b.bytes;
    }));
  }
  // The shapes drawn reach each kind of answer.
  EXPECT_GT(cut_in_two, 5'000u);
  EXPECT_GT(refused, 5'000u);
  EXPECT_GT(striped, 1'000u);
}

TEST(V80Compat, EveryCutCoversTheTransfer) {
  Shapes draw(2);
  for (u32 i = 0; i < 100'000; ++i) {
    TransferShape t = draw.shape();
    t.host_offset = 0;
    expect_covers(v80_compat(t), t, 0);
    if (HasFatalFailure()) return;
  }
}

TEST(Balanced, BothChannelsEndAtTheSameTime) {
  Shapes draw(3);
  u32 split = 0;
  for (u32 i = 0; i < 100'000; ++i) {
    const TransferShape t = draw.shape();
    const ChannelLoad load = draw.load();
    const auto cut = balanced(t, {}, load);
    if (cut.size() != 2) continue;
    ++split;
    auto left = t.direction == Direction::host_to_card ? load.host_to_card : load.card_to_host;
    for (const Segment& s : cut) left[s.queue_pair] += s.bytes;
    const u64 apart = left[0] > left[1] ? left[0] - left[1] : left[1] - left[0];
    SCOPED_TRACE(text(t, {}));
    ASSERT_LE(apart, 2 * t.step + 2);
  }
  EXPECT_GT(split, 5'000u);
}

TEST(Balanced, OneCallOnTheLowerHalfOfHbmUsesBothChannels) {
  const TransferShape t = {.address = kHbmBase, .bytes = 64 << 20};
  const auto cut = balanced(t, {});
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(cut[0].bytes, cut[1].bytes);
  EXPECT_NE(cut[0].queue_pair, cut[1].queue_pair);
  EXPECT_EQ(v80_compat(t).size(), 1u);
  const auto routed = balanced(t, {.routing = Routing::by_half});
  ASSERT_EQ(routed.size(), 1u);
  EXPECT_EQ(routed[0].queue_pair, 0u);
}

TEST(Balanced, AStripeLongerThanEveryTransferIsNoStripe) {
  const TransferShape t = {.address = kDdrBase, .bytes = 4 << 20};
  for (const u64 stripe : {~u64{0}, ~u64{0} - (128 << 10) + 1, ~u64{0} - 4096, u64{4} << 20})
    EXPECT_EQ(balanced(t, {.stripe = stripe}).size(), 1u) << stripe;
}

/// A stripe and the smallest part behind it are more than the transfer has: it is cut all the same.
TEST(Balanced, AStripeShorterThanATransferLeavesNoChannelIdle) {
  for (const u64 base : {kDdrBase, kHbmBase, kHbmBoundary})
    for (const u64 bytes : {u64{256} << 10, (u64{256} << 10) + 4096, u64{1} << 20})
      for (const u64 stripe : {u64{1}, u64{4096}, u64{64} << 10, u64{200} << 10, bytes - 1}) {
        SCOPED_TRACE(testing::Message() << base << ", " << bytes << " bytes in stripes of " << stripe);
        const TransferShape t = {.address = base, .bytes = bytes};
        const auto cut = balanced(t, {.stripe = stripe});
        ASSERT_GE(cut.size(), 2u);
        EXPECT_NE(cut[0].queue_pair, cut[1].queue_pair);
        expect_covers(cut, t, 128 << 10);
      }
}

TEST(Balanced, RoutedByHalfCutsAtTheBoundaryOnly) {
  const BalancedPolicy by_half = {.routing = Routing::by_half};
  const auto cut = balanced({.address = kHbmBoundary - (16 << 20), .bytes = 48 << 20}, by_half);
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(cut[0].queue_pair, 0u);
  EXPECT_EQ(cut[1].offset, u64{16} << 20);
  EXPECT_EQ(cut[1].queue_pair, 1u);
  // A page on the other side is not worth a part of its own.
  const auto mostly_above = balanced({.address = kHbmBoundary - 4096, .bytes = 1 << 20}, by_half);
  ASSERT_EQ(mostly_above.size(), 1u);
  EXPECT_EQ(mostly_above[0].queue_pair, 1u);
  const auto mostly_below =
      balanced({.address = kHbmBoundary - (1 << 20), .bytes = (1 << 20) + 4096}, by_half);
  ASSERT_EQ(mostly_below.size(), 1u);
  EXPECT_EQ(mostly_below[0].queue_pair, 0u);
  // DDR has no halves.
  EXPECT_EQ(balanced({.address = kDdrBase, .bytes = 1 << 20}, by_half).size(), 2u);
}

TEST(Balanced, ALoadedChannelGetsLess) {
  const TransferShape t = {.address = kDdrBase, .bytes = 8 << 20};
  const auto cut = balanced(t, {}, {.host_to_card = {4 << 20, 0}});
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(cut[0].bytes, u64{2} << 20);
  EXPECT_EQ(cut[1].bytes, u64{6} << 20);
  // So much is queued on channel 0 that the other one alone is sooner.
  const auto alone = balanced(t, {}, {.host_to_card = {64 << 20, 0}});
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].queue_pair, 1u);
  // Load in the other direction is in nobody's way.
  const auto duplex = balanced(t, {}, {.card_to_host = {64 << 20, 0}});
  ASSERT_EQ(duplex.size(), 2u);
  EXPECT_EQ(duplex[0].bytes, duplex[1].bytes);
}

TEST(Balanced, SmallTransfersTakeTheIdlestChannel) {
  const TransferShape t = {.address = kDdrBase, .bytes = 4096};
  const auto channel = [&](const ChannelLoad& load) { return balanced(t, {}, load).front().queue_pair; };
  EXPECT_EQ(channel({}), 0u);
  EXPECT_EQ(channel({.host_to_card = {1, 0}}), 1u);
  EXPECT_EQ(channel({.host_to_card = {5, 9}}), 0u);
  EXPECT_EQ(channel({.card_to_host = {1, 0}}), 1u);  // equal in its direction: away from the other one
  EXPECT_EQ(channel({.host_to_card = {0, 1}, .card_to_host = {9, 0}}), 0u);
}

TEST(Balanced, RefusesWhatNoRegionHolds) {
  const auto none = [](const TransferShape& t) { return balanced(t, {}).empty(); };
  EXPECT_TRUE(none({.address = kHbmBase, .bytes = 0}));
  EXPECT_TRUE(none({.address = kHbmBase - 1, .bytes = 2}));
  EXPECT_TRUE(none({.address = kHbmBase + kHbmBytes - 1, .bytes = 2}));
  EXPECT_TRUE(none({.address = kDdrBase + kDdrBytes, .bytes = 1}));
  EXPECT_TRUE(none({.address = ~u64{0}, .bytes = 2}));
  EXPECT_TRUE(none({.address = kDdrBase, .bytes = 1, .queue_pairs = 0}));
  EXPECT_TRUE(none({.direction = Direction::card_to_host, .address = kPdiBase, .bytes = 64}));
  EXPECT_FALSE(none({.address = kPdiBase, .bytes = 64}));
  EXPECT_FALSE(none({.address = kHbmBase, .bytes = kHbmBytes}));
}

TEST(Balanced, ATableMaySayWhichChannelsReachARegion) {
  const std::array<MemoryRegion, 2> images = {
      {{.name = "images", .base = 0, .bytes = u64{2} << 30, .channels = 2},
       {.name = "none", .base = u64{2} << 30, .bytes = 4096, .channels = 1}}};
  const BalancedPolicy p = {.regions = images};
  const auto cut = balanced({.address = 0, .bytes = 1 << 20}, p);
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].queue_pair, 1u);
  // No channel reaches both.
  EXPECT_TRUE(balanced({.address = (u64{2} << 30) - 4096, .bytes = 8192}, p).empty());
}

TEST(PolicyNames, GoBothWays) {
  for (const auto k :
       {PolicyKind::balanced, PolicyKind::v80_compat, PolicyKind::channel0, PolicyKind::channel1})
    EXPECT_EQ(policy_named(name(k)), k);
  EXPECT_FALSE(policy_named("both").has_value());
}

}  // namespace
}  // namespace doorbell::qdma
