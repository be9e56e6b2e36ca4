// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/bench/validate.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "measure/counters.hpp"
#include "measure/other_run.hpp"
#include "model/copy_allowance.hpp"
#include "qdma/bench/gpu_side.hpp"
#include "qdma/bench/host_facts.hpp"
#include "qdma/bench/jobs.hpp"
#include "qdma/bench/validate_plan.hpp"
#include "qdma/model/card.hpp"
#include "qdma/settings.hpp"
#include "system/available_memory.hpp"
#include "system/clock.hpp"
#include "system/run_identity.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma {

namespace {

using Phase = ValidatePhase;

/// By it and CopyAllowance::kSlack, 256 MB a second in all is no reason to call a card's transfers late.
constexpr u64 kExpectedBytesPerS = u64{2} << 30;

/// How long queue pairs that are in use are awaited.
constexpr u64 kBusyNs = 500'000'000;

/// Bytes of transfers that are under way together, at most.
u64 most_under_way(const ValidateOptions& o) {
  return places(o) * buffer_bytes_of(o, true);
}

u64 place_offset(const ValidateOptions& o, u32 position, u64 distance) {
  if (!o.paired) return o.starting_offset + position * distance;
  return o.starting_offset + position / 2 * distance + position % 2 * o.region_stride;
}

/// All queue pairs are in use, or all that this user may have.
struct NoQueuePairs : Error {
  using Error::Error;
};

/// The whole run on one open card.
class Validation {
 public:
  Validation(const ValidateOptions& o, const measure::RunWatch& watch)
      : o_(o),
        watch_(watch),
        allowance_(model::CopyAllowance::measured(most_under_way(o), lowest_model_rate(o.device))),
        driver_(open_driver({.spec = o.device,
                             .use = use(),
                             .patience = {.limit_s = o.timeout_s, .stop = watch.stop, .gives_up = true}})),
        memory_(o.device, driver_, o.card.access),
        card_(card_over(driver_)),
        bdf_(card_.info().bdf.data()),
        model_(driver_->kind() == "model"),
        buffer_bytes_(buffer_bytes_of(o, model_)),
        distance_(o.offset != 0 ? o.offset : std::max(kLargestValidateBuffer, buffer_bytes_)),
        sequence_(first_sequence()),
        others_(o.seed, sequence_) {
    if (!model_) allowance_.saw(kExpectedBytesPerS, 1);
    // Places need not be further apart than the memory allows.
    if (o.offset == 0)
      while (distance_ > buffer_bytes_ && !fits(distance_)) distance_ /= 2;
    require_memory(memory_of(o, buffer_bytes_, model_),
                   fmt::format("{}, {}", setting::threads, setting::buffer_bytes),
                   fmt::format("{} buffers of {} bytes", places(o), buffer_bytes_));
    if (!memory_.given())
      for (const MemorySet& set : memory_sets(o)) check_places(set);
    find_places();
    if (uses_gpu(o)) gpu_ = gpu::open(o.gpu);
    for (u32 i = 0; i < places(o); ++i) buffers_.push_back(card_.create_buffer(buffer_bytes_));
  }

  void run(measure::BenchResult& result) {
    all_sets(result);
    if (others_.known()) result.warnings.push_back(others_.text());
    if (queue_pairs_ != kAllQueuePairs)
      result.warnings.push_back(fmt::format(
          "threads share queue pairs, so that rates are theirs together: no more than {} were free for up to {} transfers",
          queue_pairs_, places(o_)));
  }

 private:
  void all_sets(measure::BenchResult& result) {
    if (o_.buffer_bytes == 0 && buffer_bytes_ < kLargestValidateBuffer)
      result.warnings.push_back(fmt::format(
          "{} was not given: {} bytes are what half of the memory available holds, in place of {}",
          setting::buffer_bytes, buffer_bytes_, kLargestValidateBuffer));
    for (const MemorySet& set : memory_sets(o_)) {
      std::vector<CardPlace> all = make_places(set);
      const bool written = written_and_read(set, all, result);
      look_for_others(all);
      if (!written) return;
      for (const auto& [phase, layout] : measured_phases(o_, set)) {
        if (of_gpu(phase)) make_gpu_sides(all);
        const bool going = bandwidth(set, all, phase, layout, result);
        look_for_others(all);
        // Their queue pairs are needed elsewhere.
        for (CardPlace& p : all) p.gpu = nullptr;
        gpu_sides_.clear();
        if (!going) return;
      }
    }
  }
  void look_for_others(const std::vector<CardPlace>& all) {
    for (const CardPlace& p : all)
      if (p.found) others_.found(driver_->name(), p.found_at, *p.found, sequence_ + 1);
  }

