// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Clients that send what no client of AMD's sends, or go at any point: the others are served, and nothing is
// left of them. Those of other processes are in tests/hostile.
#include <fcntl.h>
#include <sys/wait.h>

#include <array>
#include <random>

#include "qdma/model/model_card.hpp"
#include "qdma/slash_rig.hpp"
#include "service/lingering_file.hpp"

namespace doorbell::qdma::slash {
namespace {

using service::LingeringFile;

struct SlashHostile : testing::Test {
  SlashRig rig{"model:bandwidth=2G"};
  SlashClient qdma = rig.qdma();
  SlashClient pair = qdma.descriptor(qdma.queue_pair());
  SlashBuffer buffer{qdma, 8192};

  i64 transfer(std::span<const int> files, u32 count = 1, std::array<int, 2> which = {0, 0}) {
    Transfer t;
    t.count = count;
    for (u32 i = 0; i < 2; ++i)
      t.xfers[i] = {.direction = kDirH2C, .buf_fd = which[i], .dev_addr = kDdrBase, .length = 4096};
    return pair.result(kCallTransfer, t, files);
  }
  /// The server goes on.
  void serves() {
    EXPECT_EQ(transfer(std::array{buffer.fd()}), 4096);
    EXPECT_EQ(rig.control().result(kCallDeviceInfo, DeviceInfo{}), 0);
    EXPECT_EQ(rig.hotplug().call_bytes(kCallRescan).header.result, 0);
  }
};

TEST_F(SlashHostile, BuffersThatAreNotThere) {
  const std::array one{buffer.fd()};
  EXPECT_EQ(transfer({}), -EBADF);
  EXPECT_EQ(transfer(one, 1, {1, 0}), -EBADF);
  EXPECT_EQ(transfer(one, 1, {-1, 0}), -EBADF);
  EXPECT_EQ(transfer(one, 1, {-0x7fffffff - 1, 0}), -EBADF);
  EXPECT_EQ(transfer(one, 1, {0x7fffffff, 0}), -EBADF);
  EXPECT_EQ(transfer(one, 2, {0, 1}), -EBADF);
  EXPECT_EQ(transfer(one, 2, {0, 0}), 8192);
  EXPECT_EQ(transfer(one, 0), -EINVAL);
  EXPECT_EQ(transfer(one, 3), -EINVAL);
  EXPECT_EQ(transfer(one, ~0u), -EINVAL);
  serves();
}

TEST_F(SlashHostile, FilesThatAreNoBuffersOfOurs) {
  SlashRig other;
  SlashClient theirs = other.qdma();
  const SlashBuffer foreign(theirs, 8192);
  const SlashReply bar = rig.control().call(kCallBarFd, BarFd{});
  const Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC)), folder(open("/tmp", O_RDONLY | O_CLOEXEC)),
      path(open("/tmp", O_PATH | O_CLOEXEC)), memory(memfd_create("mine", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(memory.get(), 8192), 0);
  for (const int fd : {foreign.fd(), bar.descriptor.get(), null.get(), folder.get(), path.get(), memory.get(),
                       qdma.fd(), pair.fd()})
    EXPECT_EQ(transfer(std::array{fd}), -EINVAL) << fd;
  EXPECT_EQ(transfer(std::array{buffer.fd(), null.get()}, 2, {0, 1}), -EINVAL);
  serves();
}

TEST_F(SlashHostile, FilesThatBecomeShorter) {
  // A buffer cannot, and what can is none.
  EXPECT_NE(ftruncate(buffer.fd(), 0), 0);
  EXPECT_NE(ftruncate(buffer.fd(), 1 << 20), 0);
  const Descriptor memory(memfd_create("mine", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(memory.get(), 8192), 0);
  EXPECT_EQ(transfer(std::array{memory.get()}), -EINVAL);
  EXPECT_EQ(ftruncate(memory.get(), 0), 0);
  EXPECT_EQ(transfer(std::array{memory.get()}), -EINVAL);
  serves();
}

TEST_F(SlashHostile, AsManyFilesAsAMessageMayHaveAndMore) {
  const std::vector<int> most(kMaxDescriptors, buffer.fd()), more(kMaxDescriptors + 1, buffer.fd());
  EXPECT_EQ(transfer(most, 2, {0, 63}), 8192);
  // A call that takes none closes them.
  EXPECT_EQ(qdma.result(kCallInfo, Info{}, most), 0);
  for (const char* const file : {kQdmaFile, kControlFile, kHotplugFile}) {
    SlashClient client(rig.path(file));
    EXPECT_TRUE(client.send(kCallInfo, bytes_of_structure(Info{}), more));
    EXPECT_TRUE(has_ended(client));
  }
  SlashClient empty = rig.qdma();
  EXPECT_TRUE(empty.send_bytes({}, most));
  EXPECT_TRUE(has_ended(empty));
  serves();
  EXPECT_GE(rig.server.counts().refused, 4u);
}

TEST_F(SlashHostile, PlacesAndLengthsNearTheEndOfNumbers) {
  constexpr u64 kEnd = ~u64{0};
  const auto move = [&](SubXfer x) {
    Transfer t;
    t.count = 1;
    x.direction = kDirH2C;
    x.buf_fd = 0;
    t.xfers[0] = x;
    return pair.result(kCallTransfer, t, std::array{buffer.fd()});
  };
  for (const u64 n : {u64{0}, kEnd, kEnd - 4095, kEnd >> 1, u64{1} << 63, u64{1} << 32, u64{8193}})
    EXPECT_EQ(move({.dev_addr = kDdrBase, .length = n}), -EINVAL) << n;
  for (const u64 offset : {kEnd, kEnd - 4095, u64{1} << 63, u64{8192}, u64{12288}, u64{1}, u64{4095}})
    EXPECT_EQ(move({.buf_offset = offset, .dev_addr = kDdrBase, .length = 4096}), -EINVAL) << offset;
  EXPECT_EQ(move({.buf_offset = kEnd - 4095, .dev_addr = kDdrBase, .length = kEnd}), -EINVAL);
  for (const u64 at : {kEnd, kEnd - 4095, u64{0}, u64{1} << 63, kDdrBase - 1, kDdrBase + kDdrBytes - 4095,
                       kHbmBase + kHbmBytes, kPdiBase + kPdiBytes - 1})
    EXPECT_EQ(move({.dev_addr = at, .length = 4096}), -EFAULT) << at;
  for (const u32 index : {1u, 2u, ~0u})
    EXPECT_EQ(move({.qpair_index = index, .dev_addr = kDdrBase, .length = 4096}), -EINVAL) << index;
  for (const u64 n : {u64{0}, u64{1}, u64{4095}, kEnd, kEnd - 4095, u64{1} << 63, (u64{1} << 62) + 4096})
    EXPECT_EQ(qdma.result(kCallBufCreate, BufCreate{.length = n}), -EINVAL) << n;
  EXPECT_EQ(qdma.result(kCallBufCreate, BufCreate{.length = u64{1} << 62}), -ENOMEM);
  for (const u32 id : {~0u, 255u, 1u << 31})
    EXPECT_EQ(qdma.result(kCallQpairOp, QpairOp{.qid = id}), -ENOENT) << id;
  serves();
}

TEST_F(SlashHostile, MessagesOfEveryLength) {
  Transfer t;
  t.count = 1;
  t.xfers[0] = {.direction = kDirH2C, .buf_fd = 0, .dev_addr = kDdrBase, .length = 4096};
  const std::array<std::pair<u32, std::vector<u8>>, 4> calls = {
      {{kCallTransfer, bytes_of_structure(t)},
       {kCallInfo, bytes_of_structure(Info{})},
       {kCallBarFd, bytes_of_structure(BarFd{})},
       {kCallRemove, bytes_of_structure(target(".9"))}}};
  for (const auto& [number, structure] : calls)
    for (std::size_t n = 0; n < structure.size(); ++n)
      for (SlashClient* const client : {&qdma, &pair}) {
        const SlashReply r =
            client->call_bytes(number, std::span(structure).first(n), std::array{buffer.fd()});
        EXPECT_EQ(r.header.result, -EINVAL) << number << " " << n;
        EXPECT_TRUE(r.structure.empty());
      }
  // A message longer than the structure is as good as one of its size.
  std::vector<u8> longer = calls[0].second;
  longer.resize(kMaxMessage - sizeof(Header), 0xff);
  EXPECT_EQ(pair.call_bytes(kCallTransfer, longer, std::array{buffer.fd()}).header.result, 4096);
  // No messages: the connection ends.
  for (const std::size_t n : {1u, 4u, 15u, kMaxMessage + 1, 65552u}) {
    SlashClient client = rig.qdma();
    EXPECT_TRUE(client.send_bytes(std::vector<u8>(n, 0)));
    EXPECT_TRUE(has_ended(client)) << n;
  }
  serves();
}

TEST_F(SlashHostile, AnyBytesAreAnsweredOrEndTheConnection) {
  std::minstd_rand random(7);
  const std::array numbers = {kCallInfo,        kCallQpairAdd,
                              kCallQpairOp,     kCallQpairGetFd,
                              kCallBufCreate,   kCallTransfer,
                              kCallBarInfo,     kCallBarFd,
                              kCallDeviceInfo,  kCallRemove,
                              kCallHotplug,     kCallRescan,
                              kCallToggleReset, 0u};
  for (u32 i = 0; i < 2000; ++i) {
    SlashClient client = i % 4 == 0 ? rig.control() : i % 4 == 1 ? rig.hotplug() : rig.qdma();
    if (!client.connected()) continue;  // it has been removed; a hotplug or rescan brings it back
    std::vector<u8> structure(random() % 120);
    for (u8& b : structure) b = static_cast<u8>(random() % 8 == 0 ? random() : random() % 3);
    const u32 number = numbers[random() % numbers.size()];
    // A buffer of random length is not asked for: the memory is there.
    if (number == kCallBufCreate) continue;
    EXPECT_TRUE(client.send(number, structure, std::array{buffer.fd()}));
    const auto r = client.receive();
    if (r) {
      EXPECT_EQ(r->header.number, number);
    }
    if (i % 16 == 0) {
      EXPECT_EQ(rig.hotplug().call_bytes(kCallRescan).header.result, 0);
    }
  }
  EXPECT_EQ(rig.hotplug().call_bytes(kCallRescan).header.result, 0);
  SlashClient after = rig.qdma();
  EXPECT_EQ(after.result(kCallInfo, Info{}), 0);
}

TEST_F(SlashHostile, WhoGoesInTheMiddleLeavesNothing) {
  constexpr u64 kBytes = 16 << 20;
  for (u32 step = 0; step < 8; ++step)
    for (u32 i = 0; i < 3; ++i) {
      SlashClient mine = rig.qdma();
      if (step == 0) continue;
      if (step == 1) {
        EXPECT_TRUE(mine.send(kCallQpairAdd, bytes_of_structure(QpairAdd{})));
        continue;
      }
      const u32 id = mine.queue_pair();
      if (step == 2) {
        EXPECT_TRUE(mine.send(kCallQpairGetFd, bytes_of_structure(QpairGetFd{.qid = id})));
        continue;
      }
      SlashClient descriptor = mine.descriptor(id);
      if (step == 3) {
        EXPECT_TRUE(descriptor.send(kCallBufCreate, bytes_of_structure(BufCreate{.length = kBytes})));
        continue;
      }
      SlashBuffer own(mine, kBytes);
      Transfer t;
      t.count = 1;
      t.xfers[0] = {.direction = kDirH2C, .buf_fd = 0, .dev_addr = kDdrBase, .length = kBytes};
      const std::array file{own.fd()};
      EXPECT_TRUE(descriptor.send(kCallTransfer, bytes_of_structure(t), file));
      if (step == 4) continue;
      if (step == 5) {
        mine.close();  // its queue pairs go; the transfer ends
        const auto r = descriptor.receive();
        EXPECT_TRUE(!r || r->header.result < 0 || r->header.result == static_cast<i64>(kBytes));
        continue;
      }
      // More than the server reads before it has answered.
      for (u32 k = 0; k < 20; ++k)
        if (!descriptor.send(kCallTransfer, bytes_of_structure(t), file)) break;
      if (step == 6) descriptor.close();
      if (step == 7) {
        EXPECT_EQ(shutdown(descriptor.fd(), SHUT_WR), 0);
      }
    }
  serves();
  pair.close();
  qdma.close();
  EXPECT_TRUE(doorbell::test::eventually([&] {
    const ServerCounts c = rig.server.counts();
    return c.connections == 0 && c.descriptors == 0 && c.queue_pairs == 0 && c.buffers == 1 && c.closing == 0;
  }));
}

TEST_F(SlashHostile, FilesWhoseCloseWaitsHoldNobodyUp) {
  std::array<LingeringFile, 5> files;
  SlashClient control = rig.control(), hotplug = rig.hotplug(), broken = rig.qdma();
  EXPECT_TRUE(qdma.send(kCallInfo, bytes_of_structure(Info{}), std::array{files[0].fd()}));
  EXPECT_TRUE(control.send(kCallDeviceInfo, bytes_of_structure(DeviceInfo{}), std::array{files[1].fd()}));
  EXPECT_TRUE(hotplug.send(kCallRescan, {}, std::array{files[2].fd()}));
  EXPECT_TRUE(broken.send_bytes({}, std::array{files[3].fd()}));
  // One that is never read: its client goes.
  auto unread = std::make_unique<SlashClient>(rig.path(kQdmaFile));
  EXPECT_TRUE(unread->send(kCallInfo, bytes_of_structure(Info{}), std::array{files[4].fd()}));
  for (LingeringFile& f : files) f.give_away();
  unread.reset();
  for (int i = 0; i < 20; ++i) serves();
  for (LingeringFile& f : files) f.let_go();
}

TEST_F(SlashHostile, OneWhoDoesNotReadHoldsNobodyUp) {
  SlashClient deaf = rig.control();
  // Replies with descriptors, until nothing more is taken.
  while (deaf.send(kCallBarFd, bytes_of_structure(BarFd{}))) {
  }
  for (int i = 0; i < 20; ++i) serves();
}

}  // namespace
}  // namespace doorbell::qdma::slash
