// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts of models: faults, delayed reports, the link, keys, status names.

#include <doorbell/error.hpp>
#include <doorbell/nvme/wire.hpp>
#include <doorbell/pattern.hpp>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "cxi/model/spec.hpp"
#include "model/copy_allowance.hpp"
#include "model/due_heap.hpp"
#include "model/fault_injector.hpp"
#include "model/link.hpp"
#include "nvme/backends.hpp"
#include "nvme/model/spec.hpp"
#include "options/setting.hpp"
#include "rdma/model/spec.hpp"

namespace doorbell::model {
namespace {

FaultRates rates(Fault f, double p) {
  FaultRates r;
  r.probability[static_cast<u32>(f)] = p;
  return r;
}

TEST(Allowance, FollowsFromBytesAndTheLowestRateSeen) {
  CopyAllowance a(1e9);
  EXPECT_EQ(a.seconds(CopyAllowance::kLarge - 1), 0);
  EXPECT_DOUBLE_EQ(a.seconds(u64{1} << 30), CopyAllowance::kSlack * (u64{1} << 30) / 1e9);
  a.saw(u64{1} << 30, 0.5);  // faster than that: it may be slow again
  EXPECT_DOUBLE_EQ(a.seconds(u64{1} << 30), CopyAllowance::kSlack * (u64{1} << 30) / 1e9);
  a.saw(u64{1} << 30, 10);
  EXPECT_DOUBLE_EQ(a.seconds(u64{1} << 30), CopyAllowance::kSlack * 10);
  a.saw(1, 10);  // says nothing of large ones
  a.saw(u64{1} << 30, 0);
  EXPECT_DOUBLE_EQ(a.seconds(u64{1} << 30), CopyAllowance::kSlack * 10);
}

TEST(Allowance, IsNoneForOtherDevicesAndMeasuredForModels) {
  CopyAllowance none;
  none.saw(u64{1} << 30, 100);
  EXPECT_EQ(none.seconds(u64{1} << 40), 0);
  EXPECT_EQ(CopyAllowance::measured(CopyAllowance::kLarge - 1, 1).seconds(u64{1} << 40), 0)
      << "nothing large";
  const double host = CopyAllowance::measured(u64{1} << 30).seconds(u64{1} << 30);
  EXPECT_GT(host, 0);
  EXPECT_DOUBLE_EQ(CopyAllowance::measured(u64{1} << 30, 1000).seconds(u64{1} << 30),
                   CopyAllowance::kSlack * (u64{1} << 30) / 1000);
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
      const InjectedFault s = a.draw(queue, serial, Direction::to_host);
      const InjectedFault same = b.draw(queue, serial, Direction::to_host);
      ASSERT_EQ(s.fault, same.fault);
      ASSERT_EQ(s.fault, a.draw(queue, serial, Direction::to_host).fault) << "a draw must not move a state";
      different += s.fault != c.draw(queue, serial, Direction::to_host).fault ? 1u : 0u;
      ASSERT_LT(s.position(512), 512u);
      ASSERT_EQ(s.position(512), same.position(512));
    }
  EXPECT_GT(different, 1000u);
}

TEST(Faults, ASeedChoosesTheSameCommandsInEveryVersion) {
  FaultRates r;
  r.probability.fill(0.05);
  const FaultInjector injector(r, 42);
  u64 hash = 0;
  for (u64 queue = 0; queue < 4; ++queue)
    for (u64 serial = 0; serial < 2000; ++serial)
      for (const Direction d : {Direction::to_host, Direction::to_device, Direction::none, Direction::both}) {
        const InjectedFault s = injector.draw(queue, serial, d);
        const bool data = s.fault == Fault::corrupt || s.fault == Fault::misplace || s.fault == Fault::stale;
        hash = pattern::mix64(hash ^ (u64{static_cast<u32>(s.fault)} << 32) ^ (data ? s.position(4096) : 0));
      }
  EXPECT_EQ(hash, 0x4bb4410f3915bdbb);
}

/// Whatever the rates are: a command meets one fault at most, and what its completion meets is counted.
TEST(Faults, OneFaultACommandAndItsCountWhateverTheRates) {
  constexpr u64 kNow = 1'000'000, kDelay = 77'000, kCommands = 3000;
  std::mt19937_64 random(7);
  for (u32 round = 0; round < 50; ++round) {
    FaultRates r;
    for (double& p : r.probability) p = random() % 3 == 0 ? static_cast<double>(random() % 1001) / 1000 : 0;
    FaultInjector injector(r, random(), kDelay);
    std::array<u64, kFaultKinds + 1> drawn{};
    u64 told = 0;
    for (u64 serial = 0; serial < kCommands; ++serial) {
      const auto direction = static_cast<Direction>(random() % 4);
      const InjectedFault s = injector.draw(random() % 8, serial, direction);
      ++drawn[static_cast<u32>(s.fault)];
      if (s.fault != Fault::none) {
        ASSERT_GT(r.of(s.fault), 0);
      }
      const u64 due = random() % 2 == 0 ? 0 : random() % (2 * kNow);
      bool looked = false;
      const auto now = [&] { return looked = true, kNow; };
      const CompletionReport t = injector.apply_to_completion(s, due, now);
      told += t.times;
      const u64 held = s.fault == Fault::delay     ? kDelay
                       : s.fault == Fault::reorder ? FaultDraw::kReorderHoldNs
                                                   : 0;
      ASSERT_EQ(t.due_ns, held != 0 ? std::max(due, kNow) + held : due);
      ASSERT_EQ(looked, held != 0) << "the clock is read only where it decides";
    }
    const auto of = [&](Fault f) { return drawn[static_cast<u32>(f)]; };
    EXPECT_EQ(told, kCommands - of(Fault::drop) + of(Fault::duplicate));
    const nlohmann::ordered_json j = injector.json();
    EXPECT_EQ(j.size(), kFaultKinds);
    u32 k = 0;
    for (const auto& [key, count] : j.items()) {
      const auto f = static_cast<Fault>(k++);
      EXPECT_EQ(key, name(f)) << "in order";
      const bool by_tell =
          f == Fault::drop || f == Fault::delay || f == Fault::duplicate || f == Fault::reorder;
      EXPECT_EQ(count.get<u64>(), by_tell ? of(f) : 0) << key;
      EXPECT_EQ(count.get<u64>(), injector.counted(f));
    }
  }
}

TEST(Faults, ADeviceGoesAwayOnce) {
  for (u32 round = 0; round < 20; ++round) {
    FaultInjector injector(rates(Fault::removal, 1), 1);
    Presence device;
    u32 word = 7;
    device.show(&word);
    EXPECT_EQ(word, 1u);
    EXPECT_FALSE(device.gone());
    std::vector<std::thread> threads;
    for (u32 t = 0; t < 4; ++t) threads.emplace_back([&] { injector.remove(device); });
    for (std::thread& t : threads) t.join();
    EXPECT_TRUE(device.gone());
    EXPECT_EQ(word, 0u);
    EXPECT_EQ(injector.counted(Fault::removal), 1u);
    EXPECT_FALSE(device.leave());
  }
  FaultInjector injector(rates(Fault::removal, 1), 1);
  Presence device;  // without a word
  EXPECT_TRUE(device.leave());
  injector.remove(device);
  EXPECT_EQ(injector.counted(Fault::removal), 0u) << "it had gone for another reason";
}

TEST(InjectedFaults, ACorruptedByteIsOneOfTheMessage) {
  for (const u64 bytes : {1u, 2u, 7u, 512u}) {
    std::set<u64> places;
    for (u64 choice = 0; choice < 2000; ++choice) {
      std::vector<u8> data(bytes + 8, 3);
      const InjectedFault s{Fault::corrupt, pattern::mix64(choice)};
      s.corrupt(data.data(), bytes);
      u64 changed = 0;
      for (u64 i = 0; i < data.size(); ++i) {
        if (data[i] == 3) continue;
        ++changed;
        places.insert(i);
      }
      ASSERT_EQ(changed, 1u);
    }
    EXPECT_LT(*places.rbegin(), bytes);
    EXPECT_GE(places.size(), bytes * 9 / 10) << "every byte can be meant";
  }
}

TEST(InjectedFaults, AnotherPlaceLiesWithinTheMemoryAndTouchesNothingOfTheRightOne) {
  std::mt19937_64 random(3);
  u32 none = 0;
  for (u32 i = 0; i < 100'000; ++i) {
    const u64 size = 1 + random() % 300, offset = random() % size, bytes = 1 + random() % (size - offset);
    const auto other = InjectedFault::elsewhere(offset, bytes, size);
    if (!other) {
      const u64 step = std::max<u64>(bytes, 8);
      ASSERT_TRUE(offset < step && offset + step + bytes > size) << "there was room";
      ++none;
      continue;
    }
    ASSERT_LE(*other + bytes, size);
    ASSERT_TRUE(*other + bytes <= offset || *other >= offset + bytes);
    const u64 distance = *other > offset ? *other - offset : offset - *other;
    const u64 place = (bytes + 63) / 64 * 64;
    ASSERT_TRUE(distance == place || (distance == std::max<u64>(bytes, 8) && offset < place)) << bytes;
  }
  EXPECT_GT(none, 0u);
}

TEST(DueHeaps, TheSoonestFirstAndOfEqualTimesTheOldest) {
  std::mt19937_64 random(11);
  for (u32 round = 0; round < 200; ++round) {
    DueHeap<u32> heap;
    std::multimap<u64, u32> expected;  // keeps the order of equal keys
    for (u32 i = 0; i < 100; ++i) {
      const u64 due = random() % 20;
      heap.push(due, i);
      expected.insert({due, i});
    }
    const u32 divisor = 2 + static_cast<u32>(random() % 5);
    heap.erase_if([&](u32 i) { return i % divisor == 0; });
    std::erase_if(expected, [&](const auto& e) { return e.second % divisor == 0; });
    EXPECT_EQ(heap.size(), expected.size());
    for (const auto& [due, i] : expected) {
      EXPECT_FALSE(due > 0 && heap.due(due - 1));
      ASSERT_TRUE(heap.due(due));
      ASSERT_EQ(heap.pop(), i);
    }
    EXPECT_TRUE(heap.empty());
    EXPECT_FALSE(heap.due(~u64{0}));
  }
}

TEST(Keys, MeanTheSameToEveryModel) {
  const options::OptionTable tables[] = {nvme::model_keys(), rdma::model_keys(), cxi::model_keys()};
  std::map<std::string, const options::Option*> first;
  std::map<std::string, u32> uses;
  for (const options::OptionTable& t : tables)
    for (const options::Option& o : t.all()) {
      ++uses[o.name];
      const auto [it, added] = first.insert({o.name, &o});
      if (added) continue;
      const options::Option& other = *it->second;
      EXPECT_EQ(o.kind, other.kind) << o.name;
      EXPECT_EQ(o.default_text, other.default_text) << o.name;
      EXPECT_EQ(options::range_text(o), options::range_text(other)) << o.name;
      EXPECT_EQ(o.aliases, other.aliases) << o.name;
    }
  for (const char* key : {"bandwidth", "latency", "delay"}) EXPECT_EQ(uses[key], 3u) << key;
  EXPECT_EQ(uses["threads"], 2u) << "a Cassini has one device thread";
}

TEST(Keys, OlderNamesAreAccepted) {
  EXPECT_EQ(nvme::parse_model_spec("model:rate=2G").bytes_per_s, 2e9);
  EXPECT_EQ(rdma::parse_model_spec("model:rate=2G").bytes_per_s, 2e9);
  EXPECT_EQ(cxi::parse_model_spec("model:rate=2G").bytes_per_s, 2e9);
  EXPECT_EQ(cxi::parse_model_spec("model:bandwidth=2G").bytes_per_s, 2e9);
  EXPECT_EQ(cxi::parse_model_spec("cxi-model3:entries=5").max_list_entries, 5u);
  EXPECT_EQ(cxi::parse_model_spec("cxi-model3:list-entries=5").max_list_entries, 5u);
  for (const char* twice : {"model:rate=1,bandwidth=2", "model:bandwidth=1,rate=2"})
    EXPECT_THROW((void)rdma::parse_model_spec(twice), Error) << twice;
}

TEST(Keys, WhatIsLeftOpenFitsTheRun) {
  Config c;
  c.threads = 0;
  c.delay_ns = 0;
  const Use use{.gpu_memory = false, .queues = 3, .initiator_threads = 1, .seed = 9, .late_ns = 200};
  c.fit(use);
  EXPECT_GE(c.threads, 1u);
  EXPECT_LE(c.threads, 3u);
  EXPECT_EQ(c.delay_ns, 300u);
  EXPECT_EQ(c.seed, 9u);
  EXPECT_FALSE(c.gpu_memory);
  Config given;
  given.threads = 2;
  given.delay_ns = 5;
  given.fit(use);
  EXPECT_EQ(given.threads, 2u);
  EXPECT_EQ(given.delay_ns, 5u);
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
      for (u64 serial = 0; serial < kDraws; ++serial)
        hits += injector.draw(3, serial, d).fault == f ? 1u : 0u;
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
    EXPECT_EQ(corrupt.draw(1, 1, d).fault == Fault::corrupt, d == Direction::to_host);
    EXPECT_EQ(misplace.draw(1, 1, d).fault == Fault::misplace, d == Direction::to_host);
    EXPECT_EQ(stale.draw(1, 1, d).fault == Fault::stale, d == Direction::to_device);
    EXPECT_EQ(drop.draw(1, 1, d).fault, Fault::drop);
  }
}

