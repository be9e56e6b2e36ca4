// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/bench.hpp"

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <thread>

#include "measure/other_run.hpp"
#include "nvme/backends.hpp"
#include "nvme/foreign_data.hpp"
#include "nvme/in_turns.hpp"
#include "nvme/null_controller.hpp"
#include "nvme/settings.hpp"
#include "nvme/storage.hpp"
#include "nvme/written_mark.hpp"
#include "system/available_memory.hpp"
#include "system/clock.hpp"
#include "system/run_identity.hpp"

namespace doorbell::nvme {

namespace {

constexpr u32 kModeSq = 1, kModeCq = 2, kModeData = 8;
constexpr u64 kUnwrittenLimit = u64{1} << 27;  // bits a queue: 16 MiB
constexpr double kLeastPhaseS = 1e-6;  // of a phase for which no time is left: it does next to nothing

/// The run's fixed decisions, derived from the options and what the controller says of itself.
struct Setup {
  NamespaceInfo ns;
  u32 window = 1;
  bool verify = false;
  bool by_time = false;
  u64 write_io = 0;
  u64 read_io = 0;
  u32 blocks = 1;  ///< an I/O
  u64 io_bytes = 512;
  QueueShape shape;
};

[[noreturn]] void refuse(const std::string& setting, const std::string& why, const std::string& hint = {}) {
  throw Error(setting, why, hint);
}

constexpr const char* kOfWindow = "(queue length, MAXCMD, cid bits)";

u32 window_for(const BenchOptions& o, u32 entries, const ControllerInfo& info) {
  const u32 most =
      std::min({kMaxWindow, entries - 1, info.max_commands != 0 ? info.max_commands : kMaxWindow});
  if (o.in_flight > most)
    refuse(setting::in_flight, fmt::format("{} is not in 1..{} {}", o.in_flight, most, kOfWindow));
  if (o.batch > most)
    refuse(setting::batch, fmt::format("{} is not in 1..{} {}", o.batch, most, kOfWindow),
           fmt::format("give a longer {}", setting::queue_length));
  if (o.in_flight != 0 && o.in_flight < o.batch)
    refuse(setting::in_flight, fmt::format("{} is less than {} {}", o.in_flight, setting::batch, o.batch));
  // Batches in flight behind the one being built keep the device busy while this side works.
  return o.in_flight != 0 ? o.in_flight : std::min(o.batch * (o.batch == 1 ? 1 : 4), most);
}

Setup setup_of(const BenchOptions& o, Storage& storage) {
  Setup s;
  const ControllerInfo info = storage.info();
  s.shape.entries =
      o.default_queue_length ? std::min(o.queue_length, info.max_queue_entries) : o.queue_length;
  if (s.shape.entries < 2 || s.shape.entries > info.max_queue_entries)
    refuse(setting::queue_length,
           fmt::format("{} is not in 2..{} (CAP.MQES)", o.queue_length, info.max_queue_entries));
  s.window = window_for(o, s.shape.entries, info);
  s.ns = storage.name_space(o.nsid);
  s.io_bytes = o.io_bytes != 0 ? o.io_bytes : u64{o.lbas_per_io} * s.ns.lba_bytes;
  if (s.io_bytes % s.ns.lba_bytes != 0)
    refuse(setting::io_bytes,
           fmt::format("{} is no multiple of the logical block, {} bytes", s.io_bytes, s.ns.lba_bytes));
  s.blocks = static_cast<u32>(s.io_bytes / s.ns.lba_bytes);
  if (info.max_transfer_bytes != 0 && s.io_bytes > info.max_transfer_bytes)
    refuse(o.io_bytes != 0 ? setting::io_bytes : setting::lbas_per_io,
           fmt::format("{} blocks of {} bytes pass the largest transfer, {} bytes (MDTS)", s.blocks,
                       s.ns.lba_bytes, info.max_transfer_bytes),
           o.io_bytes == 0 ? "" : "it is the size of one I/O, not of the file or of all I/Os together");
  if (o.base_lba >= s.ns.blocks)
    refuse(setting::base_lba, fmt::format("{} is not in 0..{}", o.base_lba, s.ns.blocks - 1));
  const u64 positions = (s.ns.blocks - o.base_lba) / s.blocks;
  if (positions < o.num_queues)
    refuse(setting::num_queues, fmt::format("{} queues need {} I/Os of space; there is space for {}",
                                            o.num_queues, o.num_queues, positions));
  s.by_time = o.infinite || o.duration_s > 0;
  s.write_io = o.write_io;
  s.read_io = o.read_io;
  const bool may_write = s.write_io == 0 || o.allow_write || storage.scratch();
  if (o.default_counts && !may_write) s.write_io = 0;
  if (s.write_io > 0 && !may_write)
    refuse(setting::write_io,
           fmt::format("it overwrites blocks of {}{}", storage.name(),
                       storage.image().empty() ? "" : ", which holds data that doorbell did not write"),
           fmt::format("add {} if their contents may be lost", setting::allow_write));

  const u64 most = std::max<u64>({s.write_io, s.read_io, o.num_queues});
  const bool whole = o.random || (s.by_time && (s.write_io == 0 || s.read_io == 0));
  s.shape.queues = o.num_queues;
  s.shape.window = s.window;
  s.shape.io_bytes = s.io_bytes;
  s.shape.initiator = o.initiator;
  s.shape.positions = whole ? positions : std::min(positions, most);
  s.verify = o.verify && storage.moves_data();
  const u64 touched = share_of(std::min(s.shape.positions, most), o.num_queues, 0).count;
  if (s.verify && s.write_io > 0 && touched <= kUnwrittenLimit) s.shape.unwritten_bits = touched;
  if ((o.memory_mode & kModeSq) != 0) s.shape.sq = Place::gpu;
  if ((o.memory_mode & kModeCq) != 0) s.shape.cq = Place::gpu;
  s.shape.data = (o.memory_mode & kModeData) != 0 ? Place::gpu : o.host_memory;
  return s;
}

/// Runs the phases of one bench and keeps what carries over between them.
class Bench {
 public:
  Bench(const BenchOptions& o, measure::BenchRun& run, Storage& storage, const Setup& setup,
        WrittenMark& mark)
      : o_(o),
        run_(run),
        storage_(storage),
        s_(setup),
        set_(storage.create_queues(setup.shape)),
        runner_(storage.runner(setup.window)),
        mark_(mark) {
    phase_.random = o.random;
    phase_.timed = !o.less_timing;
    phase_.verify = s_.verify;
    phase_.verify_below = o.verify_below();
    phase_.nsid = o.nsid;
    phase_.blocks = s_.blocks;
    phase_.lba_bytes = s_.ns.lba_bytes;
    phase_.base_lba = o.base_lba;
    phase_.batch = o.batch;
    phase_.window = s_.window;
    phase_.seed = o.lfsr_seed;
    run.limit(phase_, *runner_);
    phase_.csts = storage.status_register();
    learn_written();
    fill_unchecked();
    // Sequences never repeat, also across runs on media that outlive them.
    generation_ = first_sequence();
    others_ = {phase_.seed, generation_};
  }