  /// A model's late completions are later than what large transfers may take.
  [[nodiscard]] model::Use use() const {
    model::Use u = o_.use(places(o_), places(o_), false);
    u.late_ns += static_cast<u64>(allowance_.seconds(most_under_way(o_)) * 1e9);
    return u;
  }

  /// Makes what needs queue pairs of its own. A card may take some time until it has those of the phase
  /// before back.
  template <class Make>
  auto with_queue_pairs(Make make) const {
    for (const u64 until = wall_ns() + kBusyNs;;) try {
        return make();
      } catch (const CardError& e) {
        if (e.number() != EBUSY && e.number() != EDQUOT) throw;
        if (wall_ns() < until && !(watch_.stop != nullptr && watch_.stop->requested())) {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          continue;
        }
        throw NoQueuePairs(
            setting::threads,
            fmt::format("{} need up to {} queue pairs: {}", o_.threads, places(o_) * kMaxDescriptorQueuePairs,
                        e.what()),
            e.hint().empty() ? "use fewer, or wait until other programs have given theirs back" : e.hint());
      }
  }

  void make_gpu_sides(std::vector<CardPlace>& all) {
    for (u32 i = 0; i < o_.threads; ++i) {
      CardUse use = o_.card;
      use.channels = channels(Layout::given, i, Direction::card_to_host);
      gpu_sides_.push_back(with_queue_pairs(
          [&] { return std::make_unique<GpuSide>(card_, use, buffers_[i], gpu_, o_.gpu_chunk); }));
      all[i].gpu = gpu_sides_.back().get();
    }
  }
  [[nodiscard]] bool fits(u64 distance) const {
    for (const MemorySet& set : memory_sets(o_))
      for (u32 i = 0; i < places(o_); ++i)
        if (place_offset(o_, i, distance) + buffer_bytes_ > set.memories[0].bytes) return false;
    return true;
  }

  void check_places(const MemorySet& set) const {
    for (u32 i = 0; i < places(o_); ++i) {
      const u64 end = place_offset(o_, i, distance_) + buffer_bytes_;
      if (end > set.memories[0].bytes)
        throw Error(fmt::format("{}, {}, {}", setting::threads, setting::offset, setting::starting_offset),
                    fmt::format("place {} of {} ends at byte {} of {}, which has {}", i + 1, places(o_), end,
                                set.name, set.memories[0].bytes),
                    "there are two places for each thread");
    }
    if (o_.paired && places(o_) / 2 * distance_ > o_.region_stride)
      throw Error(setting::region_stride,
                  fmt::format("{} is less than {}, what the places of one channel span", o_.region_stride,
                              places(o_) / 2 * distance_));
  }

  /// Those of all sets: each memory by itself uses all of its places, both together the first ones of each.
  void find_places() {
    for (const MemorySet& set : memory_sets(o_))
      for (const MemoryPart& m : set.memories) {
        std::vector<u64>& all = addresses_[m.name];
        for (u32 i = static_cast<u32>(all.size()); i < places(o_) / set.memories.size(); ++i)
          all.push_back(
              memory_.place(m, place_offset(o_, i, distance_), buffer_bytes_, setting::buffer_bytes));
      }
  }

  /// Of two memories, half of the places are in each.
  std::vector<CardPlace> make_places(const MemorySet& set) {
    std::vector<CardPlace> all;
    const auto each = static_cast<u32>(places(o_) / set.memories.size());
    for (const MemoryPart& m : set.memories)
      for (u32 i = 0; i < each; ++i)
        all.push_back({fmt::format("{}{}", m.name == "ddr" ? "DDR" : "HBM", i), m, addresses_.at(m.name)[i],
                       &buffers_[all.size()], 0});
    return all;
  }

  [[nodiscard]] Channels channels(Layout layout, u32 position, Direction direction) const {
    if (layout == Layout::given)
      return o_.channels.empty() ? Channels::both : o_.channels[position % o_.channels.size()];
    // Thread k's read and write are at places 2k and 2k + 1.
    const u32 channel = position / 2 % 2;
    const bool other = layout == Layout::crossed && direction == Direction::host_to_card;
    return (other ? 1 - channel : channel) == 0 ? Channels::only0 : Channels::only1;
  }

