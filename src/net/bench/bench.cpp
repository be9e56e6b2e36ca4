// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/bench/bench.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "measure/bench_run.hpp"
#include "net/bench/cell_run.hpp"
#include "net/flow/relay.hpp"
#include "net/kernel_bench/bench.hpp"
#include "net/peer/remote.hpp"
#include "net/settings.hpp"
#include "options/enumeration.hpp"
#include "report/verdict.hpp"

namespace doorbell::net {

namespace {

constexpr double kCurveGbps[] = {1, 5, 10, 25, 50, 75, 100, 0};
constexpr u32 kSearchSteps = 10;
constexpr double kSearchS = 0.5;  // of one step
constexpr double kCloseEnough = 0.01;
constexpr u32 kConfirmations = 6;

u32 batch_for(const BenchOptions& o, u64 payload) {
  constexpr u64 kUsual = 64;
  if (o.batch != 0) return o.batch;
  const u64 bytes = kind_of(o).batch_bytes;
  return static_cast<u32>(bytes == 0 ? kUsual
                                     : std::clamp<u64>(bytes / std::max<u64>(payload, 1), 1, kUsual));
}

CellSettings plain(const BenchOptions& o, u64 payload) {
  return {payload, batch_for(o, payload), o.tx_queues, o.rx_queues, o.target_gbps, o.flows};
}

/// The published cell of the stream.
CellSettings usual_cell(const BenchOptions& o) {
  const UsualCell& usual = kind_of(o).usual_cell;
  CellSettings c = plain(o, usual.payload);
  if (usual.batch > 0) c.batch = usual.batch;
  if (usual.pairs > 0) c.tx_queues = c.rx_queues = usual.pairs;
  return c;
}

/// The published grid of the stream.
std::vector<CellSettings> grid(const BenchOptions& o) {
  std::vector<CellSettings> cells;
  const UsualGrid& usual = kind_of(o).usual_grid;
  for (const u64 payload : usual.payloads)
    for (const u32 batch : usual.batches)
      for (const u32 pairs : usual.pairs)
        cells.push_back(
            {payload, batch > 0 ? batch : batch_for(o, payload), pairs, pairs, o.target_gbps, o.flows});
  return cells;
}

/// Of one step. With a count of packets the search has no time of its own.
double step_s(const BenchOptions& o) {
  return o.duration_s > 0 ? std::min(kSearchS, o.duration_s) : kSearchS;
}

struct Probe {
  double target = 0;   ///< Gb/s; 0: as fast as it goes
  double offered = 0;  ///< Gb/s that the senders reached
  u64 lost = 0;
  u64 skipped = 0;  ///< packets that were due and never left
  bool failed = false;

  [[nodiscard]] bool clean() const { return lost == 0 && !failed; }
  /// The rate of which something is known.
  [[nodiscard]] double rate() const { return target > 0 ? std::min(target, offered) : offered; }
  /// Else the senders were the limit, or were held up.
  [[nodiscard]] bool reached() const { return target == 0 || offered >= (1 - 2 * kCloseEnough) * target; }
};
double offered_gbps(const CellSettings& c, const SendPhase& sent) {
  return sent.elapsed_s > 0
             ? static_cast<double>(sent.sent) * static_cast<double>(c.payload) * 8e-9 / sent.elapsed_s
             : 0;
}
Probe probe(const BenchOptions& o, const CellSettings& c, const measure::RunWatch& watch,
            RemoteReceiver* remote, double seconds) {
  CellRun run(o, c, watch, remote);
  const RepeatCounts r = run.phase(seconds, 0, fmt::format("search at {:.2f} Gb/s", c.target_gbps));
  run.finish();
  return {c.target_gbps, offered_gbps(c, r.sent), run.lost(), r.sent.skipped, run.failed()};
}
/// All repeats of a run as one probe; the slowest of them counts, by what has been received of it.
Probe probe_of(const CellSettings& c, const CellRun& run) {
  Probe p = {c.target_gbps, c.target_gbps, run.lost(), 0, run.failed() || run.repeats().empty()};
  for (const RepeatCounts& r : run.repeats()) {
    p.offered = std::min({p.offered, offered_gbps(c, r.sent), goodput_gbps(r.received)});
    p.skipped += r.sent.skipped;
  }
  return p;
}

/// The highest rate at which nothing was lost: found by halving, then confirmed by whole repeats, at a rate a
/// twentieth lower each time something was lost after all. Senders that do not reach a rate have lost
/// nothing: they get a second chance, and what they did reach is an answer too.
class NoDropSearch {
 public:
  NoDropSearch(const BenchOptions& o, const CellSettings& c, const measure::RunWatch& watch,
               RemoteReceiver* remote)
      : o_(o), c_(c), watch_(watch), remote_(remote) {}

