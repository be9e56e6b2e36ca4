// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/bench/jobs.hpp"

#include <doorbell/error.hpp>
#include <doorbell/warp.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "measure/counters.hpp"
#include "measure/cpu_time.hpp"
#include "measure/other_run.hpp"
#include "qdma/bench/gpu_side.hpp"
#include "system/clock.hpp"

namespace doorbell::qdma {

namespace {

void poison(const Buffer& buffer) {
  pattern::poison(OneLane{}, buffer.data(), buffer.bytes());
}

/// Counts how a call ended. True if it has moved everything.
bool count_end(const TransferResult& r, u64 bytes, OpStats& stats) {
  ++stats.posted;
  if (r.error == 0 && r.bytes == bytes) return true;
  if (r.error == ETIMEDOUT) {
    ++stats.timed_out;
    stats.stop = StopReason::timeout;
  } else if (r.error == ENODEV) {
    ++stats.aborted;
    stats.stop = StopReason::removed;
  } else {
    ++stats.failed;
    count_status(stats, static_cast<u16>(kStatusOfErrno + static_cast<u32>(r.error)), 1);
  }
  return false;
}

TransferResult call(const Job& job, Direction direction, double deadline_s) {
  const CardPlace& p = *job.place;
  if (p.gpu != nullptr) return p.gpu->move(direction, p.address, deadline_s);
  return job.descriptor->transfers().transfer(direction, *p.buffer, 0, p.address, p.buffer->bytes(),
                                              deadline_s);
}

/// Remembers when this process did not run: it was stopped, or the machine had no processor for it. A call
/// is not late by such time, in which it could not be taken.
class Absence {
 public:
  Absence() : last_ns_(wall_ns()), thread_([this](const std::stop_token& stop) { watch(stop); }) {}

  /// Nanoseconds of absence between two times of wall_ns().
  [[nodiscard]] u64 within(u64 begin, u64 end) {
    const std::lock_guard lock(mutex_);
    look();
    u64 sum = 0;
    for (const Gap& g : gaps_)
      if (g.end > begin && g.begin < end) sum += std::min(g.end, end) - std::max(g.begin, begin);
    return sum;
  }

 private:
  static constexpr u64 kLookNs = 20'000'000;
  static constexpr std::size_t kMostGaps = 1024;  // of the latest, which are those of calls that end now
  struct Gap {
    u64 begin, end;
  };

  void look() {
    const u64 now = wall_ns();
    if (now - last_ns_ > 2 * kLookNs) gaps_.push_back({last_ns_ + kLookNs, now});
    if (gaps_.size() > kMostGaps) gaps_.pop_front();
    last_ns_ = now;
  }
  void watch(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      wake_.wait_for(lock, stop, std::chrono::nanoseconds(kLookNs), [] { return false; });
      look();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<Gap> gaps_;
  u64 last_ns_;
  std::jthread thread_;  // last: it uses what is above
};

/// One job's thread and what it counts.
class JobThread {
 public:
  JobThread(const Job& job, const JobLimits& limits, Absence& absence)
      : job_(job), limits_(limits), absence_(absence) {}

  void run(u32 number) {
    const measure::CpuTime cpu;
    stats_.begin_ns = wall_ns();
    stats_.end_ns = stats_.begin_ns;
    const u64 until = limits_.duration_s > 0 ? stats_.begin_ns + nanoseconds(limits_.duration_s) : 0;
    const u64 most = job_.calls != 0 ? job_.calls : limits_.iterations;
    for (u64 calls = 0; until != 0 ? stats_.end_ns < until : calls < most; ++calls) {
      if (limits_.stop != nullptr && limits_.stop->requested()) {
        stats_.stop = StopReason::requested;
        break;
      }
      if (limits_.before) between(limits_.before);
      const bool moved = transfer();
      if (moved && limits_.after) between(limits_.after);
      if (stats_.stop != StopReason::done) break;
    }
    cost_ = cpu.spent(fmt::format("job-{}", number));
    const double all = cost_.user_s + cost_.system_s;
    const double between = static_cast<double>(not_measured_cpu_ns_) * 1e-9;
    const double share = all > between ? (all - between) / all : 0;
    cost_.user_s *= share;
    cost_.system_s *= share;
  }

