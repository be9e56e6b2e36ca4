// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/bench.hpp"

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <doorbell/nvme/status.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>
#include <thread>

#include "measure/clock.hpp"
#include "measure/statistics.hpp"
#include "nvme/backends.hpp"
#include "nvme/null_device.hpp"
#include "nvme/queue_set.hpp"
#include "nvme/runner.hpp"
#include "nvme/tally.hpp"

namespace doorbell::nvme {

namespace {

constexpr u32 kModeSq = 1, kModeCq = 2, kModeData = 8;
constexpr u64 kUnwrittenLimit = u64{1} << 27;  // bits a queue: 16 MiB
constexpr double kCheckIntervalS = 100e-6;

/// The run's fixed decisions, derived from the options and what the controller says of itself.
struct Setup {
  NamespaceInfo ns;
  u32 window = 1;
  u32 threads = 1;
  bool verify = false;
  bool by_time = false;
  u64 write_io = 0;
  u64 read_io = 0;
  u64 io_bytes = 512;
  QueueShape shape;
};

[[noreturn]] void refuse(const char* option, const std::string& why, const std::string& hint = {}) {
  throw Error(option, why, hint);
}

u32 window_for(const BenchOptions& o, const ControllerInfo& info) {
  const u32 most =
      std::min({kMaxWindow, o.queue_length - 1, info.max_commands != 0 ? info.max_commands : kMaxWindow});
  if (o.in_flight > most)
    refuse("--in-flight",
           fmt::format("{} is not in 1..{} (queue length, MAXCMD, cid bits)", o.in_flight, most));
  if (o.batch > most)
    refuse("--batch-size", fmt::format("{} is not in 1..{} (queue length, MAXCMD, cid bits)", o.batch, most),
           "give a longer --queue-length");
  if (o.in_flight != 0 && o.in_flight < o.batch)
    refuse("--in-flight", fmt::format("{} is less than --batch-size {}", o.in_flight, o.batch));
  // Batches in flight behind the one being built keep the device busy while this side works.
  return o.in_flight != 0 ? o.in_flight : std::min(o.batch * (o.batch == 1 ? 1 : 4), most);
}

Setup plan(const BenchOptions& o, Controller& controller, u32 threads) {
  Setup s;
  s.threads = threads;
  const ControllerInfo& info = controller.info();
  if (o.queue_length < 2 || o.queue_length > info.max_queue_entries)
    refuse("--queue-length",
           fmt::format("{} is not in 2..{} (CAP.MQES)", o.queue_length, info.max_queue_entries));
  s.window = window_for(o, info);
  s.ns = controller.identify_namespace(o.nsid);
  s.io_bytes = u64{o.lbas_per_io} * s.ns.lba_bytes;
  if (info.max_transfer_bytes != 0 && s.io_bytes > info.max_transfer_bytes)
    refuse("--lbas-per-io", fmt::format("{} blocks of {} bytes pass the largest transfer, {} bytes (MDTS)",
                                        o.lbas_per_io, s.ns.lba_bytes, info.max_transfer_bytes));
  if (o.base_lba >= s.ns.blocks)
    refuse("--base-lba", fmt::format("{} is not in 0..{}", o.base_lba, s.ns.blocks - 1));
  const u64 positions = (s.ns.blocks - o.base_lba) / o.lbas_per_io;
  if (positions < o.num_queues)
    refuse("--num-queues", fmt::format("{} queues need {} I/Os of space; there is space for {}", o.num_queues,
                                       o.num_queues, positions));
  s.by_time = o.infinite || o.duration_s > 0;
  s.write_io = o.write_io;
  s.read_io = o.read_io;
  if (s.write_io > 0 && !controller.device().scratch() && !o.allow_write)
    refuse("--write-io", fmt::format("it overwrites blocks of {}", controller.device().name()),
           "add --allow-write if their contents may be lost");

  const u64 share = positions / o.num_queues;
  const u64 most = (std::max(s.write_io, s.read_io) + o.num_queues - 1) / o.num_queues;
  const bool whole = o.random || (s.by_time && s.write_io == 0);
  s.shape.queues = o.num_queues;
  s.shape.entries = o.queue_length;
  s.shape.window = s.window;
  s.shape.io_bytes = s.io_bytes;
  s.shape.initiator = o.initiator;
  s.shape.span = whole ? share : std::min(share, std::max<u64>(most, 1));
  s.verify = o.verify && controller.device().moves_data();
  if (s.verify && s.write_io > 0 && std::min(s.shape.span, most) <= kUnwrittenLimit)
    s.shape.unwritten_bits = std::min(s.shape.span, most);
  if ((o.memory_mode & kModeSq) != 0) s.shape.sq = Place::gpu;
  if ((o.memory_mode & kModeCq) != 0) s.shape.cq = Place::gpu;
  if ((o.memory_mode & kModeData) != 0) s.shape.data = Place::gpu;
  return s;
}

/// Runs the phases of one bench and keeps what carries over between them.
class Bench {
 public:
  Bench(const BenchOptions& o, const BenchWatch& watch, Controller& controller, const Setup& setup,
        std::shared_ptr<gpu::Gpu> gpu)
      : o_(o), watch_(watch), s_(setup), set_(controller, setup.shape) {
    runner_ = o.initiator == Initiator::gpu ? gpu_runner(std::move(gpu), s_.window, o.num_queues)
                                            : cpu_runner(s_.threads, s_.window, o.num_queues);
    phase_.random = o.random;
    phase_.timed = !o.less_timing;
    phase_.verify = s_.verify;
    phase_.verify_below = o.verify_sample >= 1 ? ~0u : static_cast<u32>(std::ldexp(o.verify_sample, 32));
    phase_.nsid = o.nsid;
    phase_.blocks = o.lbas_per_io;
    phase_.lba_bytes = s_.ns.lba_bytes;
    phase_.base_lba = o.base_lba;
    phase_.batch = o.batch;
    phase_.window = s_.window;
    phase_.seed = o.lfsr_seed;
    phase_.timeout_ticks = runner_->ticks(o.timeout_s);
    phase_.late_ticks = runner_->ticks(o.late_after_s);
    phase_.check_ticks = runner_->ticks(kCheckIntervalS);
    phase_.csts = controller.status_register(o.initiator);
    // Sequences never repeat, also across runs on media that outlive them.
    generation_ = static_cast<u64>(std::time(nullptr)) << 32 | 1;
  }

