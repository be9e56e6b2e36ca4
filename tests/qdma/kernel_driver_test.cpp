// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The kernel's back end, byte for byte, and its io_uring commands.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "fake_kernel.hpp"
#include "qdma/card_state.hpp"
#include "qdma/flow/call_engine.hpp"
#include "qdma/flow/transfers.hpp"
#include "system/clock.hpp"

namespace doorbell::qdma {

namespace {

template <class T>
i64 issue(Driver& d, u32 number, T& structure, int fd = -1) {
  return d.call(fd, number, std::span(reinterpret_cast<u8*>(&structure), sizeof structure)).result;
}

template <class T>
std::vector<u8> bytes_of(const T& t) {
  const auto* p = reinterpret_cast<const u8*>(&t);
  return {p, p + sizeof t};
}

TEST(KernelDriver, TheBytesOfACallAreThoseOfItsStructure) {
  test::RecordingKernel kernel;
  KernelDriver d("/dev/slash_qdma_ctl0", kernel.system());
  QpairAdd add{.dir_mask = 1, .mm_channel = 2, .h2c_ring = 9, .qid = 7, .aperture_size = 4096};
  EXPECT_EQ(issue(d, kCallQpairAdd, add), 0);
  ASSERT_EQ(kernel.calls.size(), 1u);
  EXPECT_EQ(kernel.calls[0].number, 0xc0247651u);
  EXPECT_EQ(kernel.calls[0].bytes, bytes_of(add));
  EXPECT_EQ(kernel.calls[0].fd, 1000);
}

TEST(KernelDriver, AnOlderDriverIsAskedByItsOwnNumberAndByNoOther) {
  test::RecordingKernel kernel;
  kernel.errors[kCallQpairAdd] = ENOTTY;
  KernelDriver d("/dev/slash_qdma_ctl0", kernel.system());
  QpairAdd add{.mm_channel = 1, .c2h_ring = 3};
  EXPECT_EQ(issue(d, kCallQpairAdd, add), 0);
  ASSERT_EQ(kernel.calls.size(), 2u);
  EXPECT_EQ(kernel.calls[1].number, 0xc0207651u);
  ASSERT_EQ(kernel.calls[1].bytes.size(), 32u);
  EXPECT_EQ(kernel.calls[1].bytes[0], 32);
  EXPECT_EQ(kernel.calls[1].bytes[20], 3);

  kernel.errors[kCallQpairAddOld] = ENOTTY;
  EXPECT_EQ(issue(d, kCallQpairAdd, add), -ENOTTY);
  EXPECT_EQ(kernel.calls.size(), 4u);
}

TEST(KernelDriver, AnApertureIsNotDroppedForAnOlderDriver) {
  test::RecordingKernel kernel;
  kernel.errors[kCallQpairAdd] = ENOTTY;
  KernelDriver d("/dev/slash_qdma_ctl0", kernel.system());
  QpairAdd add{.aperture_size = 4096};
  EXPECT_EQ(issue(d, kCallQpairAdd, add), -ENOTTY);
  EXPECT_EQ(kernel.calls.size(), 1u);
}

TEST(KernelDriver, OtherErrorsAreNotTriedAgain) {
  test::RecordingKernel kernel;
  kernel.errors[kCallQpairAdd] = EBUSY;
  KernelDriver d("/dev/slash_qdma_ctl0", kernel.system());
  QpairAdd add;
  EXPECT_EQ(issue(d, kCallQpairAdd, add), -EBUSY);
  EXPECT_EQ(kernel.calls.size(), 1u);
}

TEST(KernelDriver, ACallersShorterStructureIsPassedInItsFullSize) {
  test::RecordingKernel kernel;
  KernelDriver d("/dev/slash_qdma_ctl0", kernel.system());
  std::array<u8, 28> small{28, 0, 0, 0, 0, 0, 0, 0, 3};
  EXPECT_EQ(d.call(-1, kCallQpairAdd, small).result, 0);
  ASSERT_EQ(kernel.calls.size(), 1u);
  EXPECT_EQ(kernel.calls[0].bytes.size(), 36u);
  EXPECT_EQ(kernel.calls[0].bytes[0], 36);
  EXPECT_EQ(small[0], 36);  // the driver's size is written back
}

TEST(KernelDriver, ATimeoutOfTheDriverIsToldFromAnError) {
  test::RecordingKernel kernel;
  kernel.errors[kCallTransfer] = EIO;
  KernelDriver d("/dev/slash_qdma_ctl0", kernel.system());
  Transfer t{.count = 1};
  kernel.takes_ns = 9'999'999'999;
  EXPECT_EQ(issue(d, kCallTransfer, t, 5), -EIO);
  kernel.takes_ns = 10'000'000'000;
  EXPECT_EQ(issue(d, kCallTransfer, t, 5), -ETIMEDOUT);
}

TEST(KernelDriver, ACallWhoseTotalAnIntCannotHoldIsNotMade) {
  test::RecordingKernel kernel;
  KernelDriver d("/dev/slash_qdma_ctl0", kernel.system());
  Transfer t{.count = 2};
  t.xfers[0].length = kMaxCallBytes;
  t.xfers[1].length = 1;
  EXPECT_EQ(issue(d, kCallTransfer, t, 5), -EINVAL);
  EXPECT_TRUE(kernel.calls.empty());
  t.xfers[0].length = kMaxCallBytes - 1;
  EXPECT_EQ(issue(d, kCallTransfer, t, 5), static_cast<i64>(kMaxCallBytes));
}

TEST(KernelDriver, FourGibibytesInOneTransferCountRight) {
  test::RecordingKernel kernel;
  auto card = std::make_shared<CardState>();
  card->driver = std::make_shared<KernelDriver>("/dev/slash_qdma_ctl0", kernel.system());
  card->name = "kernel:recorded";
  for (const u64 bytes : {u64{1} << 31, u64{1} << 32, (u64{1} << 32) + 1, u64{9} << 30}) {
    kernel.moved = 0;
    Transfers t(card, 5, {0, 1});
    const TransferResult r = t.transfer({Direction::host_to_card, 6, u64{16} << 30, 0, kDdrBase, bytes}, 0);
    EXPECT_EQ(r.error, 0);
    EXPECT_EQ(r.bytes, bytes);
    EXPECT_EQ(kernel.moved, bytes);
  }
  EXPECT_EQ(card->queued[0][0], 0u);
  EXPECT_EQ(card->queued[0][1], 0u);
}

TEST(KernelDriver, AFailedCallHasOneResultForAllItsParts) {
  test::RecordingKernel kernel;
  kernel.errors[kCallTransfer] = ENXIO;
  auto card = std::make_shared<CardState>();
  card->driver = std::make_shared<KernelDriver>("/dev/slash_qdma_ctl0", kernel.system());
  Transfers t(card, 5, {0, 1});
  const TransferResult r = t.transfer({Direction::host_to_card, 6, 4 << 20, 0, kDdrBase, 4 << 20}, 0);
  EXPECT_EQ(r.error, ENXIO);
  EXPECT_EQ(r.bytes, 0u);
  ASSERT_EQ(r.parts.size(), 2u);
  for (const SubResult& p : r.parts) {
    EXPECT_FALSE(p.known);
    EXPECT_EQ(p.error, ENXIO);
  }
}

TEST(KernelDriver, ACardOfAnOlderDriverWorksEndToEnd) {
  test::FakeKernel kernel("model", true);
  Card card = card_over(std::make_shared<KernelDriver>("/dev/slash_qdma_ctl0", kernel.calls()));
  EXPECT_EQ(card.kind(), "hardware");
  TransferDescriptor both = card.both_channels();
  Buffer b = card.create_buffer(8192);
  EXPECT_EQ(both.transfer(Direction::host_to_card, b, 0, kDdrBase, 8192).bytes, 8192u);
  EXPECT_THROW(static_cast<void>(card.add_queue_pair({.aperture = 4096})), CardError);
}

TEST(KernelDriver, NodesAreFoundByTheirNames) {
  const auto folder = std::filesystem::temp_directory_path() / ("qdma_nodes_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  for (const char* name : {"slash_qdma_ctl1", "slash_qdma_ctl0", "slash_ctl0"}) std::ofstream(folder / name);
  const auto nodes = kernel_nodes(folder.string());
  std::filesystem::remove_all(folder);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0], (folder / "slash_qdma_ctl0").string());
}

TEST(UringCommands, AFileThatTakesNoneHasNoEngine) {
  const Descriptor file(memfd_create("none", MFD_CLOEXEC));
  EXPECT_EQ(uring_commands(file.get()), nullptr);
}

// /dev/null takes every command and answers 0.
TEST(UringCommands, ACommandBeginsAndEnds) {
  const Descriptor file(open("/dev/null", O_RDWR | O_CLOEXEC));
  const auto engine = uring_commands(file.get());
  if (!engine) GTEST_SKIP() << "this kernel has no io_uring commands, or not for /dev/null";
  u32 ended = 0;
  engine->set_ended([&](const std::shared_ptr<PendingCall>& call) {
    EXPECT_EQ(call->result.result, 0);
    ++ended;
  });
  for (u64 tag = 1; tag <= 200; ++tag) {
    auto call = std::make_shared<PendingCall>();
    call->tag = tag;
    ASSERT_EQ(engine->begin(call), 0);
  }
  const u64 until = wall_ns() + 30'000'000'000;
  while (ended < 200 && wall_ns() < until) engine->drive(until);
  EXPECT_EQ(ended, 200u);
}

}  // namespace

}  // namespace doorbell::qdma