  /// Writes, then reads back: once by count (`seconds` is 0), else again until the time is over.
  measure::RepeatTally repeat(double seconds) {
    measure::RepeatTally t;
    const u64 begin = wall_ns();
    const auto left_s = [&] { return seconds - static_cast<double>(wall_ns() - begin) * 1e-9; };
    const bool both = s_.write_io > 0 && s_.read_io > 0;
    do {
      const double left = std::max(left_s(), kLeastPhaseS);
      // Writing may take half of the time: the rest is for reading it back.
      if (s_.write_io > 0) one(IoOpcode::write, seconds > 0 ? (both ? left / 2 : left) : 0, t.part("write"));
      if (s_.read_io > 0 && run_.going())
        one(IoOpcode::read, seconds > 0 ? std::max(left_s(), kLeastPhaseS) : 0, t.part("read"));
    } while (seconds > 0 && left_s() > 0 && run_.going());
    return t;
  }

  /// Ends the submission queues and takes late and repeated completions.
  void drain() {
    storage_.end_queues();
    run_.drain(*runner_, phase_, std::span(set_.queues()));
  }

  [[nodiscard]] const IoPhase& phase() const { return phase_; }
  [[nodiscard]] const IoRunner& runner() const { return *runner_; }
  /// The other run whose data was found; "" where there was none.
  [[nodiscard]] const std::string& others() const { return others_.text(); }
  /// Reads that found units of an earlier version of the pattern at their place.
  [[nodiscard]] u64 old_version() const { return old_version_; }

