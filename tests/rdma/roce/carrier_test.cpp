// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Packets between two NICs' carriers, over both ways.
#include <doorbell/error.hpp>

#include "carrier_rig.hpp"

namespace doorbell::roce {
namespace {

using test::Received;

class RoceCarrier : public ::testing::TestWithParam<CarrierKind> {
 protected:
  std::unique_ptr<Carrier> make() { return test::carrier(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(All, RoceCarrier,
                         ::testing::Values(CarrierKind::automatic, CarrierKind::ring, CarrierKind::udp),
                         [](const auto& kind) { return std::string(test::name_of(kind.param)); });

TEST_P(RoceCarrier, CarriesPacketsOfAllSizesInOrder) {
  const auto a = make(), b = make();
  Path& path = a->path(b->self());
  Received got;
  constexpr u64 kPackets = 5000;
  for (u64 sent = 0; sent < kPackets;) {
    for (int i = 0; i < 20 && sent < kPackets && test::put(path, test::packet(sent)); ++i) ++sent;
    a->flush();
    ASSERT_TRUE(got.wait_for(*b, sent));
  }
  ASSERT_EQ(got.packets.size(), kPackets);
  for (u64 i = 0; i < kPackets; ++i) ASSERT_EQ(got.packets[i], test::packet(i)) << i;
  for (const Endpoint source : got.sources) ASSERT_EQ(source, a->self());
  EXPECT_EQ(a->counters().packets_sent, kPackets);
  EXPECT_EQ(b->counters().packets_received, kPackets);
  EXPECT_EQ(b->counters().bad_icrc, 0U);
  EXPECT_EQ(b->counters().malformed, 0U);
  EXPECT_EQ(path.lossless(), GetParam() != CarrierKind::udp);
}

TEST_P(RoceCarrier, CarriesBothWaysAndToItself) {
  const auto a = make(), b = make();
  for (u64 i = 0; i < 100; ++i) {
    for (Carrier* const from : {a.get(), b.get()})
      for (Carrier* const to : {a.get(), b.get()})
        ASSERT_TRUE(test::put(from->path(to->self()), test::packet(i)));
    a->flush();
    b->flush();
    for (Carrier* const to : {a.get(), b.get()}) {
      Received got;
      ASSERT_TRUE(got.wait_for(*to, 2));
      EXPECT_EQ(got.packets[0], test::packet(i));
      EXPECT_EQ(got.packets[1], test::packet(i));
      EXPECT_NE(got.sources[0], got.sources[1]);
    }
  }
}

TEST_P(RoceCarrier, PacketsForNobodyAreLost) {
  const auto a = make();
  Endpoint nobody = test::fresh_endpoint();
  Path& path = a->path(nobody);
  for (u64 i = 0; i < 1000; ++i) {
    ASSERT_TRUE(test::put(path, test::packet(i)));
    if (i % 10 == 0) a->flush();
  }
  a->flush();
  EXPECT_EQ(a->counters().packets_sent + a->counters().unsent, 1000U);
  EXPECT_FALSE(path.lossless());
}

TEST(RoceCarrierMaking, RefusesATakenAddress) {
  for (const CarrierKind kind : {CarrierKind::automatic, CarrierKind::ring, CarrierKind::udp}) {
    const auto first = test::carrier(kind);
    CarrierOptions options;
    options.kind = kind;
    options.self = first->self();
    EXPECT_THROW(static_cast<void>(make_carrier(options)), Error) << test::name_of(kind);
  }
  CarrierOptions options;
  options.self = {.address = 0x0102'0304, .port = 4791};
  EXPECT_THROW(static_cast<void>(make_carrier(options)), Error);
  options.self = {.address = 0, .port = 4791};
  EXPECT_THROW(static_cast<void>(make_carrier(options)), Error);
  options.self = test::fresh_endpoint();
  for (const u64 bytes : {0ULL, 32768ULL, 65537ULL, 1ULL << 27}) {
    options.ring_bytes = bytes;
    EXPECT_THROW(static_cast<void>(make_carrier(options)), Error) << bytes;
  }
}

}  // namespace
}  // namespace doorbell::roce
