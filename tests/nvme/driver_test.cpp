// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The NVMe driver with controllers that misbehave, and with the model through the model's public interface.

#include <doorbell/error.hpp>
#include <doorbell/memory_order.hpp>
#include <doorbell/nvme/controller.hpp>
#include <doorbell/nvme/wire.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "scripted_controller.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {
namespace {

/// Longer than any machine pauses; cases that wait for the limit have a short one.
constexpr double kNever = 60;

std::unique_ptr<Controller> open(ScriptedController::Script script, double timeout_s = kNever,
                                 ScriptedController** device = nullptr) {
  auto owned = std::make_unique<ScriptedController>(std::move(script));
  if (device != nullptr) *device = owned.get();
  OpenOptions options;
  options.timeout_s = timeout_s;
  return std::make_unique<Controller>(std::move(owned), options);
}

void expect_error(const ScriptedController::Script& script, const std::string& word, ExitCode code,
                  double timeout_s = kNever) {
  try {
    (void)open(script, timeout_s);
    ADD_FAILURE() << "opened; expected: " << word;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    EXPECT_EQ(e.code(), code) << e.what();
  }
}

TEST(Driver, OpensAWellBehavedController) {
  ScriptedController* device = nullptr;
  const auto c = open({}, kNever, &device);
  EXPECT_EQ(c->info().max_queue_entries, 64u);
  EXPECT_EQ(c->info().model, "A model");
  EXPECT_EQ(c->info().serial, "");
  EXPECT_EQ(c->info().max_transfer_bytes, 0u);
  const NamespaceInfo n = c->identify_namespace(1);
  EXPECT_EQ(n.blocks, 100u);
  EXPECT_EQ(n.lba_bytes, 512u);
  for (int i = 0; i < 500; ++i) (void)c->identify_namespace(1);  // the admin rings wrap
}

TEST(Driver, InitiatorsForwardDoorbellsWhereThereIsNeed) {
  struct Forwarder final : DoorbellForwarder {
    void forward(u16 qid) override { carried.push_back(qid); }
    void by_initiator(bool on) override { asked.push_back(on); }
    std::vector<u16> carried;
    std::vector<bool> asked;
  } forwarder;
  {
    const auto c = open({.forwarder = &forwarder});
    EXPECT_EQ(c->name(), "scripted");
    EXPECT_EQ(c->kind(), "model");
    c->forward_by_initiator(true);
    IoQueuePair first = c->create_queue_pair(1, 16, Place::pageable, Place::pageable);
    IoQueuePair second = c->create_queue_pair(2, 16, Place::pageable, Place::pageable);
    second.forward_doorbells();
    first.forward_doorbells();
    c->forward_by_initiator(false);
  }
  EXPECT_EQ(forwarder.carried, (std::vector<u16>{2, 1}));
  EXPECT_EQ(forwarder.asked, (std::vector<bool>{true, false}));
  // Where doorbells are registers both calls do nothing.
  const auto c = open({});
  c->forward_by_initiator(true);
  c->create_queue_pair(1, 16, Place::pageable, Place::pageable).forward_doorbells();
}

TEST(Driver, WaitsForReadyNoLongerThanPromised) {
  const u64 begin = wall_ns();
  expect_error({.never_ready = true}, "CSTS.RDY did not become 1", ExitCode::data, 0.3);
  EXPECT_GE(wall_ns() - begin, 400'000'000u) << "CAP.TO is a promise to wait";
}

TEST(Driver, ReportsAFatalStatus) {
  expect_error({.fatal = true}, "fatal", ExitCode::data);
}
TEST(Driver, ReportsADeviceThatIsGone) {
  expect_error({.cap = ~u64{0}}, "gone", ExitCode::data);
  expect_error({.gone_after = 0}, "gone", ExitCode::data);
}
TEST(Driver, ReportsADeafController) {
  expect_error({.deaf_after = 0}, "no completion in 0.3 s", ExitCode::data, 0.3);
}
TEST(Driver, AnAnswerThatWaitedForItsHostIsNotMissing) {
  // The look at CSTS in which the device answers takes longer than the deadline.
  const auto slow = [](u8, u8*) { std::this_thread::sleep_for(std::chrono::milliseconds(40)); };
  EXPECT_EQ(open({.identify = slow}, 0.02)->info().max_queue_entries, 64u);
}

TEST(Driver, NamesTheStatusOfARefusal) {
  expect_error({.refuse = {{0x06, status::internal_error}}}, "Internal Error", ExitCode::data);
}
TEST(Driver, RefusesCapabilitiesThatItCannotUse) {
  expect_error({.cap = 63}, "command set", ExitCode::usage);
  expect_error({.cap = 63 | u64{1} << 37 | u64{1} << 48}, "page", ExitCode::usage);
}

TEST(Driver, DisablesAControllerThatIsRunning) {
  ScriptedController* device = nullptr;
  const auto c = open({.csts_at_open = csts::ready, .cc_at_open = 0x460001}, kNever, &device);
  ASSERT_GE(device->writes.size(), 2u);
  EXPECT_EQ(device->writes[0].first, reg::cc);
  EXPECT_EQ(device->writes[0].second & cc::enable, 0u) << "disabled first";
}

TEST(Driver, TrimsNamesPaddedEitherWay) {
  const auto c = open({.identify = [](u8 cns, u8* page) {
    if (cns != 1) return;
    std::memset(page + identify::serial, 0, identify::serial_bytes + identify::model_bytes);
    std::memcpy(page + identify::serial, "S1", 2);
    std::memcpy(page + identify::model, "M 2", 3);
  }});
  EXPECT_EQ(c->info().serial, "S1");
  EXPECT_EQ(c->info().model, "M 2");
}

TEST(Driver, LargestTransfer) {
  for (const auto& [mdts, bytes] :
       std::map<u8, u64>{{0, 0}, {1, 8192}, {5, 131072}, {9, 2097152}, {255, 0}}) {
    const auto c = open({.identify = [mdts = mdts](u8 cns, u8* page) {
      if (cns == 1) page[identify::mdts] = mdts;
    }});
    EXPECT_EQ(c->info().max_transfer_bytes, bytes);
  }
}

TEST(Driver, Namespaces) {
  const auto info = [](std::function<void(u8*)> change) {
    const auto c = open({.identify = [&](u8 cns, u8* page) {
      if (cns == 0) change(page);
    }});
    return c->identify_namespace(1);
  };
  const auto refused = [&](std::function<void(u8*)> change, const std::string& word) {
    try {
      (void)info(std::move(change));
      ADD_FAILURE() << word;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    }
  };
  EXPECT_EQ(info([](u8* p) { p[identify::lbaf + 2] = 12; }).lba_bytes, 4096u);
  EXPECT_EQ(info([](u8* p) {
              p[identify::flbas] = 3;
              p[identify::lbaf + 3 * 4 + 2] = 13;
            }).lba_bytes,
            8192u);
  // With more than 16 formats FLBAS 6:5 are above its bits 3:0; bit 4 (where metadata is) is between them.
  const auto with_formats = [&](u8 nlbaf, u8 nulbaf) {
    return info([=](u8* p) {
             p[identify::nlbaf] = nlbaf;
             p[identify::nulbaf] = nulbaf;
             p[identify::flbas] = 2 << 5 | 1 << 4 | 5;
             p[identify::lbaf + 5 * 4 + 2] = 9;
             p[identify::lbaf + 37 * 4 + 2] = 13;
           })
        .lba_bytes;
  };
  EXPECT_EQ(with_formats(63, 0), 8192u);
  EXPECT_EQ(with_formats(16, 0), 8192u);
  EXPECT_EQ(with_formats(15, 1), 8192u);
  EXPECT_EQ(with_formats(15, 0), 512u) << "there they are to be ignored";
  refused([](u8* p) { p[identify::nsze] = 0; }, "not active");
  refused([](u8* p) { p[identify::lbaf] = 8; }, "metadata");
  refused([](u8* p) { p[identify::dps] = 1; }, "protection");
  refused([](u8* p) { p[identify::lbaf + 2] = 8; }, "logical block");
  refused([](u8* p) { p[identify::lbaf + 2] = 0; }, "logical block");
  refused([](u8* p) { p[identify::lbaf + 2] = 33; }, "logical block");
}

TEST(Driver, TakesTheSmallerGrant) {
  EXPECT_EQ(open({.granted = 3 | 9 << 16})->request_queues(8), 4u);
  EXPECT_EQ(open({.granted = 9 | 3 << 16})->request_queues(8), 4u);
  EXPECT_EQ(open({.granted = 0})->request_queues(8), 1u);
}

TEST(Driver, IgnoresCompletionsOfOtherCommands) {
  const auto c = open({.extra_completion = true});
  for (int i = 0; i < 200; ++i) EXPECT_EQ(c->identify_namespace(1).blocks, 100u);
}

TEST(Driver, RefusesQueueSizes) {
  const auto c = open({});
  for (const u32 entries : {0u, 1u, 65u, 65536u, 0xffffffffu})
    EXPECT_THROW((void)c->create_queue_pair(1, entries, Place::pageable, Place::pageable), Error) << entries;
  EXPECT_NO_THROW((void)c->create_queue_pair(1, 64, Place::pageable, Place::pageable));
}

TEST(Driver, ARefusedSqTakesItsCqAlong) {
  ScriptedController* device = nullptr;
  const auto c = open({.refuse = {{0x01, status::invalid_queue_size}}}, kNever, &device);
  const u64 before = device->answered;
  EXPECT_THROW((void)c->create_queue_pair(1, 8, Place::pageable, Place::pageable), Error);
  EXPECT_EQ(device->answered - before, 3u);  // create CQ, create SQ, delete CQ
}

/// Tearing down many queues of a controller that no longer answers must not wait for each in turn.
TEST(Driver, ADeafControllerIsGivenUpOnce) {
  std::vector<IoQueuePair> queues;
  auto c = open({.deaf_after = 2 + 2 * 16}, 0.5);
  c->request_queues(16);
  for (u16 q = 1; q <= 16; ++q)
    queues.push_back(c->create_queue_pair(q, 8, Place::pageable, Place::pageable));
  const u64 begin = wall_ns();
  queues.clear();
  c.reset();
  EXPECT_LT(static_cast<double>(wall_ns() - begin) * 1e-9, 4) << "half a second for each queue";
}

TEST(Driver, ADeviceThatGoesWhileItShutsDown) {
  auto c = open({.gone_at_shutdown = true});
  const u64 begin = wall_ns();
  c.reset();
  EXPECT_LT(static_cast<double>(wall_ns() - begin) * 1e-9, 3) << "it waited for a device that is gone";
}

/// How a controller was left behind.
struct Left {
  std::vector<u32> cc;  ///< what was written to CC
  u32 cc_now = 0, csts_now = 0;
  bool cut_short = false;
  u64 answered = 0;
};

/// Takes what is left behind of `script`'s device when it goes.
ScriptedController::Script watched(ScriptedController::Script script, Left& left) {
  script.at_end = [&](const ScriptedController& d) {
    left = {d.cc_writes(), d.peek(reg::cc), d.peek(reg::csts), d.cut_short, d.answered};
  };
  return script;
}

TEST(Driver, ShutsDownThenDisablesWhatItCloses) {
  Left left;
  (void)open(watched({.shutdown_looks = 3, .stop_looks = 3}, left));
  ASSERT_EQ(left.cc.size(), 3u) << "enable, shutdown, disable";
  EXPECT_EQ(left.cc[1], left.cc[0] | cc::shutdown_normal) << "EN stays 1 until the shutdown has ended";
  EXPECT_EQ(left.cc_now, 0u);
  EXPECT_FALSE(left.cut_short);
  EXPECT_EQ(left.csts_now & csts::ready, 0u) << "memory was given back under a running controller";
}

TEST(Driver, LeavesAloneWhatSomebodyElseHasReset) {
  for (const u32 status : {0u, ~0u}) {
    Left left;
    ScriptedController* device = nullptr;
    auto c = open(watched({}, left), kNever, &device);
    store_release(device->cpu_register(reg::csts), status);
    c.reset();
    EXPECT_EQ(left.cc.size(), 1u) << "enabled, and no more";
  }
}

/// A shutdown may never end where the status is fatal; only a reset helps.
TEST(Driver, AFatalControllerIsResetAtOnce) {
  Left left;
  ScriptedController* device = nullptr;
  auto c = open(watched({.shutdown_looks = ~0u, .stop_looks = 3}, left), kNever, &device);
  store_release(device->cpu_register(reg::csts), csts::ready | csts::fatal);
  c.reset();
  EXPECT_EQ(left.cc.size(), 2u) << "enable, disable";
  EXPECT_EQ(left.cc_now, 0u);
  EXPECT_EQ(left.csts_now, 0u);
}

TEST(Driver, DisablesWhatItCouldNotOpen) {
  using Script = ScriptedController::Script;
  for (const Script& script : {Script{.refuse = {{0x06, status::internal_error}}, .stop_looks = 3},
                               Script{.never_ready = true}, Script{.fatal = true}}) {
    Left left;
    EXPECT_THROW((void)open(watched(script, left), 0.3), Error);
    EXPECT_EQ(left.cc.size(), 2u) << "enable, disable";
    EXPECT_EQ(left.cc_now, 0u);
    EXPECT_EQ(left.csts_now, 0u) << "memory was given back under a running controller";
  }
}

/// A queue whose deletion is not answered may still be written to: the controller is stopped before its
/// memory goes.
TEST(Driver, AQueueThatCannotBeDeletedStopsTheController) {
  Left left;
  ScriptedController* device = nullptr;
  auto c = open(watched({.deaf_after = 3, .stop_looks = 3}, left), 0.05, &device);
  { const auto queue = c->create_queue_pair(1, 8, Place::pageable, Place::pageable); }
  EXPECT_EQ(device->peek(reg::cc), 0u);
  EXPECT_EQ(device->peek(reg::csts) & csts::ready, 0u);
  c.reset();
  EXPECT_EQ(left.cc.size(), 2u) << "it is disabled once";
}

/// Nothing more is to be had from a controller with a fatal status: no wait for the limit.
TEST(Driver, AFatalStatusEndsTheWaitForAnAnswer) {
  Left left;
  auto c = open(watched({.fatal_after = 1}, left), 3600);
  try {
    (void)c->identify_namespace(1);
    ADD_FAILURE() << "answered";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("fatal status (CSTS.CFS)"), std::string::npos) << e.what();
    EXPECT_EQ(e.code(), ExitCode::data);
  }
  EXPECT_THROW((void)c->identify_namespace(1), Error);
  c.reset();
  EXPECT_EQ(left.answered, 1u);
  EXPECT_EQ(left.cc_now, 0u);
}

