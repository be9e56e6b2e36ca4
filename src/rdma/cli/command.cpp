// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "cli/device_engine.hpp"
#include "cli/offers.hpp"
#include "cli/run_options.hpp"
#include "cli/texts.hpp"
#include "exchange/settings.hpp"
#include "rdma/backends.hpp"
#include "rdma/bench.hpp"
#include "rdma/cli/parts.hpp"
#include "rdma/model/spec.hpp"
#include "rdma/serve.hpp"
#include "rdma/settings.hpp"
#include "rdma/swap.hpp"
#include "rma/cli/options.hpp"
#include "rma/settings.hpp"

namespace doorbell::cli {

namespace {

using rdma::Op;

u32 mtu_of(const std::string& text) {
  return text == "auto" ? 0 : static_cast<u32>(std::stoul(text));
}

void add_rdma_options(OptionTable& t) {
  t.group("Device")
      .add({.name = rdma::setting::provider.option(),
            .default_text = "mlx5",
            .choices = rdma::provider_names(),
            .help =
                "whose queues are driven: a vendor's, written and rung by the initiator itself, or whatever "
                "libibverbs posts to",
            .brief = "whose queue format, or verbs",
            .into = {&rdma::BenchOptions::provider, &rdma::ServeOptions::provider}})
      .add({.name = rdma::setting::device.option(),
            .aliases = {"ib-dev"},
            .letter = 'd',
            .metavar = "SPEC",
            .default_text = "model",
            .offers = [] { return device_words("rdma", backend_words(rdma::backends())); },
            .help = "model[:KEY=VALUE,...] (keys above), or an RDMA device's name as ibv_devices lists it",
            .bare = true,
            .brief = "model, or a device that ibv_devices lists",
            .into = &rdma::ServeOptions::device})
      .add(device_engine_option())
      .add({.name = "connection",
            .default_text = "self",
            .choices = {"self", "pair"},
            .help = "connect each queue pair to itself, or to a second one of this process",
            .into = &rdma::BenchOptions::ends})
      .group("Work")
      .add({.name = rma::setting::op.option(),
            .default_text = "write",
            .choices = rdma::op_names(),
            .help = "the operation",
            .brief = "write, read, send, fetch-add, and others",
            .into = &rdma::BenchOptions::op})
      .add({.name = "write-imm", .kind = Kind::flag, .help = "short for --op write-imm"});
  add_size_option(t, "payload bytes", 0, "1KiB; atomics have 8");
  t.group("Queues")
      .add({.name = rdma::setting::queues.option(),
            .aliases = {"qp", "parallel"},
            .means = {"q"},
            .letter = 'P',
            .default_text = "1",
            .min = 1,
            .max = 256,
            .help = "queue pairs that the rate part drives at the same time",
            .brief = "queue pairs that work at the same time",
            .into = &rdma::BenchOptions::queues})
      .add(
          {.name = rma::setting::signal_every.option(),
           .metavar = "N",
           .min = 1,
           .max = rdma::kMaxWindow,
           .help =
               "one request in N asks for a completion, and the last of each batch (not given: only that one)",
           .into = &rdma::BenchOptions::signal_every})
      .add({.name = rma::setting::inline_below.option(),
            .aliases = {"inline-size"},
            .metavar = "BYTES",
            .default_text = "0",
            .max = 4096,
            .help = "payloads of up to so many bytes travel in the WQE",
            .into = &rdma::BenchOptions::inline_below})
      .group("Connection")
      .add(
          {.name = exchange::setting::listen.option(),
           .metavar = "[ADDR:]PORT",
           .help =
               "be the other end of a run: wait for a client there, take over its options, and say at the end "
               "what arrived; --provider and --device belong here, everything else to the client",
           .into = {[](const std::string& at) { return exchange::parse_listen(at, "--listen"); },
                    &rdma::ServeOptions::at}})
      .add(server_option(rdma::kRunKind.default_port))
      .add(listen_wait_option(&rdma::ServeOptions::wait_s))
      .add({.name = exchange::setting::connect.option(),
            .aliases = {"client"},
            .letter = 'c',
            .metavar = "HOST[:PORT]",
            .help =
                "the other end of every connection is the doorbell that listens there (port 18515 if none is "
                "given)",
            .brief = "the other end is the doorbell that listens there",
            .into = {[](const std::string& to) {
                       return exchange::parse_connect(to, rdma::kRunKind.default_port, "--connect");
                     },
                     &rdma::BenchOptions::other_end}})
      .add({.name = "path-mtu",
            .aliases = {"mtu"},
            .default_text = "auto",
            .choices = {"auto", "256", "512", "1024", "2048", "4096"},
            .help = "bytes a packet; auto: what both ends' ports have",
            .into = {mtu_of, &rdma::ConnectionOptions::mtu}})
      .add({.name = "ack-timeout",
            .default_text = "14",
            .max = 31,
            .help = "how long an acknowledgement may take, as the exponent of 4.096 us * 2^N; 0: for ever",
            .into = &rdma::ConnectionOptions::timeout})
      .add({.name = "retry-count",
            .default_text = "7",
            .max = 7,
            .help = "how often a request without acknowledgement is sent again",
            .into = &rdma::ConnectionOptions::retry_count})
      .add({.name = "rnr-retry",
            .default_text = "7",
            .max = 7,
            .help = "how often a request is sent again when no receive was posted; 7: for ever",
            .into = &rdma::ConnectionOptions::rnr_retry});
}

rdma::BenchOptions bench_options(const Options& o) {
  require_no_listening(o);
  rdma::BenchOptions b;
  static_cast<rma::BenchOptions&>(b) = rma_options(o, b);
  o.read_into(b);
  o.read_into(b.connection);
  b.device = spec_with_engine(o, "device");
  if (o.flag("write-imm")) {
    if (o.given("op") && b.op != Op::write_imm && b.op != Op::write)
      throw Error("--write-imm", fmt::format("it contradicts --op {}", o.text("op")), "give one of the two");
    b.op = Op::write_imm;
  }
  if (!o.has("size") && rdma::is_atomic(b.op)) b.sizes = {rdma::kAtomicBytes};
  if (o.has("connect")) {
    if (o.given("connection"))
      throw Error("--connection", "with --connect the other end is in another process",
                  "give one of the two");
    b.ends = rdma::Ends::remote;
  }
  const rdma::Backend& back_end = rdma::backend_of(b.provider, b.device);
  if (b.ends == rdma::Ends::remote && back_end.kind == "model")
    throw Error("--connect", "a model is a device of one process: it reaches no other process",
                "give --provider verbs and the name of an RDMA device");
  check_faults(b, b.device, back_end.kind == "model", "--device model");
  if (back_end.check) back_end.check({.spec = b.device, .provider = b.provider});
  rdma::check(b);
  return b;
}

/// The options that --listen uses; the client brings all others.
std::vector<std::string> listening_options(const OptionTable& t) {
  std::vector<std::string> names = t.names_of<rdma::ServeOptions>();
  names.insert(names.end(), {"timeout"});
  return names;
}

rdma::ServeOptions serve_options(const Options& o) {
  require_listening(o, listening_options(o.table()));
  rdma::ServeOptions s;
  o.read_into(s);
  s.timeout_s = o.seconds("timeout");
  if (rdma::backend_of(s.provider, s.device).kind == "model")
    throw Error("--listen", "a model is a device of one process: no other process can reach it",
                "give --provider verbs and the name of an RDMA device");
  return s;
}

int listen(const Options& options, Context& context) {
  const rdma::ServeOptions serve = serve_options(options);
  const bool quiet = options.flag("quiet") || context.host != nullptr;
  const measure::RunWatch watch = {.stop = &context.stop, .progress = [&](double, const std::string& what) {
                                     if (!quiet) fmt::print(stderr, "{}\n", what);
                                   }};
  const rdma::ServeResult r = rdma::serve(serve, watch);
  if (!quiet)
    fmt::print("served {} cells, {} operations, {} checked here, {} errors\n", r.cells, r.operations,
               r.checked, r.errors);
  return r.errors == 0 ? 0 : static_cast<int>(ExitCode::data);
}

int run(const Options& options, Context& context) {
  if (options.has("listen")) return listen(options, context);
  return run_rma(rdma::bench_of(bench_options(options)), options, context);
}

}  // namespace

Command rdma_command() {
  Command c;
  c.name = "rdma";
  c.means = {"ib", "verbs", "perftest", "ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_send_bw"};
  c.summary = "RDMA operations through a NIC's queues, by a CPU thread or a GPU kernel";
  c.description = {
      "Registers buffers, connects queue pairs, and carries out one kind of operation for each payload size: "
      "first single operations, each timed from post to completion, then a window of them at full rate. Every "
      "payload is checked where it arrives, and every completion's status.",
      "With a vendor's name as provider, the work requests are written in that vendor's format and its doorbells "
      "are rung by the CPU thread or, with --initiator gpu, by the GPU kernel itself. The software NIC 'model' "
      "reads these queues, checks keys, ranges and access as a NIC does, and moves the data. With --provider "
      "verbs the operations go through libibverbs to any RDMA device of this machine, soft-RoCE included.",
      key_text("The model's keys:", rdma::model_keys()),
      "One cell of the result is one size and one part, latency or rate. A latency cell also has the figures in the "
      "form in which vendors publish them: minimum, mean, population standard deviation and maximum over all "
      "operations, and throughput and rate as they follow from each operation's latency.",
      "--measure ping-pong is what ib_write_lat and ib_send_lat of perftest measure: each end answers the message of "
      "the other, and half the time there and back is the latency. An end sees a write by its last byte in memory, a "
      "send by its receive completion; it answers first and checks the data then. One operation is a message and its "
      "answer. On a model the queue pairs are two; a limit of its link delays completions, not the data of writes.",
  };
  add_rdma_options(c.options);
  add_rma_options(c.options, "queue pair", true);
  add_common_options(c.options);
  c.examples = {
      {"doorbell rdma --provider bnxt --size 256:1M",
       "RDMA WRITE on the model of a Broadcom NIC, thirteen sizes, verified."},
      {"doorbell rdma --provider ionic --op write-imm --size 0,64,4K",
       "WRITE with immediate, a receive for each."},
      {"doorbell rdma --op fetch-add --measure latency --iterations 10000",
       "Ten thousand atomics one after the other, each old value checked."},
      {.command = "doorbell rdma --initiator gpu --queue-mem vram --data-mem vram --size 4KiB --num-qps 8",
       .text = "A GPU kernel posts and rings; queues and data in GPU memory.",
       .needs = Needs::gpu},
      {.command = "doorbell rdma --initiator gpu --device-engine gpu --queue-mem vram --num-qps 64 --size 64",
       .text = "The NIC is a kernel too: what queues in GPU memory carry, without a CPU in between.",
       .needs = Needs::gpu},
      {"doorbell rdma --size 64 --inline 64 --measure rate --duration 2",
       "How many small writes a second with the payload in the WQE."},
      {.command = "doorbell rdma --fault corrupt=0.001,drop=0.0001 --timeout 2",
       .text = "Prove that damage is found: exit code 2 and a count for each class.",
       .code = 2},
      {.command = "doorbell rdma rxe0 --provider verbs --size 64K",
       .text = "Through libibverbs, on soft-RoCE or a NIC of this machine.",
       .needs = Needs::device},
      {.command = "doorbell rdma --provider verbs --device mlx5_0 --connect 192.0.2.2 --measure ping-pong",
       .text = "One-way latency between two machines, as half of a round trip.",
       .needs = Needs::other_machine},
      {.command = "doorbell rdma --provider verbs --device mlx5_0 --listen 18515",
       .text = "The other end of a run between two machines.",
       .needs = Needs::other_machine},
      {.command = "doorbell rdma --provider verbs --device mlx5_0 --connect 192.0.2.2 --size 64:1MiB",
       .text = "Its client, which says what is done and prints the result of both.",
       .needs = Needs::other_machine},
  };
  c.run = run;
  c.listening = listening_options(c.options);
  c.check = [](const Options& o) {
    if (o.has("listen")) (void)serve_options(o);
    else (void)bench_options(o);
  };
  return c;
}

}  // namespace doorbell::cli