  /// The jobs of a phase and the descriptors that they use.
  struct JobSet {
    struct Shared {
      Channels channels;
      std::unique_ptr<ChannelDescriptor> descriptor;
      u32 users = 0;
    };
    std::vector<Shared> descriptors;
    std::vector<Job> jobs;
    u32 queue_pairs = 0;
  };
  /// One of its own for each job, as long as there are queue pairs; further jobs use those of the others,
  /// which any number of threads may.
  JobSet::Shared& descriptor_for(JobSet& set, const CardUse& use) {
    const u32 needed = use.channels == Channels::both ? 2 : 1;
    const auto least = std::ranges::min_element(
        set.descriptors, {}, [&](const auto& d) { return std::pair(d.channels != use.channels, d.users); });
    const bool other = least != set.descriptors.end() && least->channels == use.channels;
    if (other && set.queue_pairs + needed > queue_pairs_) return *least;
    try {
      set.descriptors.push_back(
          {use.channels, with_queue_pairs([&] { return std::make_unique<ChannelDescriptor>(card_, use); })});
      set.queue_pairs += needed;
      return set.descriptors.back();
    } catch (const NoQueuePairs&) {
      if (!other) throw;
      queue_pairs_ = set.queue_pairs;
      return *least;
    }
  }
  void add_job(JobSet& set, CardPlace& place, u32 position, Direction direction, Layout layout) {
    CardUse use = o_.card;
    use.channels = channels(layout, position, direction);
    JobSet::Shared& own = descriptor_for(set, use);
    ++own.users;
    set.jobs.push_back({&place, direction, own.descriptor.get()});
  }
  JobSet jobs_of(std::vector<CardPlace>& all, Phase phase, Layout layout) {
    JobSet set;
    // Each direction alone has as many threads in each memory as there are; a read and a write together
    // take turns over the places.
    const auto in_each = static_cast<u32>(all.size()) / 2;
    for (u32 i = 0; i < all.size(); ++i) {
      if (phase == Phase::duplex) {
        add_job(set, all[i], i, i % 2 == 0 ? Direction::card_to_host : Direction::host_to_card, layout);
      } else if (of_gpu(phase)) {
        // Its GPU's side has the descriptor.
        if (all[i].gpu != nullptr)
          set.jobs.push_back(
              {&all[i], reads(phase) ? Direction::card_to_host : Direction::host_to_card, nullptr});
      } else if (both_memories(all) || i < in_each) {
        add_job(set, all[i], i, reads(phase) ? Direction::card_to_host : Direction::host_to_card, layout);
      }
    }
    return set;
  }
  static bool both_memories(const std::vector<CardPlace>& all) {
    return all.front().memory.name != all.back().memory.name;
  }

  /// Of each of so many jobs at the same time.
  [[nodiscard]] JobLimits limits(std::size_t jobs, u64 iterations, double duration_s) const {
    const double more = allowance_.seconds(jobs * buffer_bytes_);
    return {iterations, duration_s, o_.timeout_s + more, o_.late_after_s + more, watch_.stop};
  }
  JobsOutcome carry_out(measure::BenchRun& run, std::span<const Job> jobs, const JobLimits& limits) {
    JobsOutcome out = run_jobs(jobs, limits);
    run.stopped(out.stop);
    // Injected faults take time of their own.
    if (out.stop == StopReason::done && !o_.faults.any())
      allowance_.saw(out.total.bytes, out.total.elapsed_s);
    return out;
  }

  /// The integrity phase. Where it was not asked for it is still what later reads find, and is reported only
  /// if it fails.
  bool written_and_read(const MemorySet& set, std::vector<CardPlace>& all, measure::BenchResult& result) {
    measure::BenchResult own;
    const bool going = integrity(set, all, own);
    if (!going || own.failed || o_.phase.value_or(Phase::integrity) == Phase::integrity)
      result.append(std::move(own));
    return going;
  }

