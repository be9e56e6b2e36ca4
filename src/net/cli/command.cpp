// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/offers.hpp"
#include "cli/output.hpp"
#include "cli/run_bench.hpp"
#include "cli/run_options.hpp"
#include "cli/sizes.hpp"
#include "cli/texts.hpp"
#include "exchange/settings.hpp"
#include "measure/endless.hpp"
#include "measure/settings.hpp"
#include "net/bench/bench.hpp"
#include "net/bench/daqiri_csv.hpp"
#include "net/bench/in_turns.hpp"
#include "net/cli/parts.hpp"
#include "net/cli/window_options.hpp"
#include "net/links/namespaces.hpp"
#include "net/peer/serve.hpp"
#include "net/settings.hpp"
#include "options/enumeration.hpp"
#include "rdma/backends.hpp"
#include "rdma/vendors.hpp"
#include "report/file.hpp"
#include "report/verdict.hpp"

namespace doorbell::cli {

namespace {

constexpr u64 kMaxPayload = 0x7fffffff;
using net::kMaxQueues;
constexpr u64 kDefaultBytes = u64{1} << 30;  // of a run by count
constexpr u64 kDefaultPackets = 200'000;

u32 number_in(const std::string& option, const std::string& text, u32 least, u32 most) {
  const Option number = {.name = option, .kind = Kind::integer, .min = least, .max = most};
  try {
    return static_cast<u32>(std::get<u64>(convert(number, text)));
  } catch (const std::invalid_argument& e) {
    throw Error("--" + option, e.what());
  }
}

std::vector<u64> payloads_of(const std::string& text) {
  return sizes_of("payload", text, net::kHeaderBytes, kMaxPayload);
}

std::vector<int> cores_of(const std::string& text) {
  std::vector<int> cores;
  for (const std::string& core : split(text))
    cores.push_back(static_cast<int>(number_in("cores", core, 0, 4095)));
  return cores;
}

/// Bits a second as iperf3's -b takes them.
std::vector<options::Assignment> target_of(const std::string& bandwidth) {
  constexpr u64 kMost = 10'000'000'000'000;
  const auto bits =
      std::get<u64>(convert({.name = "bandwidth", .kind = Kind::rate, .max = kMost}, bandwidth));
  if (bits == 0) return {};
  return {{net::setting::target_gbps.option(), fmt::format("{:.9f}", static_cast<double>(bits) / 1e9)}};
}

void add_net_options(OptionTable& t) {
  const auto streams = [](const net::WhichKinds& which) {
    return options::Condition{"stream", net::stream_names(which)};
  };
  const options::Condition frames = streams(&net::StreamKind::frames), rdma = streams(&net::StreamKind::rdma);
  const options::Condition sockets = streams(&net::StreamKind::sockets);
  t.group("Stream")
      .add(
          {.name = net::setting::stream.option(),
           .default_text = net::kRawFrames,
           .choices = net::stream_names([](const net::StreamKind&) { return true; }),
           .help =
               "what carries the packets: TCP records, UDP datagrams, RoCE messages (SEND), raw Ethernet frames",
           .bare = true,
           .brief = "raw frames, tcp, udp or roce",
           .into = &net::BenchOptions::stream})
      .add(
          {.name = net::setting::link.option(),
           .metavar = "LINK",
           .offers = link_words,
           .help =
               "what connects the two ends: ring (memory of this program), lo, veth (two network namespaces, made and "
               "removed again), two interfaces or PCI addresses IF1,IF2 (not given: ring for raw, else lo)",
           .brief = "ring (memory), lo, veth, or two interfaces IF1,IF2",
           .into = {&net::BenchOptions::link, &net::ServeOptions::link}})
      .add({.name = net::setting::engine.option(),
            .metavar = "NAME",
            .offers = net::engine_names,
            .help = "what sends and receives raw frames: " + options::enumeration(net::engine_names(), "or") +
                    ", which takes a driver as dpdk:DRIVER (not given: what the link does best)",
            .into = &net::BenchOptions::engine,
            .only_if = frames})
      .add({.name = net::setting::device.option(),
            .metavar = "SPEC",
            .default_text = "model",
            .offers = [] { return device_words("rdma", backend_words(rdma::backends())); },
            .help = "the NIC of --stream roce, as for doorbell rdma",
            .into = &net::BenchOptions::device,
            .only_if = rdma})
      .add({.name = net::setting::provider.option(),
            .metavar = "NAME",
            .default_text = "mlx5",
            .offers = rdma::provider_names,
            .help = "whose queues --stream roce uses, as for doorbell rdma",
            .into = &net::BenchOptions::provider,
            .only_if = rdma})
      .group("Work")
      .add(
          {.name = net::setting::mode.option(),
           .default_text = "cells",
           .choices = net::mode_names(),
           .help =
               "cells: each --payload; smoke: the stream's usual cell; sweep: its published grid; drop-curve: target "
               "rates from 1 to 100 Gb/s and unpaced; multi-queue: one and two queues on each side; no-drop: search "
               "the highest rate without loss; kernels: what the GPU of --gpu makes of packets, without a network",
           .into = &net::BenchOptions::mode})
      .add(
          {.name = net::setting::payload.option(),
           .aliases = {"size", "length", "len", "block-size"},
           .letter = 'l',
           .metavar = "SIZE[:SIZE]",
           .default_text = "8000",
           .help =
               "bytes of a packet, message or record, the 32-byte header included; A:B goes by powers of two, and a "
               "list has commas",
           .brief = "bytes of a packet: 64,1000 or 64:8K",
           .into = {payloads_of, &net::BenchOptions::payloads}})
      .add(
          {.name = "batch-size",
           .metavar = "N",
           .min = 1,
           .max = 16384,
           .help =
               "packets handed over at a time (not given: 64; of TCP records as many as 512 KiB hold, if that is less)",
           .into = &net::BenchOptions::batch})
      .add({.name = net::setting::pairs.option(),
            .aliases = {"parallel"},
            .means = {"streams", "connections"},
            .letter = 'P',
            .metavar = "N",
            .min = 1,
            .max = kMaxQueues,
            .help = "pairs of a sender and a receiver, each a thread (tcp, udp, roce)",
            .brief = "pairs of a sender and a receiver (tcp, udp, roce)",
            .into = {&net::BenchOptions::tx_queues, &net::BenchOptions::rx_queues},
            .only_if = streams([](const net::StreamKind& k) { return !k.frames; })})
      .add({.name = net::setting::queues.option(),
            .metavar = "TXxRX",
            .help = "sending and receiving queues, each a thread: 1x2, 2x2 (raw)",
            .only_if = frames})
      .add(
          {.name = net::setting::flows.option(),
           .metavar = "N",
           .min = 1,
           .max = net::kMaxFlows,
           .help =
               "raw: streams of packets with addresses, ports and sequences of their own, in turns on the sending "
               "queues (not given: as many as there are queues on the larger side)",
           .into = &net::BenchOptions::flows,
           .only_if = frames})
      .add(
          {.name = net::setting::rss.option(),
           .default_text = "off",
           .choices = {"off", "addresses", "addresses-ports"},
           .help =
               "raw: a flow's receive queue is chosen by the Toeplitz hash over these fields, as NICs do; off: by a "
               "rule for each flow",
           .only_if = frames})
      .add(
          {.name = "encapsulation",
           .default_text = "udp4",
           .choices = net::encapsulation_names(),
           .help =
               "raw: what a frame's payload lies in: UDP over IPv4 or IPv6, or nothing but Ethernet (EtherType 0x88b5)",
           .into = &net::BenchOptions::encapsulation,
           .only_if = frames})
      .add(
          {.name = "count",
           .metavar = "N",
           .min = 1,
           .max = u64{1} << 40,
           .help =
               "packets of each flow in a repeat, or fewer when --duration is over (neither given: 1 GiB's worth, at most 200 thousand)",
           .brief = "packets of each flow",
           .into = &net::BenchOptions::count})
      .add(infinite_option())
      .add({.name = net::setting::target_gbps.option(),
            .metavar = "GBPS",
            .min = 0.000001,
            .max = 10000,
            .help =
                "payload bits a second of all senders together, evenly paced (not given: as fast as it goes)",
            .into = &net::BenchOptions::target_gbps})
      .add({.name = "bandwidth",
            .aliases = {"bitrate"},
            .letter = 'b',
            .metavar = "RATE",
            .help = "as iperf3 has it, for --target-gbps: bits a second, 500M, 10G; 0: as fast as it goes",
            .brief = "target in bits a second: 500M, 10G",
            .stands_for = target_of})
      .add({.name = "udp",
            .letter = 'u',
            .kind = Kind::flag,
            .help = "as iperf3 has it, for --stream udp",
            .stands_for =
                [](const std::string&) {
                  return std::vector<options::Assignment>{{net::setting::stream.option(), "udp"}};
                }})
      .add({.name = "fill",
            .default_text = "bytes",
            .choices = {"bytes", "float32", "float16", "zero"},
            .help = "what the data consists of; floats are in [-1, 1)",
            .into = &net::BenchOptions::fill})
      .group("Verification")
      .add(
          {.name = "max-loss",
           .metavar = "PERCENT",
           .default_text = "100",
           .min = 0,
           .max = 100,
           .help =
               "a loss of more packets than this is an error (exit code 2), although it is explained; tcp and roce "
               "may lose none",
           .into = {[](double percent) { return percent / 100; }, &net::BenchOptions::max_loss}})
      .add(
          {.name = net::setting::way_loss.option(),
           .metavar = "PERCENT",
           .default_text = "0",
           .min = 0,
           .max = 100,
           .help =
               "with --connect: so many packets may be lost between the two machines, where neither end's counters "
               "have them (a router, a switch), without being an error",
           .into = {[](double percent) { return percent / 100; }, &net::BenchOptions::max_way_loss},
           .only_if = {"connect"}})
      .group("Sockets")
      .add({.name = "segmentation",
            .default_text = "on",
            .choices = {"on", "off"},
            .help = "UDP: hand over many datagrams as one (GSO) and take them so (GRO)",
            .into = {"on", &net::BenchOptions::segmentation},
            .only_if = streams(&net::StreamKind::segments)})
      .add(
          {.name = "socket-buffer",
           .kind = Kind::size,
           .default_text = "64Mi",
           .min = 4096,
           .max = u64{1} << 30,
           .help =
               "a socket's buffer; what the kernel gave is in the result (TCP, not given: as the kernel tunes it)",
           .into = &net::BenchOptions::socket_bytes,
           .only_if = sockets})
      .add({.name = "busy-poll",
            .metavar = "US",
            .default_text = "0",
            .max = 100'000,
            .help = "microseconds for which the kernel polls the device for a socket (SO_BUSY_POLL)",
            .into = &net::BenchOptions::busy_poll_us,
            .only_if = sockets})
      .add({.name = "block-timeout",
            .metavar = "MS",
            .default_text = "1",
            .min = 1,
            .max = 1000,
            .help =
                "milliseconds after which af_packet hands a block over that is not full: at low rates its "
                "latency is half of that",
            .into = &net::BenchOptions::block_timeout_ms})
      .group("Memory")
      .add({.name = net::setting::memory.option(),
            .default_text = "pageable",
            .choices = {"pageable", "pinned", "huge-2m", "huge-1g"},
            .help = "what received packets lie in",
            .into = {&net::BenchOptions::place, &net::ServeOptions::place}})
      .add({.name = net::setting::split.option(),
            .help = "header-data split: headers in one place, data in another",
            .into = {&net::BenchOptions::split, &net::ServeOptions::split}})
      .group("Threads")
      .add(
          {.name = "polling",
           .default_text = "auto",
           .choices = {"auto", "busy", "block"},
           .help =
               "what threads do without work: busy waiting, or sleep in the kernel; auto: busy where each has a core "
               "and the queue is memory",
           .into = {&net::BenchOptions::polling, &net::ServeOptions::polling}})
      .add({.name = net::setting::cores.option(),
            .metavar = "N[,N...]",
            .help = "the threads' cores, senders first (not given: one each, where there are enough; the "
                    "last ones with --listen)",
            .into = {cores_of, &net::BenchOptions::cores, &net::ServeOptions::cores}})
      .group("Verification")
      .add({.name = "relay-delay",
            .kind = Kind::seconds,
            .default_text = "0.02",
            .min = 0,
            .max = 60,
            .help = "how long --fault delay holds a packet back",
            .into = &net::BenchOptions::relay_delay_s})
      .add({.name = "settle",
            .kind = Kind::seconds,
            .default_text = "0.25",
            .min = 0.001,
            .max = 60,
            .help = "what has not arrived after so long a silence is lost",
            .into = &net::BenchOptions::settle_s});
}

void add_connection_options(OptionTable& t) {
  t.group("Comparison")
      .add({.name = measure::setting::others.option(),
            .metavar = "PROGRAM[,PROGRAM...]",
            .help = "measure programs of others over the same link, in turns, and print the ratios: " +
                    options::enumeration(net::other_programs(), "and") + "; it takes --duration"})
      .group("Output")
      .add({.name = "daqiri-csv",
            .kind = Kind::path,
            .help = "write one row per repeat to FILE in the columns of daqiri's runs.csv"});
  t.group("Connection")
      .add(
          {.name = exchange::setting::listen.option(),
           .metavar = "[ADDR:]PORT",
           .help =
               "be the receiving end of a run: wait for a client there, take over its options, and say at the end what "
               "arrived; --link, --host-memory, --split, --polling and --cores belong here, everything else to the client",
           .brief = "be the receiving end for another machine",
           .into = {[](const std::string& at) { return exchange::parse_listen(at, "--listen"); },
                    &net::ServeOptions::at}})
      .add(server_option(net::kRunKind.default_port, 's'))
      .add(listen_wait_option(&net::ServeOptions::wait_s))
      .add(
          {.name = net::setting::connect.option(),
           .aliases = {"client"},
           .letter = 'c',
           .metavar = "HOST[:PORT]",
           .help =
               "send to the doorbell that listens there (port 18517 if none is given); --link is then the interface "
               "of this end (not given: whichever the route takes)",
           .brief = "send to the doorbell that listens there",
           .into = {[](const std::string& to) {
                      return exchange::parse_connect(to, net::kRunKind.default_port, "--connect");
                    },
                    &net::BenchOptions::other_end}});
}

void read_queues(const Options& o, net::BenchOptions* b) {
  if (!o.has("queues")) return;
  const std::string text = o.text("queues");
  const std::size_t x = text.find('x');
  if (x == std::string::npos)
    throw Error("--queues", fmt::format("'{}' is not of the form TXxRX", text), "write 1x2 or 2x2");
  b->tx_queues = number_in("queues", text.substr(0, x), 1, kMaxQueues);
  b->rx_queues = number_in("queues", text.substr(x + 1), 1, kMaxQueues);
}

void read_rss(const Options& o, net::BenchOptions* b) {
  const std::string& rss = o.text("rss");
  if (rss != "off") b->steering = net::Steering::rss;
  if (rss == "addresses") b->rss_fields = net::RssFields::addresses;
}

net::BenchOptions bench_options(const Options& o) {
  require_no_listening(o);
  net::BenchOptions b;
  static_cast<RunOptions&>(b) = run_options(o);
  read_infinite(o, "count", &b);
  if (b.initiator == Initiator::gpu)
    throw Error("--initiator gpu", "packets are sent and received by CPU threads");
  if (b.strict)
    throw Error("--verify strict", "every packet is checked as it comes: there is no earlier data");
  o.read_into(b);
  if (o.has("connect")) b.role = net::Role::sender;
  if (!o.has("link")) b.link = o.has("connect") ? "" : net::kind_of(b).usual_link;
  const net::StreamKind& kind = net::kind_of(b);
  if (b.link.empty() && kind.frames)
    throw Error("--connect", "raw frames leave by an interface",
                "name it: --link eth0; or send tcp or udp: doorbell net tcp --connect HOST");
  if (measure::is_endless(b.duration_s) &&
      (b.mode != net::Mode::cells || b.payloads.size() > 1 || o.has("beside")))
    throw Error("--infinite", "more than one cell is asked for, and the first one would not end",
                "give one --payload, and neither --mode nor --beside");
  if (o.given("payload") && (b.mode == net::Mode::smoke || b.mode == net::Mode::sweep))
    throw Error("--payload", fmt::format("--mode {} has its own", o.text("mode")),
                "leave one of the two out");
  read_queues(o, &b);
  read_rss(o, &b);
  if (b.duration_s == 0 &&
      (b.mode == net::Mode::drop_curve || b.mode == net::Mode::no_drop || b.target_gbps > 0) &&
      !o.has("count"))
    b.duration_s = 1, b.repeats = o.has("repeats") ? b.repeats : 1;
  if (!o.has("count") && b.duration_s == 0)
    b.count = std::clamp<u64>(kDefaultBytes / *std::ranges::max_element(b.payloads), 8, kDefaultPackets);
  read_window_options(o, &b);
  // The kernel tunes a TCP connection's buffers itself, and does it well.
  if (kind.tunes_buffers && !o.given("socket-buffer")) b.socket_bytes = 0;
  if (o.given("block-timeout") && !kind.blocks)
    throw Error("--block-timeout", "only packet sockets have blocks",
                "it goes with " + net::kinds_that(&net::StreamKind::blocks));
  if (b.faults.of(model::Fault::delay) > 0 && b.relay_delay_s >= b.settle_s)
    throw Error("--relay-delay",
                fmt::format("{:g} s is not less than the {:g} s after which a packet is lost",
                            b.relay_delay_s, b.settle_s),
                "give a longer --settle");
  const u32 threads = b.tx_queues + b.rx_queues;
  if (!b.cores.empty() && b.cores.size() < threads)
    throw Error("--cores",
                fmt::format("{} cores are named, and there are {} threads", b.cores.size(), threads));
  return b;
}

/// The options that --listen uses; the client brings all others.
std::vector<std::string> listening_options(const OptionTable& t) {
  std::vector<std::string> names = t.names_of<net::ServeOptions>();
  names.insert(names.end(), {"gpu", "timeout"});
  return names;
}

net::ServeOptions serve_options(const Options& o) {
  require_listening(o, listening_options(o.table()));
  net::ServeOptions s;
  o.read_into(s);
  s.gpu = static_cast<int>(o.integer("gpu"));
  s.timeout_s = o.seconds("timeout");
  return s;
}

int listen(const Options& options, Context& context) {
  const bool quiet = options.flag("quiet") || context.host != nullptr;
  const measure::RunWatch watch = {.stop = &context.stop, .progress = [&](double, const std::string& what) {
                                     if (!quiet) fmt::print(stderr, "{}\n", what);
                                   }};
  const net::ServeResult r = net::serve(serve_options(options), watch);
  if (!quiet)
    fmt::print("served {} cells, {} packets, {} checked, {} errors\nthe client's verdict: {}\n", r.cells,
               r.received, r.checked, r.errors, r.verdict);
  // Who has stopped the client has not stopped this end.
  const int code = r.code == static_cast<int>(ExitCode::interrupted) ? 0 : r.code;
  return report::worse_of(r.errors == 0 ? 0 : static_cast<int>(ExitCode::data), code);
}

std::vector<std::string> others_of(const Options& o) {
  return o.has("beside") ? split(o.text("beside")) : std::vector<std::string>{};
}

RunPlan plan_of_kernels(const net::BenchOptions& b) {
  net::KernelBenchOptions k = net::kernel_options(b);
  k.warmup_s = 0;
  return {.cells = net::kernel_cells(k), .search_s = net::kernel_setup_s(k), .chosen = k};
}

RunPlan plan_of(const net::BenchOptions& b, std::size_t others) {
  if (b.mode == net::Mode::kernels) return plan_of_kernels(b);
  const std::vector<net::CellSettings> cells = net::cells_of(b);
  RunPlan plan = {.cells = static_cast<u32>(cells.size()), .ways = static_cast<u32>(others) + 1};
  if (b.count > 0) plan.work = fmt::format("{} packets of each flow", b.count);
  for (const net::CellSettings& c : cells)
    if (c.target_gbps > 0)
      plan.work_s = std::max(plan.work_s, static_cast<double>(b.count) * c.flows() *
                                              static_cast<double>(c.payload) * 8e-9 / c.target_gbps);
  if (!net::kind_of(b).reliable || b.faults.any()) plan.settle_s = b.settle_s;
  if (b.mode == net::Mode::no_drop) plan.search_s = net::search_s(b);
  return plan;
}

/// To another machine by its address TCP is what is meant, as raw frames leave by an interface.
Options with_stream(Options o) {
  if (o.has("connect") && !o.has("link") && !o.given(net::setting::stream.option()) &&
      !o.given(net::setting::engine.option()))
    o.set(net::setting::stream.option(), "tcp");
  return o;
}

int run(const Options& typed, Context& context) {
  if (typed.has("listen")) return listen(typed, context);
  const Options options = with_stream(typed);
  const net::BenchOptions b = bench_options(options);
  // While there is one thread: an ordinary user's namespaces lie in a user namespace of the program's own.
  if (b.link.starts_with("veth")) net::enter_user_namespace_if_needed();
  const std::vector<std::string> others = others_of(options);
  const std::string& daqiri = options.text("daqiri-csv");
  check_output("daqiri-csv", daqiri, {options.text("json"), options.text("csv")});
  std::string rows;
  net::check(b);
  const auto bench = [&](const measure::RunWatch& watch) {
    measure::BenchResult r = others.empty() ? net::run_bench(b, watch) : net::run_in_turns(b, watch, others);
    if (!daqiri.empty()) rows = net::daqiri_csv(r.cells);
    return r;
  };
  const int code = run_and_report(options, context, b, {daqiri}, bench, nullptr, plan_of(b, others.size()));
  // The Result has been printed by now: a full disk takes nothing but this file.
  try {
    if (!daqiri.empty()) report::write_file(daqiri, rows);
  } catch (const Error& e) {
    return report::worse_of(code, print_error("doorbell: ", e));
  }
  return code;
}

}  // namespace

Command net_command() {
  Command c;
  c.name = "net";
  c.means = {"tcp", "udp", "roce", "network", "iperf", "iperf3"};
  c.summary = "streams of packets over Ethernet, UDP, TCP or RoCE, each accounted for";
  c.description = {
      "Sends numbered packets from one end of a link to the other and accounts for every one: what was sent is what "
      "arrived once and what was lost, and every loss is found again in the drop counter of a layer (socket, ring, "
      "interface, application). A loss that no counter explains, damaged data, a packet that comes twice or in the wrong "
      "place ends in exit code 2.",
      "The payload of every packet begins with 32 bytes: run, flow, sequence, time of sending, and checksums (CRC-32C) of "
      "header and data. Headers are always checked; --verify off leaves the data unchecked.",
      "--fault puts a relay between the ends that loses, doubles, delays, reorders or damages packets: drop, duplicate, "
      "delay, reorder, corrupt, misplace.",
      "Rates are of payload (goodput), and in the result also with the bytes of the frames (l2) and with those between "
      "frames (l1). A sender and a receiver are a thread each.",
  };
  add_net_options(c.options);
  add_window_options(c.options);
  add_connection_options(c.options);
  add_common_options(c.options);
  c.examples = {
      {"doorbell net --payload 64,1000,8000", "Raw Ethernet frames through a ring in memory, three sizes."},
      {"doorbell net tcp --payload 1M --count 200", "TCP records over the loopback interface."},
      {"doorbell net udp --payload 8000 --bandwidth 1G --time 0.5 --repeats 1",
       "UDP datagrams at one gigabit a second, evenly paced."},
      {.command = "doorbell net --fault drop=0.001,corrupt=0.001 --count 20000",
       .text = "Prove that loss and damage are found: exit code 2 and a count for each class.",
       .code = 2},
      {.command = "doorbell net --stream udp --link veth --mode no-drop",
       .text = "The highest rate between two network namespaces at which nothing is lost.",
       .needs = Needs::device},
      {.command = "doorbell net -s",
       .text = "The receiving end of a run between two machines.",
       .needs = Needs::other_machine},
      {.command = "doorbell net udp -c 192.0.2.2 -b 10G -t 2",
       .text = "Its sender, which says what is done and prints the result of both.",
       .needs = Needs::other_machine},
      {.command = "doorbell net --link veth --engine af_packet --queues 2x2 --duration 2",
       .text = "Raw frames through AF_PACKET, two queues on each side.",
       .needs = Needs::device},
  };
  c.run = run;
  c.listening = listening_options(c.options);
  c.check = [](const Options& o) {
    if (o.has("listen")) {
      (void)serve_options(o);
    } else {
      const net::BenchOptions b = bench_options(with_stream(o));
      net::check(b);
      if (o.has("beside")) net::check_others(b, others_of(o));
    }
  };
  return c;
}

}  // namespace doorbell::cli
