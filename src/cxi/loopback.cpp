// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/loopback.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cxi/loopback_link.hpp"
#include "loop/payload.hpp"
#include "measure/cpu_time.hpp"
#include "measure/tally.hpp"
#include "system/clock.hpp"

namespace doorbell::cxi {

namespace {

constexpr OneLane lane;
constexpr u64 kChunk = 1 << 20;          // of GPU memory, made or checked at a time
constexpr u64 kCheckedBytes = 64 << 20;  // moved by the part that checks single puts
constexpr u64 kCheckedPuts = 1024;       // the most puts in that part
constexpr u64 kFirstFailures = 8;        // kept in the result

/// The contents of the two buffers, in whatever memory they lie.
class LoopbackData {
 public:
  LoopbackData(Region& source, Region& destination, u64 bytes, u64 seed)
      : source_(source), destination_(destination), bytes_(bytes), seed_(seed) {
    if (source.host() == nullptr || destination.host() == nullptr)
      scratch_ = Region(Place::pageable, std::min(kChunk, bytes));
  }

  /// Fills the source with generation `sequence` and marks the destination as not yet written.
  void prepare(u64 sequence) {
    each_chunk(source_, Side::write,
               [&](u8* data, u64 bytes, u64 at) { payload::fill(lane, data, bytes, id(at, sequence)); });
    each_chunk(destination_, Side::both,
               [&](u8* data, u64 bytes, u64 at) { payload::poison(lane, data, bytes, id(at, sequence)); });
  }

  /// Returns the worst verdict on the destination.
  pattern::Checked check(u64 sequence) {
    pattern::Checked worst;
    each_chunk(destination_, Side::read, [&](u8* data, u64 bytes, u64 at) {
      const pattern::Checked c = payload::check(lane, data, bytes, id(at, sequence), {});
      if (c.verdict > worst.verdict) worst = c;
    });
    return worst;
  }

 private:
  enum class Side { read, write, both };

  [[nodiscard]] pattern::Identity id(u64 address, u64 sequence) const { return {seed_, address, sequence}; }

  template <class Fn>
  void each_chunk(Region& region, Side side, const Fn& fn) {
    if (region.host() != nullptr) return fn(region.host(), bytes_, 0);
    for (u64 at = 0; at < bytes_; at += kChunk) {
      const u64 n = std::min(kChunk, bytes_ - at);
      if (side != Side::write) region.read(at, scratch_.host(), n);
      fn(scratch_.host(), n, at);
      if (side != Side::read) region.write(at, scratch_.host(), n);
    }
  }

  Region& source_;
  Region& destination_;
  const u64 bytes_;
  const u64 seed_;
  Region scratch_;
};

void count(report::Verify& into, const pattern::Checked& found, u64 sequence) {
  if (found.verdict == pattern::Verdict::ok) return;
  if (found.verdict == pattern::Verdict::stale) into.stale += 1;
  else if (found.verdict == pattern::Verdict::misplaced) into.misplaced += 1;
  else if (found.verdict == pattern::Verdict::missing) into.missing += 1;
  else into.corrupt += 1;
  if (into.first.size() < kFirstFailures)
    into.first.push_back({measure::verdict_name(found.verdict), found.address, sequence});
}

class Run {
 public:
  Run(CassiniDevice& device, Endpoint& endpoint, const LoopbackOptions& o, const measure::StopFlag* stop)
      : o_(o),
        stop_(stop),
        link_(device, endpoint, o),
        data_(link_.source(), link_.destination(), o.bytes, o.seed) {}

