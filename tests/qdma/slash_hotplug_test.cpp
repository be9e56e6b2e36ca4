// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Functions of a card that go and come back, by the hotplug socket.
#include <algorithm>
#include <array>
#include <thread>

#include "errors.hpp"
#include "qdma/bound_socket.hpp"
#include "qdma/slash_rig.hpp"

namespace doorbell::qdma::slash {
namespace {

struct SlashHotplug : testing::Test {
  SlashRig rig;
  SlashClient hotplug = rig.hotplug();

  i64 ask(u32 number, const std::string& place) { return hotplug.result(number, target(place)); }
  i64 rescan() { return hotplug.call_bytes(kCallRescan).header.result; }
  /// Which of functions 1 and 2 are there: "12", "1", "2" or "".
  std::string there() {
    std::string out;
    if (rig.qdma().connected()) out += "1";
    if (rig.control().connected()) out += "2";
    EXPECT_EQ(std::filesystem::exists(rig.path(kQdmaFile)), out.starts_with("1"));
    EXPECT_EQ(std::filesystem::exists(rig.path(kControlFile)), out.ends_with("2"));
    return out;
  }
};

TEST_F(SlashHotplug, AFunctionGoesWithItsClientsAndComesBackWithTheMemory) {
  SlashClient qdma = rig.qdma(), control = rig.control();
  SlashClient pair = qdma.descriptor(qdma.queue_pair());
  SlashBuffer out(qdma, 4096);
  std::ranges::fill(out.bytes(), u8{0x5a});
  EXPECT_EQ(pair.transfer(Direction::host_to_card, out.fd(), kHbmBase, 4096), 4096);

  EXPECT_EQ(ask(kCallRemove, "0000:00:00.1"), 0);
  EXPECT_EQ(there(), "2");
  EXPECT_TRUE(has_ended(qdma));
  EXPECT_TRUE(has_ended(pair));
  EXPECT_TRUE(doorbell::test::eventually([&] { return rig.server.counts().queue_pairs == 0; }));
  // The other function's clients notice nothing.
  EXPECT_EQ(control.result(kCallDeviceInfo, DeviceInfo{}), 0);
  EXPECT_EQ(ask(kCallRemove, "0000:00:00.1"), 0);  // it has gone already

  EXPECT_EQ(rescan(), 0);
  EXPECT_EQ(there(), "12");
  SlashClient again = rig.qdma();
  SlashClient new_pair = again.descriptor(again.queue_pair());
  SlashBuffer in(again, 4096);
  EXPECT_EQ(new_pair.transfer(Direction::card_to_host, in.fd(), kHbmBase, 4096), 4096);
  EXPECT_TRUE(std::ranges::all_of(in.bytes(), [](u8 b) { return b == 0x5a; }));
  EXPECT_EQ(rescan(), 0);  // nothing is missing
}

TEST_F(SlashHotplug, BarsKeepTheirWords) {
  const auto bar = [&] { return rig.control().call(kCallBarFd, BarFd{.bar = 2}).descriptor; };
  u32 word = 77;
  EXPECT_EQ(pwrite(bar().get(), &word, sizeof word, 0), 4);
  EXPECT_EQ(ask(kCallHotplug, "0000:00:00.2"), 0);
  word = 0;
  EXPECT_EQ(pread(bar().get(), &word, sizeof word, 0), 4);
  EXPECT_EQ(word, 77u);
}

TEST_F(SlashHotplug, OneFunctionOrAllOfACard) {
  EXPECT_EQ(ask(kCallRemove, "0000:00:00.0"), 0);  // no socket stands for it
  EXPECT_EQ(there(), "12");
  EXPECT_EQ(ask(kCallRemove, "0000:00:00.2"), 0);
  EXPECT_EQ(there(), "1");
  EXPECT_EQ(ask(kCallHotplug, "0000:00:00.1"), 0);  // takes one away, and brings all back
  EXPECT_EQ(there(), "12");
  EXPECT_EQ(ask(kCallRemove, "0000:00:00"), 0);
  EXPECT_EQ(there(), "");
  EXPECT_EQ(rescan(), 0);
  EXPECT_EQ(there(), "12");
  EXPECT_EQ(ask(kCallRemove, ""), 0);
  EXPECT_EQ(there(), "");
  EXPECT_EQ(ask(kCallHotplug, ""), 0);
  EXPECT_EQ(there(), "12");
}

TEST_F(SlashHotplug, AResetReachesAllFunctionsOnTheBus) {
  const SlashClient qdma = rig.qdma(), control = rig.control();
  EXPECT_EQ(ask(kCallToggleReset, "0000:00:00.2"), 0);
  EXPECT_TRUE(has_ended(qdma));
  EXPECT_TRUE(has_ended(control));
  EXPECT_EQ(there(), "12");
}

TEST_F(SlashHotplug, PlacesThatAreNone) {
  for (const char* const place : {"0000:00:00.3", "0000:00:00.", "0000:00:00.11", "0000:00:0", "0000-00-00",
                                  "000g:00:00", ".1", "0000:00:00.1 ", "/dev/slash_ctl0"})
    EXPECT_EQ(ask(kCallRemove, place), -EINVAL) << place;
  HotplugTarget endless;
  endless.place.fill('0');
  EXPECT_EQ(hotplug.result(kCallRemove, endless), -EINVAL);
  HotplugTarget small = target("0000:00:00.1");
  small.size = 4;
  EXPECT_EQ(hotplug.result(kCallRemove, small), -EINVAL);
  const auto bytes = bytes_of_structure(target(""));
  EXPECT_EQ(hotplug.call_bytes(kCallRemove, std::span(bytes).first(35)).header.result, -EINVAL);
  for (const u32 call : {kCallRemove, kCallHotplug, kCallToggleReset})
    EXPECT_EQ(ask(call, "0000:01:00.1"), -ENODEV);
  EXPECT_EQ(there(), "12");
}

TEST_F(SlashHotplug, ARescanThatFindsThePlaceTakenSaysSo) {
  EXPECT_EQ(ask(kCallRemove, ""), 0);
  {
    const Descriptor other = bound_at(rig.path(kControlFile));
    EXPECT_EQ(listen(other.get(), 1), 0);
    EXPECT_EQ(rescan(), -EIO);
    EXPECT_TRUE(rig.qdma().connected());
    const auto notes = rig.noted();
    ASSERT_FALSE(notes.empty());
    doorbell::test::expect_says(notes.back(), "listens there already");
  }
  // Nobody listens at its file any more.
  EXPECT_EQ(rescan(), 0);
  EXPECT_EQ(there(), "12");
}

TEST_F(SlashHotplug, SeveralAtATimeAreServedInTurn) {
  std::vector<std::thread> threads;
  std::array<i64, 4> bad{};
  for (std::size_t t = 0; t < bad.size(); ++t)
    threads.emplace_back([this, t, &bad] {
      SlashClient mine = rig.hotplug();
      for (int i = 0; i < 25; ++i) {
        bad[t] |= mine.result(kCallHotplug, target(i % 2 == 0 ? "" : "0000:00:00.1"));
        SlashClient qdma = rig.qdma();
        if (qdma.connected()) static_cast<void>(qdma.result(kCallQpairAdd, QpairAdd{}));
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(bad, (std::array<i64, 4>{}));
  EXPECT_EQ(there(), "12");
  hotplug.close();
  EXPECT_TRUE(rig.empty());
}

TEST_F(SlashHotplug, WhoGoesBeforeTheAnswerLeavesNothing) {
  const auto all = bytes_of_structure(target(""));
  const u64 before = rig.server.counts().requests;
  for (u32 i = 0; i < 20; ++i) {
    SlashClient mine = rig.hotplug();
    EXPECT_TRUE(mine.send(kCallHotplug, all));
  }
  // A rescan that comes now is behind all of them.
  EXPECT_TRUE(doorbell::test::eventually([&] {
    const auto c = rig.server.counts();
    return c.requests >= before + 20 && c.connections == 1;
  }));
  EXPECT_EQ(rescan(), 0);
  EXPECT_EQ(there(), "12");
}

}  // namespace
}  // namespace doorbell::qdma::slash
