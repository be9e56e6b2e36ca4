// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rma/bench.hpp"

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "measure/counters.hpp"
#include "measure/gpu_runner.hpp"
#include "measure/other_run.hpp"
#include "model/copy_allowance.hpp"
#include "rma/ceiling.hpp"
#include "rma/cell_setup.hpp"
#include "rma/op_payload.hpp"
#include "rma/settings.hpp"
#include "rma/single_operation.hpp"
#include "system/available_memory.hpp"
#include "system/clock.hpp"
#include "system/open_files.hpp"
#include "system/run_identity.hpp"

namespace doorbell::rma {

namespace {

constexpr double kFillShare = 2, kLeastFillS = 1;  // of a duration, and seconds: to fill memory for gets
constexpr double kOverrun = 1.5;  // of a duration, from which on a run says that it was longer

bool touches_gpu(const BenchOptions& o) {
  return o.queue_memory == Place::gpu || o.local_memory == Place::gpu || o.remote_memory == Place::gpu;
}

std::shared_ptr<gpu::Gpu> open_gpu(const BenchOptions& o) {
  if (o.initiator != Initiator::gpu && !touches_gpu(o)) return nullptr;
  auto gpu = gpu::open(o.gpu);
  if (o.initiator == Initiator::gpu && o.texts.kernels.plain.empty())
    throw Error(setting::initiator + " gpu", "a GPU cannot post to the queues of this path",
                fmt::format("use {} cpu", setting::initiator));
  measure::prepare_kernels(
      *gpu, o.initiator == Initiator::gpu ? o.texts.kernels.all() : std::vector<std::string>{});
  return gpu;
}

/// Throws Error if the device cannot do what a cell needs.
void check_limits(const BenchOptions& o, const CellSetup& setup, const Port& port) {
  const Limits l = port.limits();
  const std::string device = port.name();
  const u32 most = l.max_queues / (setup.shape.ends == Ends::pair ? 2 : 1);
  if (setup.shape.queues > most)
    throw Error(o.texts.queues, fmt::format("{} is not in 1..{}, the connections that {} has queues for",
                                            setup.shape.queues, most, device));
  if (setup.bytes > l.max_message)
    throw Error(setting::size, fmt::format("{} is not in 0..{}, the longest message of {}", setup.bytes,
                                           l.max_message, device));
  if (setup.shape.requests > l.max_requests)
    throw Error(setting::signal_every, fmt::format("{} is not in 1..{}, half of what a queue of {} holds",
                                                   setup.signal_every, l.max_requests / 2, device));
  if (setup.window > l.max_requests)
    throw Error(setting::in_flight, fmt::format("{} is not in 1..{}, the requests that a queue of {} holds",
                                                setup.window, l.max_requests, device));
  if (setup.shape.queue().receives > l.max_receives)
    throw Error(setting::in_flight,
                fmt::format("{} needs {} receives; those of a queue of {} are 1..{}", setup.window,
                            setup.shape.queue().receives, device, l.max_receives));
  if (setup.shape.max_inline > l.max_inline)
    throw Error(o.texts.inline_below, l.max_inline == 0
                                          ? fmt::format("{} carries no payload inline", device)
                                          : fmt::format("{} is not in 0..{}, what a WQE of {} carries",
                                                        setup.shape.max_inline, l.max_inline, device));
  if (is_atomic(o.op) && !l.atomics)
    throw Error(setting::op, fmt::format("{} has no {}", device, o.texts.op_name(o.op)));
  if (o.initiator == Initiator::gpu && !l.gpu_initiator)
    throw Error(setting::initiator + " gpu", fmt::format("a GPU cannot reach the queues of {}", device),
                fmt::format("use {} cpu", setting::initiator), ExitCode::absent);
  if (touches_gpu(o) && !l.gpu_memory)
    throw Error((o.local_memory == Place::gpu    ? setting::local_memory
                 : o.remote_memory == Place::gpu ? setting::remote_memory
                                                 : setting::queue_memory) +
                    " vram",
                fmt::format("{} cannot register GPU memory", device), "use host memory", ExitCode::absent);
}

/// A model's operations are copies by this machine: what many or large ones that are in flight together may
/// take besides the limits of the options.
double more_for_large(const BenchOptions& o, const CellSetup& setup) {
  const u64 bytes = u64{setup.bytes} * setup.window * setup.shape.queues;
  return model::CopyAllowance::measured(bytes, o.model_bytes_per_s).seconds(bytes);
}

/// One cell: one size and one part, with a device and queues of its own.
class CellRun {
 public:
  /// `setups`: this cell's setup and those of the following cells, so that all are known to be possible
  /// before anything is measured. `remote`: the other process, or null.
  CellRun(const BenchOptions& o, const measure::RunWatch& watch, std::span<const CellSetup> setups,
          const std::shared_ptr<gpu::Gpu>& gpu, RemoteProcess* remote)
      : o_(o),
        s_(setups.front()),
        threads_(o.initiator_threads(o.threads, s_.shape.queues)),
        gpu_(gpu),
        more_s_(more_for_large(o, s_)),
        port_(o.open({.spec = o.device, .gpu = gpu_, .use = use(), .more_s = more_s_})),
        remote_(remote),
        session_((check_all(setups), *port_), gpu_, s_.shape),
        // Queues that an error has stopped cannot be connected again to another process.
        run_(o, watch, o.texts.path, s_.bytes, remote == nullptr),
        slots_(s_.shape.target_slots) {
    if (remote_ != nullptr) remote_->open(o_, s_, session_);
    runner_ = session_.runner(threads_, o_.checkers(threads_, s_.shape.queues, s_.bytes));
    // Sequences never repeat, not even in memory that outlives a run.
    generation_ = first_sequence();
    others_ = {o.seed, generation_};
  }

