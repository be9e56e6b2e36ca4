// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/bench/tune.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "measure/counters.hpp"
#include "measure/in_turns.hpp"
#include "measure/other_run.hpp"
#include "model/copy_allowance.hpp"
#include "qdma/bench/jobs.hpp"
#include "qdma/model/card.hpp"
#include "qdma/settings.hpp"
#include "report/cell_table.hpp"
#include "report/layout.hpp"
#include "system/run_identity.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma {

namespace {

constexpr u64 kBytesARepeat = u64{16} << 20;
constexpr u64 kMostCalls = 400, kLeastCalls = 8;
constexpr u64 kSequencesOfAWay = u64{1} << 32;  // more than its calls: two ways never write the same bytes
constexpr double kCallS = 30e-6;                // about, of a call of a software card that moves nothing
constexpr double kLevel = 0.95;                 // of an interval that a break-even is said by

/// One way to make the same calls.
class Way final : public measure::Contender {
 public:
  Way(const TuneOptions& o, const measure::RunWatch& watch, Driver& driver, Card& card, std::string label,
      const CardUse& use, u64 address, u64 bytes, double more_s, u64 sequence,
      const measure::OtherRun& others)
      : o_(o),
        watch_(watch),
        driver_(driver),
        label_(std::move(label)),
        buffer_(card.create_buffer(bytes)),
        descriptor_(card, use),
        place_{label_, use.memory, address, &buffer_, 0},
        more_s_(more_s),
        sequence_(sequence),
        others_(others),
        run_(o, watch, "qdma", bytes, true) {}

  [[nodiscard]] std::string label() const override { return label_; }
  void warm_up() override { run_.warm_up(calls(o_.warmup_s)); }
  void repeat(u32 number) override { run_.repeat(number, calls(o_.duration_s)); }
  [[nodiscard]] bool going() const override { return run_.going(); }

  [[nodiscard]] measure::BenchResult finish() override {
    run_.finish(1, false,
                [](u16 code) -> std::string { return errno_name(code - static_cast<int>(kStatusOfErrno)); });
    leave_out_queue_counts(run_.cell());
    report::Cell& cell = run_.describe(driver_.kind(), driver_.name(), o_.verify);
    cell.cell = {{"op", o_.direction == Direction::host_to_card ? "put" : "get"},
                 {"memory", place_.memory.name},
                 {"way", label_},
                 {"size_bytes", buffer_.bytes()},
                 {"ring_size_index", o_.card.ring_index}};
    measure::BenchResult result;
    run_.deliver(result, fmt::format("{} bytes, {}: ", cell.cell.at("size_bytes").dump(), label_));
    if (others_.known()) result.warnings.push_back(others_.text());
    return result;
  }

 private:
  JobsOutcome run(Direction direction, JobLimits limits) {
    limits.deadline_s = o_.timeout_s + more_s_;
    limits.late_after_s = o_.late_after_s + more_s_;
    limits.stop = watch_.stop;
    const Job job = {&place_, direction, &descriptor_};
    return run_jobs({&job, 1}, limits);
  }

  /// Calls in one direction. What makes, fetches and compares data between them is not part of the time.
  measure::RepeatTally calls(double seconds) {
    measure::RepeatTally t;
    measure::PhaseTally& part = t.part(label_);
    fill(place_, o_.seed, ++sequence_);
    if (o_.direction == Direction::card_to_host &&
        !errors_of(run(Direction::host_to_card, {.iterations = 1}), part.sum))
      return t;
    JobLimits limits{.iterations = calls_of_a_repeat(o_, buffer_.bytes()), .duration_s = seconds};
    if (o_.verify) {
      EachCallChecked each = each_call_checked(o_.seed, o_.timeout_s + more_s_, sequence_);
      limits.before = std::move(each.before);
      limits.after = std::move(each.after);
    }
    JobsOutcome out = run(o_.direction, std::move(limits));
    run_.stopped(out.stop);
    if (place_.found)
      others_.found(driver_.name(), place_.found_at, *place_.found, sequence_ + kSequencesOfAWay);
    part.add(out.total);
    return t;
  }

  /// Adds what went wrong in a transfer that is not measured; true if nothing did.
  bool errors_of(const JobsOutcome& out, OpStats& sum) {
    run_.stopped(out.stop);
    const OpStats& s = out.jobs.front();
    if (s.succeeded == 1) return true;
    measure::add_failed(sum, s);
    return false;
  }

