// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The driver's calls over a software card: every error number, the rule of versions, the life of queue pairs,
// descriptors and buffers.

#include "qdma/server/driver_model.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "qdma/driver_rig.hpp"
#include "sanitized.hpp"

namespace doorbell::qdma {
namespace {

using model::Fault;
using test::eventually;

constexpr u32 kPut = static_cast<u32>(Direction::host_to_card),
              kGet = static_cast<u32>(Direction::card_to_host);
constexpr u32 kStart = 0, kStop = 1, kDel = 2;
constexpr u64 kMiB = 1 << 20;
constexpr u32 kControlCalls[] = {kCallInfo,    kCallQpairAdd,   kCallQpairAddOld,
                                 kCallQpairOp, kCallQpairGetFd, kCallBufCreate};

model::FaultRates only(Fault f, double p) {
  model::FaultRates r;
  r.probability[static_cast<u32>(f)] = p;
  return r;
}

/// A started queue pair with a descriptor and a buffer of 1 MiB: what a transfer needs.
struct TransferRig : DriverRig {
  explicit TransferRig(const std::string& spec = "model", const model::FaultRates& faults = {},
                       QpairAdd shape = {})
      : DriverRig(spec, faults), id(queue_pair(shape)), node(descriptor({id})), memory(buffer(kMiB)) {}
  /// One sub-transfer that nothing is wrong with.
  static Transfer good() {
    Transfer t;
    t.count = 1;
    t.xfers[0] = {.direction = kPut, .buf_fd = 0, .dev_addr = kDdrBase, .length = 4096};
    return t;
  }
  i64 transfer(Transfer t, u64 deadline_ns = 0) {
    return call(node, kCallTransfer, t, {memory.get()}, deadline_ns);
  }
  /// good(), changed.
  template <class Change>
  i64 with(Change change) {
    Transfer t = good();
    change(t.xfers[0]);
    return transfer(t);
  }
  u32 id;
  std::shared_ptr<DriverModel::Node> node;
  Descriptor memory;
};

// --- what every call has in common ---

TEST(DriverCalls, UnknownNumbersAndTheWrongFile) {
  TransferRig r;
  Transfer t = TransferRig::good();
  for (const u32 number : {0u, 1u, 0x56u, call_number(0x55, 24), call_number(0x57, 88), call_number(0x51, 40),
                           0xc0247751u, ~0u}) {
    EXPECT_EQ(r.call(r.control, number, t), -ENOTTY) << std::hex << number;
    EXPECT_EQ(r.call(r.node, number, t), -ENOTTY) << std::hex << number;
  }
  EXPECT_EQ(r.call(r.control, kCallTransfer, t), -ENOTTY);
  for (const u32 number : kControlCalls) {
    if (number == kCallBufCreate) continue;
    EXPECT_EQ(r.call(r.node, number, t), -ENOTTY) << std::hex << number;
  }
  BufCreate b{.length = 4096};
  EXPECT_EQ(r.call(r.node, kCallBufCreate, b), 0);
}

TEST(DriverCalls, SizesAndPointers) {
  TransferRig r;
  const auto call = [&](u32 number, u32 size, u64 bytes) {
    std::vector<u8> structure(bytes);
    if (bytes > 0) std::memcpy(structure.data(), &size, std::min<u64>(bytes, sizeof size));
    return r.bytes_call(number == kCallTransfer ? r.node : r.control, number, structure);
  };
  for (const u32 number : {kCallInfo, kCallQpairAdd, kCallQpairAddOld, kCallQpairOp, kCallQpairGetFd,
                           kCallBufCreate, kCallTransfer}) {
    EXPECT_EQ(call(number, 0, 0), -EFAULT);
    EXPECT_EQ(call(number, 0, 3), -EFAULT);
    EXPECT_EQ(call(number, smallest_size(number) - 1, 200), -EINVAL);
    EXPECT_EQ(call(number, 0, 200), -EINVAL);
    EXPECT_EQ(call(number, 201, 200), -EFAULT);
    EXPECT_EQ(call(number, ~0u, 200), -EFAULT);
    std::vector<u8> longer(structure_size(number) + 9);
    const u32 size = static_cast<u32>(longer.size());
    std::memcpy(longer.data(), &size, sizeof size);
    longer.back() = 1;  // a field that only a newer driver knows
    EXPECT_EQ(r.bytes_call(number == kCallTransfer ? r.node : r.control, number, longer), -E2BIG);
  }
}

TEST(DriverCalls, TheSizeIsWrittenBackAndTheTailIsZero) {
  DriverRig r;
  for (const u32 number : kControlCalls) {
    const u32 known = structure_size(number);
    for (u32 size = smallest_size(number); size <= known + 12; ++size) {
      std::vector<u8> bytes(size, 0);
      std::memcpy(bytes.data(), &size, sizeof size);
      const u32 id = r.queue_pair();
      switch (number) {
        case kCallQpairAdd:
        case kCallQpairAddOld:
          bytes[8] = kDirH2C;
          break;
        case kCallQpairOp: {
          const u32 stop[2] = {id, kStop};
          std::memcpy(bytes.data() + 4, stop, sizeof stop);
          break;
        }
        case kCallQpairGetFd:
          std::memcpy(bytes.data() + 4, &id, sizeof id);
          break;
        case kCallBufCreate:
          bytes[9] = 0x10;  // 4096
          break;
        default:
          break;
      }
      ASSERT_EQ(r.bytes_call(r.control, number, bytes), 0) << number << " " << size;
      ASSERT_EQ(r.last.structure.size(), size);
      u32 told = 0;
      std::memcpy(&told, r.last.structure.data(), sizeof told);
      EXPECT_EQ(told, known);
      for (u32 i = known; i < size; ++i) EXPECT_EQ(r.last.structure[i], 0) << number << " " << size;
      if (number == kCallQpairAdd || number == kCallQpairAddOld) {
        // The one that was added has the next number; the caller of 28 bytes is not told.
        if (size >= 32) {
          u32 qid = 0;
          std::memcpy(&qid, r.last.structure.data() + 28, sizeof qid);
          EXPECT_EQ(qid & 0xff, (id & 0xff) + 1);
        }
        r.driver.close(*r.control);  // deletes both
        r.control = r.driver.open();
      } else {
        EXPECT_EQ(r.operate(id, kDel), 0);
      }
    }
    r.driver.close(*r.control);
    r.control = r.driver.open();
    EXPECT_EQ(r.driver.queue_pairs(), 0u);
  }
}

TEST(DriverCalls, TransferWritesNothingBack) {
  TransferRig r;
  EXPECT_EQ(r.transfer(TransferRig::good()), 4096);
  EXPECT_TRUE(r.last.structure.empty());
}

TEST(DriverCalls, InfoTellsTheAddress) {
  DriverRig r;
  Info i{.qsets_max = 9};
  ASSERT_EQ(r.call(r.control, kCallInfo, i), 0);
  EXPECT_STREQ(i.bdf.data(), "0000:00:00.1");
  EXPECT_EQ(i.qsets_max, 0u);
}

TEST(DriverCalls, WithoutTheCardEverythingIsNoDevice) {
  TransferRig r;
  r.card->remove();
  Transfer t = TransferRig::good();
  for (const u32 number : kControlCalls) EXPECT_EQ(r.call(r.control, number, t), -ENODEV);
  EXPECT_EQ(r.transfer(t), -ENODEV);
}

// --- ADD ---

TEST(DriverAdd, Refusals) {
  DriverRig r;
  const auto refused = [&](auto change) {
    QpairAdd a;
    change(a);
    return r.add(a);
  };
  EXPECT_EQ(refused([](QpairAdd& a) { a.dir_mask = 0; }), -EINVAL);
  EXPECT_EQ(refused([](QpairAdd& a) { a.dir_mask = 8; }), -EINVAL);
  EXPECT_EQ(refused([](QpairAdd& a) { a.dir_mask = kDirH2C | 0x80000000; }), -EINVAL);
  EXPECT_EQ(refused([](QpairAdd& a) { a.mode = 2; }), -EINVAL);
  EXPECT_EQ(refused([](QpairAdd& a) { a.mode = 99; }), -EINVAL);
  EXPECT_EQ(refused([](QpairAdd& a) { a.h2c_ring = 16; }), -EINVAL);
  EXPECT_EQ(refused([](QpairAdd& a) { a.c2h_ring = 99; }), -EINVAL);
  EXPECT_EQ(refused([](QpairAdd& a) { a.cmpt_ring = 16; }), -EINVAL);
  EXPECT_EQ(refused([](QpairAdd& a) { a.mm_channel = 3; }), -EINVAL);
  EXPECT_EQ(refused([](QpairAdd& a) { a.mm_channel = 7; }), -EINVAL);
  EXPECT_EQ(refused([](QpairAdd& a) { a.aperture_size = 4097; }), -EINVAL);
  EXPECT_EQ(refused([](QpairAdd& a) { a.mode = kModeStream; }), -EOPNOTSUPP);
  EXPECT_EQ(refused([](QpairAdd& a) { a.dir_mask = kDirH2C | kDirCompletion; }), -EOPNOTSUPP);
  // A bad value is refused as such, also where the mode is not supported.
  EXPECT_EQ(refused([](QpairAdd& a) {
              a.mode = kModeStream;
              a.h2c_ring = 16;
            }),
            -EINVAL);
  EXPECT_EQ(r.driver.queue_pairs(), 0u);
}

TEST(DriverAdd, TheLowestFreeNumberAndAGeneration) {
  DriverRig r;
  std::vector<u32> ids;
  for (u32 i = 0; i < kMaxQueuePairs; ++i) {
    QpairAdd a;
    ASSERT_EQ(r.add(a), 0);
    EXPECT_EQ(a.qid, i);
    ids.push_back(a.qid);
  }
  QpairAdd a;
  EXPECT_EQ(r.add(a), -EBUSY);
  for (const u32 i : {200u, 3u, 77u}) EXPECT_EQ(r.operate(ids[i], kDel), 0);
  for (const u32 i : {3u, 77u, 200u}) {
    QpairAdd again;
    ASSERT_EQ(r.add(again), 0);
    EXPECT_EQ(again.qid, i | 1u << 8);
    EXPECT_EQ(r.operate(ids[i], kStart), -ESTALE);
    EXPECT_EQ(r.operate(ids[i], kDel), -ESTALE);
    EXPECT_EQ(r.operate(again.qid, kStart), 0);
    EXPECT_EQ(r.operate(i | 2u << 8, kStart), -ENOENT);  // not yet
  }
  EXPECT_EQ(r.driver.queue_pairs(), kMaxQueuePairs);
}

TEST(DriverAdd, OverQuota) {
  DriverRig r("model", {}, {.queue_pairs = 2});
  const u32 first = r.queue_pair();
  r.queue_pair();
  QpairAdd a;
  EXPECT_EQ(r.add(a), -EDQUOT);
  EXPECT_EQ(r.operate(first, kDel), 0);
  EXPECT_EQ(r.add(a), 0);
}

TEST(DriverAdd, AnAutomaticChannelIsTheNumbersParity) {
  // Each channel moves 1 MiB in a millisecond, so four queues of 256 KiB on both channels take half of one.
  DriverRig r("model:clock=counted,bandwidth=1048576000");
  const Descriptor memory = r.buffer(kMiB);
  const auto run = [&](u32 channel) {
    const u32 ids[2] = {r.queue_pair({.mm_channel = channel}), r.queue_pair({.mm_channel = channel})};
    const auto node = r.descriptor({ids[0], ids[1]});
    Transfer t;
    t.count = 2;
    for (u32 i = 0; i < 2; ++i)
      t.xfers[i] = {.qpair_index = i, .direction = kPut, .buf_fd = 0, .dev_addr = kDdrBase, .length = kMiB};
    const u64 begin = r.card->now();
    EXPECT_EQ(r.call(node, kCallTransfer, t, {memory.get()}), static_cast<i64>(2 * kMiB));
    return static_cast<double>(r.card->now() - begin) / 1e6;
  };
  EXPECT_NEAR(run(kChannelAuto), 1, 0.001);
  EXPECT_NEAR(run(kChannel0), 2, 0.001);
  EXPECT_NEAR(run(kChannel1), 2, 0.001);
}

// --- Q_OP ---

TEST(DriverOperations, States) {
  DriverRig r;
  QpairAdd a;
  ASSERT_EQ(r.add(a), 0);
  EXPECT_EQ(r.operate(a.qid, 3), -EINVAL);
  EXPECT_EQ(r.operate(77, 3), -EINVAL);
  EXPECT_EQ(r.operate(77, kStart), -ENOENT);
  EXPECT_EQ(r.operate(~0u, kStart), -ENOENT);
  EXPECT_EQ(r.operate(a.qid, kStop), -EINVAL);
  EXPECT_EQ(r.operate(a.qid, kStart), 0);
  EXPECT_EQ(r.operate(a.qid, kStart), -EINVAL);
  EXPECT_EQ(r.operate(a.qid, kStop), 0);
  EXPECT_EQ(r.operate(a.qid, kStop), -EINVAL);
  EXPECT_EQ(r.operate(a.qid, kStart), 0);
  EXPECT_EQ(r.operate(a.qid, kDel), 0);  // stops it first
  for (const u32 op : {kStart, kStop, kDel}) EXPECT_EQ(r.operate(a.qid, op), -ESTALE);
}

// --- GET_FD ---

TEST(DriverDescriptors, Refusals) {
  DriverRig r;
  const u32 id = r.queue_pair(), other = r.queue_pair(), dead = r.queue_pair();
  EXPECT_EQ(r.operate(dead, kDel), 0);
  const auto get = [&](QpairGetFd g) {
    const i64 result = r.call(r.control, kCallQpairGetFd, g);
    EXPECT_EQ(r.last.node != nullptr, result == 0);
    return result;
  };
  EXPECT_EQ(get({.qid = id}), 0);
  EXPECT_EQ(get({.qid = id, .flags = kFlagCloseOnExec}), 0);
  EXPECT_EQ(get({.qid = id, .flags = 1}), -EINVAL);
  EXPECT_EQ(get({.qid = id, .flags = kFlagCloseOnExec | O_NONBLOCK}), -EINVAL);
  EXPECT_EQ(get({.qpair_count = 3, .qpair_ids = {id, other}}), -EINVAL);
  EXPECT_EQ(get({.qpair_count = 2, .qpair_ids = {id, id}}), -EINVAL);
  EXPECT_EQ(get({.qpair_count = 2, .qpair_ids = {id, 99}}), -ENOENT);
  EXPECT_EQ(get({.qpair_count = 2, .qpair_ids = {id, dead}}), -ESTALE);
  EXPECT_EQ(get({.qid = 99}), -ENOENT);
  EXPECT_EQ(get({.qid = dead}), -ESTALE);
  EXPECT_EQ(get({.qid = 99, .qpair_count = 1, .qpair_ids = {other, 99}}), 0);  // what is not used is not read
  EXPECT_EQ(get({.qpair_count = 2, .qpair_ids = {other, id}}), 0);
}

TEST(DriverDescriptors, TheQueuePairsNeedNotBeStarted) {
  DriverRig r;
  QpairAdd a;
  ASSERT_EQ(r.add(a), 0);
  const auto node = r.descriptor({a.qid});
  const Descriptor memory = r.buffer(4096);
  Transfer t = TransferRig::good();
  EXPECT_EQ(r.call(node, kCallTransfer, t, {memory.get()}), -EINVAL);
  EXPECT_EQ(r.operate(a.qid, kStart), 0);
  EXPECT_EQ(r.call(node, kCallTransfer, t, {memory.get()}), 4096);
}

// --- BUF_CREATE ---

TEST(DriverBuffers, Refusals) {
  DriverRig r("model", {}, {.buffers = {.buffers = 3, .bytes = 16 * 4096}});
  const auto create = [&](BufCreate b) {
    const i64 result = r.call(r.control, kCallBufCreate, b);
    EXPECT_EQ(r.last.descriptor.get() >= 0, result == 0);
    return result;
  };
  EXPECT_EQ(create({.length = 0}), -EINVAL);
  EXPECT_EQ(create({.length = 4097}), -EINVAL);
  EXPECT_EQ(create({.length = 4095}), -EINVAL);
  EXPECT_EQ(create({.length = ~u64{4095}}), -EINVAL);
  EXPECT_EQ(create({.flags = 1, .length = 4096}), -EINVAL);
  EXPECT_EQ(create({.length = u64{17} * 4096}), -EDQUOT);
  const Descriptor first = r.buffer(10 * 4096);
  EXPECT_EQ(create({.length = u64{7} * 4096}), -EDQUOT);
  {
    const Descriptor second = r.buffer(4096), third = r.buffer(4096);
    EXPECT_EQ(create({.length = 4096}), -EDQUOT);
  }
  EXPECT_EQ(create({.length = u64{6} * 4096}), 0);
  DriverRig unlimited;
  BufCreate huge{.length = u64{1} << 50};
  EXPECT_EQ(unlimited.call(unlimited.control, kCallBufCreate, huge), -ENOMEM);
}

TEST(DriverBuffers, TheMemoryIsTheCallersAndKeepsItsSize) {
  DriverRig r;
  BufCreate b{.flags = kFlagCloseOnExec, .length = 8192};
  ASSERT_EQ(r.call(r.control, kCallBufCreate, b), 0);
  EXPECT_EQ(b.granule, kGranule);
  EXPECT_EQ(b.transfer_hint, 2u);
  EXPECT_EQ(fcntl(r.last.descriptor.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_NE(ftruncate(r.last.descriptor.get(), 4096), 0);
  EXPECT_NE(ftruncate(r.last.descriptor.get(), 16384), 0);
  const Mapping m(r.last.descriptor.get(), 8192);
  EXPECT_TRUE(std::all_of(m.data(), m.data() + 8192, [](u8 x) { return x == 0; }));
}

TEST(DriverBuffers, OneWhoseAskerHasGoneIsNotMade) {
  std::function<void()> later;
  DriverRig r("model", {}, {}, [&](std::function<void()> work) { later = std::move(work); });
  const auto call = r.begin_structure(r.control, kCallBufCreate, BufCreate{.length = 4096});
  r.driver.close(*r.control);
  later();
  EXPECT_EQ(call->wait(), -ECANCELED);
  EXPECT_LT(call->reply.descriptor.get(), 0);
  EXPECT_EQ(r.driver.sweep_buffers(), 0u);
}

TEST(DriverBuffers, OneLivesUntilNobodyHasIt) {
  TransferRig r;
  EXPECT_EQ(r.driver.sweep_buffers(), 1u);
  const Descriptor copy(dup(r.memory.get()));
  r.memory.reset();
  EXPECT_EQ(r.driver.sweep_buffers(), 1u);
  Transfer t = TransferRig::good();
  EXPECT_EQ(r.call(r.node, kCallTransfer, t, {copy.get()}), 4096);
  {
    auto mapping = std::make_unique<Mapping>(copy.get(), kMiB);
    Descriptor(const_cast<Descriptor&>(copy).release()).reset();
    EXPECT_EQ(r.driver.sweep_buffers(), 1u);
    std::fill_n(mapping->data(), kMiB, u8{1});
  }
  EXPECT_EQ(r.driver.sweep_buffers(), 0u);
}

// --- TRANSFER ---

TEST(DriverTransfers, Refusals) {
  TransferRig r;
  Transfer t = TransferRig::good();
  for (const u32 count : {0u, 3u, ~0u}) {
    t.count = count;
    EXPECT_EQ(r.transfer(t), -EINVAL) << count;
  }
  EXPECT_EQ(r.with([](SubXfer& x) { x.qpair_index = 1; }), -EINVAL);
  EXPECT_EQ(r.with([](SubXfer& x) { x.qpair_index = 5; }), -EINVAL);
  for (const u32 direction : {0u, 3u, 4u, ~0u})
    EXPECT_EQ(r.with([&](SubXfer& x) { x.direction = direction; }), -EINVAL) << direction;
  EXPECT_EQ(r.with([](SubXfer& x) { x.length = 0; }), -EINVAL);
  EXPECT_EQ(r.with([](SubXfer& x) { x.length = u64{1} << 32; }), -EINVAL);
  EXPECT_EQ(r.with([](SubXfer& x) { x.length = ~u64{0}; }), -EINVAL);
  EXPECT_EQ(r.with([](SubXfer& x) { x.buf_fd = -1; }), -EBADF);
  EXPECT_EQ(r.with([](SubXfer& x) { x.buf_fd = 1; }), -EBADF);
  EXPECT_EQ(r.with([](SubXfer& x) { x.buf_offset = 1; }), -EINVAL);
  EXPECT_EQ(r.with([](SubXfer& x) { x.buf_offset = 512; }), -EINVAL);
  EXPECT_EQ(r.with([](SubXfer& x) { x.buf_offset = kMiB; }), -EINVAL);
  EXPECT_EQ(r.with([](SubXfer& x) { x.buf_offset = ~u64{4095}; }), -EINVAL);
  EXPECT_EQ(r.with([](SubXfer& x) { x.length = kMiB + 1; }), -EINVAL);
  EXPECT_EQ(r.with([](SubXfer& x) {
    x.buf_offset = kMiB - 4096;
    x.length = 4097;
  }),
            -EINVAL);
  EXPECT_EQ(r.with([](SubXfer& x) { x.dev_addr = 0; }), -EFAULT);
  EXPECT_EQ(r.with([](SubXfer& x) { x.dev_addr = kDdrBase + kDdrBytes - 4095; }), -EFAULT);
  EXPECT_EQ(r.with([](SubXfer& x) { x.dev_addr = ~u64{0}; }), -EFAULT);
  EXPECT_EQ(r.with([](SubXfer& x) {
    x.dev_addr = kPdiBase;
    x.direction = kGet;
  }),
            -EFAULT);
  EXPECT_EQ(r.with([](SubXfer& x) {
    x.buf_offset = kMiB - 4096;
    x.length = 1;
  }),
            1);
}

TEST(DriverTransfers, OnlyBuffersOfThisDriver) {
  TransferRig r, other;
  Transfer t = TransferRig::good();
  const Descriptor file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const Descriptor same_size(memfd_create("qdma", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(same_size.get(), kMiB), 0);
  EXPECT_EQ(r.call(r.node, kCallTransfer, t, {file.get()}), -EINVAL);
  EXPECT_EQ(r.call(r.node, kCallTransfer, t, {same_size.get()}), -EINVAL);
  EXPECT_EQ(r.call(r.node, kCallTransfer, t, {other.memory.get()}), -EINVAL);
  EXPECT_EQ(r.call(r.node, kCallTransfer, t, {-1}), -EBADF);
  EXPECT_EQ(r.call(r.node, kCallTransfer, t, {r.memory.get()}), 4096);
}

TEST(DriverTransfers, ADirectionThatIsNotEnabled) {
  TransferRig put("model", {}, {.dir_mask = kDirH2C}), get("model", {}, {.dir_mask = kDirC2H});
  EXPECT_EQ(put.with([](SubXfer& x) { x.direction = kGet; }), -ENODEV);
  EXPECT_EQ(put.with([](SubXfer& x) { x.direction = kPut; }), 4096);
  EXPECT_EQ(get.with([](SubXfer& x) { x.direction = kPut; }), -ENODEV);
  EXPECT_EQ(get.with([](SubXfer& x) { x.direction = kGet; }), 4096);
}

TEST(DriverTransfers, QueuePairsThatAreStoppedOrDeleted) {
  TransferRig r;
  EXPECT_EQ(r.operate(r.id, kStop), 0);
  EXPECT_EQ(r.transfer(TransferRig::good()), -EINVAL);
  EXPECT_EQ(r.operate(r.id, kStart), 0);
  EXPECT_EQ(r.transfer(TransferRig::good()), 4096);
  EXPECT_EQ(r.operate(r.id, kDel), 0);
  EXPECT_EQ(r.transfer(TransferRig::good()), -ESTALE);
  const u32 next = r.queue_pair();
  EXPECT_EQ(next & 0xff, r.id & 0xff);
  EXPECT_EQ(r.transfer(TransferRig::good()), -ESTALE);  // the old descriptor never reaches the new owner
}

TEST(DriverTransfers, ClosingTheControlNodeDeletesItsQueuePairs) {
  TransferRig r;
  const auto second = r.driver.open();
  QpairAdd theirs;
  EXPECT_EQ(r.call(second, kCallQpairAdd, theirs), 0);
  r.driver.close(*r.control);
  EXPECT_EQ(r.driver.queue_pairs(), 1u);
  EXPECT_EQ(r.transfer(TransferRig::good()), -ESTALE);
  r.driver.close(*second);
  EXPECT_EQ(r.driver.queue_pairs(), 0u);
}

TEST(DriverTransfers, TwoSubTransfersInOneCall) {
  DriverRig r;
  const u32 ids[2] = {r.queue_pair(), r.queue_pair()};
  const auto node = r.descriptor({ids[0], ids[1]});
  const Descriptor one = r.buffer(2 * kMiB), two = r.buffer(kMiB);
  const Mapping first(one.get(), 2 * kMiB), second(two.get(), kMiB);
  for (u64 i = 0; i < 2 * kMiB; ++i) first.data()[i] = static_cast<u8>(i * 31 + (i >> 12));
  Transfer t;
  t.count = 2;
  // Across the boundary of HBM's halves, from both parts of a buffer.
  t.xfers[0] = {
      .qpair_index = 0, .direction = kPut, .buf_fd = 0, .dev_addr = kHbmBoundary - kMiB / 2, .length = kMiB};
  t.xfers[1] = {.qpair_index = 1,
                .direction = kPut,
                .buf_fd = 0,
                .buf_offset = kMiB,
                .dev_addr = kHbmBoundary + kMiB / 2,
                .length = kMiB};
  EXPECT_EQ(r.call(node, kCallTransfer, t, {one.get()}), static_cast<i64>(2 * kMiB));
  ASSERT_EQ(r.last.part_count, 2u);
  for (u32 i = 0; i < 2; ++i) {
    EXPECT_EQ(r.last.parts[i].bytes, kMiB);
    EXPECT_EQ(r.last.parts[i].error, 0u);
  }
  // The same queue pair twice and mixed directions are legal: read what was written there, write elsewhere.
  t.xfers[0] = {.qpair_index = 1, .direction = kGet, .buf_fd = 1, .dev_addr = kHbmBoundary, .length = kMiB};
  t.xfers[1] = {.qpair_index = 1, .direction = kPut, .buf_fd = 0, .dev_addr = kDdrBase, .length = 1};
  EXPECT_EQ(r.call(node, kCallTransfer, t, {one.get(), two.get()}), static_cast<i64>(kMiB + 1));
  EXPECT_TRUE(std::equal(second.data(), second.data() + kMiB, first.data() + kMiB / 2));
}

TEST(DriverTransfers, AllOfACallTogether) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer keeps several bytes for each of 2 GiB";
  DriverRig r("model:clock=counted");
  const u32 ids[2] = {r.queue_pair({.aperture_size = 1 << 20}), r.queue_pair({.aperture_size = 1 << 20})};
  const auto node = r.descriptor({ids[0], ids[1]});
  const u64 bytes = u64{1} << 30;
  const Descriptor memory = r.buffer(bytes);
  Transfer t;
  t.count = 2;
  for (u32 i = 0; i < 2; ++i)
    t.xfers[i] = {
        .qpair_index = i, .direction = kPut, .buf_fd = 0, .dev_addr = kDdrBase + i * bytes, .length = bytes};
  EXPECT_EQ(r.call(node, kCallTransfer, t, {memory.get()}), -EINVAL);  // 2^31
  t.xfers[1].length = bytes - 4096;
  EXPECT_EQ(r.call(node, kCallTransfer, t, {memory.get()}), static_cast<i64>(kMaxCallBytes));
}

TEST(DriverTransfers, AnErrorOfOneLeavesTheOthersBytes) {
  // Queue 0 is slow enough for a STOP; the other channel is done.
  DriverRig r("model:bandwidth=1M");
  const u32 ids[2] = {r.queue_pair(), r.queue_pair()};
  const auto node = r.descriptor({ids[0], ids[1]});
  const Descriptor memory = r.buffer(4 * kMiB);
  Transfer t;
  t.count = 2;
  t.xfers[0] = {.qpair_index = 0, .direction = kPut, .buf_fd = 0, .dev_addr = kDdrBase, .length = 4 * kMiB};
  t.xfers[1] = {.qpair_index = 1, .direction = kPut, .buf_fd = 0, .dev_addr = kHbmBase, .length = 4096};
  auto call = r.begin_structure(node, kCallTransfer, t, {memory.get()});
  ASSERT_TRUE(eventually([&] { return counters_of(*r.card)["completed"] == 1; }));
  EXPECT_FALSE(call->over);
  EXPECT_EQ(r.operate(ids[0], kStop), 0);
  EXPECT_EQ(call->wait(), -ENXIO);
  ASSERT_EQ(call->reply.part_count, 2u);
  EXPECT_EQ(call->reply.parts[0].error, static_cast<u32>(ENXIO));
  EXPECT_LT(call->reply.parts[0].bytes, 4 * kMiB);
  EXPECT_GT(call->reply.parts[0].bytes, 0u);
  EXPECT_EQ(call->reply.parts[1].error, 0u);
  EXPECT_EQ(call->reply.parts[1].bytes, 4096u);
  EXPECT_GT(call->reply.parts[1].ns, 0u);
}

TEST(DriverTransfers, Deadlines) {
  TransferRig r("model:clock=counted", only(Fault::drop, 1));
  u64 begin = r.card->now();
  EXPECT_EQ(r.transfer(TransferRig::good()), -ETIMEDOUT);
  EXPECT_EQ(r.card->now() - begin, DriverModel::kTransferLimitNs);
  ASSERT_EQ(r.last.part_count, 1u);
  EXPECT_EQ(r.last.parts[0].error, static_cast<u32>(ETIMEDOUT));
  begin = r.card->now();
  EXPECT_EQ(r.transfer(TransferRig::good(), 1'000'000), -ETIMEDOUT);
  EXPECT_EQ(r.card->now() - begin, 1'000'000u);
  EXPECT_EQ(counters_of(*r.card)["timed_out"], 2);
}

TEST(DriverTransfers, CancelAndTheBuffersLife) {
  TransferRig r("model", only(Fault::drop, 1));
  Transfer t = TransferRig::good();
  auto call = r.begin_structure(r.node, kCallTransfer, t, {r.memory.get()}, ~u64{0});
  ASSERT_NE(call->transfer, nullptr);
  // Nobody has the buffer any more but the transfer.
  r.memory.reset();
  EXPECT_EQ(r.driver.sweep_buffers(), 0u);
  EXPECT_FALSE(call->over);
  r.driver.cancel(*call->transfer);
  EXPECT_EQ(call->wait(), -ECANCELED);
  EXPECT_EQ(call->reply.parts[0].error, static_cast<u32>(ECANCELED));
  r.driver.cancel(*call->transfer);  // it has ended
}

TEST(DriverTransfers, RemovalInMidTransfer) {
  TransferRig r("model:bandwidth=1M");
  Transfer t = TransferRig::good();
  t.xfers[0].length = kMiB;
  auto call = r.begin_structure(r.node, kCallTransfer, t, {r.memory.get()});
  ASSERT_TRUE(eventually([&] { return r.card->bytes_moved() > 0; }));
  r.card->remove();
  EXPECT_EQ(call->wait(), -ENODEV);
  EXPECT_EQ(r.operate(r.id, kStop), -ENODEV);
}

}  // namespace
}  // namespace doorbell::qdma