  void warm_up() { run_.warm_up(phases(o_.warmup_s)); }
  void repeat(u32 number) {
    const DeviceTime before = port_->device_time();
    run_.repeat(number, phases(o_.duration_s));
    const DeviceTime after = port_->device_time();
    times_.push_back({after.bytes - before.bytes, after.ns - before.ns});
  }
  [[nodiscard]] bool going() const { return run_.going(); }

  void finish(BenchResult& into) {
    if (!run_.lost()) run_.drain(*runner_, phase(), std::span(session_.queues()));
    // A ping-pong's messages overlap with their answers, so its time cannot be split into steps.
    run_.finish(runner_->ns_per_tick(), o_.substeps && s_.part != Part::ping_pong, port_->status_names());
    // Requests are built in the ring itself, and the poll includes giving completion entries back.
    run_.cell().substeps_ns.enqueue.reset();
    run_.cell().substeps_ns.cq_doorbell.reset();
    run_.cell().extra[o_.texts.path].erase("cq_doorbells_per_op");
    describe();
    runner_.reset();
    if (auto counters = port_->counters(); !counters.is_null())
      run_.cell().extra[port_->kind()] = std::move(counters);
    add_clock_rate(run_.cell());
    warn_of_overrun(into);
    if (others_.known()) into.warnings.push_back(others_.text());
    run_.deliver(into, title() + ": ");
  }

 private:
  model::Use use() const {
    model::Use u = o_.use(s_.shape.queues * (s_.shape.ends == Ends::pair ? 2 : 1), threads_, touches_gpu(o_));
    u.late_ns += static_cast<u64>(more_s_ * 1e9);
    return u;
  }

  /// Of the repeat whose figures are the cell's: no clock of a device counts more time than passes around it.
  void add_clock_rate(report::Cell& cell) const {
    if (cell.repeats.empty() || run_.stop() >= StopReason::timeout) return;
    const std::size_t median = measure::median_repeat(cell.repeats);
    const DeviceTime& t = times_[median];
    // A failed transfer has moved some of its bytes, in no time that says anything.
    if (t.ns > 0 && cell.repeats[median].errors == 0)
      cell.extra[port_->kind()][o_.texts.clock_rate] =
          static_cast<double>(t.bytes) * 1e9 / static_cast<double>(t.ns);
  }