TEST(Faults, QueuesDoNotShareTheirFate) {
  const FaultInjector injector(rates(Fault::drop, 0.5), 1);
  u64 same = 0;
  for (u64 serial = 0; serial < 10'000; ++serial)
    same += injector.draw(1, serial, Direction::none).fault == injector.draw(2, serial, Direction::none).fault
                ? 1u
                : 0u;
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

TEST(ModelSpec, ErrorsNameTheSettingAsTheCallerCallsIt) {
  const auto said = [](bool by_options) {
    const bool before = Setting::named_by_options();
    Setting::name_by_options(by_options);
    std::string subject;
    try {
      (void)open_device({.spec = "model:lba=513"});
    } catch (const Error& e) {
      subject = e.subject();
    }
    Setting::name_by_options(before);
    return subject;
  };
  EXPECT_EQ(said(false), "controller model: lba");
  EXPECT_EQ(said(true), "--controller model: lba");
}

TEST(Backends, NoFallBack) {
  for (const char* spec : {"", "Model", "modelx", "model2:lba=512", "vfio:0000:00:00.0x", "models"}) {
    EXPECT_THROW((void)open_device({.spec = spec}), Error) << spec;
  }
  model::FaultRates corrupt;
  corrupt.probability[static_cast<u32>(model::Fault::corrupt)] = 0.1;
  EXPECT_THROW((void)open_device({.spec = "model:media=null", .use = {.faults = corrupt}}), Error);
}

TEST(StatusNames, KnownAndUnknown) {
  EXPECT_EQ(status_name(status::success), "Successful Completion");
  EXPECT_EQ(status_name(status::lba_out_of_range), "LBA Out of Range");
  EXPECT_EQ(status_name(status::invalid_queue_id), "Invalid Queue Identifier");
  EXPECT_EQ(status_name(status::compare_failure), "Compare Failure");
  EXPECT_EQ(status_name(0x1bc), "Zone Invalid Write");
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
