// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The report of a run when another one writes to its part of a served card.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "measure/live.hpp"
#include "qdma/bench/validate.hpp"
#include "qdma/server_rig.hpp"

namespace doorbell::qdma {
namespace {

constexpr u64 kSize = 8192;  // of what another run writes

/// A served card, and another program's units in the first bytes of its DDR.
struct Intruder {
  explicit Intruder(const std::string& name)
      : path("/tmp/doorbell-intruder-" + name + std::to_string(getpid())) {
    rig.server.listen(path);
  }
  [[nodiscard]] std::string spec() const { return "server:" + path; }
  /// Units as a run with seed 77 makes them.
  void write(u64 first_address) const {
    Card card = card_over(open_driver({.spec = spec()}));
    Buffer buffer = card.create_buffer(kSize);
    pattern::fill(OneLane{}, buffer.data(), kSize, {.seed = 77, .address = first_address, .sequence = 0x123});
    ChannelDescriptor descriptor(card, {});
    const TransferResult r = descriptor.transfers().transfer(Direction::host_to_card, buffer, 0,
                                                             card_memory("ddr").base, kSize, 0);
    EXPECT_EQ(r.error, 0);
  }
  std::string path;
  ServerRig rig;
};

void expect_named(const measure::BenchResult& result) {
  EXPECT_TRUE(result.failed);
  u32 times = 0;
  for (const std::string& w : result.warnings)
    if (w.find("holds a unit of another run (seed 77, sequence 0x123)") != std::string::npos) ++times;
  EXPECT_EQ(times, 1u);
}

TEST(OtherRun, IsNamedByABench) {
  const Intruder intruder("bench");
  measure::StopFlag stop;
  measure::LiveBoard live(true);
  bool written = false;
  const auto progress = [&](double, const std::string& what) {
    if (what.find("filling") != std::string::npos) return;
    if (!std::exchange(written, true)) intruder.write(0);
    const OpCounters seen = live.figures().counters;
    if (seen.stale + seen.misplaced + seen.corrupt > 0) stop.request(SIGINT);
  };
  rma::BenchOptions o = bench_of_transfers();
  o.device = intruder.spec();
  o.op = rma::Op::read;
  o.sizes = {1 << 20};  // of larger transfers fewer places are filled first
  o.queues = 1;
  o.rate = false;
  o.warmup_s = 0;
  o.repeats = 1;
  o.duration_s = 600;  // the damage ends it
  expect_named(rma::run_bench(o, {.stop = &stop, .progress = progress, .live = &live}));
}

TEST(OtherRun, IsNamedByAValidation) {
  const Intruder intruder("validation");
  const auto progress = [&](double, const std::string& what) {
    if (what.find(" read ") != std::string::npos) intruder.write(card_memory("ddr").base);
  };
  ValidateOptions o;
  o.device = intruder.spec();
  o.hbm = false;
  o.threads = 1;
  o.buffer_bytes = kSize;
  o.warmup_s = 0;
  o.repeats = 1;
  o.duration_s = 0;
  expect_named(validate(o, {.progress = progress}));
}

}  // namespace
}  // namespace doorbell::qdma