  /// Nothing is posted when the time is over, but what is in flight then is awaited. A GPU's queues make
  /// their first data in their time.
  void warn_of_overrun(BenchResult& into) {
    const double measured = run_.cell().metrics.elapsed_s;
    if (o_.duration_s <= 0 || measured <= kOverrun * o_.duration_s || run_.stop() != StopReason::done) return;
    into.warnings.push_back(fmt::format(
        "{}: measured for {:.3g} s in place of {:.3g}: {}awaiting what is in flight at the end ({} of {} bytes "
        "on each of {} queues) takes so long, and counts",
        title(), measured, o_.duration_s, o_.initiator == Initiator::gpu ? "making the first data and " : "",
        s_.window, s_.bytes, s_.shape.queues));
  }

  [[nodiscard]] std::string title() const {
    return fmt::format("{} {} bytes, {}", o_.texts.op_name(o_.op), s_.bytes, name(s_.part));
  }

  void check_all(std::span<const CellSetup> setups) const {
    for (const CellSetup& setup : setups) {
      check_limits(o_, setup, *port_);
      require_memory(memory_needed(setup, *port_),
                     fmt::format("{}, {}, {}", o_.texts.queues, setting::in_flight, setting::size),
                     fmt::format("{} queue pairs with {} operations of {} bytes in flight on each",
                                 setup.shape.queues, setup.window, setup.bytes));
      if (const u64 files = port_->queue_files(setup.shape.queue()); files > 0)
        require_open_files(
            files * setup.shape.queues, fmt::format("{}, {}", o_.texts.queues, setting::in_flight),
            fmt::format("{} queues with {} operations in flight on each", setup.shape.queues, setup.window));
    }
  }

  OpPhase phase() const {
    OpPhase p;
    p.op = o_.op;
    p.verify = o_.verify;
    p.verify_below = o_.verify_below();
    p.inlined = s_.inlined;
    p.bytes = s_.bytes;
    p.signal_every = s_.signal_every;
    p.batch = s_.batch;
    p.window = s_.window;
    p.target_slots = slots_;
    p.seed = o_.seed;
    run_.limit(p, *runner_);
    if (port_->kind() == "model") {
      p.timeout_ticks += runner_->ticks(more_s_);
      p.late_ticks += runner_->ticks(more_s_);
    }
    p.alive = port_->alive(o_.initiator);
    return p;
  }

  measure::RepeatTally phases(double seconds) {
    // The runner holds the state of queues as they were before recover() resets them.
    if (run_.stop() == StopReason::broken) {
      runner_.reset();
      session_.recover();
      runner_ = session_.runner(threads_, o_.checkers(threads_, s_.shape.queues, s_.bytes));
      run_.recovered();
      filled_ = 0;
    }
    measure::RepeatTally t;
    measure::PhaseTally& part = t.part(name(s_.part));
    if (s_.shape.ends != Ends::device) {
      if (remote_ != nullptr) remote_->begin({generation_, seconds > 0 ? ~u64{0} : s_.count});
      const measure::PhaseOutcome out = measured(phase(), s_.count, seconds, part);
      if (remote_ != nullptr) measure::add_findings(part.sum, remote_->end(out).queues);
    } else if (o_.op == Op::read) {
      if (fill_device(part)) (void)measured(phase(), s_.count, seconds, part);
    } else {
      put_and_read_back(seconds, part);
    }
    return t;
  }

  /// Runs a phase of up to `count` operations on each queue, or `seconds` long, whose figures count.
  measure::PhaseOutcome measured(OpPhase p, u64 count, double seconds, measure::PhaseTally& part) {
    p.generation = filled_ != 0 ? filled_ : generation_;
    for (OpQueue& q : session_.queues()) q.count = seconds > 0 ? ~u64{0} : count;
    const measure::PhaseOutcome out = run(p, seconds, count, o_.substeps, title());
    part.add(out, s_.bytes);
    next_generation(out);
    return out;
  }

  measure::PhaseOutcome run(const OpPhase& p, double seconds, u64 count, bool substeps,
                            const std::string& what, bool measured = true) {
    const double goal = static_cast<double>(count) * static_cast<double>(session_.queues().size());
    measure::PhaseOutcome out = run_.phase(*runner_, p, std::span<const OpQueue>(session_.queues()), substeps,
                                           {seconds, goal, what, measured}, [&] {
                                             if (remote_ != nullptr) remote_->alive();
                                             return false;
                                           });
    session_.check_mirrors();
    if (s_.shape.ends == Ends::device && p.op == Op::read) look_for_others(out);
    return out;
  }