  [[nodiscard]] const Job& job() const { return job_; }
  [[nodiscard]] const OpStats& stats() const { return stats_; }
  [[nodiscard]] const CardTime& card_time() const { return card_time_; }
  [[nodiscard]] const measure::ThreadCost& cost() const { return cost_; }

  void add_to(measure::PhaseTally& tally) const {
    measure::PhaseOutcome one;
    one.queues = {stats_};
    one.threads = {cost_};
    tally.add(one, job_.place->buffer->bytes());
    tally.latency.merge(latency_);
  }

 private:
  [[nodiscard]] static u64 nanoseconds(double s) { return static_cast<u64>(s * 1e9); }

  void between(const BetweenCalls& what) {
    const u64 begin = wall_ns(), cpu = thread_cpu_ns();
    what(job_, stats_);
    not_measured_cpu_ns_ += thread_cpu_ns() - cpu;
    not_measured_ns_ += wall_ns() - begin;
  }

  bool transfer() {
    const u64 begin = wall_ns();
    const TransferResult r = call(job_, job_.direction, limits_.deadline_s);
    const u64 end = wall_ns(), took = end - begin;
    stats_.end_ns = end - not_measured_ns_;
    card_time_.add(job_.direction, r);
    const u64 late_after = nanoseconds(limits_.late_after_s);
    if (took > late_after && took - absence_.within(begin, end) > late_after) ++stats_.late;
    if (!count_end(r, job_.place->buffer->bytes(), stats_)) return false;
    ++stats_.succeeded;
    latency_.record(took);
    return true;
  }

  Job job_;
  JobLimits limits_;
  Absence& absence_;
  OpStats stats_;
  u64 not_measured_ns_ = 0, not_measured_cpu_ns_ = 0;
  measure::Histogram latency_;
  measure::ThreadCost cost_;
  CardTime card_time_;
};

[[noreturn]] void too_few_threads(std::size_t has, std::size_t wanted) {
  throw Error("threads", fmt::format("the system has {} of {}", has, wanted), "use fewer of them");
}

std::unique_ptr<Absence> watch_absence() try {
  return std::make_unique<Absence>();
} catch (const std::system_error&) {
  too_few_threads(0, 1);
}

/// All bytes, by the time of the job that took longest on the card.
template <class Wanted>
double card_rate(std::span<const std::unique_ptr<JobThread>> threads, Wanted wanted) {
  u64 bytes = 0, ns = 0;
  for (const auto& t : threads) {
    if (!wanted(t->job().direction)) continue;
    const CardTime& c = t->card_time();
    bytes += c.bytes[0] + c.bytes[1];
    ns = std::max(ns, c.ns[0] + c.ns[1]);
  }
  return ns > 0 ? static_cast<double>(bytes) * 1e9 / static_cast<double>(ns) : 0;
}

/// The jobs that `wanted` takes, as one population.
template <class Wanted>
measure::PhaseTally tally_of(std::span<const std::unique_ptr<JobThread>> threads, Wanted wanted) {
  measure::PhaseTally tally;
  u64 begin = ~u64{0}, end = 0;
  double counted = 0;
  for (const auto& t : threads) {
    if (!wanted(t->job().direction)) continue;
    t->add_to(tally);
    counted = std::max(counted, t->cost().wall_s);
    begin = std::min(begin, t->stats().begin_ns);
    end = std::max(end, t->stats().end_ns);
  }
  if (end > begin) tally.elapsed_s = static_cast<double>(end - begin) * 1e-9;
  tally.counted_s = std::max(counted, tally.elapsed_s);
  return tally;
}

}  // namespace

JobsOutcome run_jobs(std::span<const Job> jobs, const JobLimits& limits) {
  const std::unique_ptr<Absence> absence = watch_absence();
  std::vector<std::unique_ptr<JobThread>> work;
  work.reserve(jobs.size());
  for (const Job& job : jobs) work.push_back(std::make_unique<JobThread>(job, limits, *absence));
  std::barrier start(static_cast<std::ptrdiff_t>(jobs.size()));
  std::vector<std::thread> threads;
  threads.reserve(jobs.size());
  bool all_there = true;
  for (u32 i = 0; i < work.size() && all_there; ++i) try {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        if (all_there) work[i]->run(i);
      });
    } catch (const std::system_error&) {
      all_there = false;
    }
  // Those that wait for threads that are not there begin without them, and end.
  for (std::size_t missing = threads.size(); missing < work.size(); ++missing) start.arrive_and_drop();
  for (std::thread& t : threads) t.join();
  if (!all_there) too_few_threads(threads.size(), work.size());
  JobsOutcome out;
  const auto read = [](Direction d) { return d == Direction::card_to_host; };
  const auto write = [](Direction d) { return d == Direction::host_to_card; };
  const auto any = [](Direction) { return true; };
  out.read = tally_of(work, read);
  out.write = tally_of(work, write);
  out.total = tally_of(work, any);
  out.read_card_rate = card_rate(work, read);
  out.write_card_rate = card_rate(work, write);
  out.total_card_rate = card_rate(work, any);
  for (const auto& t : work) {
    out.stop = std::max(out.stop, t->stats().stop);
    out.jobs.push_back(t->stats());
  }
  return out;
}

