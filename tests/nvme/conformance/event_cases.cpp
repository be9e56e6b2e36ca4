// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Conformance of asynchronous events, and of the doorbell values that raise them.
#include "rig.hpp"

namespace doorbell::nvme::conformance {
namespace {

Cqe next_event(Rig& r, u16 cid) {
  const Cqe e = r.c.admin().wait();
  EXPECT_EQ(e.cid, cid);
  EXPECT_EQ(code(e), status::success);
  EXPECT_EQ(e.dw0 & 7, 0u) << "type: error status";
  // The host reads the log that the event names before it asks again.
  const auto log = static_cast<u8>(e.dw0 >> 16);
  EXPECT_EQ(log, 1) << "error events are detailed in the error information log";
  EXPECT_EQ(r.c.status(get_log_command(0, log, kAllNamespaces, 64, r.page.iova())), status::success);
  return e;
}

void request_event(Rig& r, u16 cid) {
  r.c.admin().submit(admin_command(AdminOpcode::async_event, cid));
  // Answered behind it, so the request is there from now on.
  Sqe any = admin_command(AdminOpcode::get_features, 0);
  any.cdw10 = kFeatureQueues;
  EXPECT_EQ(r.c.status(any), status::success);
}

void event_request_limit(const Target& t) {
  Rig r(t);
  ASSERT_EQ(r.c.status(identify_command(0, Cns::controller, 0, r.page.iova())), status::success);
  const u32 limit = r.page.region().host()[identify::aerl] + 1u;
  for (u32 i = 0; i < limit; ++i) request_event(r, static_cast<u16>(0x4000 + i));
  r.c.admin().submit(admin_command(AdminOpcode::async_event, 0x4fff));
  const Cqe refused = r.c.admin().wait();
  EXPECT_EQ(refused.cid, 0x4fff);
  EXPECT_EQ(code(refused), status::async_event_limit);
  EXPECT_EQ(r.c.status(set_queues_command(0, 8, 8)), status::command_sequence) << "the admin queue goes on";
}

void bad_sq_doorbell_value(const Target& t) {
  Rig r(t);
  request_event(r, 0x4001);
  r.io->ring_value(64);  // the first value that is no index
  EXPECT_EQ(next_event(r, 0x4001).dw0 >> 8 & 0xff, 1u) << "invalid doorbell write value";
  EXPECT_FALSE(r.io->take().has_value()) << "nothing was consumed";
  request_event(r, 0x4002);
  r.io->ring_value(0xdead);
  EXPECT_EQ(next_event(r, 0x4002).dw0 >> 8 & 0xff, 1u);
  EXPECT_EQ(r.status(flush_command(0, 1)), status::success) << "a good value works again";
  EXPECT_EQ(r.c.csts() & csts::fatal, 0u);
}

void bad_cq_doorbell_value(const Target& t) {
  Rig r(t);
  request_event(r, 0x4001);
  r.io->ring_cq_value(64);
  EXPECT_EQ(next_event(r, 0x4001).dw0 >> 8 & 0xff, 1u) << "invalid doorbell write value";
  r.io->ring_cq();
  for (int i = 0; i < 200; ++i) ASSERT_EQ(r.status(flush_command(0, 1)), status::success);
}

/// The host cannot have taken entries that were never written.
void a_cq_doorbell_beyond_the_tail(const Target& t) {
  Rig r(t);
  request_event(r, 0x4001);
  for (u16 cid = 0; cid < 3; ++cid) {
    r.io->submit(flush_command(cid, 1));
    ASSERT_EQ(r.io->wait(false).cid, cid);
  }
  r.io->ring_cq_value(4);
  EXPECT_EQ(next_event(r, 0x4001).dw0 >> 8 & 0xff, 1u) << "invalid doorbell write value";
  EXPECT_EQ(r.c.interface().counters().at("invalid_doorbell_values"), 1u);
  r.io->ring_cq();
  for (int i = 0; i < 200; ++i) ASSERT_EQ(r.status(flush_command(0, 1)), status::success);
  EXPECT_EQ(r.c.interface().counters().at("invalid_doorbell_values"), 1u);
}

void doorbell_of_an_unknown_queue(const Target& t) {
  Rig r(t);
  const auto never = r.c.queue(5, 4, 4);
  request_event(r, 0x4001);
  never->ring_value(1);
  EXPECT_EQ(next_event(r, 0x4001).dw0 >> 8 & 0xff, 0u) << "invalid doorbell register";
  request_event(r, 0x4002);
  never->ring_cq_value(3);
  EXPECT_EQ(next_event(r, 0x4002).dw0 >> 8 & 0xff, 0u);
  // A deleted queue is unknown too.
  ASSERT_EQ(r.c.status(delete_queue_command(AdminOpcode::delete_sq, 0, 1)), status::success);
  request_event(r, 0x4003);
  r.io->ring_value(7);
  EXPECT_EQ(next_event(r, 0x4003).dw0 >> 8 & 0xff, 0u);
}

void an_event_waits_for_a_request(const Target& t) {
  Rig r(t);
  r.io->ring_value(64);
  // Long enough for any controller to have seen it, and without a request it has nowhere to go.
  for (int i = 0; i < 20; ++i) ASSERT_EQ(r.c.status(abort_command(0, 1, 9)), status::success);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  r.c.admin().submit(admin_command(AdminOpcode::async_event, 0x4001));
  EXPECT_EQ(next_event(r, 0x4001).dw0 >> 8 & 0xff, 1u);
}

}  // namespace

std::vector<Case> event_cases() {
  return {
      {"EventRequestLimit", nothing, event_request_limit},
      {"BadSqDoorbellValue", doorbell_events, bad_sq_doorbell_value},
      {"BadCqDoorbellValue", doorbell_events, bad_cq_doorbell_value},
      {"ACqDoorbellBeyondTheTail", doorbell_events | counts, a_cq_doorbell_beyond_the_tail},
      {"DoorbellOfAnUnknownQueue", doorbell_events, doorbell_of_an_unknown_queue},
      {"AnEventWaitsForARequest", doorbell_events | keeps_events, an_event_waits_for_a_request},
  };
}

}  // namespace doorbell::nvme::conformance