  /// Who wrote what lies in the device's memory in place of this run's data. Where faults are injected they
  /// explain it, and one more transfer could meet one.
  void look_for_others(const measure::PhaseOutcome& out) {
    if (o_.faults.any() || run_.lost()) return;
    u64 next = generation_;
    for (const OpStats& s : out.queues) next = std::max(next, generation_ + s.posted + s_.window);
    std::array<u32, pattern::kUnitWords> unit{};
    for (std::size_t q = 0; q < out.queues.size(); ++q)
      for (u32 i = 0; i < out.queues[q].failures && !others_.known(); ++i) {
        const u64 in_queue = out.queues[q].first_failures[i].address - OpPayload<OneLane>::first_address(q);
        const u64 at = session_.queues()[q].remote_iova + in_queue;
        if (!port_->read_device(at, {reinterpret_cast<u8*>(unit.data()), sizeof unit})) return;
        if (const auto id = measure::writer_of(unit.data())) others_.found(port_->name(), at, *id, next);
      }
  }

  /// Slots hold sequences of their own place in the window, and the next phase starts at slot 0 again.
  void next_generation(const measure::PhaseOutcome& out) {
    u64 most = 0;
    for (const OpStats& q : out.queues) most = std::max(most, q.posted);
    generation_ += most + s_.window;
  }

  /// Writes to the device's memory what gets are to find there, once. False if that ended the repeat.
  bool fill_device(measure::PhaseTally& part) {
    if (filled_ != 0) return true;
    OpPhase p = phase();
    p.op = Op::write;
    p.timed = false;
    p.generation = generation_;
    for (OpQueue& q : session_.queues()) q.count = slots_;
    // A short run does not wait for much more data than it reads.
    const double limit_s = o_.duration_s > 0 ? std::max(kFillShare * o_.duration_s, kLeastFillS) : 0;
    const measure::PhaseOutcome out =
        run(p, limit_s, slots_, false, title() + ": filling the device's memory", false);
    measure::add_errors(part.sum, out.queues);
    if (run_.going() && run_.stop() == StopReason::done) {
      filled_ = p.generation;
      for (const OpStats& q : out.queues) slots_ = static_cast<u32>(std::min<u64>(slots_, q.posted));
    }
    next_generation(out);
    return filled_ != 0;
  }

  /// Puts into the device's memory, and reads everything back before it is overwritten. Only the puts'
  /// figures count.
  void put_and_read_back(double seconds, measure::PhaseTally& part) {
    const u64 slots = o_.verify ? s_.shape.target_slots : ~u64{0};
    u64 left = seconds > 0 ? ~u64{0} : s_.count;
    double left_s = seconds;
    do {
      const u64 count = std::min(left, slots);
      OpPhase p = phase();
      p.generation = generation_;
      for (OpQueue& q : session_.queues()) q.count = seconds > 0 && !o_.verify ? ~u64{0} : count;
      const measure::PhaseOutcome out = run(p, left_s, count, o_.substeps, title());
      part.add(out, s_.bytes);
      if (o_.verify) read_back(p, out, part);
      next_generation(out);
      if (left != ~u64{0}) left -= count;
      if (seconds > 0) left_s = seconds - part.elapsed_s;
    } while (left > 0 && (seconds <= 0 || left_s > 0) && run_.going() && run_.stop() == StopReason::done);
  }

  /// After an error it is unknown which slots were written.
  void read_back(OpPhase p, const measure::PhaseOutcome& written, measure::PhaseTally& part) {
    if (!run_.going() || run_.stop() != StopReason::done) {
      for (const OpStats& q : written.queues) part.sum.unverifiable += q.succeeded;
      return;
    }
    p.op = Op::read;
    p.timed = false;
    u64 most = 0;
    for (std::size_t i = 0; i < written.queues.size(); ++i) {
      session_.queues()[i].count = written.queues[i].posted;
      most = std::max(most, written.queues[i].posted);
    }
    measure::add_errors(part.sum, run(p, 0, most, false, title() + ": reading back", false).queues);
  }