  /// Everything is written before anything is read, so that places which are one place are found.
  bool integrity(const MemorySet& set, std::vector<CardPlace>& all, measure::BenchResult& result) {
    measure::BenchRun run(o_, watch_, "qdma", buffer_bytes_, true);
    progress(set, Phase::integrity, Layout::given);
    JobSet work;
    for (u32 i = 0; i < all.size(); ++i) {
      add_job(work, all[i], i, Direction::host_to_card, Layout::given);
      fill(all[i], o_.seed, ++sequence_);
    }
    const JobsOutcome written = carry_out(run, work.jobs, limits(all.size(), 1, 0));
    for (CardPlace& p : all) poison(p);
    measure::RepeatTally t;
    measure::PhaseTally& part = t.part("integrity");
    part = written.total;
    nlohmann::ordered_json verdicts = nlohmann::ordered_json::array();
    if (written.stop == StopReason::done) {
      for (Job& j : work.jobs) j.direction = Direction::card_to_host;
      const JobsOutcome back = carry_out(run, work.jobs, limits(all.size(), 1, 0));
      part.add(back.total);
      for (std::size_t i = 0; i < all.size(); ++i) {
        std::string verdict = "not transferred";
        if (written.jobs[i].succeeded == 1 && back.jobs[i].succeeded == 1) {
          const pattern::Verdict v = check(all[i], o_.seed, part.sum);
          verdict = v == pattern::Verdict::ok ? "ok" : measure::verdict_name(v);
        }
        verdicts.push_back({{"place", all[i].name}, {"address", all[i].address}, {"verdict", verdict}});
      }
    }
    run.repeat(0, std::move(t));
    return deliver(run, set, Phase::integrity, Layout::given, 0, {{"places", verdicts}}, {}, result);
  }

  bool bandwidth(const MemorySet& set, std::vector<CardPlace>& all, Phase phase, Layout layout,
                 measure::BenchResult& result) {
    measure::BenchRun run(o_, watch_, "qdma", buffer_bytes_, true);
    JobSet work = jobs_of(all, phase, layout);
    std::vector<Directions> repeats;
    calls_ = {};
    struct Repeats {
      Validation& v;
      measure::BenchRun& run;
      JobSet& work;
      std::vector<Directions>& repeats;
      void warm_up() { run.warm_up(v.measured(run, work, v.o_.warmup_s, 1, nullptr)); }
      void repeat(u32 n) { run.repeat(n, v.measured(run, work, v.o_.duration_s, v.o_.iterations, &repeats)); }
      [[nodiscard]] bool going() const { return run.going(); }
    };
    progress(set, phase, layout);
    measure::run_repeats(o_, Repeats{*this, run, work, repeats});
    nlohmann::ordered_json more = {{"calls",
                                    {{"measured", calls_.measured},
                                     {"measured_checked", calls_.measured_checked},
                                     {"others_checked", calls_.others_checked}}}};
    if (of_gpu(phase))
      more["copy_engine_bytes_per_s"] = copy_engine_rate(
          *gpu_, gpu_sides_, reads(phase) ? Direction::card_to_host : Direction::host_to_card);
    return deliver(run, set, phase, layout, work.jobs.size(), std::move(more), repeats, result);
  }

  /// Calls of a phase, all repeats together.
  struct Calls {
    u64 measured = 0, measured_checked = 0, others_checked = 0;
  };

  struct Directions {
    measure::PhaseTally read, write;
    double read_card_rate, write_card_rate, total_card_rate;
  };

  /// The jobs' own times on the card say nothing of how they overlap: no rate is above what the limit at work
  /// for longest has let through. Without the card's counters the times of several jobs are worth nothing.
  void limit_card_rates(JobsOutcome& out, std::size_t jobs, const nlohmann::ordered_json& before,
                        const nlohmann::ordered_json& after) const {
    if (!after.is_object()) {
      if (jobs > 1) out.read_card_rate = out.write_card_rate = out.total_card_rate = 0;
      return;
    }
    if (!after.contains("busy_ns")) return;
    const auto limit = [&](double& rate, u64 operations, std::string_view way) {
      double busy = 0;
      for (const auto& [name, ns] : after.at("busy_ns").items())
        if (name.ends_with(way))
          busy = std::max(busy, ns.get<double>() - before.at("busy_ns").at(name).get<double>());
      if (busy > 0)
        rate =
            std::min(rate, static_cast<double>(operations) * static_cast<double>(buffer_bytes_) * 1e9 / busy);
    };
    limit(out.read_card_rate, out.read.sum.succeeded, "card_to_host");
    limit(out.write_card_rate, out.write.sum.succeeded, "host_to_card");
    limit(out.total_card_rate, out.total.sum.succeeded, "");
  }