  /// Whether it is known of all bytes in the queues' spans which write they are of.
  [[nodiscard]] bool knows_all() const {
    u64 known = 0, all = 0;
    for (const IoQueue& io : set_.queues()) {
      const ByteRange range = bytes_of(io, io.span);
      all += range.end - range.begin;
      u64 from = range.begin;
      auto writes = mark_.known(range);
      std::ranges::sort(writes, {}, [](const EarlierWrite& w) { return w.bytes.begin; });
      for (const EarlierWrite& w : writes) {
        if (w.posted < w.span || w.bytes.end <= from) continue;
        from = std::max(from, w.bytes.begin);
        known += w.bytes.end - from;
        from = w.bytes.end;
      }
    }
    return known == all;
  }

 private:
  void one(IoOpcode op, double seconds, measure::PhaseTally& into) {
    const bool write = op == IoOpcode::write;
    const u64 total = write ? s_.write_io : s_.read_io;
    // With only reads or only writes, one phase lasts the whole time.
    const bool endless = s_.by_time && (s_.write_io == 0 || s_.read_io == 0);
    IoPhase phase = phase_;
    phase.op = op;
    phase.generation = generation_;
    const u64 n = set_.queues().size();
    for (u64 q = 0; q < n; ++q) {
      IoQueue& io = set_.queues()[q];
      io.count = endless ? ~u64{0} : share_of(total, n, q).count;
    }
    if (write) {
      set_.forget_refused_writes();
      for (const IoQueue& io : set_.queues()) mark_.about_to_write(bytes_of(io, touched(io)));
    }
    const measure::PhaseOutcome outcome = run_.phase(
        *runner_, phase, std::span<const IoQueue>(set_.queues()), o_.substeps,
        {seconds, static_cast<double>(total), write ? "write" : "read"}, [&] { return storage_.leaving(); });
    set_.check_mirrors();
    if (write) {
      u64 passes = 1;
      for (u64 q = 0; q < n; ++q) {
        IoQueue& io = set_.queues()[q];
        io.written = outcome.queues[q].posted;
        io.written_generation = phase.generation;
        note_written(io, outcome.queues[q]);
        passes = std::max(passes, (io.written + io.span - 1) / io.span);
      }
      generation_ += passes;
      learn_written();
    }
    for (const OpStats& q : outcome.queues) {
      old_version_ += q.old_version;
      look_for_others(q);
    }
    into.add(outcome, s_.io_bytes);
  }

  /// Of a file: who wrote what lies in place of this run's data.
  void look_for_others(const OpStats& found) {
    for (u32 i = 0; i < found.failures && !others_.known() && !storage_.image().empty(); ++i) {
      const u64 at = found.first_failures[i].address;
      if (const auto id = writer_of(storage_.image(), at))
        others_.found(storage_.image(), at, *id, generation_);
    }
  }

  /// The first `positions` of a queue, as bytes of the namespace.
  [[nodiscard]] ByteRange bytes_of(const IoQueue& io, u64 positions) const {
    const u64 begin = o_.base_lba * s_.ns.lba_bytes + io.first * s_.io_bytes;
    return {begin, begin + positions * s_.io_bytes};
  }
  /// How many of them a phase of its count may come to; at random that may be any.
  [[nodiscard]] u64 touched(const IoQueue& io) const {
    return o_.random ? io.span : std::min(io.span, io.count);
  }