  void describe() {
    report::Cell& cell = run_.describe(port_->kind(), port_->name(), o_.verify);
    const auto place = [](Place p) { return p == Place::gpu ? "vram" : "host"; };
    if (!o_.texts.provider.empty()) cell.cell["provider"] = o_.texts.provider;
    cell.cell["op"] = o_.texts.op_name(o_.op);
    cell.cell["part"] = name(s_.part);
    cell.cell["size_bytes"] = s_.bytes;
    cell.cell["queue_pairs"] = s_.shape.queues;
    cell.cell["batch"] = s_.batch;
    cell.cell["in_flight"] = s_.part == Part::ping_pong ? 1 : s_.window;
    cell.cell["signal_every"] = s_.signal_every;
    cell.cell["inlined"] = s_.inlined;
    if (o_.texts.connects)
      cell.cell["connection"] = s_.shape.ends == Ends::self   ? "self"
                                : s_.shape.ends == Ends::pair ? "pair"
                                                              : "remote";
    if (o_.one_offset) cell.cell["offsets"] = "one";
    cell.cell["queue_memory"] = place(o_.queue_memory);
    cell.cell["data_memory"] = place(o_.local_memory);
    if (s_.shape.ends != Ends::device) cell.cell["target_memory"] = place(o_.remote_memory);
    if (const auto more = port_->described(); !more.is_null()) cell.cell.update(more);
    if (s_.part == Part::latency)
      cell.extra[o_.texts.path]["single_operation"] = single_operation(run_.latency(), s_.bytes);
    else if (measures_ceiling(s_, *port_)) add_ceiling(cell);
  }

  void add_ceiling(report::Cell& cell) {
    const Ceiling c = measure_ceiling(s_.bytes, o_.one_offset ? 1 : s_.window, o_.local_memory,
                                      o_.remote_memory, gpu_, o_.reference_work);
    cell.extra[o_.texts.path]["ceiling"] = {{"what", c.what},
                                            {"bytes_per_s", c.bytes_per_s},
                                            {"share_fraction", cell.metrics.bytes_per_s / c.bytes_per_s}};
  }

  const BenchOptions& o_;
  const CellSetup& s_;
  u32 threads_;
  std::shared_ptr<gpu::Gpu> gpu_;
  double more_s_;  ///< PortRequest::more_s
  std::unique_ptr<Port> port_;
  RemoteProcess* remote_;
  Session session_;
  std::unique_ptr<OpRunner> runner_;  // destroyed before the queues that it drives
  measure::BenchRun run_;
  u64 generation_ = 1;
  measure::OtherRun others_;
  u32 slots_;                      ///< of each queue in a device's memory that are in use
  std::vector<DeviceTime> times_;  ///< of each repeat
  u64 filled_ = 0;  ///< the generation with which a device's memory was filled for gets; 0: it was not
};

}  // namespace

BenchResult run_bench(const BenchOptions& o, const measure::RunWatch& watch) {
  check(o);
  BenchResult result;
  const std::shared_ptr<gpu::Gpu> gpu = open_gpu(o);
  std::unique_ptr<RemoteProcess> remote;
  if (o.ends == Ends::remote) remote = o.connect_remote(watch);
  std::vector<CellSetup> setups;
  for (const u32 bytes : o.sizes)
    for (const Part part : {Part::latency, Part::rate, Part::ping_pong})
      if (part == Part::latency ? o.latency : part == Part::rate ? o.rate : o.ping_pong)
        setups.push_back(set_up_cell(o, part, bytes));
  try {
    for (std::size_t i = 0; i < setups.size(); ++i) {
      CellRun cell(o, watch, std::span<const CellSetup>(setups).subspan(i), gpu, remote.get());
      measure::run_repeats(o, cell);
      cell.finish(result);
      if (!cell.going()) return result;
    }
    if (remote) remote->finish();
  } catch (const Error& e) {
    measure::ended_by(e, watch, result);
  }
  return result;
}

}  // namespace doorbell::rma