  const TuneOptions& o_;
  const measure::RunWatch& watch_;
  Driver& driver_;
  std::string label_;
  Buffer buffer_;
  ChannelDescriptor descriptor_;
  CardPlace place_;
  double more_s_;  ///< that a call may take besides the limits of the options
  std::atomic<u64> sequence_;
  measure::OtherRun others_;
  measure::BenchRun run_;
};

/// The interval of the median of split's rate to whole's; null where there is none.
nlohmann::ordered_json interval_of(const report::Cell& whole) {
  const auto& ratios = whole.extra.at("beside");
  return ratios.contains("ops_per_s_ratio") ? ratios.at("ops_per_s_ratio") : nlohmann::ordered_json();
}

/// The lowest factor by which splitting is faster; 0 where too few repeats say nothing for sure.
double surely_faster(const report::Cell& whole) {
  const auto interval = interval_of(whole);
  if (interval.is_null() || interval.at("ci_level").get<double>() < kLevel) return 0;
  return interval.at("ci_low").get<double>();
}

/// Of the cells' intervals, the one that says least.
double lowest_level(const std::vector<report::Cell>& cells) {
  double lowest = 1;
  for (std::size_t i = 1; i < cells.size(); i += 2) {
    const auto interval = interval_of(cells[i]);
    lowest = std::min(lowest, interval.is_null() ? 0 : interval.at("ci_level").get<double>());
  }
  return lowest;
}

/// `cells`: split and whole in turn, by growing size. Null if splitting never surely pays, and where some
/// size's repeats carry no interval.
nlohmann::ordered_json break_even(const std::vector<report::Cell>& cells) {
  nlohmann::ordered_json found;
  if (lowest_level(cells) < kLevel) return found;
  for (std::size_t i = cells.size(); i >= 2; i -= 2) {
    if (surely_faster(cells[i - 1]) <= 1) break;
    found = cells[i - 1].cell.at("size_bytes");
  }
  return found;
}

std::string cannot_say(std::size_t repeats, double level) {
  const std::string has = level > 0
                              ? fmt::format("{} repeats give intervals of {:.1f} %", repeats, 100 * level)
                              : std::string("one repeat gives no interval");
  return fmt::format("break-even: cannot say: {}, and it takes those of {:.0f} %, which 6 repeats give\n",
                     has, 100 * kLevel);
}

}  // namespace

void check(const TuneOptions& o) {
  check_access(o.device, o.card.access);
  if (o.card.starting_offset != 0) check_access(o.device, o.card.access, setting::starting_offset);
  for (const auto& [name, bytes] : {std::pair{setting::smallest, o.smallest}, {setting::largest, o.largest}})
    if (!std::has_single_bit(bytes) || bytes < 2 * kGranule)
      throw Error(name, fmt::format("{} is not a power of two from {} on", bytes, 2 * kGranule));
  if (o.smallest > o.largest)
    throw Error(setting::smallest,
                fmt::format("{} is more than {} {}", o.smallest, setting::largest, o.largest));
}

u64 calls_of_a_repeat(const TuneOptions& o, u64 bytes) {
  return o.iterations != 0 ? o.iterations : std::clamp(kBytesARepeat / bytes, kLeastCalls, kMostCalls);
}

double repeat_seconds(const TuneOptions& o) {
  const double rate = expected_rate(o.device);
  if (rate <= 0) return 0;
  double all_s = 0;
  u32 sizes = 0;
  for (u64 bytes = o.smallest; bytes <= o.largest; bytes *= 2, ++sizes)
    all_s += static_cast<double>(calls_of_a_repeat(o, bytes)) * (kCallS + static_cast<double>(bytes) / rate);
  return all_s / sizes;
}