  void run(measure::BenchResult& result) {
    confirm(search());
    if (!found_) {
      result.stopped(StopReason::requested);
      return;
    }
    const Probe& p = found_->probe;
    measure::BenchResult& one = found_->result;
    const std::string repeats = fmt::format("{} repeat{}", found_->repeats, found_->repeats == 1 ? "" : "s");
    one.cells.front().extra["no_drop"] = {
        {"answer", found_->confirmed ? fmt::format("no loss up to {:.3g} Gb/s in {}", p.rate(), repeats)
                                     : fmt::format("none was confirmed: {} packets were lost at {:.3g} Gb/s",
                                                   p.lost, p.rate())},
        {"gbps", p.rate()},
        {"target_gbps", p.target},
        {"repeats", found_->repeats},
        {"confirmed", found_->confirmed},
        {"steps", steps_}};
    if (!found_->confirmed) one.warnings.push_back("no rate without loss was confirmed");
    result.append(std::move(one));
  }

 private:
  struct Found {
    measure::BenchResult result;
    Probe probe;
    std::size_t repeats = 0;
    bool confirmed = false;
  };

  [[nodiscard]] bool interrupted() const { return watch_.stop != nullptr && watch_.stop->requested(); }

  Probe look(double target) {
    c_.target_gbps = target;
    const Probe p = probe(o_, c_, watch_, remote_, step_s(o_));
    steps_.push_back(
        {{"target_gbps", p.target}, {"offered_gbps", p.offered}, {"lost", p.lost}, {"skipped", p.skipped}});
    return p;
  }

  /// A rate at which nothing was lost, to be confirmed.
  double search() {
    Probe last = look(0);
    double low = 0, high = last.offered;
    if (last.clean()) low = high;
    for (u32 i = 0; i < kSearchSteps && high - low > kCloseEnough * high && !last.failed && !interrupted();
         ++i) {
      const double target = (low + high) / 2;
      last = look(target);
      if (last.clean()) low = std::max(low, last.rate());
      if (last.clean() && !last.reached() && !interrupted()) {
        last = look(target);
        if (last.clean()) low = std::max(low, last.rate());
      }
      // Above what the senders reach there is nothing to find.
      if (!last.clean() || !last.reached()) high = std::max(low, last.rate());
    }
    return low > 0 ? low : high / 2;
  }

  void confirm(double target) {
    bool again = true;
    for (u32 i = 0; i < kConfirmations && !interrupted(); ++i) {
      c_.target_gbps = target;
      Found f;
      CellRun run(o_, c_, watch_, remote_);
      run.run(f.result);
      f.probe = probe_of(c_, run);
      f.repeats = run.repeats().size();
      f.confirmed = f.probe.clean() && !interrupted();
      const Probe p = f.probe;
      const bool better = !found_ || !found_->confirmed || (f.confirmed && p.rate() > found_->probe.rate());
      const bool last = p.failed || interrupted();
      if (better || last) found_ = std::move(f);
      if (last || (p.clean() && p.reached())) return;
      if (p.clean() && again) again = false;
      else target = std::min(target * 0.95, std::max(p.rate(), target / 2)), again = true;
      // All that is left to try is below what is known.
      if (found_->confirmed && target <= found_->probe.rate()) return;
    }
  }