  LoopbackResult operator()() {
    data_.prepare(sequence_);
    if (everything() && o_.verify) check_single_puts();
    finish();
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool interrupted() {
    result_.interrupted = result_.interrupted || (stop_ != nullptr && stop_->requested());
    return result_.interrupted;
  }

  /// Runs the parts that come before the check of the data. False on a failure.
  bool everything() {
    bool good = true;
    for (u64 i = 0; i < o_.warmup && good && !interrupted(); ++i) good = link_.post(o_.puts) && link_.wait();
    for (u32 r = 0; r < o_.repeats && good && !interrupted(); ++r)
      good = timed(result_.repeats.emplace_back(), o_.iterations, o_.duration_us * 1000, 1);
    if (good && o_.steady && !interrupted() && !result_.repeats.empty())
      good = timed(result_.steady.emplace(), result_.repeats.back().iterations, 0, LoopbackLink::kMaxArmed);
    if (good && o_.verify && link_.threshold() > 0) check_destination();
    return good;
  }

  /// Runs iterations; up to `window` of them are posted at a time.
  bool timed(LoopbackPart& part, u64 iterations, u64 duration_ns, u32 window) {
    const measure::CpuTime cpu_time;
    const u64 begin = wall_ns();
    u64 posted = 0;
    bool more = true;
    bool good = true;
    while (good) {
      while (more && posted - part.iterations < window && good) {
        good = link_.post(o_.puts);
        ++posted;
        more = duration_ns > 0 || posted < iterations;
      }
      if (!good || posted == part.iterations) break;
      good = link_.wait();
      if (!good) break;
      ++part.iterations;
      part.elapsed_ns = wall_ns() - begin;
      if (interrupted() || (duration_ns > 0 && part.elapsed_ns >= duration_ns)) more = false;
    }
    const measure::ThreadCost cost = cpu_time.spent("initiator");
    part.cpu_user_s = cost.user_s;
    part.cpu_system_s = cost.system_s;
    return good;
  }

  void check_destination() {
    result_.verify.checked += 1;
    pattern::Checked found = data_.check(sequence_);
    // An acknowledgement that comes twice ends the wait for another too early: its data is still on its way.
    if (found.verdict != pattern::Verdict::ok && too_many(link_.settle()) > 0) found = data_.check(sequence_);
    count(result_.verify, found, sequence_);
  }

  /// All puts so far wrote the same bytes to the same place, so only the last put could be checked. Here each
  /// put has a place and data of its own.
  void check_single_puts() {
    const u64 puts = std::min({u64{o_.puts}, kCheckedPuts, kCheckedBytes / o_.bytes});
    for (u64 i = 0; i < puts && !interrupted(); ++i) {
      data_.prepare(++sequence_);
      if (!link_.post(1) || !link_.wait()) return;
      check_destination();
    }
  }

  void finish() {
    report::Verify& v = result_.verify;
    v.checked_bytes = v.checked * o_.bytes;
    result_.submitted = link_.threshold();
    result_.doorbells = link_.doorbells();
    result_.polls = link_.polls();
    result_.failure = link_.failure();
    (void)interrupted();  // a wait that was given up is a failure, too
    if (result_.failure) account_for(*result_.failure);
    else v.duplicated = too_many(link_.settle());
  }

  [[nodiscard]] u64 too_many(const CounterCounts& counts) const {
    const u64 all = counts.success + counts.failure;
    return counts.valid && all > link_.threshold() ? all - link_.threshold() : 0;
  }

  void account_for(const LoopbackFailure& f) {
    if (f.kind == LoopbackFailure::Kind::unexpected_event && f.got != EventType::ack) result_.unexpected = 1;
    if (f.kind != LoopbackFailure::Kind::removed) link_.drain(result_);
    const u64 answered = f.counts.success + result_.refused;
    if (f.kind == LoopbackFailure::Kind::timeout && f.threshold > answered)
      result_.lost = f.threshold - answered;
  }

  const LoopbackOptions& o_;
  const measure::StopFlag* const stop_;
  LoopbackLink link_;
  LoopbackData data_;
  LoopbackResult result_;
  u64 sequence_ = 1;
};

}  // namespace

LoopbackResult run_loopback(CassiniDevice& device, Endpoint& endpoint, const LoopbackOptions& options,
                            const measure::StopFlag* stop) {
  return Run(device, endpoint, options, stop)();
}

}  // namespace doorbell::cxi