  /// Without verification writes carry what is in the buffers: units that name doorbell's seed, but no
  /// address.
  void fill_unchecked() {
    if (s_.verify || s_.write_io == 0 || s_.shape.data == Place::gpu || !storage_.moves_data()) return;
    for (u32 q = 0; q < s_.shape.queues; ++q) {
      const Region& data = set_.data(q);
      for (u64 at = 0; at + pattern::kUnitBytes <= data.bytes(); at += pattern::kUnitBytes)
        pattern::make_unit(reinterpret_cast<u32*>(data.host() + at), {o_.lfsr_seed, pattern::kNoAddress, 0});
    }
  }

  /// Tells the queues what reads may expect where the last write phase has not been.
  void learn_written() {
    for (u32 q = 0; q < s_.shape.queues; ++q) {
      const IoQueue& io = set_.queues()[q];
      const ByteRange all = bytes_of(io, io.span);
      std::vector<EarlierWrite> writes = mark_.known(all);
      // Behind the others, and never left out: the user says that something was written everywhere.
      if (o_.strict) {
        writes.resize(std::min(writes.size(), QueueBuffers::kEarlierAtMost - 1));
        writes.push_back({.bytes = all, .origin = all.begin, .io_bytes = all.end - all.begin, .posted = 1});
      }
      set_.set_written_before(q, writes);
    }
  }

  void note_written(const IoQueue& io, const OpStats& st) {
    if (!s_.verify || st.succeeded != st.posted) return;
    const ByteRange all = bytes_of(io, touched(io));
    mark_.written({.bytes = all,
                   .origin = all.begin,
                   .io_bytes = s_.io_bytes,
                   .span = io.span,
                   .posted = st.posted,
                   .order_seed = order_seed(phase_, io),
                   .seed = phase_.seed,
                   .sequence = io.written_generation,
                   .random = o_.random ? 1U : 0U});
  }

  const BenchOptions& o_;
  measure::BenchRun& run_;
  Storage& storage_;
  const Setup& s_;
  QueueBuffers& set_;
  std::unique_ptr<IoRunner> runner_;
  WrittenMark& mark_;
  IoPhase phase_;
  u64 generation_ = 1;
  measure::OtherRun others_;
  u64 old_version_ = 0;
};

/// The facts about a controller that the Result states.
nlohmann::ordered_json controller_facts(const ControllerInfo& info, const NamespaceInfo& ns) {
  return {{"model", info.model},
          {"serial", info.serial},
          {"firmware", info.firmware},
          {"max_transfer_bytes", info.max_transfer_bytes},
          {"max_queue_entries", info.max_queue_entries},
          {"doorbell_stride", info.stride},
          {"lba_bytes", ns.lba_bytes},
          {"blocks", ns.blocks}};
}

BenchOptions checked(const BenchOptions& o) {
  const bool on_gpu = o.initiator == Initiator::gpu;
  if (o.write_io == 0 && o.read_io == 0)
    refuse(setting::read_io, "there is nothing to do: both counts are 0");
  if (!on_gpu && (o.memory_mode & (kModeSq | kModeCq)) != 0)
    refuse(setting::memory_mode,
           fmt::format("{} puts queues into GPU memory, which a CPU initiator cannot reach", o.memory_mode),
           fmt::format("use {} gpu, or mode 0", setting::initiator));
  return o;
}

std::shared_ptr<gpu::Gpu> open_gpu(const BenchOptions& o) {
  if (o.initiator != Initiator::gpu && o.memory_mode == 0 && !needs_gpu(o.controller)) return nullptr;
  auto gpu = gpu::open(o.gpu);
  const bool by_kernels = o.initiator == Initiator::gpu || needs_gpu(o.controller);
  measure::prepare_kernels(*gpu, by_kernels ? kIoKernels.all() : std::vector<std::string>{});
  return gpu;
}

/// An open storage and, once it has queues, the bench on it.
struct Session {
  explicit Session(const BenchOptions& o)
      : storage(o.file.empty() ? open_controller(o, open_gpu(o)) : open_file(o)),
        setup(setup_of(o, *storage)),
        mark(storage->image()),
        outdated(mark.outdated()),
        changed_by_others(mark.changed_by_others()) {
    if (const u32 granted = storage->grant(o.num_queues); granted < o.num_queues)
      refuse(setting::num_queues,
             fmt::format("{} is not in 1..{}: the controller grants no more", o.num_queues, granted));
    const u64 each = queue_memory(setup.shape);
    require_memory(
        u64{setup.shape.queues} * each,
        fmt::format("{}, {}, {}", setting::num_queues, setting::in_flight, setting::lbas_per_io),
        fmt::format("{} queues x {:.1f} MB, {} I/Os of {} bytes in flight on each", setup.shape.queues,
                    static_cast<double>(each) / 1e6, setup.window, setup.io_bytes));
  }
  std::unique_ptr<Storage> storage;
  Setup setup;
  WrittenMark mark;
  bool outdated;               ///< the mark was of another content
  bool changed_by_others;      ///< another program has written there since
  std::optional<Bench> bench;  // destroyed before its storage
};

class BenchContender final : public Contender {
 public:
  BenchContender(const BenchOptions& o, const measure::RunWatch& watch, std::string label, bool stay_open)
      : o_(checked(o)), watch_(watch), label_(std::move(label)), stay_open_(stay_open) {
    const Setup& setup = open().setup;
    io_bytes_ = setup.io_bytes;
    in_flight_ = setup.window;
    // Asked once: data that another contender writes between two repeats needs no new permission.
    if (setup.write_io > 0) o_.allow_write = true;
    if (!stay_open_) close();
  }