  /// Writes, then reads back; `seconds` 0: by count, else again and again until they are over.
  RepeatTally repeat(double seconds) {
    RepeatTally t;
    const u64 begin = wall_ns();
    const auto left_s = [&] { return seconds - static_cast<double>(wall_ns() - begin) * 1e-9; };
    do {
      if (s_.write_io > 0) one(IoOpcode::write, seconds > 0 ? left_s() : 0, t.write);
      if (s_.read_io > 0 && going()) one(IoOpcode::read, seconds > 0 ? left_s() : 0, t.read);
    } while (seconds > 0 && left_s() > 0 && going());
    return t;
  }

  /// Deletes the submission queues and takes the completions that nobody waited for.
  void drain(RepeatTally& into) {
    set_.delete_submission_queues();
    IoPhase phase = phase_;
    phase.drain = true;
    for (IoQueue& q : set_.queues()) q.count = 0;
    into.read.add(runner_->run(phase, set_.queues(), false, {}), s_.io_bytes);
  }

  [[nodiscard]] bool going() const { return stop_ == StopReason::done && !interrupted(); }
  [[nodiscard]] StopReason stop() const { return stop_; }
  [[nodiscard]] bool interrupted() const { return watch_.stop != nullptr && watch_.stop->requested(); }
  [[nodiscard]] const IoPhase& phase() const { return phase_; }
  [[nodiscard]] const Runner& runner() const { return *runner_; }

 private:
  void one(IoOpcode op, double seconds, PhaseTally& into) {
    const bool write = op == IoOpcode::write;
    const u64 total = write ? s_.write_io : s_.read_io;
    // With nothing to write there is no cycle to come back to: one phase lasts the whole time.
    const bool endless = s_.by_time && s_.write_io == 0;
    IoPhase phase = phase_;
    phase.op = op;
    phase.generation = generation_;
    phase.duration_ticks = seconds > 0 ? runner_->ticks(seconds) : 0;
    if (write) set_.forget_refused_writes();
    const u64 n = set_.queues().size();
    for (u64 q = 0; q < n; ++q) {
      IoQueue& io = set_.queues()[q];
      io.count = endless ? ~u64{0} : total / n + (q < total % n ? 1 : 0);
    }
    const double goal = static_cast<double>(total);
    const u64 begin = wall_ns();
    PhaseOutcome outcome = runner_->run(phase, set_.queues(), o_.substeps, [&](u64 done) {
      if (watch_.progress) {
        const double elapsed = static_cast<double>(wall_ns() - begin) * 1e-9;
        watch_.progress(seconds > 0 ? elapsed / seconds : static_cast<double>(done) / goal,
                        write ? "write" : "read");
      }
      return interrupted();
    });
    for (u64 q = 0; q < n; ++q) {
      IoQueue& io = set_.queues()[q];
      const IoStats& st = outcome.queues[q];
      if (st.stop != StopReason::done && st.stop != StopReason::duration) stop_ = std::max(stop_, st.stop);
      if (!write) continue;
      io.written = st.posted;
      io.written_generation = phase.generation;
    }
    if (write) {
      u64 passes = 1;
      for (const IoQueue& io : set_.queues()) passes = std::max(passes, (io.written + io.span - 1) / io.span);
      generation_ += passes;
    }
    into.add(outcome, s_.io_bytes);
  }

