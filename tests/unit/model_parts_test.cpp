// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What models are made of: fault decisions, the link, the model's keys, status names.

#include <doorbell/error.hpp>
#include <doorbell/nvme/status.hpp>
#include <doorbell/nvme/wire.hpp>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include "model/fault.hpp"
#include "model/link.hpp"
#include "nvme/backends.hpp"
#include "nvme/model/spec.hpp"

namespace doorbell::model {
namespace {

FaultRates rates(Fault f, double p) {
  FaultRates r;
  r.probability[static_cast<u32>(f)] = p;
  return r;
}

TEST(Faults, NamesAreTheKinds) {
  EXPECT_EQ(fault_names().size(), kFaultKinds);
  EXPECT_EQ(name(Fault::drop), "drop");
  EXPECT_EQ(name(Fault::removal), "removal");
  EXPECT_EQ(name(Fault::none), "none");
}

TEST(Faults, TheSameSeedDecidesTheSame) {
  FaultRates r;
  for (u32 k = 0; k < kFaultKinds; ++k) r.probability[k] = 0.01;
  const FaultInjector a(r, 5), b(r, 5), c(r, 6);
  u64 different = 0;
  for (u64 queue = 1; queue <= 4; ++queue)
    for (u64 serial = 0; serial < 10'000; ++serial) {
      const Fault f = a.draw(queue, serial, Direction::to_host);
      ASSERT_EQ(f, b.draw(queue, serial, Direction::to_host));
      ASSERT_EQ(f, a.draw(queue, serial, Direction::to_host)) << "a draw must not move a state";
      different += f != c.draw(queue, serial, Direction::to_host) ? 1u : 0u;
      ASSERT_LT(a.choose(queue, serial, 512), 512u);
      ASSERT_EQ(a.choose(queue, serial, 512), b.choose(queue, serial, 512));
    }
  EXPECT_GT(different, 1000u);
}

TEST(Faults, RatesAreMet) {
  constexpr u64 kDraws = 200'000;
  for (u32 k = 0; k < kFaultKinds; ++k) {
    const auto f = static_cast<Fault>(k);
    const Direction d = f == Fault::stale ? Direction::to_device : Direction::to_host;
    for (const double p : {0.0, 0.001, 0.05, 0.5, 1.0}) {
      const FaultInjector injector(rates(f, p), 17 + k);
      EXPECT_EQ(injector.active(), p > 0);
      u64 hits = 0;
      for (u64 serial = 0; serial < kDraws; ++serial) hits += injector.draw(3, serial, d) == f ? 1u : 0u;
      const double expected = p * kDraws;
      EXPECT_NEAR(static_cast<double>(hits), expected, 6 * std::sqrt(expected * (1 - p)) + 0.5)
          << name(f) << ' ' << p;
    }
  }
}

TEST(Faults, KindsHitOnlyWhatTheyCanApplyTo) {
  const FaultInjector corrupt(rates(Fault::corrupt, 1), 1), misplace(rates(Fault::misplace, 1), 1),
      stale(rates(Fault::stale, 1), 1), drop(rates(Fault::drop, 1), 1);
  for (const Direction d : {Direction::to_host, Direction::to_device, Direction::none}) {
    EXPECT_EQ(corrupt.draw(1, 1, d) == Fault::corrupt, d == Direction::to_host);
    EXPECT_EQ(misplace.draw(1, 1, d) == Fault::misplace, d == Direction::to_host);
    EXPECT_EQ(stale.draw(1, 1, d) == Fault::stale, d == Direction::to_device);
    EXPECT_EQ(drop.draw(1, 1, d), Fault::drop);
  }
}

TEST(Faults, QueuesDoNotShareTheirFate) {
  const FaultInjector injector(rates(Fault::drop, 0.5), 1);
  u64 same = 0;
  for (u64 serial = 0; serial < 10'000; ++serial)
    same += injector.draw(1, serial, Direction::none) == injector.draw(2, serial, Direction::none) ? 1u : 0u;
  EXPECT_NEAR(static_cast<double>(same), 5000, 300);
}

TEST(Faults, CountsAreCounted) {
  FaultInjector injector(rates(Fault::drop, 0.5), 1);
  for (int i = 0; i < 5; ++i) injector.count(Fault::drop);
  injector.count(Fault::error);
  EXPECT_EQ(injector.counted(Fault::drop), 5u);
  EXPECT_EQ(injector.counted(Fault::error), 1u);
  EXPECT_EQ(injector.counted(Fault::stale), 0u);
}

TEST(Link, AddsLatency) {
  Link none(0, 0), slow(0, 1500);
  EXPECT_FALSE(none.limited());
  EXPECT_TRUE(slow.limited());
  EXPECT_EQ(none.finish_time(100, 1 << 20), 100u);
  EXPECT_EQ(slow.finish_time(100, 1 << 20), 1600u);
  EXPECT_EQ(slow.finish_time(100, 1 << 20), 1600u);  // latency is not occupancy
}

TEST(Link, BandwidthIsSharedAndNotSavedUp) {
  Link link(1e9, 10);  // a byte a ns
  EXPECT_TRUE(link.limited());
  EXPECT_EQ(link.finish_time(0, 1000), 1010u);
  EXPECT_EQ(link.finish_time(0, 1000), 2010u);
  EXPECT_EQ(link.finish_time(500, 1000), 3010u);
  EXPECT_EQ(link.finish_time(10'000, 1000), 11'010u);  // an idle wire earns no credit
}

TEST(Link, ManyThreadsTogetherGetTheBandwidth) {
  Link link(1e9, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) (void)link.finish_time(0, 100);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(link.finish_time(0, 0), 4u * 10'000 * 100);
}

}  // namespace
}  // namespace doorbell::model

namespace doorbell::nvme {
namespace {

std::string message(const std::string& spec) {
  try {
    (void)parse_model_spec(spec);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    return std::string(e.what()) + " | " + e.hint();
  }
  return "accepted";
}

void expect_refused(const std::string& spec, const std::vector<std::string>& words) {
  const std::string text = message(spec);
  EXPECT_NE(text, "accepted") << spec;
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << spec << ": " << text;
}

TEST(ModelSpec, DefaultsAndEveryKey) {
  const ModelConfig d = parse_model_spec("model");
  EXPECT_EQ(d.media, ModelConfig::Media::ram);
  EXPECT_EQ(d.lba_bytes, 512u);
  EXPECT_EQ(d.capacity_bytes, u64{1} << 30);
  EXPECT_TRUE(d.shadow_doorbells);
  const ModelConfig c = parse_model_spec(
      "model:media=file:/tmp/a=b:c,lba=4096,capacity=3Mi,latency=20us,bandwidth=2G,threads=3,queues=7,entries=33,stride=2,"
      "mdts=0,shadow=off,delay=2.5");
  EXPECT_EQ(c.media, ModelConfig::Media::file);
  EXPECT_EQ(c.path, "/tmp/a=b:c");
  EXPECT_EQ(c.lba_bytes, 4096u);
  EXPECT_EQ(c.capacity_bytes, u64{3} << 20);
  EXPECT_EQ(c.latency_ns, 20'000u);
  EXPECT_EQ(c.bytes_per_s, 2e9);
  EXPECT_EQ(c.threads, 3u);
  EXPECT_EQ(c.max_queues, 7u);
  EXPECT_EQ(c.max_entries, 33u);
  EXPECT_EQ(c.stride, 2u);
  EXPECT_EQ(c.mdts, 0u);
  EXPECT_FALSE(c.shadow_doorbells);
  EXPECT_EQ(c.delay_ns, 2'500'000'000u);
  EXPECT_EQ(parse_model_spec("model:media=null").media, ModelConfig::Media::null);
  EXPECT_EQ(parse_model_spec("model:entries=65536").max_entries, 65536u);
}

TEST(ModelSpec, UnknownKeysSuggest) {
  expect_refused("model:medai=ram", {"medai", "media"});
  expect_refused("model:LBA=512", {"LBA"});
  expect_refused("model:strid=1", {"did you mean 'stride'"});
  expect_refused("model:xyzzy=1", {"xyzzy", "the keys are", "capacity"});
  expect_refused("model:", {"unknown key"});
  expect_refused("model:,", {"unknown key"});
  expect_refused("model:lba=512,", {"unknown key"});
}

TEST(ModelSpec, BadValues) {
  expect_refused("model:lba=1000", {"lba", "1000", "512, 4096"});
  expect_refused("model:lba=0", {"lba"});
  expect_refused("model:lba=8192", {"lba"});
  expect_refused("model:lba=4294967808", {"lba"});  // 2^32 + 512: no narrowing before the check
  expect_refused("model:lba", {"lba", "needs a value"});
  expect_refused("model:lba=", {"lba"});
  expect_refused("model:lba=512,lba=512", {"twice"});
  expect_refused("model:media=tape", {"media", "tape", "null, ram, file:PATH"});
  expect_refused("model:media=file:", {"media"});
  expect_refused("model:capacity=1", {"capacity"});
  expect_refused("model:capacity=99999999999999999999", {"capacity"});
  expect_refused("model:capacity=-1", {"capacity"});
  expect_refused("model:capacity=2Pi", {"capacity"});
  expect_refused("model:latency=-1", {"latency"});
  expect_refused("model:latency=1e400", {"latency"});
  expect_refused("model:latency=nan", {"latency"});
  expect_refused("model:queues=0", {"queues"});
  expect_refused("model:queues=65", {"queues"});
  expect_refused("model:entries=1", {"entries"});
  expect_refused("model:entries=65537", {"entries"});
  expect_refused("model:stride=5", {"stride"});
  expect_refused("model:mdts=17", {"mdts"});
  expect_refused("model:threads=65", {"threads"});
  expect_refused("model:shadow=maybe", {"shadow", "maybe"});
}

TEST(Backends, NoFallBack) {
  for (const char* spec : {"", "Model", "modelx", "model2:lba=512", "vfio:0000:00:00.0x", "models"}) {
    EXPECT_THROW((void)open_device({.spec = spec}), Error) << spec;
  }
  model::FaultRates corrupt;
  corrupt.probability[static_cast<u32>(model::Fault::corrupt)] = 0.1;
  EXPECT_THROW((void)open_device({.spec = "model:media=null", .faults = corrupt}), Error);
}

TEST(StatusNames, KnownAndUnknown) {
  EXPECT_EQ(status_name(status::success), "Successful Completion");
  EXPECT_EQ(status_name(status::lba_out_of_range), "LBA Out of Range");
  EXPECT_EQ(status_name(status::invalid_queue_id), "Invalid Queue Identifier");
  EXPECT_EQ(status_name(status::compare_failure), "Compare Failure");
  EXPECT_EQ(status_name(0x299), "Status type 2 code 0x99");
  EXPECT_EQ(status_name(0x701), "Status type 7 code 0x01");
  std::set<std::string> all;
  for (u32 code = 0; code < 0x800; ++code) {
    const std::string text = status_name(static_cast<u16>(code));
    EXPECT_FALSE(text.empty());
    EXPECT_TRUE(all.insert(text).second) << text << " names two codes";
  }
}

}  // namespace
}  // namespace doorbell::nvme
