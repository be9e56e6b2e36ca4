// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Every call of the three sockets that AMD's programs speak to. What a transfer may be is in
// conformance_test.
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <thread>

#include "errors.hpp"
#include "qdma/slash_rig.hpp"
#include "qdma/wire_client.hpp"

namespace doorbell::qdma::slash {
namespace {

using doorbell::test::eventually;

std::string text(std::span<const char> place) {
  return {place.begin(), std::ranges::find(place, '\0')};
}

void fill(std::span<u8> bytes, u32 seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<u8>((i * 2654435761u + seed) >> 7);
}

TEST(SlashSockets, TheFolderIsTheUsersAndGoesWithTheServer) {
  const SlashRig rig;
  struct stat s {};
  ASSERT_EQ(lstat(rig.folder.path.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700u);
  for (const char* const file : {kQdmaFile, kControlFile, kHotplugFile}) {
    ASSERT_EQ(lstat(rig.path(file).c_str(), &s), 0);
    EXPECT_TRUE(S_ISSOCK(s.st_mode));
    EXPECT_EQ(s.st_mode & 0777, 0600u);
  }
  CardServer second(make_model_card("model"));
  doorbell::test::expect_says(doorbell::test::error_of([&] { second.listen_slash(rig.folder.path); }),
                              "listens there already");
  doorbell::test::expect_says(doorbell::test::error_of([&] { second.listen_slash("/nowhere/at/all"); }),
                              "No such file");
}

TEST(SlashSockets, AFolderThatWasThereStays) {
  char name[] = "/tmp/doorbell-slash-test-XXXXXX";
  const std::string folder = mkdtemp(name);
  {
    CardServer server(make_model_card("model"));
    server.listen_slash(folder);
    EXPECT_TRUE(std::filesystem::exists(folder + "/" + kHotplugFile));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  rmdir(folder.c_str());
}

TEST(SlashSockets, FunctionsSayWhoTheyAre) {
  SlashRig rig;
  SlashClient qdma = rig.qdma(), control = rig.control();
  const SlashReply info = qdma.call(kCallInfo, Info{});
  EXPECT_EQ(info.header.result, 0);
  EXPECT_EQ(text(info.as<Info>().bdf), "0000:00:00.1");
  const SlashReply reply = control.call(kCallDeviceInfo, DeviceInfo{});
  EXPECT_EQ(reply.header.result, 0);
  const auto device = reply.as<DeviceInfo>();
  EXPECT_EQ(text(device.place), "0000:00:00.2");
  EXPECT_EQ(device.vendor, 0x10ee);
  EXPECT_EQ(device.device, 0x50b6);
  EXPECT_EQ(device.subsystem_vendor, 0x10ee);
  EXPECT_EQ(device.subsystem, 0x000e);
}

TEST(SlashSockets, EvenBarsAreThere) {
  SlashRig rig;
  SlashClient control = rig.control();
  for (u8 bar = 0; bar < 6; ++bar) {
    const SlashReply r = control.call(kCallBarInfo, BarInfo{.bar = bar, .usable = 9, .in_use = 9});
    EXPECT_EQ(r.header.result, 0);
    const auto info = r.as<BarInfo>();
    EXPECT_EQ(info.bar, bar);
    EXPECT_EQ(info.usable, bar % 2 == 0 ? 1 : 0);
    EXPECT_EQ(info.in_use, 0);
    EXPECT_EQ(info.start, 0u);
    EXPECT_EQ(info.length, bar % 2 != 0 ? 0 : bar == 4 ? u64{512} << 10 : u64{128} << 20);
  }
  EXPECT_EQ(control.result(kCallBarInfo, BarInfo{.bar = 6}), -EINVAL);
  EXPECT_EQ(control.result(kCallBarFd, BarFd{.bar = 1}), -EINVAL);
  EXPECT_EQ(control.result(kCallBarFd, BarFd{.bar = 255}), -EINVAL);
  EXPECT_EQ(control.result(kCallBarFd, BarFd{.flags = 1}), -EINVAL);
}

TEST(SlashSockets, ABarIsOneMemoryWithLocksOfEachWhoHasOpenedIt) {
  SlashRig rig;
  SlashClient control = rig.control(), other = rig.control();
  SlashReply first = control.call(kCallBarFd, BarFd{.bar = 0, .flags = kFlagCloseOnExec});
  SlashReply second = other.call(kCallBarFd, BarFd{.bar = 0});
  EXPECT_EQ(first.header.result, 0);
  EXPECT_EQ(first.as<BarFd>().length, u64{128} << 20);
  const int a = first.descriptor.get(), b = second.descriptor.get();
  const u32 word = 42;
  u32 found = 0;
  EXPECT_EQ(pwrite(a, &word, sizeof word, 16), 4);
  EXPECT_EQ(pread(b, &found, sizeof found, 16), 4);
  EXPECT_EQ(found, word);
  // As the vendor's test looks at the locks: with a third file.
  const Descriptor third(open(("/proc/self/fd/" + std::to_string(a)).c_str(), O_RDWR | O_CLOEXEC));
  const auto locks = [](int fd, int how) { return flock(fd, how | LOCK_NB) == 0; };
  EXPECT_TRUE(locks(a, LOCK_EX));
  EXPECT_FALSE(locks(third.get(), LOCK_SH));
  EXPECT_FALSE(locks(b, LOCK_EX));
  EXPECT_TRUE(locks(a, LOCK_SH));
  EXPECT_TRUE(locks(third.get(), LOCK_SH));
  EXPECT_FALSE(locks(b, LOCK_EX));
  EXPECT_TRUE(locks(a, LOCK_UN));
  EXPECT_TRUE(locks(third.get(), LOCK_UN));
  EXPECT_TRUE(locks(b, LOCK_EX));
  // Nobody can take the memory away from the others.
  EXPECT_NE(ftruncate(a, 4096), 0);
}

TEST(SlashSockets, ABufferIsMadeOnEitherSocketAndSaysThatOneQueuePairIsEnough) {
  SlashRig rig;
  SlashClient qdma = rig.qdma();
  SlashClient pair = qdma.descriptor(qdma.queue_pair());
  for (SlashClient* const where : {&qdma, &pair}) {
    SlashReply r = where->call(kCallBufCreate, BufCreate{.flags = kFlagCloseOnExec, .length = 8192});
    ASSERT_EQ(r.header.result, 0);
    const auto made = r.as<BufCreate>();
    EXPECT_EQ(made.length, 8192u);
    EXPECT_EQ(made.granule, kGranule);
    EXPECT_EQ(made.transfer_hint, 1u);
    struct stat s {};
    EXPECT_EQ(fstat(r.descriptor.get(), &s), 0);
    EXPECT_EQ(s.st_size, 8192);
  }
}

TEST(SlashSockets, BytesComeBackThroughEitherMemory) {
  SlashRig rig;
  SlashClient qdma = rig.qdma();
  SlashClient pair = qdma.descriptor(qdma.queue_pair());
  SlashBuffer out(qdma, 1 << 20), in(pair, 1 << 20);
  fill(out.bytes(), 1);
  for (const u64 base : {kHbmBase, kDdrBase}) {
    EXPECT_EQ(pair.transfer(Direction::host_to_card, out.fd(), base, 1 << 20), 1 << 20);
    std::ranges::fill(in.bytes(), u8{0});
    EXPECT_EQ(pair.transfer(Direction::card_to_host, in.fd(), base, 1 << 20), 1 << 20);
    EXPECT_TRUE(std::ranges::equal(out.bytes(), in.bytes()));
  }
  // The vendor's client sends a descriptor for each part, of one buffer, too.
  Transfer t;
  t.count = 2;
  for (u32 i = 0; i < 2; ++i)
    t.xfers[i] = {.direction = kDirH2C,
                  .buf_fd = static_cast<int>(i),
                  .buf_offset = u64{i} << 19,
                  .dev_addr = kDdrBase + (u64{i} << 19),
                  .length = 1 << 19};
  EXPECT_EQ(pair.result(kCallTransfer, t, std::array{out.fd(), out.fd()}), 1 << 20);
  // The reply has no structure.
  EXPECT_TRUE(pair.call(kCallTransfer, t, std::array{out.fd(), out.fd()}).structure.empty());
}

TEST(SlashSockets, AnApertureIsAWindowThatIsWrittenAgainAndAgain) {
  SlashRig rig;
  SlashClient qdma = rig.qdma();
  SlashClient window = qdma.descriptor(qdma.queue_pair({.aperture_size = 1024}));
  SlashClient all = qdma.descriptor(qdma.queue_pair());
  SlashBuffer out(qdma, 4096), in(qdma, 4096);
  std::ranges::fill(out.bytes(), u8{0xee});
  EXPECT_EQ(all.transfer(Direction::host_to_card, out.fd(), kHbmBase, 4096), 4096);
  fill(out.bytes(), 5);
  EXPECT_EQ(window.transfer(Direction::host_to_card, out.fd(), kHbmBase, 4096), 4096);
  EXPECT_EQ(all.transfer(Direction::card_to_host, in.fd(), kHbmBase, 4096), 4096);
  EXPECT_TRUE(std::ranges::equal(in.bytes().first(1024), out.bytes().last(1024)));
  EXPECT_TRUE(std::ranges::all_of(in.bytes().subspan(1024), [](u8 b) { return b == 0xee; }));
}

TEST(SlashSockets, SequencesMayRepeatAndRepliesComeInOrder) {
  SlashRig rig("model:latency=1ms");
  SlashClient qdma = rig.qdma();
  SlashClient pair = qdma.descriptor(qdma.queue_pair());
  SlashBuffer buffer(qdma, 4096);
  // Two threads of the vendor's client each begin with 0 on a descriptor that they share.
  Transfer t;
  t.count = 1;
  t.xfers[0] = {.direction = kDirH2C, .buf_fd = 0, .dev_addr = kDdrBase, .length = 4096};
  const auto transfer = bytes_of_structure(t);
  const auto create = bytes_of_structure(BufCreate{.length = 4096});
  const std::array file{buffer.fd()};
  for (const u32 sequence : {0u, 0u, 1u, 1u, 0xffffffffu, 0u}) {
    ASSERT_TRUE(pair.send(kCallTransfer, transfer, file, sequence));
    ASSERT_TRUE(pair.send(kCallBufCreate, create, {}, sequence));
    for (const u32 number : {kCallTransfer, kCallBufCreate}) {
      const auto r = pair.receive();
      ASSERT_TRUE(r.has_value());
      EXPECT_EQ(r->header.number, number);
      EXPECT_EQ(r->header.sequence, sequence);
      EXPECT_EQ(r->header.result, number == kCallTransfer ? 4096 : 0);
    }
  }
}

TEST(SlashSockets, QueuePairsGoWithTheirConnection) {
  SlashRig rig;
  std::optional<SlashClient> first(rig.qdma());
  SlashClient other = rig.qdma();
  const u32 id = first->queue_pair();
  SlashClient pair = first->descriptor(id);
  SlashBuffer buffer(other, 4096);
  EXPECT_EQ(rig.server.counts().queue_pairs, 1u);
  first.reset();
  EXPECT_TRUE(eventually([&] { return rig.server.counts().queue_pairs == 0; }));
  EXPECT_EQ(pair.transfer(Direction::host_to_card, buffer.fd(), kDdrBase, 4096), -ESTALE);
  EXPECT_EQ(other.result(kCallQpairOp, QpairOp{.qid = id, .op = 2}), -ESTALE);
  // And so often that numbers which are never free again would not do.
  for (u32 i = 0; i < 2 * kMaxQueuePairs; ++i) {
    SlashClient c = rig.qdma();
    static_cast<void>(c.queue_pair());
    c.close();
    ASSERT_TRUE(eventually([&] { return rig.server.counts().connections == 1; }));
  }
}

TEST(SlashSockets, TheOtherProtocolsClientsSeeTheSameCard) {
  SlashRig rig;
  WireClient wire(rig.server.connect());
  ASSERT_TRUE(wire.hello());
  ClientBuffer theirs(wire, 4096);
  WireClient their_pair(wire.descriptor(wire.queue_pair()));
  SlashClient qdma = rig.qdma();
  SlashClient pair = qdma.descriptor(qdma.queue_pair());
  SlashBuffer ours(qdma, 4096);
  fill(ours.bytes(), 3);
  EXPECT_EQ(pair.transfer(Direction::host_to_card, ours.fd(), kHbmBase, 4096), 4096);
  EXPECT_EQ(
      their_pair.call(kCallTransfer, one_transfer(Direction::card_to_host, kHbmBase, 4096), {theirs.fd()})
          .header.result,
      4096);
  EXPECT_EQ(std::memcmp(theirs.data(), ours.data(), 4096), 0);
  // A buffer is the server's, whoever has asked for it.
  EXPECT_EQ(pair.transfer(Direction::host_to_card, theirs.fd(), kHbmBase, 4096), 4096);
}

TEST(SlashSockets, CallsThatAreNotThere) {
  SlashRig rig;
  SlashClient qdma = rig.qdma(), control = rig.control(), hotplug = rig.hotplug();
  SlashClient pair = qdma.descriptor(qdma.queue_pair());
  // Another socket's.
  EXPECT_EQ(qdma.result(kCallDeviceInfo, DeviceInfo{}), -EINVAL);
  EXPECT_EQ(qdma.result(kCallTransfer, Transfer{}), -EINVAL);
  EXPECT_EQ(control.result(kCallInfo, Info{}), -EINVAL);
  EXPECT_EQ(control.call_bytes(kCallRescan).header.result, -EINVAL);
  EXPECT_EQ(hotplug.result(kCallBarInfo, BarInfo{}), -EINVAL);
  EXPECT_EQ(pair.result(kCallInfo, Info{}), -EINVAL);
  EXPECT_EQ(pair.result(kCallQpairAdd, QpairAdd{}), -EINVAL);
  // Nobody's: it is named once.
  EXPECT_TRUE(rig.noted().empty());
  constexpr u32 kUnknown = call_number(0x55, 24);
  for (SlashClient* const client : {&qdma, &qdma, &pair, &control, &hotplug})
    EXPECT_EQ(client->result(kUnknown, BufCreate{}), -ENOSYS);
  const auto notes = rig.noted();
  ASSERT_EQ(notes.size(), 3u);
  doorbell::test::expect_says(notes[0], "slash_qdma_ctl0: a program's call 0xc0187655 ");
  doorbell::test::expect_says(notes[2], "slash_hotplug: ");
}

TEST(SlashSockets, ALimitRefusesWhatIsBeyondIt) {
  SlashRig rig("model", {}, {.connections = 2, .queue_pairs = 1, .descriptors = 1, .host_bytes = 8192});
  SlashClient qdma = rig.qdma();
  SlashClient control = rig.control();
  EXPECT_EQ(control.result(kCallDeviceInfo, DeviceInfo{}), 0);
  EXPECT_TRUE(has_ended(rig.hotplug()));
  const u32 id = qdma.queue_pair();
  EXPECT_EQ(qdma.result(kCallQpairAdd, QpairAdd{}), -EDQUOT);
  const SlashClient pair = qdma.descriptor(id);
  EXPECT_EQ(qdma.result(kCallQpairGetFd, QpairGetFd{.qid = id}), -EDQUOT);
  const SlashBuffer buffer(qdma, 8192);
  EXPECT_EQ(qdma.result(kCallBufCreate, BufCreate{.length = 4096}), -EDQUOT);
}

// A card that goes wrong, and one whose rates are limited, as a client that compares sees them.

TEST(SlashSockets, DamageIsFoundByWhoCompares) {
  model::Use use;
  use.faults.probability[static_cast<u32>(model::Fault::corrupt)] = 0.5;
  SlashRig rig("model", use);
  SlashClient qdma = rig.qdma();
  SlashClient pair = qdma.descriptor(qdma.queue_pair());
  SlashBuffer out(qdma, 4096), in(qdma, 4096);
  fill(out.bytes(), 9);
  u64 wrong = 0;
  for (u32 i = 0; i < 64; ++i) {
    const u64 place = kDdrBase + u64{i} * 4096;
    EXPECT_EQ(pair.transfer(Direction::host_to_card, out.fd(), place, 4096), 4096);
    EXPECT_EQ(pair.transfer(Direction::card_to_host, in.fd(), place, 4096), 4096);
    wrong += std::ranges::equal(out.bytes(), in.bytes()) ? 0 : 1;
  }
  const u64 injected = counters_of(rig.server.card()).at("injected").at("corrupt").get<u64>();
  // A place may be damaged on both ways.
  EXPECT_GT(wrong, 0u);
  EXPECT_LE(wrong, injected);
  EXPECT_GE(2 * wrong, injected);
}

TEST(SlashSockets, ACardThatHasGoneSaysSo) {
  model::Use use;
  use.faults.probability[static_cast<u32>(model::Fault::removal)] = 1;
  SlashRig rig("model", use);
  SlashClient qdma = rig.qdma();
  SlashClient pair = qdma.descriptor(qdma.queue_pair());
  SlashBuffer out(qdma, 4096);
  EXPECT_EQ(pair.transfer(Direction::host_to_card, out.fd(), kDdrBase, 4096), -ENODEV);
  EXPECT_EQ(qdma.result(kCallInfo, Info{}), -ENODEV);
}

TEST(SlashSockets, RatesOfTheModelAreSeen) {
  // By the clock of the card, so that a slow machine changes nothing.
  SlashRig rig("model:bandwidth=1G,clock=counted,threads=1");
  SlashClient qdma = rig.qdma();
  SlashClient pair = qdma.descriptor(qdma.queue_pair());
  SlashBuffer out(qdma, 8 << 20);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(pair.transfer(Direction::host_to_card, out.fd(), kDdrBase, 8 << 20), 8 << 20);
  const auto counters = counters_of(rig.server.card());
  const auto ns = counters.at("active_ns").at("host_to_card").get<double>();
  EXPECT_NEAR(4 * (8 << 20) / ns, 1, 0.01) << counters;
}

}  // namespace
}  // namespace doorbell::qdma::slash