  const BenchOptions& o_;
  const BenchWatch& watch_;
  const Setup& s_;
  QueueSet set_;
  std::unique_ptr<Runner> runner_;
  IoPhase phase_;
  u64 generation_ = 1;
  StopReason stop_ = StopReason::done;
};

std::string stop_name(const Bench& b) {
  if (b.stop() == StopReason::removed) return "removed";
  if (b.stop() == StopReason::timeout) return "timeout";
  return b.interrupted() ? "signal" : "done";
}

}  // namespace

BenchResult run_bench(const BenchOptions& o, const BenchWatch& watch) {
  if (o.write_io == 0 && o.read_io == 0) refuse("--read-io", "there is nothing to do: both counts are 0");
  const bool on_gpu = o.initiator == Initiator::gpu;
  if (!on_gpu && (o.memory_mode & (kModeSq | kModeCq)) != 0)
    refuse("--memory-mode",
           fmt::format("{} puts queues into GPU memory, which a CPU initiator cannot reach", o.memory_mode),
           "use --initiator gpu, or mode 0");
  if (!on_gpu && (o.memory_mode & kModeData) != 0 && o.verify)
    refuse("--memory-mode",
           "8 puts data into GPU memory, where a CPU initiator can neither make nor check it",
           "use --initiator gpu, or --verify off");
  std::shared_ptr<gpu::Gpu> gpu;
  if (on_gpu || o.memory_mode != 0) {
    gpu = gpu::open(o.gpu);
    // Loading code may wait for running kernels, and a model's DMA agent runs until the model ends.
    for (const char* kernel :
         {"doorbell_probe", "doorbell_dma_agent", "doorbell_nvme_io", "doorbell_nvme_io_substeps"})
      (void)gpu->kernel(kernel);
  }

  const u32 cores = std::max(std::thread::hardware_concurrency(), 1u);
  const u32 threads =
      on_gpu ? 0 : std::clamp(o.threads != 0 ? o.threads : std::max(cores / 2, 1u), 1u, o.num_queues);
  Controller controller(open_device({.spec = o.controller,
                                     .gpu = gpu,
                                     .gpu_memory = o.memory_mode != 0,
                                     .queues = o.num_queues,
                                     .initiator_threads = threads,
                                     .faults = o.faults,
                                     .seed = o.seed,
                                     .late_ns = static_cast<u64>(o.late_after_s * 1e9)}),
                        {.gpu = gpu,
                         .timeout_s = o.timeout_s,
                         .gpu_memory = o.memory_mode != 0,
                         .shadow_doorbells = o.shadow_doorbells});
  const Setup setup = plan(o, controller, threads);
  if (const u32 granted = controller.request_queues(o.num_queues); granted < o.num_queues)
    refuse("--num-queues",
           fmt::format("{} is not in 1..{}: the controller grants no more", o.num_queues, granted));

  BenchResult result;
  Tally tally(setup.ns, setup.io_bytes);
  {
    Bench bench(o, watch, controller, setup, gpu);
    if (o.warmup_s > 0) tally.warm_up(bench.repeat(o.warmup_s));
    const double seconds = o.infinite ? 1e15 : o.duration_s;
    for (u32 r = 0; r < o.repeats && bench.going(); ++r) tally.add(o.seed + r, bench.repeat(seconds));
    if (bench.stop() != StopReason::removed) {
      RepeatTally rest;
      bench.drain(rest);
      tally.after(rest);
    }
    result.stop_reason = stop_name(bench);
    result.interrupted = bench.interrupted();
    tally.finish(bench.runner().ns_per_tick(), bench.stop() == StopReason::removed, o.substeps);
    if (!on_gpu) tally.floor(harness_floor_ns(bench.phase(), o.queue_length));
  }
  tally.device(controller.device().counters());
  tally.controller(controller.info());
  result.cell = tally.cell();
  report::Cell& cell = result.cell;
  cell.device_kind = controller.device().kind();
  cell.device_name = controller.device().name();
  cell.initiator_kind = on_gpu ? "gpu" : "cpu";
  if (on_gpu) cell.gpu = o.gpu;
  cell.verify.mode = !setup.verify          ? "none"
                     : o.verify_sample >= 1 ? "full"
                                            : fmt::format("sample={:g}", o.verify_sample);
  cell.cell = {{"write_io", o.write_io},
               {"read_io", o.read_io},
               {"io_bytes", setup.io_bytes},
               {"queues", o.num_queues},
               {"batch", o.batch},
               {"in_flight", setup.window},
               {"queue_length", o.queue_length},
               {"memory_mode", o.memory_mode},
               {"pattern", o.random ? "random" : "sequential"}};
  if (!setup.verify && o.verify)
    result.warnings.emplace_back("null media moves no data: nothing was verified");
  for (std::string& w : tally.warnings()) result.warnings.push_back(std::move(w));
  result.failed = tally.failed();
  return result;
}

}  // namespace doorbell::nvme