void leave_out_queue_counts(report::Cell& cell) {
  cell.cost.doorbells_per_op.reset();
  cell.cost.polls_per_completion.reset();
  auto& own = cell.extra[cell.path];
  for (const char* const count :
       {"sq_doorbells_per_op", "cq_doorbells_per_op", "register_writes_per_op", "empty_polls"})
    own.erase(count);
}

void fill(CardPlace& place, u64 seed, u64 sequence) {
  place.sequence = sequence;
  pattern::fill(OneLane{}, place.buffer->data(), place.buffer->bytes(),
                {.seed = seed, .address = place.address, .sequence = sequence});
  if (place.gpu != nullptr) place.gpu->upload();
}

void poison(CardPlace& place) {
  poison(*place.buffer);
  if (place.gpu != nullptr) place.gpu->upload();
}

pattern::Verdict check(CardPlace& place, u64 seed, OpStats& stats) {
  if (place.gpu != nullptr) {
    poison(*place.buffer);
    place.gpu->download();
  }
  const pattern::Checked c =
      pattern::check(OneLane{}, place.buffer->data(), place.buffer->bytes(),
                     {.id = {.seed = seed, .address = place.address, .sequence = place.sequence}});
  ++stats.checked;
  if (c.verdict != pattern::Verdict::ok) {
    count_verdict(stats, stats, c.verdict, c.address, place.sequence);
    place.found =
        measure::writer_of(reinterpret_cast<const u32*>(place.buffer->data() + (c.address - place.address)));
    place.found_at = c.address;
  }
  return c.verdict;
}

void read_back(const Job& job, u64 seed, double deadline_s, OpStats& stats) {
  poison(*job.place);
  OpStats read;
  if (count_end(call(job, Direction::card_to_host, deadline_s), job.place->buffer->bytes(), read)) {
    check(*job.place, seed, stats);
    return;
  }
  measure::add_failed(stats, read);
  stats.stop = std::max(stats.stop, read.stop);
}

EachCallChecked each_call_checked(u64 seed, double deadline_s, std::atomic<u64>& sequence) {
  return {.before =
              [seed, &sequence](const Job& job, OpStats&) {
                if (job.direction == Direction::host_to_card) fill(*job.place, seed, ++sequence);
                else poison(*job.place);
              },
          .after =
              [seed, deadline_s](const Job& job, OpStats& stats) {
                if (job.direction == Direction::host_to_card) read_back(job, seed, deadline_s, stats);
                else check(*job.place, seed, stats);
              }};
}

}  // namespace doorbell::qdma