  std::string label() const override { return label_; }
  u64 io_bytes() override { return io_bytes_; }
  u32 in_flight() override { return in_flight_; }
  void warm_up() override {
    run_->warm_up(open().bench->repeat(o_.warmup_s));
    if (!stay_open_) close();
  }
  void repeat(u32 number) override {
    run_->repeat(number, open().bench->repeat(o_.infinite ? measure::kEndlessS : o_.duration_s));
    if (!stay_open_) close();
  }
  bool going() const override { return run_->going(); }

  BenchResult finish() override {
    if (session_) close();
    run_->finish(ns_per_tick_, o_.substeps, status_name_);
    run_->cell().errors["admin"] = unanswered_;
    if (by_header_ && run_->cell().verify.checked > 0)
      warnings_.emplace_back(
          "nothing notes which write the blocks are of: units that a later write should have replaced count as good");
    BenchResult result;
    result.warnings = warnings_;
    result.warnings.insert(result.warnings.end(), errors_.begin(), errors_.end());
    run_->deliver(result);
    return result;
  }

 private:
  Session& open() {
    if (session_) return *session_;
    auto session = std::make_unique<Session>(o_);
    if (!run_) run_.emplace(o_, watch_, "nvme", session->setup.io_bytes);
    session->bench.emplace(o_, *run_, *session->storage, session->setup, session->mark);
    by_header_ = session->setup.write_io == 0 && !session->bench->knows_all();
    session_ = std::move(session);
    return *session_;
  }

  /// Drains the queues and notes what the Result says of the device.
  void close() {
    Session& s = *session_;
    old_version_ += s.bench->old_version();
    try {
      if (!run_->lost()) s.bench->drain();
    } catch (const Error& e) {
      // Measured figures stay worth reporting when the device does not answer any more.
      ++unanswered_;
      run_->stopped(StopReason::timeout);
      errors_.emplace_back(e.what());
    }
    ns_per_tick_ = s.bench->runner().ns_per_tick();
    status_name_ = s.storage->status_names();
    describe(s);
    s.bench.reset();
    // Only now has the device counted everything.
    if (auto counters = s.storage->counters(); !counters.is_null()) {
      if (const auto why = counters.find("media_refuses_writes"); why != counters.end())
        warnings_.push_back(fmt::format("{}: {}", s.storage->name(), why->get<std::string>()));
      run_->cell().extra[s.storage->kind()] = std::move(counters);
    }
    s.storage.reset();
    // Nothing writes any more: the mark names the time of the last change.
    s.mark.save();
    session_.reset();
  }

