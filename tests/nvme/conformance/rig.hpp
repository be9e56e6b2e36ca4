// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The rig of the conformance cases: an enabled controller with a working queue pair.
#pragma once

#include <doorbell/nvme/wire.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "conformance.hpp"
#include "raw_controller.hpp"

namespace doorbell::nvme::conformance {

using testing_raw::eventually;
using testing_raw::RawController;
using testing_raw::RawQueue;

constexpr u32 kPage = 4096;

inline u16 code(const Cqe& e) {
  return status_of(e).type_and_code();
}

/// An enabled controller with one working queue pair and what Identify says.
struct Rig {
  explicit Rig(const Target& target, bool slow_commands = false, u32 entries = 64)
      : c(target.open(slow_commands)) {
    c.enable();
    const Cqe grant = c.run(set_queues_command(0, 8, 8));
    EXPECT_EQ(code(grant), status::success);
    granted = std::min(grant.dw0 & 0xffff, grant.dw0 >> 16) + 1;
    EXPECT_EQ(c.status(identify_command(0, Cns::controller, 0, page.iova())), status::success);
    mdts = page.region().host()[identify::mdts];
    EXPECT_EQ(c.status(identify_command(0, Cns::name_space, 1, page.iova())), status::success);
    std::memcpy(&blocks, page.region().host() + identify::nsze, 8);
    const u32 format = identify::format_in_use(page.region().host());
    lba_bytes = 1u << page.region().host()[identify::lbaf + 4 * format + 2];
    io = c.create(1, entries, entries);
  }

  Cqe run(Sqe e) {
    e.cid = cid++;
    io->submit(e);
    const Cqe done = io->wait();
    EXPECT_EQ(done.cid, e.cid);
    EXPECT_EQ(done.sq_id, io->qid());
    EXPECT_EQ(done.sq_head, io->tail());
    return done;
  }
  u16 status(const Sqe& e) { return code(run(e)); }
  Sqe command(IoOpcode op, u64 lba, u32 n, u64 prp1, u64 prp2 = 0) {
    return io_command(op, 0, 1, lba, n, prp1, prp2);
  }
  u8* bytes() { return data.region().host(); }

  RawController c;
  Mapped& page = c.memory(2 * kPage);
  Mapped& data = c.memory(64 * kPage);
  RawQueue* io = nullptr;
  u64 blocks = 0;
  u32 lba_bytes = 0;
  u32 mdts = 0;
  u32 granted = 0;  ///< I/O queue pairs
  u16 cid = 0;
};

inline void fill(u8* at, u64 n, u64 seed) {
  std::mt19937_64 random(seed);
  for (u64 i = 0; i < n; i += sizeof(u64)) {
    const u64 word = random();
    std::memcpy(at + i, &word, std::min<u64>(n - i, sizeof word));
  }
}

/// Whether all `n` bytes are `value`. Not a look at each: sanitizers take a second for a few MiB of those.
inline bool all_are(u8 value, const u8* at, u64 n) {
  return n == 0 || (*at == value && std::memcmp(at, at + 1, n - 1) == 0);
}

/// The parts that cases() puts together.
[[nodiscard]] std::vector<Case> controller_cases();
[[nodiscard]] std::vector<Case> event_cases();
[[nodiscard]] std::vector<Case> queue_cases();
[[nodiscard]] std::vector<Case> driver_cases();
[[nodiscard]] std::vector<Case> driver_queue_cases();

}  // namespace doorbell::nvme::conformance