TEST(Driver, MoreUnansweredCommandsThanTheQueueHolds) {
  const auto c = open({.deaf_after = 1}, 0.05);
  for (int i = 0; i < 200; ++i) {
    try {
      (void)c->identify_namespace(1);
      ADD_FAILURE() << "it was answered";
    } catch (const Error& e) {
      // Only the first is waited for.
      EXPECT_NE(std::string(e.what()).find(i == 0 ? "no completion in" : "an earlier command unanswered"),
                std::string::npos)
          << e.what();
    }
  }
}

/// A tail outside the admin queue leaves nothing to talk through.
TEST(Model, AnImpossibleAdminTailIsFatal) {
  const auto c = Controller::open("model");
  store_release(interface_of(*c).cpu_register(sq_doorbell_offset(0, 0)), 64u);  // the queue has 64 entries
  const u64 limit = wall_ns() + 60'000'000'000;
  while ((interface_of(*c).read32(reg::csts) & csts::fatal) == 0 && wall_ns() < limit)
    std::this_thread::yield();
  EXPECT_NE(interface_of(*c).read32(reg::csts) & csts::fatal, 0u);
  EXPECT_EQ(interface_of(*c).counters().at("invalid_doorbell_values"), 1u);
}

TEST(Model, OpenTwiceAndUseBoth) {
  const auto a = Controller::open("model:capacity=1Mi"), b = Controller::open("model:capacity=2Mi,lba=4096");
  EXPECT_EQ(a->identify_namespace(1).blocks, 2048u);
  EXPECT_EQ(b->identify_namespace(1).blocks, 512u);
  EXPECT_FALSE(a->gone());
}