measure::BenchResult tune(const TuneOptions& o, const measure::RunWatch& watch) {
  check(o);
  const std::shared_ptr<Driver> driver =
      open_driver({.spec = o.device,
                   .use = o.use(2, 1, false),
                   .patience = {.limit_s = o.timeout_s, .stop = watch.stop, .gives_up = true}});
  Card card = card_over(driver);
  RunMemory memory(o.device, driver, o.card.access);
  const u64 address = memory.place(o.card.memory, o.card.starting_offset, o.largest, setting::largest);
  CardUse whole = o.card, split = o.card;
  whole.channels = split.channels = Channels::both;
  whole.policy = PolicyKind::channel0;
  split.policy = PolicyKind::balanced;
  split.balanced.smallest_split = 0;
  const auto allowance = driver->kind() == "model"
                             ? model::CopyAllowance::measured(o.largest, lowest_model_rate(o.device))
                             : model::CopyAllowance();
  u64 sequence = first_sequence();
  const measure::OtherRun others(o.seed, sequence);
  measure::BenchResult result;
  for (u64 bytes = o.smallest; bytes <= o.largest && result.stop_reason == StopReason::done; bytes *= 2) {
    try {
      if (watch.progress) watch.progress(0, fmt::format("{} bytes", bytes));
      const double more_s = allowance.seconds(bytes);
      Way both(o, watch, *driver, card, "split", split, address, bytes, more_s, sequence += kSequencesOfAWay,
               others);
      Way one(o, watch, *driver, card, "whole", whole, address, bytes, more_s, sequence += kSequencesOfAWay,
              others);
      for (measure::BenchResult& r : measure::run_in_turns(o, watch, {&both, &one}))
        result.append(std::move(r));
    } catch (const Error& e) {
      measure::ended_by(e, watch, result);
    }
  }
  if (auto counters = driver->counters(); !counters.is_null() && !result.cells.empty())
    result.cells.back().extra[driver->kind()] = counters;
  if (result.stop_reason == StopReason::done) {
    const auto bytes = break_even(result.cells);
    const double level = lowest_level(result.cells);
    result.cells.back().extra["tune"] = {{"break_even", level < kLevel    ? "unknown"
                                                        : bytes.is_null() ? "none"
                                                                          : "found"},
                                         {"smallest_split_bytes", bytes},
                                         {"largest_measured_bytes", o.largest},
                                         {"interval_level", level}};
  }
  return result;
}

std::string tune_text(const report::Result& result, const std::string& smallest_split) {
  std::string out;
  std::vector<std::vector<std::string>> rows = {
      {"bytes", "one channel us", "split us", "split is faster by", "interval"}};
  for (std::size_t i = 1; i < result.cells.size(); i += 2) {
    const report::Cell &split = result.cells[i - 1], &whole = result.cells[i];
    const auto& ratios = whole.extra.at("beside");
    std::string factor = "-", interval = "-";
    if (ratios.contains("ops_per_s_ratio")) {
      const auto& r = ratios.at("ops_per_s_ratio");
      factor = fmt::format("{:.3f}", r.at("median").get<double>());
      // One repeat has none, and its ends are the repeat itself.
      if (r.at("ci_level").get<double>() > 0)
        interval = fmt::format("{:.3f} to {:.3f} ({:.1f} %)", r.at("ci_low").get<double>(),
                               r.at("ci_high").get<double>(), 100 * r.at("ci_level").get<double>());
    }
    rows.push_back({whole.cell.at("size_bytes").dump(), report::digits(whole.metrics.latency_ns.mean, 1e3),
                    report::digits(split.metrics.latency_ns.mean, 1e3), factor, interval});
  }
  if (!result.cells.empty()) {
    const report::Cell& c = result.cells.front();
    out += fmt::format("{} ({}), {} {}, {} repeats in turns\n", report::printable(c.device_name),
                       c.device_kind == "model" ? "software model" : c.device_kind,
                       c.cell.at("op").get<std::string>(), c.cell.at("memory").get<std::string>(),
                       c.repeats.size());
    out += report::table(rows);
    u64 checked = 0;
    for (const report::Cell& cell : result.cells) {
      const std::string bytes = cell.cell.at("size_bytes").dump();
      checked += cell.verify.checked;
      for (const auto& [kind, count] : cell.errors)
        if (count != 0) out += fmt::format("  {} bytes: {} {}\n", bytes, count, kind);
      if (cell.verify.failed() != 0)
        out += fmt::format("  {} bytes: the data of {} of {} calls is WRONG\n", bytes, cell.verify.failed(),
                           cell.verify.checked);
    }
    if (checked == 0) out += "the data of no call was checked\n";
    else out += fmt::format("the data of every call that succeeded was checked: {} calls\n", checked);
    if (const auto& last = result.cells.back().extra; last.contains("tune")) {
      const auto& bytes = last.at("tune").at("smallest_split_bytes");
      const double level = last.at("tune").at("interval_level").get<double>();
      if (level < kLevel) return out + cannot_say(c.repeats.size(), level) + report::closing_lines(result);
      out += bytes.is_null()
                 ? fmt::format("splitting is not surely faster at {} bytes: keep transfers whole\n",
                               last.at("tune").at("largest_measured_bytes").dump())
                 : fmt::format("break-even: {} {}\n", smallest_split, bytes.dump());
    }
  }
  return out + report::closing_lines(result);
}

}  // namespace doorbell::qdma