  measure::RepeatTally measured(measure::BenchRun& run, JobSet& work, double seconds, u64 iterations,
                                std::vector<Directions>* keep) {
    for (const Job& j : work.jobs) {
      if (!o_.verify) continue;
      if (j.direction == Direction::card_to_host) poison(*j.place);
      else fill(*j.place, o_.seed, ++sequence_);
    }
    const auto before = driver_->counters();
    JobsOutcome out = carry_out(run, work.jobs, limits(work.jobs.size(), iterations, seconds));
    limit_card_rates(out, work.jobs.size(), before, driver_->counters());
    if (keep != nullptr)
      keep->push_back({out.read, out.write, out.read_card_rate, out.write_card_rate, out.total_card_rate});
    measure::RepeatTally t;
    measure::PhaseTally& part = t.part("total");
    part = std::move(out.total);
    if (keep != nullptr) calls_.measured += part.sum.posted;
    if (!o_.verify || out.stop != StopReason::done) return t;
    const u64 before_last = part.sum.checked;
    verify(run, work, out.jobs, part.sum);
    if (keep == nullptr) return t;
    calls_.measured_checked += part.sum.checked - before_last;
    if (run.going()) check_others(run, work, out.jobs, part.sum);
    return t;
  }

  /// Reads find what was written before; writes are read back. This is each job's last call.
  void verify(measure::BenchRun& run, JobSet& work, const std::vector<OpStats>& done, OpStats& sum) {
    std::vector<Job> back;
    for (std::size_t i = 0; i < work.jobs.size(); ++i) {
      if (done[i].succeeded == 0 || done[i].failed != 0) continue;
      if (work.jobs[i].direction == Direction::card_to_host) {
        check(*work.jobs[i].place, o_.seed, sum);
        continue;
      }
      back.push_back(work.jobs[i]);
      back.back().direction = Direction::card_to_host;
      poison(*back.back().place);
    }
    if (back.empty()) return;
    const JobsOutcome out = carry_out(run, back, limits(back.size(), 1, 0));
    for (std::size_t i = 0; i < back.size(); ++i) {
      const OpStats& s = out.jobs[i];
      if (s.succeeded == 1) check(*back[i].place, o_.seed, sum);
      else if (s.posted == 0) ++sum.unverifiable;  // the run was stopped before
      else measure::add_failed(sum, s);
    }
  }

  /// Every call but the last of a measurement has had its data overwritten unchecked. As many calls are made
  /// again, with a check after each.
  void check_others(measure::BenchRun& run, JobSet& work, const std::vector<OpStats>& done, OpStats& sum) {
    std::vector<Job> again;
    for (std::size_t i = 0; i < work.jobs.size(); ++i) {
      if (done[i].posted < 2) continue;
      again.push_back(work.jobs[i]);
      again.back().calls = done[i].posted - 1;
    }
    if (again.empty()) return;
    JobLimits l = limits(again.size(), 1, 0);
    EachCallChecked each = each_call_checked(o_.seed, l.deadline_s, sequence_);
    l.before = std::move(each.before);
    l.after = std::move(each.after);
    const JobsOutcome out = carry_out(run, again, l);
    for (const OpStats& s : out.jobs) {
      calls_.others_checked += s.checked;
      sum.checked += s.checked;
      for (const measure::OpCounter& c : measure::counters_of<measure::CounterClass::failure>())
        sum.*c.field += s.*c.field;
      measure::add_failed(sum, s);
    }
  }

  bool deliver(measure::BenchRun& run, const MemorySet& set, Phase phase, Layout layout, std::size_t threads,
               nlohmann::ordered_json more, const std::vector<Directions>& repeats,
               measure::BenchResult& result) {
    run.finish(1, false,
               [](u16 code) -> std::string { return errno_name(code - static_cast<int>(kStatusOfErrno)); });
    leave_out_queue_counts(run.cell());
    report::Cell& cell = run.describe(driver_->kind(), driver_->name(), true);
    cell.cell = {
        {"memory", set.name},
        {"phase", name(phase)},
        {"channels", phase == Phase::integrity || layout == Layout::given ? given_channels() : name(layout)},
        {"threads", threads == 0 ? places(o_) : threads},
        {"buffer_bytes", buffer_bytes_},
        {"offset_bytes", memory_.given() ? 0 : distance_},
        {"ring_size_index", o_.card.ring_index},
        {"ring_entries", kRingEntries[o_.card.ring_index]}};
    cell.parts.clear();
    if (!repeats.empty()) {
      const Directions& median = repeats[measure::median_repeat(cell.repeats)];
      if (phase == Phase::duplex || reads(phase)) cell.parts.emplace_back("read", median.read.metrics());
      if (phase == Phase::duplex || !reads(phase)) cell.parts.emplace_back("write", median.write.metrics());
      if (median.total_card_rate > 0)
        cell.extra["qdma"]["by_card_clock"] = {{"read_bytes_per_s", median.read_card_rate},
                                               {"write_bytes_per_s", median.write_card_rate},
                                               {"total_bytes_per_s", median.total_card_rate}};
    }
    if (!more.is_null()) cell.extra["qdma"].update(more);
    cell.extra["host"] = host_facts(bdf_, "/");
    if (auto counters = driver_->counters(); !counters.is_null()) cell.extra[driver_->kind()] = counters;
    const bool going = run.going();
    run.deliver(result, fmt::format("{} {}: ", set.name, name(phase)));
    return going;
  }

