// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The bench: every stream over every link that any machine has, its accounts, and bad input.
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "net/bench.hpp"
#include "net/cli/setting_names.hpp"
#include "net/daqiri_csv.hpp"
#include "net/remote.hpp"
#include "net/serve.hpp"
#include "net/sockets/meeting.hpp"
#include "net/sockets/socket.hpp"

namespace doorbell::net {
namespace {

BenchOptions options_of(const std::string& stream, u64 payload, u64 count) {
  BenchOptions o;
  o.names = setting_names();
  o.stream = stream;
  o.link = stream == "raw" ? "ring" : "lo";
  o.payloads = {payload};
  o.count = count;
  o.settle_s = 0.1;
  return o;
}

/// What must hold of every run without faults.
void expect_accounted(const measure::BenchResult& r) {
  for (const report::Cell& cell : r.cells) {
    const auto& net = cell.extra.at("net");
    EXPECT_EQ(net.at("sent"), net.at("unique").get<u64>() + net.at("lost").get<u64>());
    EXPECT_EQ(cell.extra.at("drops").at("unexplained"), 0u);
    EXPECT_EQ(cell.errors.at("identity"), 0u);
    EXPECT_EQ(cell.verify.failed(), 0u) << cell.extra.dump(1);
  }
}

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
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.stop_reason, "done");
  expect_accounted(r);
  const auto& net = r.cell().extra.at("net");
  EXPECT_EQ(net.at("sent"), o.count * 2 * std::max(c.tx, c.rx));
  if (c.stream == "udp") return;
  EXPECT_EQ(net.at("lost"), 0u);
  EXPECT_EQ(r.cell().verify.checked, net.at("sent"));
  EXPECT_EQ(r.cell().metrics.bytes, o.count * std::max(c.tx, c.rx) * c.payload);
  EXPECT_GT(r.cell().metrics.latency_ns.count, 0u);
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
  o.late_after_s = 60;  // a busy machine is not what is looked for
  o.repeats = 5;
  const measure::BenchResult r = run_bench(o, {});
  EXPECT_EQ(r.stop_reason, "done");
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
  EXPECT_EQ(r.stop_reason, "signal");
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

/// The search ends with a rate that the senders have reached, and does not call confirmed what is not.
TEST(NetBench, TheNoDropRateIsOneThatWasSent) {
  BenchOptions o = options_of("udp", 1000, 0);
  o.mode = Mode::no_drop;
  o.duration_s = 0.1;
  o.repeats = 2;
  const measure::BenchResult r = run_bench(o, {});
  const auto& found = r.cell().extra.at("no_drop");
  const auto& net = r.cell().extra.at("net");
  double slowest = 1e9, skipped = 0;
  for (const auto& repeat : net.at("repeats"))
    slowest = std::min(slowest, repeat.at("tx_gbps").get<double>());
  for (const std::string& w : r.warnings) skipped += w.find("could not keep up") != std::string::npos;
  EXPECT_LE(found.at("gbps").get<double>(), slowest * 1.000001);
  EXPECT_LE(found.at("gbps").get<double>(), found.at("target_gbps").get<double>());
  if (found.at("confirmed")) {
    EXPECT_EQ(net.at("lost"), 0u);
    EXPECT_EQ(skipped, 0);
  }
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
  EXPECT_EQ(r.stop_reason, "signal");
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

/// What a test does beside a run of two processes.
struct Beside {
  std::function<void(const exchange::SocketName& server)> before = [](const auto&) {};
  std::function<void(const std::string& what)> client_progress = nullptr;
  measure::StopFlag server_stop;
  std::string server_failure, client_failure;
  std::vector<std::string> server_said;
};

/// The listening process of a run, as a thread of this one, while `client` is the other.
void beside_server(double timeout_s, ServeResult* served, Beside& beside,
                   const std::function<void(const exchange::SocketName& server)>& client) {
  std::string address;
  std::atomic<bool> listening{false};
  std::thread server([&] {
    try {
      ServeOptions s;
      s.at = {.host = "127.0.0.1", .port = 0};
      s.timeout_s = timeout_s;
      *served = serve(s, {.stop = &beside.server_stop, .progress = [&](double, const std::string& what) {
                            beside.server_said.push_back(what);
                            if (listening) return;
                            address = what.substr(what.rfind(' ') + 1);
                            listening = true;
                            listening.notify_all();
                          }});
    } catch (const Error& e) {
      beside.server_failure = e.what();
      listening = true;
      listening.notify_all();
    }
  });
  listening.wait(false);
  try {
    client(exchange::parse_connect(address, kRunKind.default_port));
  } catch (const Error& e) {
    beside.client_failure = e.what();
  }
  server.join();
}

/// Both processes of a run.
measure::BenchResult between_two(BenchOptions o, ServeResult* served, Beside& beside) {
  o.role = Role::sender;
  o.link.clear();
  measure::BenchResult r;
  beside_server(o.timeout_s, served, beside, [&](const exchange::SocketName& at) {
    o.other_end = at;
    beside.before(at);
    r = run_bench(o, {.progress = [&](double, const std::string& what) {
                    if (beside.client_progress) beside.client_progress(what);
                  }});
  });
  return r;
}

measure::BenchResult between_two(const BenchOptions& o, ServeResult* served) {
  Beside beside;
  measure::BenchResult r = between_two(o, served, beside);
  EXPECT_EQ(beside.server_failure, "");
  EXPECT_EQ(beside.client_failure, "");
  return r;
}

TEST(NetTwoProcesses, AccountForEveryPacket) {
  for (const char* stream : {"tcp", "udp"}) {
    BenchOptions o = options_of(stream, 1000, 3000);
    o.tx_queues = o.rx_queues = 2;
    o.repeats = 2;
    o.payloads = {64, 1000};
    ServeResult served;
    const measure::BenchResult r = between_two(o, &served);
    ASSERT_EQ(r.cells.size(), 2u);
    EXPECT_FALSE(r.failed);
    expect_accounted(r);
    EXPECT_EQ(served.cells, 2u);
    EXPECT_EQ(served.errors, 0u);
    EXPECT_GT(r.cells[0].metrics.latency_ns.count, 0u) << "both are on one machine, and so on one clock";
  }
}

TEST(NetTwoProcesses, FaultsAreFound) {
  BenchOptions o = options_of("udp", 1000, 3000);
  o.faults.probability[static_cast<u32>(model::Fault::duplicate)] = 0.01;
  ServeResult served;
  const measure::BenchResult r = between_two(o, &served);
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.cell().verify.duplicated, r.cell().extra.at("model").at("injected").at("duplicate"));
  EXPECT_GT(served.errors, 0u);
}

/// Another run of this machine may have the ports that are tried first.
TEST(NetTwoProcesses, PortsOfOthersAreLeftAlone) {
  const u16 first = StreamRequest{}.port;
  for (const auto& [stream, type] : {std::pair{"tcp", SOCK_STREAM}, {"udp", SOCK_DGRAM}}) {
    const Descriptor other(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
    sockaddr_in at = sockets::address_of("127.0.0.1", first);
    const int on = 1;  // connections of the tests before linger
    if (type == SOCK_STREAM) ::setsockopt(other.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // Another test may have it, and give it back before the run begins.
    const bool taken = ::bind(other.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 &&
                       (type == SOCK_DGRAM || ::listen(other.get(), 1) == 0);
    BenchOptions o = options_of(stream, 1000, 500);
    o.tx_queues = o.rx_queues = 2;
    ServeResult served;
    const measure::BenchResult r = between_two(o, &served);
    ASSERT_EQ(r.cells.size(), 1u) << stream;
    EXPECT_FALSE(r.failed) << stream;
    const auto& ports = r.cell().extra.at("stream").at("ports");
    ASSERT_EQ(ports.size(), 2u);
    EXPECT_GE(ports[0].get<u16>(), first + (taken ? 1 : 0));
    EXPECT_GT(ports[1].get<u16>(), ports[0].get<u16>());
  }
}

TEST(NetTwoProcesses, EachEndSaysWhyTheOtherHasFailed) {
  BenchOptions o = options_of("tcp", 1000, 500);
  o.role = Role::sender;
  o.link.clear();
  ServeResult served;
  Beside sender_fails;
  beside_server(60, &served, sender_fails, [&](const exchange::SocketName& at) {
    o.other_end = at;
    RemoteReceiver remote(o, nullptr);
    (void)remote.open(o, {{1000, 64, 1, 1, 0, 0}, 7});
    remote.fail("it has no memory for its slots");
  });
  EXPECT_NE(sender_fails.server_failure.find("no memory for its slots"), std::string::npos)
      << sender_fails.server_failure;
  EXPECT_EQ(sender_fails.client_failure, "");

  // The receiver's rings are too large; the sender, which is about to connect, does not wait for it.
  Beside receiver_fails;
  beside_server(60, &served, receiver_fails, [&](const exchange::SocketName& at) {
    o.other_end = at;
    RemoteReceiver remote(o, nullptr);
    const auto link = remote.open(o, {{u64{1} << 30, 64, 1, 1, 0, 0}, 7});
    (void)sockets::learn(*link->other_process(), 1);
  });
  EXPECT_NE(receiver_fails.client_failure.find("67108864"), std::string::npos)
      << receiver_fails.client_failure;
}

TEST(NetTwoProcesses, StrangersAreTurnedAway) {
  Beside beside;
  beside.before = [](const exchange::SocketName& server) {
    for (const char* said : {"", "GET / HTTP/1.0\r\n\r\n"}) {
      const exchange::Connected c =
          exchange::connect_tcp(server, exchange::Wait::lasting(60, nullptr), "net");
      EXPECT_EQ(::send(c.socket.get(), said, std::strlen(said), MSG_NOSIGNAL),
                static_cast<ssize_t>(std::strlen(said)));
    }
  };
  ServeResult served;
  const measure::BenchResult r = between_two(options_of("tcp", 1000, 500), &served, beside);
  EXPECT_EQ(beside.client_failure + beside.server_failure, "");
  EXPECT_EQ(r.cells.size(), 1u);
  ASSERT_GE(beside.server_said.size(), 3u);
  EXPECT_NE(beside.server_said[1].find("turned away"), std::string::npos) << beside.server_said[1];
  EXPECT_NE(beside.server_said[2].find("does not speak doorbell's protocol"), std::string::npos);
}

TEST(NetTwoProcesses, WhatWasMeasuredIsKeptWhenTheOtherEndFails) {
  Beside beside;
  beside.client_progress = [&](const std::string& what) {
    if (what.find("repeat 2 of") != std::string::npos) beside.server_stop.request(2);
  };
  BenchOptions o = options_of("tcp", 1000, 200);
  o.repeats = 1'000'000;  // the other end fails in one of them
  ServeResult served;
  const measure::BenchResult r = between_two(o, &served, beside);
  EXPECT_EQ(beside.client_failure, "");
  EXPECT_NE(beside.server_failure, "");
  ASSERT_EQ(r.cells.size(), 1u);
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.stop_reason, "error");
  EXPECT_GE(r.cell().repeats.size(), 1u);
  EXPECT_EQ(r.cell().errors.at("completion"), 1u);
  EXPECT_TRUE(r.cell().extra.at("drops").at("unexplained").is_null());
  EXPECT_NE(daqiri_csv(r.cells).find("tcp"), std::string::npos);
}

TEST(NetTwoProcesses, ASenderStopsWhenTheOtherEndHasFailed) {
  Beside beside;
  beside.client_progress = [&](const std::string&) { beside.server_stop.request(2); };
  BenchOptions o = options_of("udp", 1000, 0);
  o.duration_s = 100'000;
  ServeResult served;
  (void)between_two(o, &served, beside);
  EXPECT_NE(beside.client_failure.find("it has failed"), std::string::npos) << beside.client_failure;
}

TEST(NetMessages, BetweenTwoMachinesNothingIsLate) {
  nlohmann::ordered_json m = cell_message(options_of("udp", 1000, 1), {{1000, 64, 1, 1, 0, 0}, 7});
  BenchOptions o;
  CellSetup setup;
  Stream stream;
  read_cell_message(m, &o, &setup);
  EXPECT_EQ(receiving_options(o, setup, stream).receiver.late_ns, 1'000'000'000u);
  m["machine"] = "another";
  read_cell_message(m, &o, &setup);
  EXPECT_EQ(receiving_options(o, setup, stream).receiver.late_ns, ~u64{0});
}

TEST(NetMessages, NumbersThatCannotBeAreRefused) {
  const nlohmann::ordered_json good = totals_message({});
  (void)read_totals_message(good);
  for (const char* key : {"lost", "drops_ring", "in_windows"}) {
    nlohmann::ordered_json bad = good;
    bad[key] = ~u64{0};
    EXPECT_THROW((void)read_totals_message(bad), Error) << key;
  }
}

TEST(NetMessages, SayHowFramesAndWindowsAre) {
  BenchOptions there = options_of("raw", 1000, 1), here;
  there.encapsulation = Encapsulation::bare;
  there.steering = Steering::rss;
  there.rss_fields = RssFields::addresses;
  there.windows.convert = conversion(7, true);
  CellSetup setup;
  read_cell_message(cell_message(there, {{1000, 64, 2, 1, 0, 9}, 7}), &here, &setup);
  EXPECT_EQ(here.encapsulation, Encapsulation::bare);
  EXPECT_EQ(here.steering, Steering::rss);
  EXPECT_EQ(here.rss_fields, RssFields::addresses);
  EXPECT_EQ(here.windows.convert, there.windows.convert);
  EXPECT_EQ(setup.flows(), 9u);
}

TEST(NetMessages, AreCheckedWhenTheyAreRead) {
  const nlohmann::ordered_json good = cell_message(options_of("tcp", 1000, 1), {{1000, 64, 1, 1, 0}, 7});
  BenchOptions o;
  CellSetup setup;
  read_cell_message(good, &o, &setup);
  EXPECT_EQ(setup.run_tag, 7);
  EXPECT_EQ(setup.cell.payload, 1000u);
  for (const auto& [key, value] : good.items()) {
    nlohmann::ordered_json bad = good;
    bad[key] = "nonsense";
    if (key != "engine" && key != "machine") {
      EXPECT_THROW(read_cell_message(bad, &o, &setup), Error) << key;
    }
    bad.erase(key);
    EXPECT_THROW(read_cell_message(bad, &o, &setup), Error) << key;
  }
  ReceivePhase p;
  p.counts.unique = 5;
  p.latency.record(100);
  p.latency.record(3000);
  p.threads.emplace_back();
  const nlohmann::ordered_json phase = phase_message(p);
  const ReceivePhase read = read_phase_message(phase);
  EXPECT_EQ(read.counts.unique, 5u);
  EXPECT_EQ(read.latency.count(), 2u);
  EXPECT_EQ(read.latency.max(), 3000);
  for (const auto& [key, value] : phase.items()) {
    nlohmann::ordered_json bad = phase;
    bad[key] = -1;
    EXPECT_THROW((void)read_phase_message(bad), Error) << key;
  }
}

}  // namespace
}  // namespace doorbell::net
