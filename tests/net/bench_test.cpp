// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The bench: every stream over every link that any machine has, its accounts, and bad input.
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "net/bench/cell_setup.hpp"
#include "net/bench_run.hpp"
#include "net/flow/threads.hpp"

namespace doorbell::net {
namespace {

struct Case {
  std::string stream;
  u64 payload;
  u32 tx = 1, rx = 1;
  u32 batch = 64;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.stream << " " << c.payload << " " << c.tx << "x" << c.rx << " batch " << c.batch;
}

class NetStreams : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(, NetStreams,
                         ::testing::Values(Case{"raw", 32}, Case{"raw", 1000}, Case{"raw", 8000, 2, 2},
                                           Case{"raw", 256, 1, 2}, Case{"raw", 256, 2, 1, 1024},
                                           Case{"tcp", 32}, Case{"tcp", 8000, 2, 2}, Case{"tcp", 100'001},
                                           Case{"udp", 32}, Case{"udp", 1000, 2, 2},
                                           Case{"udp", 8000, 1, 1, 1}),
                         [](const auto& p) {
                           const Case& c = p.param;
                           return c.stream + std::to_string(c.payload) + "_" + std::to_string(c.tx) + "x" +
                                  std::to_string(c.rx);
                         });

TEST_P(NetStreams, AccountForEveryPacket) {
  const Case& c = GetParam();
  BenchOptions o = options_of(c.stream, c.payload, c.payload > 50'000 ? 200 : 2000);
  o.tx_queues = c.tx;
  o.rx_queues = c.rx;
  o.batch = c.batch;
  o.repeats = 2;
  const measure::BenchResult r = run_bench(o, {});
  SCOPED_TRACE(r.cell().extra.dump(1));
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::done);
  expect_accounted(r);
  const auto& net = r.cell().extra.at("net");
  EXPECT_EQ(net.at("sent"), o.count * 2 * std::max(c.tx, c.rx));
  if (c.stream == "udp") return;
  EXPECT_EQ(net.at("lost"), 0u);
  EXPECT_EQ(r.cell().verify.checked, net.at("sent"));
  EXPECT_EQ(r.cell().metrics.bytes, o.count * std::max(c.tx, c.rx) * c.payload);
  EXPECT_GT(r.cell().metrics.latency_ns.count, 0u);
}

TEST(NetBench, TheResultSaysWhetherDataWasVerified) {
  for (const auto& [verify, sample, mode] :
       {std::tuple{true, 1.0, "full"}, {true, 0.5, "sample=0.5"}, {false, 1.0, "none"}}) {
    BenchOptions o = options_of("raw", 1000, 200);
    o.verify = verify;
    o.verify_sample = sample;
    const measure::BenchResult r = run_bench(o, {});
    EXPECT_EQ(r.cell().verify.mode, mode);
    EXPECT_EQ(r.cell().verify.checked == 0, !verify);
  }
}

/// Two processes of one machine, each with one end, get in each other's way no more than they must.
TEST(NetBench, EndsInTwoProcessesHaveCoresOfTheirOwn) {
  const std::vector<int> all = allowed_cores();
  BenchOptions o = options_of("raw", 1000, 1);
  CellSettings c;
  c.tx_queues = c.rx_queues = 1;
  o.role = Role::sender;
  EXPECT_EQ(map_cores(o, c).tx, std::vector<int>{all.front()});
  o.role = Role::receiver;
  EXPECT_EQ(map_cores(o, c).rx, std::vector<int>{all.back()});
  EXPECT_TRUE(map_cores(o, c).tx.empty());
  o.cores = {5, 3};
  EXPECT_EQ(map_cores(o, c).rx, std::vector<int>{5});
  o.role = Role::both;
  EXPECT_EQ(map_cores(o, c).tx, std::vector<int>{5});
  EXPECT_EQ(map_cores(o, c).rx, std::vector<int>{3});
}

TEST(NetBench, FaultsOfDataAreFoundInHostMemoryOnly) {
  for (const model::Fault fault : {model::Fault::delay, model::Fault::reorder, model::Fault::drop}) {
    BenchOptions o = options_of("raw", 1000, 1);
    o.windows.on = o.windows.on_gpu = true;
    o.faults.probability[static_cast<u32>(fault)] = 0.1;
    for (const ToGpu way : {ToGpu::copy, ToGpu::kernel}) {
      o.windows.to_gpu = way;
      o.place = Place::pinned;
      check(o);
      o.place = Place::gpu;
      if (fault == model::Fault::drop) check(o);
      else doorbell::test::expect_says(doorbell::test::error_of([&] { check(o); }), "GPU memory");
    }
  }
}

TEST(NetBench, LargeRecordsGoInSmallBatchesUnlessOneIsGiven) {
  for (const auto& [payload, given, batch] : {std::tuple{u64{8000}, 0u, 64u},
                                              {u64{1} << 17, 0u, 4u},
                                              {u64{1} << 20, 0u, 1u},
                                              {u64{1} << 20, 8u, 8u}}) {
    BenchOptions o = options_of("tcp", payload, 20);
    o.batch = given;
    const measure::BenchResult r = run_bench(o, {});
    expect_accounted(r);
    EXPECT_EQ(r.cell().cell.at("batch_packets"), batch) << payload;
  }
}

TEST(NetBench, LossOfASmallSocketIsExplainedToThePacket) {
  for (const bool segmentation : {false, true}) {
    BenchOptions o = options_of("udp", 8000, 20'000);
    o.socket_bytes = 65536;
    o.segmentation = segmentation;
    const measure::BenchResult r = run_bench(o, {});
    SCOPED_TRACE(r.cell().extra.dump(1));
    expect_accounted(r);
    EXPECT_EQ(r.cell().extra.at("drops").at("socket"), r.cell().extra.at("net").at("lost"));
    if (r.cell().extra.at("net").at("lost") == 0) continue;
    EXPECT_FALSE(r.failed) << "an explained loss is a result";
    o.max_loss = 0;
    const measure::BenchResult strict = run_bench(o, {});
    if (strict.cell().extra.at("net").at("lost") > 0) {
      EXPECT_TRUE(strict.failed);
      EXPECT_EQ(strict.cell().verify.missing, strict.cell().extra.at("net").at("lost"));
    }
  }
}

TEST(NetBench, FaultsOfAReliableStreamAreFound) {
  BenchOptions o = options_of("tcp", 1000, 2000);
  o.faults.probability[static_cast<u32>(model::Fault::drop)] = 0.01;
  o.faults.probability[static_cast<u32>(model::Fault::corrupt)] = 0.01;
  o.faults.probability[static_cast<u32>(model::Fault::duplicate)] = 0.01;
  const measure::BenchResult r = run_bench(o, {});
  EXPECT_TRUE(r.failed);
  const auto& injected = r.cell().extra.at("model").at("injected");
  EXPECT_EQ(r.cell().verify.missing, injected.at("drop"));
  EXPECT_EQ(r.cell().verify.corrupt, injected.at("corrupt"));
  EXPECT_EQ(r.cell().verify.duplicated, injected.at("duplicate"));
  EXPECT_EQ(r.cell().extra.at("drops").at("unexplained"), 0u);
}

TEST(NetBench, SequencesAndTheirWrap) {
  BenchOptions o = options_of("raw", 64, 5000);
  o.first_sequence = (u64{1} << 48) - 2500;
  const measure::BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell().metrics.ops, 5000u);
}

TEST(NetBench, WindowsTakeEveryUniquePacket) {
  for (const char* stream : {"raw", "tcp"}) {
    BenchOptions o = options_of(stream, 1000, 5000);
    o.windows.on = true;
    o.windows.packets = 64;
    o.tx_queues = o.rx_queues = 2;
    const measure::BenchResult r = run_bench(o, {});
    EXPECT_FALSE(r.failed);
    const auto& w = r.cell().extra.at("windows");
    EXPECT_EQ(w.at("placed"), 10'000u) << w.dump(1);
    EXPECT_EQ(w.at("missing"), 0u);
    EXPECT_GE(w.at("full").get<u64>(), 2 * (5000u / 64));
  }
  BenchOptions o = options_of("raw", 1000, 5000);
  o.windows.on = true;
  o.windows.packets = 64;
  o.faults.probability[static_cast<u32>(model::Fault::drop)] = 0.01;
  const measure::BenchResult r = run_bench(o, {});
  EXPECT_EQ(r.cell().extra.at("windows").at("missing"), r.cell().extra.at("net").at("lost"));
  EXPECT_EQ(r.cell().errors.at("identity"), 0u);
}

/// Phases that end in the middle of a record, because the socket takes less than one.
TEST(NetBench, AnEndedPhaseLeavesNoRecordInPart) {
  BenchOptions o = options_of("tcp", 1'000'000, 0);
  o.socket_bytes = 32768;
  o.duration_s = 0.05;
  o.repeats = 5;
  const measure::BenchResult r = run_bench(o, {});
  EXPECT_EQ(r.stop_reason, StopReason::done);
  EXPECT_FALSE(r.failed) << r.cell().extra.dump(1);
  EXPECT_EQ(r.cell().repeats.size(), 5u);
}

TEST(NetBench, EachEncapsulationIsAccountedFor) {
  for (const Encapsulation e : {Encapsulation::udp4, Encapsulation::udp6, Encapsulation::bare}) {
    BenchOptions o = options_of("raw", 1000, 1000);
    o.encapsulation = e;
    o.tx_queues = o.rx_queues = 2;
    o.flows = 5;
    const measure::BenchResult r = run_bench(o, {});
    EXPECT_FALSE(r.failed);
    expect_accounted(r);
    const auto& net = r.cell().extra.at("net");
    EXPECT_EQ(net.at("unique"), 5000u);
    // The rate of frames over that of payload is what the headers add.
    const double headers = e == Encapsulation::udp4 ? 42 : e == Encapsulation::udp6 ? 62 : 14;
    EXPECT_NEAR(net.at("l2_gbps").get<double>() / net.at("goodput_gbps").get<double>(), 1 + headers / 1000,
                1e-9);
  }
}

/// l2 and l1 of a result over its goodput.
std::pair<double, double> wire_shares(const measure::BenchResult& r) {
  const auto& net = r.cell().extra.at("net");
  const double payload = net.at("goodput_gbps");
  return {net.at("l2_gbps").get<double>() / payload, net.at("l1_gbps").get<double>() / payload};
}

TEST(NetBench, AMessageHasTheHeadersOfEachOfItsFrames) {
  const auto [l2, l1] = wire_shares(run_bench(options_of("roce", 60'000, 20), {}));
  EXPECT_NEAR(l2, 1 + 15 * 58 / 60'000.0, 1e-9);  // an MTU of 4096
  EXPECT_NEAR(l1, 1 + 15 * (58 + 24) / 60'000.0, 1e-9);
}

TEST(NetBench, ARecordHasTheHeadersOfItsSegments) {
  // Of at most 65,483 bytes over the loopback interface, by its MTU.
  for (const u64 payload : {u64{1'000'000}, u64{100}}) {
    const measure::BenchResult r = run_bench(options_of("tcp", payload, 200), {});
    const auto& net = r.cell().extra.at("net");
    const auto [l2, l1] = wire_shares(r);
    const double frames = net.at("frames_per_packet"), header = net.at("frame_overhead_bytes");
    EXPECT_FALSE(net.contains("frames_estimated"));
    EXPECT_TRUE(header == 54 || header == 66) << header << " bytes with or without time stamps";
    EXPECT_NEAR(l2, 1 + frames * header / static_cast<double>(payload), 1e-9);
    EXPECT_NEAR(l1, 1 + frames * (header + 24) / static_cast<double>(payload), 1e-9);
    if (payload > 65'536) {
      EXPECT_GE(frames, static_cast<double>(payload) / 65'536);
    } else {
      EXPECT_LE(frames, 1) << "several records share a segment";
    }
  }
}

TEST(NetBench, FlowsGoToTheQueuesOfTheirHash) {
  for (const RssFields fields : {RssFields::addresses, RssFields::addresses_and_ports}) {
    BenchOptions o = options_of("raw", 256, 500);
    o.steering = Steering::rss;
    o.rss_fields = fields;
    o.rx_queues = 3;
    o.flows = 12;
    o.windows.on = true;
    const measure::BenchResult r = run_bench(o, {});
    EXPECT_FALSE(r.failed);
    expect_accounted(r);
    EXPECT_EQ(r.cell().extra.at("net").at("unique"), 6000u);
    EXPECT_EQ(r.cell().extra.at("windows").at("placed"), 6000u);
    const auto queues = r.cell().extra.at("stream").at("queue_of_flow").get<std::vector<u32>>();
    EXPECT_FALSE(std::ranges::is_sorted(queues));
    EXPECT_NE(queues, (std::vector<u32>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
  }
}

TEST(NetBench, ConvertedWindowsAreChecked) {
  for (const char* stream : {"raw", "tcp"})
    for (u32 name = 0; name < conversion_names().size(); ++name) {
      BenchOptions o = options_of(stream, 544, 600);
      o.windows.on = true;
      o.windows.packets = 64;
      o.windows.convert = conversion(name, name % 2 == 0);
      const measure::BenchResult r = run_bench(o, {});
      EXPECT_FALSE(r.failed) << conversion_names()[name];
      expect_accounted(r);
      const auto& w = r.cell().extra.at("windows");
      EXPECT_EQ(w.at("convert"), conversion_names()[name]);
      EXPECT_EQ(w.at("windows"), 10u);
      EXPECT_EQ(w.at("conversions_checked"), 10u);
      EXPECT_EQ(w.at("conversions_failed"), 0u);
      EXPECT_EQ(w.at("window_bytes"), 64 * converted_bytes(*o.windows.convert, 512));
    }
  BenchOptions o = options_of("raw", 545, 10);
  o.windows.on = true;
  o.windows.convert = conversion(10, false);
  EXPECT_THROW(static_cast<void>(run_bench(o, {})), Error);
}

TEST(NetBench, TheMastersTimeAndTheGpuAreInTheResult) {
  const measure::BenchResult r = run_bench(options_of("raw", 1000, 500), {});
  const auto& threads = r.cell().extra.at("threads");
  EXPECT_EQ(threads.at("list").back().at("role"), "master");
  EXPECT_GT(threads.at("master_busy_percent").get<double>(), 0);
  EXPECT_LE(threads.at("master_busy_percent").get<double>(), 101);
  const auto& gpu = r.cell().extra.at("gpu");
  EXPECT_TRUE(gpu.at("sm_percent").is_null());
  EXPECT_EQ(gpu.at("reason"), "no GPU takes part");
}

TEST(NetBench, KeepsToATarget) {
  BenchOptions o = options_of("raw", 1000, 0);
  o.target_gbps = 0.05;
  o.duration_s = 0.3;
  const measure::BenchResult r = run_bench(o, {});
  expect_accounted(r);
  // A machine that is busy sends less, and says so; none sends more.
  EXPECT_LE(r.cell().extra.at("net").at("sent").get<double>(), 0.05e9 / 8000 * 0.3 + 40);
  EXPECT_GT(r.cell().extra.at("net").at("sent").get<u64>(), 0u);
}

TEST(NetBench, ASignalEndsItWithAPartialResult) {
  BenchOptions o = options_of("raw", 64, 0);
  o.duration_s = 600;
  measure::StopFlag stop;
  measure::RunWatch watch = {.stop = &stop, .progress = [&](double, const std::string&) { stop.request(2); }};
  const measure::BenchResult r = run_bench(o, watch);
  EXPECT_EQ(r.stop_reason, StopReason::requested);
  expect_accounted(r);
}

TEST(NetBench, ModesHaveTheirPublishedCells) {
  BenchOptions o = options_of("raw", 256, 300);
  o.mode = Mode::multi_queue;
  const measure::BenchResult r = run_bench(o, {});
  ASSERT_EQ(r.cells.size(), 4u);
  expect_accounted(r);
  EXPECT_EQ(r.cells[1].cell.at("rx_queues"), 2);
  o.mode = Mode::sweep;
  o.count = 20;
  EXPECT_EQ(run_bench(o, {}).cells.size(), 20u);
}

template <class Fn>
void expect_error(Fn fn, const std::string& part) {
  try {
    fn();
    ADD_FAILURE() << "no error with: " << part;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(NetBench, BadInputIsRefused) {
  const auto run = [](auto change) {
    return [change] {
      BenchOptions o = options_of("raw", 64, 10);
      change(o);
      (void)run_bench(o, {});
    };
  };
  expect_error(run([](auto& o) { o.payloads = {31}; }), "--payload: 31 is not in 32");
  expect_error(run([](auto& o) { o.payloads = {100'000}; }), "--payload: 100000 is not in 32..");
  expect_error(run([](auto& o) { o.stream = "udp", o.link = "lo", o.payloads = {65'508}; }),
               "--payload: 65508 is not in");
  expect_error(run([](auto& o) { o.link = "nosuch"; }), "nosuch");
  expect_error(run([](auto& o) { o.engine = "pigeon"; }), "--engine: 'pigeon' is none of ring");
  expect_error(run([](auto& o) { o.stream = "tcp", o.link = "ring"; }), "ring");
  expect_error(run([](auto& o) { o.mode = Mode::no_drop, o.target_gbps = 1; }), "--target-gbps");
  expect_error(run([](auto& o) { o.stream = "tcp", o.link = "lo", o.mode = Mode::no_drop; }),
               "loses nothing");
  expect_error(run([](auto& o) { o.cores = {4095, 4095}; }), "--cores");
  for (const auto& [workload, payload, element] : {std::tuple{WorkloadKind::fft, 65u, "4"},
                                                   {WorkloadKind::gemm, 66u, "4"},
                                                   {WorkloadKind::gemm_fp16, 65u, "2"}})
    expect_error(run([&](auto& o) {
                   o.payloads = {payload};
                   o.windows.on = true;
                   o.windows.workload = workload;
                 }),
                 fmt::format("floats of {} bytes", element));
  expect_error(run([](auto& o) { o.faults.probability[static_cast<u32>(model::Fault::removal)] = 1; }),
               "--fault removal");
}

/// The search ends with a rate that the senders have reached, and that has arrived.
TEST(NetBench, TheNoDropRateIsOneThatWasSent) {
  BenchOptions o = options_of("udp", 1000, 0);
  o.mode = Mode::no_drop;
  o.duration_s = 0.1;
  o.repeats = 2;
  const measure::BenchResult r = run_bench(o, {});
  const auto& found = r.cell().extra.at("no_drop");
  const auto& net = r.cell().extra.at("net");
  double slowest = 1e9;
  for (const auto& repeat : net.at("repeats"))
    slowest = std::min({slowest, repeat.at("tx_gbps").get<double>(), repeat.at("rx_gbps").get<double>()});
  EXPECT_LE(found.at("gbps").get<double>(), slowest * 1.000001);
  EXPECT_LE(found.at("gbps").get<double>(), found.at("target_gbps").get<double>());
  if (found.at("confirmed")) {
    EXPECT_EQ(net.at("lost"), 0u);
  }
}

/// Whose senders are held up loses nothing.
TEST(NetBench, ARingThatCannotLoseHasANoDropRate) {
  BenchOptions o = options_of("raw", 64, 0);
  o.mode = Mode::no_drop;
  o.duration_s = 0.05;
  o.repeats = 3;
  const measure::BenchResult r = run_bench(o, {});
  const auto& found = r.cell().extra.at("no_drop");
  EXPECT_EQ(found.at("confirmed"), true) << found.dump(1);
  EXPECT_EQ(found.at("repeats"), 3u);
  EXPECT_EQ(found.at("answer"),
            fmt::format("no loss up to {:.3g} Gb/s in 3 repeats", found.at("gbps").get<double>()));
  for (const auto& step : found.at("steps")) EXPECT_EQ(step.at("lost"), 0u);
}

TEST(NetBench, RepeatsHaveSeedsOfTheirOwn) {
  BenchOptions o = options_of("tcp", 1000, 300);
  o.repeats = 3;
  o.seed = 70;
  const measure::BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  ASSERT_EQ(r.cell().repeats.size(), 3u);
  for (u64 i = 0; i < 3; ++i) EXPECT_EQ(r.cell().repeats[i].seed, 70 + i);
}

/// Windows of each flow, the last of which is not full; messages that are no whole number of windows.
TEST(NetBench, WindowsAreAsManyAsThePacketsMake) {
  BenchOptions o = options_of("raw", 1000, 100);
  o.windows.on = true;
  o.windows.packets = 64;
  o.flows = 3;
  o.repeats = 2;
  const auto first = run_bench(o, {});
  const auto& w = first.cell().extra.at("windows");
  EXPECT_EQ(w.at("windows_due"), 3 * 4u);
  EXPECT_EQ(w.at("windows"), 3 * 4u);
  EXPECT_EQ(w.at("left_over_bytes"), 0u);
  o = options_of("tcp", 100'032, 10);
  o.windows.on = true;
  o.windows.batch_bytes = 30'000;
  const auto second = run_bench(o, {});
  const auto& cut = second.cell().extra.at("windows");
  EXPECT_EQ(cut.at("windows_due"), 30u);
  EXPECT_EQ(cut.at("windows"), 30u);
  EXPECT_EQ(cut.at("left_over_bytes"), 10 * 10'000u);
}

TEST(NetBench, TheNoDropSearchEndsWithACountOfPacketsToo) {
  BenchOptions o = options_of("raw", 1000, 200);
  o.mode = Mode::no_drop;
  const measure::BenchResult r = run_bench(o, {});
  EXPECT_GE(r.cell().extra.at("no_drop").at("steps").size(), 1u);
}

TEST(NetBench, AnInterruptedSearchConfirmsNothing) {
  BenchOptions o = options_of("raw", 1000, 0);
  o.mode = Mode::no_drop;
  o.duration_s = 0.1;
  measure::StopFlag stop;
  measure::RunWatch watch = {.stop = &stop, .progress = [&](double, const std::string& what) {
                               if (what.find("repeat 1 of") != std::string::npos) stop.request(2);
                             }};
  const measure::BenchResult r = run_bench(o, watch);
  EXPECT_EQ(r.stop_reason, StopReason::requested);
  EXPECT_EQ(r.cell().extra.at("no_drop").at("confirmed"), false);
}

/// Neither an exception of a receiver's thread nor what it leaves behind ends the program.
TEST(NetBench, AWorkloadThatIsTooSlowIsAnError) {
  BenchOptions o = options_of("raw", 8000, 5000);
  o.windows.on = true;
  o.windows.workload = WorkloadKind::gemm;
  o.fill = Fill::float32;
  o.timeout_s = 0.001;
  try {
    EXPECT_FALSE(run_bench(o, {}).cells.empty()) << "it was not too slow";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()), "");
  }
}

}  // namespace
}  // namespace doorbell::net