  [[nodiscard]] std::string given_channels() const {
    if (o_.channels.empty()) return fmt::format("auto ({})", qdma::name(o_.card.policy));
    std::string text;
    for (const Channels c : o_.channels)
      text += (text.empty() ? "" : ",") + channel_names()[static_cast<u32>(c)];
    return text;
  }

  void progress(const MemorySet& set, Phase phase, Layout layout) const {
    if (watch_.progress) watch_.progress(0, fmt::format("{} {} {}", set.name, name(phase), name(layout)));
  }

  const ValidateOptions& o_;
  const measure::RunWatch& watch_;
  model::CopyAllowance allowance_;
  std::shared_ptr<Driver> driver_;
  RunMemory memory_;
  Card card_;
  const std::string bdf_;  // read before anything is measured: a card that goes keeps its cells
  bool model_;
  u64 buffer_bytes_;
  u64 distance_;
  std::map<std::string_view, std::vector<u64>> addresses_;  ///< of the places, by memory
  static constexpr u32 kAllQueuePairs = ~u32{0};
  u32 queue_pairs_ = kAllQueuePairs;  ///< that are there for a phase, once more were not
  Calls calls_;
  std::atomic<u64> sequence_;
  measure::OtherRun others_;
  std::vector<Buffer> buffers_;
  std::shared_ptr<gpu::Gpu> gpu_;
  std::vector<std::unique_ptr<GpuSide>> gpu_sides_;  ///< of the first buffers, one for each thread
};

}  // namespace

void check(const ValidateOptions& o) {
  const Setting& size = setting::buffer_bytes;
  check_access(o.device, o.card.access);
  if (o.starting_offset != 0) check_access(o.device, o.card.access, setting::starting_offset);
  if (o.offset != 0) check_access(o.device, o.card.access, setting::offset);
  if (o.paired) check_access(o.device, o.card.access, setting::channel_allocation);
  if (!o.hbm && !o.ddr)
    throw Error(fmt::format("{}, {}", setting::ddr_only, setting::hbm_only), "they exclude each other",
                "give one of them");
  if (!o.each && !(o.hbm && o.ddr))
    throw Error(setting::together_only, "it needs both memories",
                fmt::format("leave out {} and {}", setting::ddr_only, setting::hbm_only));
  if (!o.each && uses_gpu(o))
    throw Error(setting::together_only, "GPU memory is measured with each memory by itself",
                "leave one of them out");
  if (o.buffer_bytes > kLargestValidateBuffer)
    throw Error(size, fmt::format("{} is not in {}..{}", o.buffer_bytes, kGranule, kLargestValidateBuffer));
  const u64 buffer = o.buffer_bytes;
  if (o.offset != 0 && o.offset < buffer)
    throw Error(setting::offset,
                fmt::format("{} is less than {} {}: places would overlap", o.offset, size, buffer));
  if (o.offset != 0 && buffer == 0)
    throw Error(setting::offset, fmt::format("it belongs to a {}", size),
                fmt::format("give {} as well", size));
  if (o.channels.size() > 1 && o.channels.size() != places(o))
    throw Error(setting::channels,
                fmt::format("a list has one entry for each of the {} places, and this one has {}", places(o),
                            o.channels.size()),
                "there are two places for each thread");
}

measure::BenchResult validate(const ValidateOptions& o, const measure::RunWatch& watch) {
  check(o);
  measure::BenchResult result;
  try {
    Validation(o, watch).run(result);
  } catch (const Error& e) {
    measure::ended_by(e, watch, result);
  }
  return result;
}

}  // namespace doorbell::qdma