  void describe(const Session& s) {
    report::Cell& cell = run_->describe(s.storage->kind(), s.storage->name(), s.setup.verify);
    nlohmann::ordered_json& own = cell.extra["nvme"];
    if (o_.file.empty()) {
      if (o_.initiator == Initiator::cpu && !own.contains("harness_floor_ns_per_op"))
        own["harness_floor_ns_per_op"] =
            harness_floor_ns(s.bench->phase(), s.setup.shape.entries, o_.reference_work);
      own["controller"] = controller_facts(s.storage->info(), s.setup.ns);
    }
    cell.cell = {{"write_io", s.setup.write_io},
                 {"read_io", o_.read_io},
                 {"io_bytes", s.setup.io_bytes},
                 {"queues", o_.num_queues},
                 {"batch", o_.batch},
                 {"in_flight", s.setup.window},
                 {"queue_length", s.setup.shape.entries},
                 {"memory_mode", o_.memory_mode},
                 {"pattern", o_.random ? "random" : "sequential"}};
    warnings_.clear();
    if (!s.setup.verify && o_.verify)
      warnings_.emplace_back("null media moves no data: nothing was verified");
    if (!o_.file.empty() && o_.file_options.sqpoll)
      warnings_.push_back(
          fmt::format("{}: the CPU time of the kernel's submission thread is not counted", setting::sqpoll));
    if (old_version_ > 0)
      warnings_.push_back(fmt::format(
          "{} reads found right units of version 1 of the pattern, written by an earlier doorbell: write them again",
          old_version_));
    if (s.changed_by_others && s.setup.verify && s.setup.read_io > 0)
      warnings_.push_back(fmt::format("{} has changed since doorbell wrote to it: {}", s.storage->name(),
                                      s.outdated ? "of what it held then nothing is expected any more"
                                                 : "most of its units are the same, the others are damage"));
    if (!s.bench->others().empty()) warnings_.push_back(s.bench->others());
    if (s.setup.write_io < o_.write_io)
      warnings_.push_back(
          fmt::format("only reads: writing to {} needs {}", s.storage->name(), setting::allow_write));
  }

  BenchOptions o_;
  const measure::RunWatch& watch_;
  std::string label_;
  bool stay_open_;
  u64 io_bytes_ = 0;
  u32 in_flight_ = 0;
  std::optional<measure::BenchRun> run_;
  std::unique_ptr<Session> session_;  // destroyed before its run
  double ns_per_tick_ = 1;
  measure::StatusName status_name_ = nullptr;
  u64 old_version_ = 0;
  bool by_header_ = false;  ///< what is read has nothing but its own headers to be checked by
  u64 unanswered_ = 0;      ///< times that the device did not let its queues go
  std::vector<std::string> warnings_;
  std::vector<std::string> errors_;
};

}  // namespace

std::unique_ptr<Contender> bench_contender(const BenchOptions& o, const measure::RunWatch& watch,
                                           const std::string& label, bool stay_open) {
  return std::make_unique<BenchContender>(o, watch, label, stay_open);
}

void check(const BenchOptions& o) {
  if (o.queue_length < 2) refuse(setting::queue_length, fmt::format("{} is less than 2", o.queue_length));
  (void)window_for(o, o.queue_length, {});
}

BenchResult run_bench(const BenchOptions& o, const measure::RunWatch& watch) {
  BenchContender bench(o, watch, "", true);
  measure::run_repeats(o, bench);
  return bench.finish();
}

}  // namespace doorbell::nvme
