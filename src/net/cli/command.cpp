// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

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
#include "report/file.hpp"
#include "report/verdict.hpp"

namespace doorbell::cli {

namespace {

constexpr u64 kMaxPayload = 0x7fffffff;
using net::kMaxQueues;
constexpr u64 kDefaultBytes = u64{1} << 30;  // of a run by count
constexpr u64 kDefaultPackets = 200'000;

void add_net_options(OptionTable& t) {
  t.add(
       {.name = net::setting::stream.option(),
        .kind = Kind::choice,
        .default_text = net::kRawFrames,
        .choices = net::stream_names([](const net::StreamKind&) { return true; }),
        .help =
            "what carries the packets: TCP records, UDP datagrams, RoCE messages (SEND), raw Ethernet frames",
        .group = "Stream"})
      .add(
          {.name = net::setting::link.option(),
           .kind = Kind::text,
           .metavar = "LINK",
           .help =
               "what connects the two ends: ring (memory of this program), lo, veth (two network namespaces, made and "
               "removed again), two interfaces or PCI addresses IF1,IF2 (not given: ring for raw, else lo)",
           .group = "Stream"})
      .add({.name = net::setting::engine.option(),
            .kind = Kind::text,
            .metavar = "NAME",
            .help = "what sends and receives raw frames: " + options::enumeration(net::engine_names(), "or") +
                    ", which takes a driver as dpdk:DRIVER (not given: what the link does best)",
            .group = "Stream"})
      .add({.name = net::setting::device.option(),
            .kind = Kind::text,
            .metavar = "SPEC",
            .default_text = "model",
            .help = "the NIC of --stream roce, as for doorbell rdma",
            .group = "Stream"})
      .add({.name = net::setting::provider.option(),
            .kind = Kind::text,
            .metavar = "NAME",
            .default_text = "mlx5",
            .help = "whose queues --stream roce uses, as for doorbell rdma",
            .group = "Stream"})
      .add(
          {.name = net::setting::mode.option(),
           .kind = Kind::choice,
           .default_text = "cells",
           .choices = net::mode_names(),
           .help =
               "cells: each --payload; smoke: the stream's usual cell; sweep: its published grid; drop-curve: target "
               "rates from 1 to 100 Gb/s and unpaced; multi-queue: one and two queues on each side; no-drop: search "
               "the highest rate without loss; kernels: what the GPU of --gpu makes of packets, without a network",
           .group = "Work"})
      .add(
          {.name = net::setting::payload.option(),
           .kind = Kind::text,
           .metavar = "SIZE[:SIZE]",
           .default_text = "8000",
           .help =
               "bytes of a packet, message or record, the 32-byte header included; A:B goes by powers of two, and a "
               "list has commas",
           .group = "Work"})
      .add(
          {.name = "batch-size",
           .kind = Kind::integer,
           .metavar = "N",
           .min = 1,
           .max = 16384,
           .help =
               "packets handed over at a time (not given: 64; of TCP records as many as 512 KiB hold, if that is less)",
           .group = "Work"})
      .add({.name = net::setting::pairs.option(),
            .kind = Kind::integer,
            .metavar = "N",
            .min = 1,
            .max = kMaxQueues,
            .help = "pairs of a sender and a receiver, each a thread (tcp, udp, roce)",
            .group = "Work"})
      .add({.name = net::setting::queues.option(),
            .kind = Kind::text,
            .metavar = "TXxRX",
            .help = "sending and receiving queues, each a thread: 1x2, 2x2 (raw)",
            .group = "Work"})
      .add(
          {.name = net::setting::flows.option(),
           .kind = Kind::integer,
           .metavar = "N",
           .min = 1,
           .max = net::kMaxFlows,
           .help =
               "raw: streams of packets with addresses, ports and sequences of their own, in turns on the sending "
               "queues (not given: as many as there are queues on the larger side)",
           .group = "Work"})
      .add(
          {.name = net::setting::rss.option(),
           .kind = Kind::choice,
           .default_text = "off",
           .choices = {"off", "addresses", "addresses-ports"},
           .help =
               "raw: a flow's receive queue is chosen by the Toeplitz hash over these fields, as NICs do; off: by a "
               "rule for each flow",
           .group = "Work"})
      .add(
          {.name = "encapsulation",
           .kind = Kind::choice,
           .default_text = "udp4",
           .choices = net::encapsulation_names(),
           .help =
               "raw: what a frame's payload lies in: UDP over IPv4 or IPv6, or nothing but Ethernet (EtherType 0x88b5)",
           .group = "Work"})
      .add(
          {.name = "count",
           .kind = Kind::integer,
           .metavar = "N",
           .min = 1,
           .max = u64{1} << 40,
           .help =
               "packets of each flow in a repeat, or fewer when --duration is over (neither given: 1 GiB's worth, at most 200 thousand)",
           .group = "Work"})
      .add(infinite_option())
      .add({.name = net::setting::target_gbps.option(),
            .kind = Kind::real,
            .metavar = "GBPS",
            .min = 0.000001,
            .max = 10000,
            .help =
                "payload bits a second of all senders together, evenly paced (not given: as fast as it goes)",
            .group = "Work"})
      .add({.name = "fill",
            .kind = Kind::choice,
            .default_text = "bytes",
            .choices = {"bytes", "float32", "float16", "zero"},
            .help = "what the data consists of; floats are in [-1, 1)",
            .group = "Work"})
      .add(
          {.name = "max-loss",
           .kind = Kind::real,
           .metavar = "PERCENT",
           .default_text = "100",
           .min = 0,
           .max = 100,
           .help =
               "a loss of more packets than this is an error (exit code 2), although it is explained; tcp and roce "
               "may lose none",
           .group = "Verification"})
      .add({.name = "segmentation",
            .kind = Kind::choice,
            .default_text = "on",
            .choices = {"on", "off"},
            .help = "UDP: hand over many datagrams as one (GSO) and take them so (GRO)",
            .group = "Sockets"})
      .add(
          {.name = "socket-buffer",
           .kind = Kind::size,
           .default_text = "64Mi",
           .min = 4096,
           .max = u64{1} << 30,
           .help =
               "a socket's buffer; what the kernel gave is in the result (TCP, not given: as the kernel tunes it)",
           .group = "Sockets"})
      .add({.name = "busy-poll",
            .kind = Kind::integer,
            .metavar = "US",
            .default_text = "0",
            .max = 100'000,
            .help = "microseconds for which the kernel polls the device for a socket (SO_BUSY_POLL)",
            .group = "Sockets"})
      .add({.name = "block-timeout",
            .kind = Kind::integer,
            .metavar = "MS",
            .default_text = "1",
            .min = 1,
            .max = 1000,
            .help =
                "milliseconds after which af_packet hands a block over that is not full: at low rates its "
                "latency is half of that",
            .group = "Sockets"})
      .add({.name = net::setting::memory.option(),
            .kind = Kind::choice,
            .default_text = "pageable",
            .choices = {"pageable", "pinned", "huge-2m", "huge-1g"},
            .help = "what received packets lie in",
            .group = "Memory"})
      .add({.name = net::setting::split.option(),
            .kind = Kind::flag,
            .help = "header-data split: headers in one place, data in another",
            .group = "Memory"})
      .add(
          {.name = "polling",
           .kind = Kind::choice,
           .default_text = "auto",
           .choices = {"auto", "busy", "block"},
           .help =
               "what threads do without work: busy waiting, or sleep in the kernel; auto: busy where each has a core "
               "and the queue is memory",
           .group = "Threads"})
      .add({.name = net::setting::cores.option(),
            .kind = Kind::text,
            .metavar = "N[,N...]",
            .help = "the threads' cores, senders first (not given: one each, where there are enough; the "
                    "last ones with --listen)",
            .group = "Threads"})
      .add({.name = "relay-delay",
            .kind = Kind::seconds,
            .default_text = "0.02",
            .min = 0,
            .max = 60,
            .help = "how long --fault delay holds a packet back",
            .group = "Verification"})
      .add({.name = "settle",
            .kind = Kind::seconds,
            .default_text = "0.25",
            .min = 0.001,
            .max = 60,
            .help = "what has not arrived after so long a silence is lost",
            .group = "Verification"});
}

void add_connection_options(OptionTable& t) {
  t.add({.name = measure::setting::others.option(),
         .kind = Kind::text,
         .metavar = "PROGRAM[,PROGRAM...]",
         .help = "measure programs of others over the same link, in turns, and print the ratios: " +
                 options::enumeration(net::other_programs(), "and") + "; it takes --duration",
         .group = "Comparison"})
      .add({.name = "daqiri-csv",
            .kind = Kind::path,
            .help = "write one row per repeat to FILE in the columns of daqiri's runs.csv",
            .group = "Output"});
  t.add(
       {.name = exchange::setting::listen.option(),
        .kind = Kind::text,
        .metavar = "[ADDR:]PORT",
        .help =
            "be the receiving end of a run: wait for a client there, take over its options, and say at the end what "
            "arrived; --link, --host-memory, --split, --polling and --cores belong here, everything else to the client",
        .group = "Connection"})
      .add(listen_wait_option())
      .add(
          {.name = net::setting::connect.option(),
           .kind = Kind::text,
           .metavar = "HOST[:PORT]",
           .help =
               "send to the doorbell that listens there (port 18517 if none is given); --link is then the interface "
               "of this end (not given: whichever the route takes)",
           .group = "Connection"});
}

u32 number_in(const std::string& option, const std::string& text, u32 least, u32 most) {
  const Option number = {.name = option, .kind = Kind::integer, .min = least, .max = most};
  try {
    return static_cast<u32>(std::get<u64>(convert(number, text)));
  } catch (const std::invalid_argument& e) {
    throw Error("--" + option, e.what());
  }
}

void read_queues(const Options& o, bool frames, net::BenchOptions* b) {
  if (o.has("pairs") && frames) throw Error("--pairs", "raw frames have queues", "use --queues TXxRX");
  if (o.has("queues") && !frames)
    throw Error("--queues", fmt::format("{} is made of pairs, one sender and one receiver each", b->stream),
                "use --pairs N");
  if (o.has("pairs")) b->tx_queues = b->rx_queues = static_cast<u32>(o.integer("pairs"));
  if (!o.has("queues")) return;
  const std::string text = o.text("queues");
  const std::size_t x = text.find('x');
  if (x == std::string::npos)
    throw Error("--queues", fmt::format("'{}' is not of the form TXxRX", text), "write 1x2 or 2x2");
  b->tx_queues = number_in("queues", text.substr(0, x), 1, kMaxQueues);
  b->rx_queues = number_in("queues", text.substr(x + 1), 1, kMaxQueues);
}

/// Options that only some kinds of streams have.
void check_own_options(const Options& o, const std::string& stream, const net::StreamKind& kind) {
  struct Own {
    const char* option;
    bool net::StreamKind::*has;
    const char* why_not;
  };
  constexpr const char* kOfFrames = "it is that of raw frames, not of {}";
  constexpr const char* kNoDevice = "{} needs no RDMA device";
  constexpr const char* kNoSocket = "{} has no socket";
  for (const auto& [option, has, why_not] : std::initializer_list<Own>{
           {"device", &net::StreamKind::rdma, kNoDevice},
           {"provider", &net::StreamKind::rdma, kNoDevice},
           {"flows", &net::StreamKind::frames, kOfFrames},
           {"rss", &net::StreamKind::frames, kOfFrames},
           {"encapsulation", &net::StreamKind::frames, kOfFrames},
           {"socket-buffer", &net::StreamKind::sockets, kNoSocket},
           {"busy-poll", &net::StreamKind::sockets, kNoSocket},
           {"segmentation", &net::StreamKind::segments, "it is UDP's, not that of {}"}}) {
    if (!o.given(option) || kind.*has) continue;
    const std::vector<std::string> streams = net::stream_names(has);
    throw Error(fmt::format("--{}", option), fmt::format(fmt::runtime(why_not), stream),
                fmt::format("it goes with {}{}", streams.size() == 1 ? "--stream " : "",
                            options::enumeration(streams, "and")));
  }
  if (o.given("block-timeout") && !kind.blocks)
    throw Error("--block-timeout", "only packet sockets have blocks",
                "it goes with " + net::kinds_that(&net::StreamKind::blocks));
}

void read_flow_options(const Options& o, net::BenchOptions* b) {
  if (o.has("flows")) b->flows = static_cast<u32>(o.integer("flows"));
  const std::string& rss = o.text("rss");
  if (rss != "off") b->steering = net::Steering::rss;
  if (rss == "addresses") b->rss_fields = net::RssFields::addresses;
  b->encapsulation =
      static_cast<net::Encapsulation>(std::ranges::find(net::encapsulation_names(), o.text("encapsulation")) -
                                      net::encapsulation_names().begin());
}

std::vector<int> cores_of(const Options& o) {
  std::vector<int> cores;
  if (o.has("cores"))
    for (const std::string& core : split(o.text("cores")))
      cores.push_back(static_cast<int>(number_in("cores", core, 0, 4095)));
  return cores;
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
  b.stream = o.text("stream");
  if (o.has("engine")) b.engine = o.text("engine");
  if (o.has("connect")) {
    b.role = net::Role::sender;
    b.other_end = exchange::parse_connect(o.text("connect"), net::kRunKind.default_port, "--connect");
    if (o.has("link")) b.link = o.text("link");
    else b.link.clear();
    if (b.link.empty() && net::kind_of(b).frames)
      throw Error("--connect", "raw frames leave by an interface", "name it: --link eth0");
  } else {
    b.link = o.has("link") ? o.text("link") : net::kind_of(b).usual_link;
  }
  const net::StreamKind& kind = net::kind_of(b);
  if (o.has("engine") && !kind.frames)
    throw Error("--engine", fmt::format("it carries raw frames, not {}", b.stream));
  check_own_options(o, b.stream, kind);
  b.device = o.text("device");
  b.provider = o.text("provider");
  b.mode = static_cast<net::Mode>(std::ranges::find(net::mode_names(), o.text("mode")) -
                                  net::mode_names().begin());
  b.payloads = sizes_of("payload", o.text("payload"), net::kHeaderBytes, kMaxPayload);
  if (measure::is_endless(b.duration_s) &&
      (b.mode != net::Mode::cells || b.payloads.size() > 1 || o.has("beside")))
    throw Error("--infinite", "more than one cell is asked for, and the first one would not end",
                "give one --payload, and neither --mode nor --beside");
  if (o.given("payload") && (b.mode == net::Mode::smoke || b.mode == net::Mode::sweep))
    throw Error("--payload", fmt::format("--mode {} has its own", o.text("mode")),
                "leave one of the two out");
  b.batch = o.has("batch-size") ? static_cast<u32>(o.integer("batch-size")) : 0;
  read_queues(o, kind.frames, &b);
  read_flow_options(o, &b);
  b.target_gbps = o.has("target-gbps") ? o.real("target-gbps") : 0;
  if (b.duration_s == 0 &&
      (b.mode == net::Mode::drop_curve || b.mode == net::Mode::no_drop || b.target_gbps > 0) &&
      !o.has("count"))
    b.duration_s = 1, b.repeats = o.has("repeats") ? b.repeats : 1;
  if (o.has("count")) b.count = o.integer("count");
  else if (b.duration_s == 0)
    b.count = std::clamp<u64>(kDefaultBytes / *std::ranges::max_element(b.payloads), 8, kDefaultPackets);
  const std::string fill = o.text("fill");
  b.fill = fill == "float32"   ? net::Fill::float32
           : fill == "float16" ? net::Fill::float16
           : fill == "zero"    ? net::Fill::zero
                               : net::Fill::bytes;
  read_window_options(o, &b);
  b.segmentation = o.text("segmentation") == "on";
  // The kernel tunes a TCP connection's buffers itself, and does it well.
  b.socket_bytes = kind.tunes_buffers && !o.given("socket-buffer") ? 0 : o.bytes("socket-buffer");
  b.busy_poll_us = static_cast<u32>(o.integer("busy-poll"));
  b.block_timeout_ms = static_cast<u32>(o.integer("block-timeout"));
  b.place = host_memory(o);
  b.split = o.flag("split");
  b.max_loss = o.real("max-loss") / 100;
  b.polling = o.text("polling");
  b.settle_s = o.seconds("settle");
  b.relay_delay_s = o.seconds("relay-delay");
  if (b.faults.of(model::Fault::delay) > 0 && b.relay_delay_s >= b.settle_s)
    throw Error("--relay-delay",
                fmt::format("{:g} s is not less than the {:g} s after which a packet is lost",
                            b.relay_delay_s, b.settle_s),
                "give a longer --settle");
  b.cores = cores_of(o);
  const u32 threads = b.tx_queues + b.rx_queues;
  if (!b.cores.empty() && b.cores.size() < threads)
    throw Error("--cores",
                fmt::format("{} cores are named, and there are {} threads", b.cores.size(), threads));
  return b;
}

/// The options that --listen uses; the client brings all others.
const std::vector<std::string>& listening_options() {
  static const std::vector<std::string> names = {"window-mem", "to-gpu", "gpu",     "link",   "host-memory",
                                                 "split",      "cores",  "polling", "timeout"};
  return names;
}

net::ServeOptions serve_options(const Options& o) {
  require_listening(o, listening_options());
  net::ServeOptions s;
  s.at = exchange::parse_listen(o.text("listen"), "--listen");
  if (o.has("link")) s.link = o.text("link");
  s.place = host_memory(o);
  s.split = o.flag("split");
  s.polling = o.text("polling");
  s.cores = cores_of(o);
  s.windows_on_gpu = o.text("window-mem") == "vram";
  s.to_gpu = o.text("to-gpu") == "kernel" ? net::ToGpu::kernel : net::ToGpu::copy;
  s.gpu = static_cast<int>(o.integer("gpu"));
  s.timeout_s = o.seconds("timeout");
  s.wait_s = o.seconds("listen-wait");
  return s;
}

int listen(const Options& options, Context& context) {
  const bool quiet = options.flag("quiet");
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

int run(const Options& options, Context& context) {
  if (options.has("listen")) return listen(options, context);
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
      {"doorbell net --stream tcp --payload 1MiB --count 200", "TCP records over the loopback interface."},
      {"doorbell net --stream udp --payload 8000 --target-gbps 1 --duration 0.5 --repeats 1",
       "UDP datagrams at one gigabit a second, evenly paced."},
      {.command = "doorbell net --fault drop=0.001,corrupt=0.001 --count 20000",
       .text = "Prove that loss and damage are found: exit code 2 and a count for each class.",
       .code = 2},
      {.command = "doorbell net --stream udp --link veth --mode no-drop",
       .text = "The highest rate between two network namespaces at which nothing is lost.",
       .needs = Needs::device},
      {.command = "doorbell net --listen 18517",
       .text = "The receiving end of a run between two machines.",
       .needs = Needs::other_machine},
      {.command = "doorbell net --stream udp --connect 192.0.2.2 --target-gbps 10 --duration 2",
       .text = "Its sender, which says what is done and prints the result of both.",
       .needs = Needs::other_machine},
      {.command = "doorbell net --link veth --engine af_packet --queues 2x2 --duration 2",
       .text = "Raw frames through AF_PACKET, two queues on each side.",
       .needs = Needs::device},
  };
  c.run = run;
  c.listening = listening_options();
  c.check = [](const Options& o) {
    if (o.has("listen")) {
      (void)serve_options(o);
    } else {
      const net::BenchOptions b = bench_options(o);
      net::check(b);
      if (o.has("beside")) net::check_others(b, others_of(o));
    }
  };
  return c;
}

}  // namespace doorbell::cli
