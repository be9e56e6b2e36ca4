// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <filesystem>

#include "cli/device_engine.hpp"
#include "cli/run_bench.hpp"
#include "cli/run_options.hpp"
#include "cli/texts.hpp"
#include "measure/settings.hpp"
#include "nvme/backends.hpp"
#include "nvme/cli/parts.hpp"
#include "nvme/in_turns.hpp"
#include "nvme/model/spec.hpp"
#include "nvme/qemu/config.hpp"
#include "nvme/settings.hpp"

namespace doorbell::cli {

namespace {

constexpr u64 kDefaultIos = 10'000;

/// Of another program's word that asks for what is always so here.
std::vector<options::Assignment> nothing(const std::string&) {
  return {};
}

void add_nvme_options(OptionTable& t) {
  t.group("Device")
      .add({.name = nvme::setting::controller.option(),
            .aliases = {"device", "filename"},
            .metavar = "SPEC",
            .default_text = "model",
            .offers = controller_words,
            .help =
                "what is driven: model[:KEY=VALUE,...], qemu[:KEY=VALUE,...] (keys above), a PCI address or "
                "/dev/nvmeN bound to vfio-pci, or file:PATH or just PATH through the kernel",
            .bare = true,
            .brief = "model, qemu, a PCI address, or a path"})
      .add({.name = "namespace",
            .default_text = "1",
            .min = 1,
            .max = 0xfffffffeu,
            .help = "the namespace's number",
            .into = &nvme::BenchOptions::nsid})
      .add(device_engine_option())
      .add({.name = nvme::setting::allow_write.option(),
            .help = "let writes destroy what a real device, or a media file of somebody else, holds",
            .into = &nvme::BenchOptions::allow_write})
      .add({.name = nvme::setting::memory_mode.option(),
            .default_text = "0",
            .min = 0,
            .max = 15,
            .help =
                "what lies in GPU memory, a sum of bits: 1 submission queues, 2 completion queues, 8 data; 4 "
                "(doorbells) does not exist",
            .into = &nvme::BenchOptions::memory_mode})
      .add({.name = "host-memory",
            .default_text = "pageable",
            .choices = {"pageable", "pinned", "huge-2m", "huge-1g"},
            .help = "what data in host memory lies in; huge pages come from the kernel's pool",
            .into = &nvme::BenchOptions::host_memory})
      .add({.name = "doorbells",
            .default_text = "register",
            .choices = {"register", "shadow"},
            .help = "ring registers, or shadow doorbells in memory (Doorbell Buffer Config)",
            .into = {"shadow", &nvme::BenchOptions::shadow_doorbells}})
      .group("Kernel path")
      .add({.name = nvme::setting::engine.option(),
            .default_text = "io_uring",
            .choices = {"io_uring", "sync"},
            .help = "how file:PATH is driven: an io_uring a queue, or pread and pwrite",
            .into = {"sync", &nvme::FileOptions::sync}})
      .add({.name = nvme::setting::direct.option(),
            .default_text = "on",
            .choices = {"on", "off"},
            .help = "open file:PATH for direct I/O (O_DIRECT), past the page cache",
            .into = {"on", &nvme::FileOptions::direct}})
      .add({.name = nvme::setting::fixed_buffers.option(),
            .default_text = "on",
            .choices = {"on", "off"},
            .help = "register the data buffers with the ring",
            .into = {"on", &nvme::FileOptions::fixed_buffers},
            .only_if = {"backend", {"io_uring"}}})
      .add({.name = nvme::setting::fixed_files.option(),
            .default_text = "on",
            .choices = {"on", "off"},
            .help = "register the file with the ring",
            .into = {"on", &nvme::FileOptions::fixed_files},
            .only_if = {"backend", {"io_uring"}}})
      .add({.name = nvme::setting::sqpoll.option(),
            .help = "a kernel thread takes submissions (IORING_SETUP_SQPOLL)",
            .into = &nvme::FileOptions::sqpoll,
            .only_if = {"backend", {"io_uring"}}})
      .add({.name = nvme::setting::iopoll.option(),
            .help = "poll the device for completions (IORING_SETUP_IOPOLL); it needs poll queues",
            .into = &nvme::FileOptions::iopoll,
            .only_if = {"backend", {"io_uring"}}})
      .add(
          {.name = nvme::setting::create_bytes.option(),
           .kind = Kind::size,
           .metavar = "SIZE",
           .min = 4096,
           .max = u64{1} << 50,
           .help =
               "make file:PATH this large when it does not exist; before a run that only reads, it is filled with "
               "test data",
           .brief = "make a file that is not there so large",
           .into = &nvme::FileOptions::create_bytes})
      .group("Work")
      .add({.name = nvme::setting::op.option(),
            .means = {"read", "write", "mode"},
            .default_text = "both",
            .choices = {"both", "read", "write"},
            .help = "read, write, or write and then, after a barrier, read",
            .brief = "what is done: both, read or write"})
      .add(
          {.name = nvme::setting::write_io.option(),
           .means = {"writes"},
           .metavar = "N",
           .max = u64{1} << 48,
           .help =
               "I/Os to write; after a barrier the reads follow (neither count given: 10000 each, reads only "
               "where writing needs --allow-write)",
           .into = &nvme::BenchOptions::write_io})
      .add({.name = nvme::setting::read_io.option(),
            .means = {"reads", "number-ios"},
            .metavar = "N",
            .max = u64{1} << 48,
            .help = "I/Os to read and verify",
            .into = &nvme::BenchOptions::read_io})
      .add({.name = nvme::setting::lbas_per_io.option(),
            .default_text = "1",
            .min = 1,
            .max = 65536,
            .help = "logical blocks an I/O",
            .into = &nvme::BenchOptions::lbas_per_io})
      .add({.name = nvme::setting::io_bytes.option(),
            .aliases = {"bs", "block-size"},
            .kind = Kind::size,
            .metavar = "BYTES",
            .min = 512,
            .max = u64{65536} * 4096,
            .help = "bytes an I/O, a multiple of the logical block, in place of --lbas-per-io",
            .brief = "bytes of one I/O",
            .into = &nvme::BenchOptions::io_bytes})
      .add({.name = nvme::setting::base_lba.option(),
            .default_text = "0",
            .help = "the first logical block that is touched",
            .into = &nvme::BenchOptions::base_lba})
      .add({.name = "access-pattern",
            .default_text = "sequential",
            .choices = {"sequential", "random"},
            .help = "order of addresses; each queue visits every position of its share before any twice, and "
                    "the shares make up the range: the namespace, or, in sequential order by count, as many "
                    "positions as I/Os",
            .brief = "sequential, random",
            .into = {"random", &nvme::BenchOptions::random}})
      .add(infinite_option(&nvme::BenchOptions::infinite))
      .add({.name = "rw",
            .choices = {"read", "write", "randread", "randwrite"},
            .help = "as fio has it, for --op and --access-pattern",
            .stands_for =
                [](const std::string& rw) {
                  const bool random = rw.starts_with("rand");
                  return std::vector<options::Assignment>{
                      {"op", random ? rw.substr(4) : rw},
                      {"access-pattern", random ? "random" : "sequential"}};
                }})
      .add({.name = "time-based",
            .kind = Kind::flag,
            .help = "fio's word, with --runtime: runs by time always use all of it",
            .stands_for = nothing})
      .add({.name = "group-reporting",
            .kind = Kind::flag,
            .help = "fio's word: the figures are always those of all queues together",
            .stands_for = nothing})
      .add({.name = "ioengine",
            .choices = {"io_uring", "sync", "psync"},
            .help = "as fio has it, for --backend",
            .stands_for =
                [](const std::string& engine) {
                  return std::vector<options::Assignment>{
                      {nvme::setting::engine.option(), engine == "psync" ? "sync" : engine}};
                }})
      .group("Queues")
      .add({.name = nvme::setting::num_queues.option(),
            .aliases = {"numjobs"},
            .means = {"jobs", "queues", "parallel"},
            .default_text = "1",
            .min = 1,
            .max = 64,
            .help = "I/O queue pairs",
            .brief = "I/O queue pairs",
            .into = &nvme::BenchOptions::num_queues})
      .add({.name = nvme::setting::queue_length.option(),
            .default_text = "1024",
            .min = 2,
            .max = 65536,
            .help = "entries of each queue; by default fewer where the controller takes fewer",
            .into = &nvme::BenchOptions::queue_length})
      .add({.name = nvme::setting::batch.option(),
            .default_text = "1",
            .min = 1,
            .max = 1023,
            .help = "entries posted for one doorbell",
            .brief = "entries posted for one doorbell",
            .into = &nvme::BenchOptions::batch})
      .add({.name = nvme::setting::in_flight.option(),
            .aliases = {"iodepth", "queue-depth"},
            .metavar = "N",
            .min = 1,
            .max = 1023,
            .help = "commands in flight on one queue (not given: the batch size for batches of 1, else four "
                    "batches)",
            .brief = "commands in flight on one queue",
            .into = &nvme::BenchOptions::in_flight})
      .add({.name = "threads",
            .default_text = "0",
            .min = 0,
            .max = 64,
            .help = "CPU initiator threads, among which queues are shared; 0: half the cores",
            .into = &nvme::BenchOptions::threads})
      .group("Comparison")
      .add({.name = measure::setting::others.option(),
            .metavar = "WAY[,WAY...]",
            .help =
                "measure other ways to do the same work, in turns, and print the ratios: cpu, gpu (the same "
                "controller), io_uring, sync, fio, fio:psync, fio:libaio, fio:io_uring, fio:io_uring-poll; "
                "it takes --duration"})
      .add({.name = nvme::setting::others_file.option(),
            .metavar = "PATH",
            .help = "the file or block device for io_uring, sync and fio (not given: that of file:PATH)",
            .only_if = {"beside"}})
      .group("Timing")
      .add({.name = "less-timing",
            .help = "time the run as a whole and not each I/O: no latency figures, and no clock read per I/O",
            .into = &nvme::BenchOptions::less_timing})
      .add({.name = "substep-timing",
            .help = "time the parts of an I/O: build, enqueue, SQ doorbell, CQ poll, CQ doorbell",
            .into = &nvme::BenchOptions::substeps})
      .group("Verification")
      .add({.name = "lfsr-seed",
            .metavar = "N",
            .help = "seed of the data pattern (not given: --seed)",
            .into = &nvme::BenchOptions::lfsr_seed});
}

/// "file:PATH", a bare path (with a '/', or of what is there) that is no back end's, and the options that
/// only these have.
void read_file_options(const Options& o, nvme::BenchOptions* b) {
  constexpr std::string_view kFile = "file:";
  std::error_code error;
  if (!b->controller.starts_with(kFile) &&
      find_backend(nvme::backends(), nvme::DeviceRequest{.spec = b->controller}) == nullptr &&
      (b->controller.find('/') != std::string::npos || o.given("file-size") ||
       std::filesystem::exists(b->controller, error)))
    b->controller.insert(0, kFile);
  if (b->controller.starts_with(kFile)) {
    b->file = b->controller.substr(kFile.size());
    if (b->file.empty()) throw Error("--controller file:", "the path is missing", "write file:PATH");
  }
  for (const char* only :
       {"backend", "direct", "fixed-buffers", "fixed-files", "sqpoll", "iopoll", "file-size"})
    if (o.given(only) && b->file.empty())
      throw Error(fmt::format("--{}", only),
                  fmt::format("{} is not driven through the kernel", b->controller),
                  "it goes with --controller file:PATH");
  for (const char* other : {"namespace", "doorbells", "threads", "memory-mode"})
    if (o.given(other) && !b->file.empty())
      throw Error(fmt::format("--{}", other), "a file has no such thing: the kernel drives it",
                  "it goes with a controller");
  nvme::FileOptions& f = b->file_options;
  o.read_into(f);
  if (f.iopoll && !f.direct)
    throw Error("--iopoll", "it polls the device, which --direct off does not reach");
}

std::vector<std::string> ways_of(const Options& o) {
  return split(o.text("beside"));
}

std::string beside_file_of(const Options& o) {
  return o.has("beside-file") ? o.text("beside-file") : "";
}

/// --op and the counts. Writing that was asked for by name must be permitted; of a default it is left out
/// where it is not.
void read_work(const Options& o, nvme::BenchOptions* b) {
  b->default_counts = !o.given("write-io") && !o.given("read-io");
  if (b->default_counts) b->read_io = b->write_io = kDefaultIos;
  if (o.given("lbas-per-io") && o.given("size"))
    throw Error("--size", "it contradicts --lbas-per-io", "give one of the two");
  if (!o.given("op")) return;
  const std::string& op = o.text("op");
  u64* const counts[] = {&b->write_io, &b->read_io};
  const char* const kinds[] = {"write", "read"};
  for (int i : {0, 1}) {
    const std::string option = fmt::format("{}-io", kinds[i]);
    const bool done = op == "both" || op == kinds[i];
    if (!done && o.given(option) && *counts[i] > 0)
      throw Error("--op " + op, fmt::format("it contradicts --{}", option), "give one of the two");
    if (done && o.given(option) && *counts[i] == 0)
      throw Error("--op " + op, fmt::format("it contradicts --{} 0", option), "give one of the two");
    if (done && !o.given(option)) *counts[i] = kDefaultIos;
    if (!done) *counts[i] = 0;
  }
  b->default_counts = false;
}

nvme::BenchOptions bench_options(const Options& o) {
  nvme::BenchOptions b;
  static_cast<RunOptions&>(b) = run_options(o);
  o.read_into(b);
  b.controller = spec_with_engine(o, "controller");
  b.default_queue_length = !o.given(nvme::setting::queue_length.option());
  if ((b.memory_mode & 4) != 0)
    throw Error("--memory-mode",
                fmt::format("{} has bit 4 set: doorbells are the device's, they cannot lie in GPU memory",
                            b.memory_mode),
                "use a sum of 1, 2 and 8");
  read_file_options(o, &b);
  read_work(o, &b);
  if (b.infinite && b.duration_s > 0)
    throw Error("--infinite", "it contradicts --duration", "give one of the two");
  if (b.less_timing && b.substeps)
    throw Error("--less-timing", "it contradicts --substep-timing", "give one of the two");
  if (!o.has("lfsr-seed")) b.lfsr_seed = b.seed;
  if (o.has("beside")) nvme::check_in_turns(b, ways_of(o), beside_file_of(o));
  const nvme::Backend* const back_end = b.file.empty() ? &nvme::backend_of(b.controller) : nullptr;
  check_faults(b, b.controller, back_end != nullptr && back_end->kind == "model", "--controller model");
  if (back_end != nullptr && back_end->check) back_end->check({.spec = b.controller});
  nvme::check(b);
  return b;
}

/// The files that a run reads or writes itself.
std::vector<std::string> files_of(const nvme::BenchOptions& b, const Options& o) {
  std::vector<std::string> files = {b.file};
  if (o.has("beside-file")) files.push_back(o.text("beside-file"));
  if (b.file.empty()) {
    const std::string kind = nvme::backend_of(b.controller).name;
    if (kind == "model")
      files.push_back(nvme::parse_model_spec(b.controller, nvme::setting::controller).path);
    if (kind == "qemu") files.push_back(nvme::parse_qemu_spec(b.controller, nvme::setting::controller).drive);
  }
  return files;
}

/// A file that only reads would find new, and so empty: holes, which no device reads.
bool fills_first(const nvme::BenchOptions& b) {
  std::error_code error;
  return !b.file.empty() && b.file_options.create_bytes > 0 && b.write_io == 0 && b.read_io > 0 &&
         !std::filesystem::exists(std::filesystem::symlink_status(b.file, error));
}

/// Makes the file and writes all of it, so that reads can be verified.
nvme::BenchResult fill(const nvme::BenchOptions& run, const measure::RunWatch& watch) {
  nvme::BenchOptions b = run;
  b.io_bytes = 4096;
  b.lbas_per_io = 1;
  while (b.io_bytes < 1u << 20 && run.file_options.create_bytes % (2 * b.io_bytes) == 0) b.io_bytes *= 2;
  b.write_io = run.file_options.create_bytes / b.io_bytes;
  b.read_io = 0;
  b.default_counts = b.random = b.infinite = b.substeps = false;
  b.duration_s = b.warmup_s = 0;
  b.repeats = b.num_queues = b.batch = 1;
  b.in_flight = b.file_options.sync ? 1 : 8;
  b.late_after_s = b.timeout_s;
  const measure::RunWatch filling = {.stop = watch.stop, .progress = [&](double share, const std::string&) {
                                       if (watch.progress) watch.progress(share, "filling " + run.file);
                                     }};
  return nvme::run_bench(b, filling);
}

/// A note on a file that was there already, of another size than is asked for; or "".
std::string other_size(const nvme::BenchOptions& b) {
  std::error_code error;
  const u64 wanted = b.file_options.create_bytes;
  if (b.file.empty() || wanted == 0 || !std::filesystem::is_regular_file(b.file, error)) return {};
  const u64 bytes = std::filesystem::file_size(b.file, error);
  if (error || bytes == wanted) return {};
  return fmt::format("--file-size makes new files only: {} is there, and has {} bytes", b.file, bytes);
}

RunPlan plan_of(const nvme::BenchOptions& b, std::size_t ways) {
  RunPlan plan = {.ways = static_cast<u32>(ways)};
  if (b.infinite) plan.cells = 0;
  if (b.infinite || b.duration_s > 0) return plan;
  // Of the defaults writes are left out where they are not permitted.
  if (b.default_counts) plan.work = fmt::format("{} I/Os of each kind", b.read_io);
  else if (b.write_io > 0) plan.work = fmt::format("{} writes", b.write_io);
  if (!b.default_counts && b.read_io > 0)
    plan.work += fmt::format("{}{} reads", plan.work.empty() ? "" : " and ", b.read_io);
  return plan;
}

/// One result of all ways.
measure::BenchResult together(std::vector<nvme::BenchResult> results, const nvme::BenchOptions& bench) {
  measure::BenchResult all;
  for (nvme::BenchResult& r : results) {
    report::Cell& cell = r.cell();
    cell.options = {{"write_io", cell.cell["write_io"]},
                    {"read_io", bench.read_io},
                    {"size_bytes", cell.cell["io_bytes"]},
                    {"in_flight", cell.cell["in_flight"]},
                    {"lfsr_seed", bench.lfsr_seed}};
    if (bench.io_bytes != 0) cell.options["lbas_per_io"] = nullptr;
    const bool writes = cell.cell["write_io"] != 0;
    cell.options["op"] = !writes ? "read" : bench.read_io == 0 ? "write" : "both";
    all.append(std::move(r));
  }
  return all;
}

int run(const Options& options, Context& context) {
  const nvme::BenchOptions bench = bench_options(options);
  const std::vector<std::string> ways = options.has("beside") ? ways_of(options) : std::vector<std::string>{};
  return run_and_report(
      options, context, bench, files_of(bench, options),
      [&](const measure::RunWatch& watch) {
        if (fills_first(bench)) {
          nvme::BenchResult filled = fill(bench, watch);
          if (filled.exit_code() != 0 || filled.stop_reason != StopReason::done)
            return together({std::move(filled)}, bench);
        }
        const std::string note = other_size(bench);
        measure::BenchResult r =
            options.has("beside")
                ? together(nvme::run_in_turns(bench, watch, ways, beside_file_of(options)), bench)
                : together({nvme::run_bench(bench, watch)}, bench);
        if (!note.empty()) r.warnings.push_back(note);
        return r;
      },
      nullptr, plan_of(bench, ways.size() + 1));
}

}  // namespace

Command nvme_command() {
  Command c;
  c.name = "nvme";
  c.means = {"file", "disk", "fio"};
  c.summary = "read and write an NVMe namespace through queues of your own";
  c.description = {
      "Creates I/O queue pairs on an NVMe controller, writes, waits, reads back and verifies every block, "
      "and reports latency, rate and cost. The commands are built, posted and polled by CPU threads or, "
      "with --initiator gpu, by a GPU kernel that rings the doorbells itself.",
      "The software controller 'model' needs no hardware: it reads the same queue memory, decodes the same "
      "commands and answers with the same completions as a device.",
      key_text("The model's keys:", nvme::model_keys()),
      "The controller 'qemu' is QEMU's emulated one, in a process of its own and without a guest: an "
      "implementation by others. A CPU thread carries the doorbells to it.",
      key_text("QEMU's keys:", nvme::qemu_keys()),
      "A PCI address (0000:01:00.0) or /dev/nvmeN is a controller of this machine, driven through VFIO: see "
      "doorbell bind. file:PATH is a file or block device, driven through the kernel as a baseline.",
      "A read of blocks that are not known to have been written is counted as unverifiable, never as failed; blocks that an "
      "earlier run wrote are verified by what they say of themselves.",
  };
  add_nvme_options(c.options);
  add_common_options(c.options);
  add_check_options(c.options);
  c.examples = {
      {"doorbell nvme --write-io 100k --read-io 100k --num-queues 4 --in-flight 32",
       "Write 100000 blocks on the model, read them back, verify each."},
      {"doorbell nvme --op read --duration 5 --size 4K --access-pattern random",
       "Random reads of 4 KiB on the model for five seconds, seven times."},
      {.command = "doorbell nvme /tmp/data --file-size 256M --bs 4k --rw randread --time 2",
       .text = "A file through the kernel (io_uring, direct I/O), in fio's words.",
       .needs = Needs::file_system},
      {"doorbell nvme --controller model:media=null --read-io 5M --batch-size 64 --less-timing",
       "How fast the queues themselves are: no data moves."},
      {.command = "doorbell nvme --initiator gpu --memory-mode 11 --num-queues 16 --batch-size 64",
       .text = "Queues and data in GPU memory, driven by a GPU kernel.",
       .needs = Needs::gpu},
      {.command = "doorbell nvme --initiator gpu --device-engine gpu --memory-mode 3 --num-queues 64",
       .text = "The same with the device on the GPU too: what queues in GPU memory carry.",
       .needs = Needs::gpu},
      {.command = "doorbell nvme --fault corrupt=0.001,drop=0.0001 --timeout 2",
       .text = "Prove that damage is found: exit code 2 and a count for each class.",
       .code = 2},
      {.command = "doorbell nvme --controller qemu --num-queues 4 --batch-size 16",
       .text = "The same against a controller that is not of doorbell.",
       .needs = Needs::program},
      {.command = "doorbell nvme 0000:01:00.0 --op read --duration 5",
       .text = "Read a drive of this machine (see doorbell bind); nothing is written.",
       .needs = Needs::device},
      {.command = "doorbell nvme /tmp/data --op read --duration 2 --beside fio,sync",
       .text = "io_uring, fio's io_uring and pread in turns, with their ratios.",
       .needs = Needs::program},
      {"doorbell nvme --op read --duration 5 --substep-timing",
       "Five seconds of single reads, seven times, with the time of each step."},
  };
  c.check = [](const Options& o) { (void)bench_options(o); };
  c.run = run;
  return c;
}

}  // namespace doorbell::cli