TEST(Model, ShadowPointersStayInTheirPage) {
  OpenOptions options;
  options.shadow_doorbells = true;
  for (u32 stride = 0; stride <= 4; ++stride) {
    const auto c = Controller::open("model:stride=" + std::to_string(stride), options);
    c->request_queues(64);
    const auto near = c->create_queue_pair(1, 8, Place::pageable, Place::pageable);
    const auto far = c->create_queue_pair(64, 8, Place::pageable, Place::pageable);
    const QueuePairMemory first = near.memory(Initiator::cpu), last = far.memory(Initiator::cpu);
    ASSERT_NE(first.sq_shadow, nullptr);
    if (last.sq_shadow == nullptr) continue;  // rings registers
    const u64 base = sq_doorbell_offset(1, stride) - reg::doorbells;
    const auto* page = reinterpret_cast<const u8*>(first.sq_shadow) - base;
    EXPECT_LE(reinterpret_cast<const u8*>(last.cq_shadow) + 4, page + 4096) << "stride " << stride;
  }
}

TEST(Model, RegistersOutsideTheBarAreRefused) {
  const auto c = Controller::open("model");
  EXPECT_THROW((void)interface_of(*c).read32(0xffffff00), Error);
  EXPECT_THROW((void)interface_of(*c).read32(2), Error);
  EXPECT_THROW(interface_of(*c).write32(0x7ffffff0, 1), Error);
  EXPECT_THROW((void)interface_of(*c).cpu_register(~u64{0} - 3), Error);
}

}  // namespace
}  // namespace doorbell::nvme