  const BenchOptions& o_;
  CellSettings c_;
  const measure::RunWatch& watch_;
  RemoteReceiver* remote_;
  nlohmann::ordered_json steps_ = nlohmann::ordered_json::array();
  std::optional<Found> found_;
};

}  // namespace

double search_s(const BenchOptions& o) {
  return (kSearchSteps + 1) * (step_s(o) + 2 * o.settle_s);
}

KernelBenchOptions kernel_options(const BenchOptions& o) {
  KernelBenchOptions k;
  const u32 repeats = k.repeats;
  const double least_s = k.duration_s;
  static_cast<measure::RunOptions&>(k) = o;
  if (o.duration_s == 0) k.duration_s = least_s, k.repeats = repeats;
  return k;
}

std::vector<CellSettings> cells_of(const BenchOptions& o) {
  std::vector<CellSettings> cells;
  switch (o.mode) {
    case Mode::smoke:
      return {usual_cell(o)};
    case Mode::sweep:
      return grid(o);
    case Mode::drop_curve:
      for (const u64 payload : o.payloads)
        for (const double target : kCurveGbps) {
          cells.push_back(plain(o, payload));
          cells.back().target_gbps = target;
        }
      return cells;
    case Mode::multi_queue:
      for (const u64 payload : o.payloads)
        for (const u32 tx : {1, 2})
          for (const u32 rx : {1, 2}) {
            cells.push_back(plain(o, payload));
            cells.back().tx_queues = tx, cells.back().rx_queues = rx;
          }
      return cells;
    case Mode::kernels:
      return cells;
    case Mode::cells:
    case Mode::no_drop:
      for (const u64 payload : o.payloads) cells.push_back(plain(o, payload));
  }
  return cells;
}

const std::vector<std::string>& mode_names() {
  static const std::vector<std::string> names = {"cells",       "smoke",   "sweep",  "drop-curve",
                                                 "multi-queue", "no-drop", "kernels"};
  return names;
}

const std::vector<std::string>& encapsulation_names() {
  static const std::vector<std::string> names = {"udp4", "udp6", "bare"};
  return names;
}

void check(const BenchOptions& o) {
  const StreamKind& kind = kind_of(o);
  const std::string engine = kind.frames ? fmt::format(" {} {}", setting::engine, kind.name) : "";
  if (const BackendStatus s = kind.status(); !s.usable)
    throw Error(fmt::format("{} {}{}", setting::stream, o.stream, engine), s.detail, "", ExitCode::absent);
  check_abilities(kind, o.split, o.steering);
  for (const CellSettings& c : cells_of(o)) {
    if (c.payload < kHeaderBytes)
      throw Error(setting::payload, fmt::format("{} is not in {}.., and {} bytes are the header", c.payload,
                                                kHeaderBytes, kHeaderBytes));
    if (c.given_flows > 0 && c.given_flows < std::max(c.tx_queues, c.rx_queues))
      throw Error(setting::flows, fmt::format("{} flows for {}x{} queues: some would have nothing to do",
                                              c.given_flows, c.tx_queues, c.rx_queues));
    if (!kind.frames && c.tx_queues != c.rx_queues)
      throw Error(setting::queues,
                  fmt::format("{} is made of pairs, one sender and one receiver each", o.stream),
                  fmt::format("use {} N", setting::pairs));
  }
  if (o.target_gbps > 0 && (o.mode == Mode::drop_curve || o.mode == Mode::no_drop))
    throw Error(setting::target_gbps,
                fmt::format("{} {} chooses its own", setting::mode, mode_names()[static_cast<u32>(o.mode)]),
                "leave one of the two out");
  if (kind.reliable && o.mode == Mode::no_drop)
    throw Error(setting::mode + " no-drop", fmt::format("{} loses nothing at any rate", o.stream),
                "it goes with " + options::enumeration(
                                      stream_names([](const StreamKind& k) { return !k.reliable; }), "and"));
  // A listener has a place of its own.
  if (o.role == Role::both) check_relay(o.faults, o.place);
  const std::vector<int> allowed = allowed_cores();
  for (const int core : o.cores)
    if (std::ranges::find(allowed, core) == allowed.end())
      throw Error(setting::cores, fmt::format("this process may not run on core {}", core),
                  "see doorbell doctor");
}

namespace {

/// The other end says the same of the run as this one.
void tell_verdict(RemoteReceiver& remote, const measure::BenchResult& r) {
  report::Result whole;
  whole.cells = r.cells;
  whole.stop_reason = r.stop_reason;
  whole.exit_code = r.exit_code();
  remote.finish(report::exit_code_for(whole), report::verdict_for(whole).text);
}

}  // namespace

measure::BenchResult run_bench(const BenchOptions& o, const measure::RunWatch& watch) {
  check(o);
  if (o.mode == Mode::kernels) return run_kernel_bench(kernel_options(o), watch);
  measure::BenchResult result;
  std::unique_ptr<RemoteReceiver> remote;
  if (o.role == Role::sender) remote = std::make_unique<RemoteReceiver>(o, watch.stop);
  for (const CellSettings& c : cells_of(o)) {
    if (watch.stop != nullptr && watch.stop->requested()) {
      result.stopped(StopReason::requested);
      break;
    }
    try {
      measure::BenchResult one;
      if (o.mode == Mode::no_drop) NoDropSearch(o, c, watch, remote.get()).run(one);
      else CellRun(o, c, watch, remote.get()).run(one);
      const bool broken = one.stop_reason == StopReason::broken;
      result.append(std::move(one));
      if (broken) break;
    } catch (const Error& e) {
      if (remote) remote->fail(e.what());
      measure::ended_by(e, watch, result);
      break;
    }
  }
  try {
    if (remote) tell_verdict(*remote, result);
  } catch (const Error& e) {
    // A result that is whole needs nothing more from the other end.
    if (result.stop_reason == StopReason::done) result.warnings.push_back(e.what());
  }
  return result;
}

}  // namespace doorbell::net
