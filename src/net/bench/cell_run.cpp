// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/bench/cell_run.hpp"

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <doorbell/pattern_unit.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "measure/endless.hpp"
#include "measure/tally.hpp"
#include "net/peer/remote.hpp"
#include "net/settings.hpp"
#include "system/clock.hpp"

namespace doorbell::net {

namespace {

using Json = nlohmann::ordered_json;

constexpr u32 kL1Bytes = 24;  // of a frame, besides what the stream counts: FCS 4, preamble 8, gap 12

/// A number that a packet left over from another run hardly has.
u16 new_run_tag() {
  return static_cast<u16>(pattern::mix64(wall_ns() ^ static_cast<u64>(getpid()) << 32));
}

double gbps(double bytes, double seconds) {
  return seconds > 0 ? bytes * 8e-9 / seconds : 0;
}

/// The mean over threads of what they used of their cores.
double busy_percent(const std::vector<ThreadUse>& threads) {
  double sum = 0;
  for (const ThreadUse& t : threads)
    if (t.elapsed_s > 0) sum += 100 * (t.cost.user_s + t.cost.system_s) / t.elapsed_s;
  return threads.empty() ? 0 : sum / static_cast<double>(threads.size());
}
/// The part of it in which something moved: a thread that polls is always busy.
double useful_percent(const std::vector<ThreadUse>& threads) {
  double sum = 0;
  for (const ThreadUse& t : threads) sum += busy_percent({t}) * t.useful;
  return threads.empty() ? 0 : sum / static_cast<double>(threads.size());
}

std::vector<ThreadUse> threads_of(const RepeatCounts& r) {
  std::vector<ThreadUse> all = r.sent.threads;
  all.insert(all.end(), r.received.threads.begin(), r.received.threads.end());
  all.push_back(r.sent.master);
  return all;
}

/// Both ends' times begin with the first sender.
void align_times(bool paced, RepeatCounts* r) {
  ReceivePhase& received = r->received;
  SendPhase& sent = r->sent;
  if (received.begin_ns != 0 && received.begin_ns <= sent.begin_ns) {
    const double ahead_s = static_cast<double>(sent.begin_ns - received.begin_ns) * 1e-9;
    received.elapsed_s = std::max(received.elapsed_s - ahead_s, 0.0);
    // Packets that have arrived have been sent, whenever the sender's thread came to say so.
    if (!paced && received.elapsed_s > 0 && received.counts.unique - received.counts.earlier >= sent.sent)
      sent.elapsed_s = std::min(sent.elapsed_s, received.elapsed_s);
  }
  // The last packet has its gap too, at both ends.
  if (paced) received.elapsed_s = std::max(received.elapsed_s, sent.elapsed_s);
}

report::Metrics metrics_of(const ReceivePhase& p) {
  report::Metrics m = measure::metrics_of(p.counts.unique - p.counts.earlier,
                                          p.counts.unique_bytes - p.counts.earlier_bytes, p.elapsed_s);
  if (p.latency.count() > 0) m.latency_ns = p.latency.to_latency();
  return m;
}

/// Facts of a link, or of a stream over it, as far as it is still there.
Json known_facts(const std::function<Json()>& facts) {
  try {
    return facts();
  } catch (const Error& e) {
    return {{"gone", e.what()}};
  }
}

}  // namespace

double goodput_gbps(const ReceivePhase& p) {
  return gbps(static_cast<double>(p.counts.unique_bytes - p.counts.earlier_bytes), p.elapsed_s);
}

CellRun::CellRun(const BenchOptions& options, const CellSettings& cell, const measure::RunWatch& watch,
                 RemoteReceiver* remote, std::shared_ptr<Link> link)
    : o_(options),
      setup_{cell, new_run_tag()},
      c_(setup_.cell),
      watch_(watch),
      kind_(kind_of(options)),
      link_(std::move(link)),
      seed_(options.seed) {
  if (remote != nullptr) {
    link_ = remote->open(o_, setup_);
  } else if (!link_) {
    link_ = open_link({.spec = o_.link, .queues = setup_.flows()});
  }
  stream_ = open_stream(o_, setup_, *link_);
  if (remote != nullptr) {
    receiver_ = remote->ready();
  } else {
    receiver_ = std::make_unique<LocalReceivingEnd>(receiving_options(o_, setup_, *stream_), stream_->rx);
  }
  before_ = link_drops();
  counted_twice_ = o_.role == Role::both && link_->counts_at_both_ends();
  if (o_.role == Role::both && (o_.place == Place::gpu || (o_.windows.on && o_.windows.on_gpu)))
    gpu_ = std::make_unique<gpu::UtilisationMeter>(gpu::open(o_.gpu)->info());
  polling_ = polling_of(o_, c_, kind_);
  sender_ = std::make_unique<SendingEnd>(sending_options(o_, setup_), stream_->tx);
}

CellRun::~CellRun() = default;

bool CellRun::stopped() const {
  return broken_ || stuck_ || timed_out_ || (watch_.stop != nullptr && watch_.stop->requested());
}

RepeatCounts CellRun::phase(double seconds, u64 count, const std::string& what) {
  RepeatCounts r;
  r.seed = seed_;
  if (gpu_) gpu_->begin();
  receiver_->begin();
  const u64 before = receiver_->progress();
  const double goal = static_cast<double>(count) * setup_.flows();
  const u64 begin = wall_ns();
  r.sent = sender_->run(seconds, count, [&] {
    if (gpu_) gpu_->look(wall_ns());
    if (watch_.live != nullptr) publish();
    if (watch_.progress)
      watch_.progress(measure::is_endless(seconds) ? std::numeric_limits<double>::quiet_NaN()
                      : seconds > 0                ? static_cast<double>(wall_ns() - begin) * 1e-9 / seconds
                                    : static_cast<double>(receiver_->progress() - before) / goal,
                      what);
    return receiver_->gone() || (watch_.stop != nullptr && watch_.stop->requested());
  });
  r.received = receiver_->end(sender_->sent());
  align_times(c_.target_gbps > 0, &r);
  if (gpu_) {
    gpu_->look(wall_ns(), /*last=*/true);
    r.gpu = gpu_->mean();
  }
  broken_ = broken_ || r.sent.broken;
  stuck_ = stuck_ || r.sent.stuck;
  timed_out_ = timed_out_ || r.received.timed_out;
  return r;
}

void CellRun::publish() {
  measure::LiveFigures now;
  now.operations = receiver_->progress();
  now.bytes = now.operations * c_.payload;
  watch_.live->publish(std::move(now));
}

void CellRun::warm_up() {
  if (o_.warmup_s > 0) (void)phase(o_.warmup_s, 0, fmt::format("{} {} B, warm-up", kind_.name, c_.payload));
}

void CellRun::repeat(u32 number) {
  if (const u64 seed = o_.seed + number; seed != seed_ && sender_->reseed(seed)) seed_ = seed;
  repeats_.push_back(
      phase(o_.duration_s, o_.count,
            fmt::format("{} {} B, repeat {} of {}", kind_.name, c_.payload, number + 1, o_.repeats)));
}

void CellRun::conclude(measure::BenchResult& result) {
  finish();
  describe(result);
}

void CellRun::run(measure::BenchResult& result) {
  try {
    warm_up();
    for (u32 n = 0; n < o_.repeats && !stopped(); ++n) repeat(n);
    conclude(result);
  } catch (const Error& e) {
    if (repeats_.empty()) throw;
    conclude_early(e, result);
  }
}

void CellRun::conclude_early(const Error& why, measure::BenchResult& result) {
  broken_ = true;
  accounted_ = false;
  totals_ = {};
  sent_total_ = 0;
  for (const RepeatCounts& r : repeats_) {
    sent_total_ += r.sent.sent;
    totals_.counts += r.received.counts;
  }
  const u64 unique = totals_.counts.unique;
  totals_.lost = sent_total_ > unique ? sent_total_ - unique : 0;
  result.warnings.push_back(
      fmt::format("only {} of {} repeats were measured, and what was lost is not known by layer: {}",
                  repeats_.size(), o_.repeats, why.what()));
  describe(result);
}

void CellRun::finish() {
  ended_ = sender_->finish();
  const std::vector<u64> sent = sender_->sent();
  for (const u64 n : sent) sent_total_ += n;
  totals_ = receiver_->finish(sent);
  add_link_drops();
}

CellRun::LinkDrops CellRun::link_drops() {
  try {
    LinkDrops now;
    if (o_.role == Role::both)
      now.interfaces = {link_->interface_drops(End::tx), link_->interface_drops(End::rx)};
    now.queue = link_->queue_drops();
    return now;
  } catch (const Error& e) {
    link_gone_ = e.what();
    return before_;
  }
}

void CellRun::add_link_drops() {
  const LinkDrops now = link_drops();
  Drops& d = totals_.drops;
  const ReceiveCounts& n = totals_.counts;
  const auto unexplained = [&] {
    return totals_.lost - std::min(totals_.lost, d.sum() + n.corrupt + n.short_ + n.misplaced);
  };
  const u64 tx = now.interfaces[0] - before_.interfaces[0], rx = now.interfaces[1] - before_.interfaces[1];
  const u64 in_ring = stream_->interface_counts_ring_drops() ? d.ring : 0;
  add_interface_drops(
      *stream_, counted_twice_ ? std::clamp(unexplained() + in_ring, std::max(tx, rx), tx + rx) : tx + rx,
      &d);
  // The sender has sent again all that it has been told of: only what is missing was lost there. On a link of
  // others it is not known whose the rest is.
  if (link_->is_own() && n.alien == 0 && totals_.unmatched == 0) {
    const u64 dropped = std::exchange(d.interface, 0);
    d.interface = std::min(dropped, unexplained());
    sent_again_ = dropped - d.interface;
  }
  d.queue = std::min<u64>(now.queue - before_.queue, unexplained());
  // A link that is gone is no end that this run has asked for.
  broken_ = broken_ || !link_gone_.empty();
}

void CellRun::describe(measure::BenchResult& result) {
  report::Cell cell = new_cell(o_, c_, *link_, kind_.name, c_.batch);
  if (c_.given_flows > 0) cell.cell["flows"] = c_.given_flows;
  if (o_.encapsulation != Encapsulation::udp4) cell.cell["encapsulation"] = name(o_.encapsulation);
  if (o_.steering == Steering::rss)
    cell.cell["rss"] = o_.rss_fields == RssFields::addresses ? "addresses" : "addresses-ports";
  if (c_.target_gbps > 0) cell.cell["target_gbps"] = c_.target_gbps;
  if (o_.windows.on) cell.cell["workload"] = std::string(name(o_.windows.workload));
  if (o_.windows.batch_bytes > 0) cell.cell["workload_batch_bytes"] = o_.windows.batch_bytes;
  if (o_.windows.convert) cell.cell["convert"] = name(*o_.windows.convert);
  cell.verify.mode = o_.verify_mode(o_.verify);

  std::vector<measure::RepeatFigures> repeats;
  for (const RepeatCounts& r : repeats_) {
    const ReceiveCounts& n = r.received.counts;
    repeats.push_back(
        {r.seed, metrics_of(r.received), n.duplicate + n.corrupt + n.misplaced + n.short_ + n.late});
    for (const ThreadUse& t : threads_of(r)) repeats.back().threads.push_back(t.cost);
  }
  for (std::string& w : measure::add_repeats(cell, repeats)) result.warnings.push_back(std::move(w));
  const RepeatCounts median =
      repeats_.empty() ? RepeatCounts{} : repeats_[measure::median_repeat(cell.repeats)];

  const ReceiveCounts& n = totals_.counts;
  // A packet that did not come whole, or came as another, counts as lost, under its own name. Those of which
  // no packet is missing were others' copies, and explain nothing.
  const u64 dropped = totals_.drops.sum();
  const u64 not_whole =
      std::min(n.corrupt + n.short_ + n.misplaced, totals_.lost > dropped ? totals_.lost - dropped : 0);
  const u64 explained = dropped + not_whole;
  // A layer that counts others' packets too explains too much; what it says of these is then unknown.
  const bool known = accounted_ && link_gone_.empty() && explained <= totals_.lost;
  const u64 unexplained = accounted_ && totals_.lost > explained ? totals_.lost - explained : 0;
  const auto share_of = [&](u64 packets) {
    return sent_total_ > 0 ? static_cast<double>(packets) / static_cast<double>(sent_total_) : 0;
  };
  const double share = share_of(totals_.lost);
  const u64 not_allowed = share_of(unexplained) > o_.max_way_loss ? unexplained : 0;
  report::Verify& v = cell.verify;
  v.checked = n.checked;
  v.checked_bytes = n.checked_bytes;
  v.corrupt = n.corrupt;
  v.misplaced = n.misplaced;
  v.duplicated = n.duplicate;
  // A loss that is explained and allowed is a result, every other one is a failure.
  v.missing =
      kind_.reliable || o_.faults.any() || share > o_.max_loss ? totals_.lost - not_whole : not_allowed;
  const bool all_in_windows = totals_.windows.is_null() || totals_.in_windows == n.unique;
  const bool identity = !accounted_ || (sent_total_ + totals_.beyond == n.unique + totals_.lost &&
                                        n.received == n.classified() && all_in_windows);
  cell.errors = {{"completion", broken_ ? 1u : 0u},
                 {"identity", identity && totals_.beyond == 0 ? 0u : 1u},
                 {"late", n.late},
                 {"short", n.short_},
                 {"workload", totals_.wrong_results},
                 {"timeout", (stuck_ || !ended_ || timed_out_) ? 1u : 0u}};
  if (median.gpu) cell.cost.gpu_sm_percent = median.gpu->sm_percent;
  cell.extra["net"] = net_json(median);
  cell.extra["drops"] = {{"socket", totals_.drops.socket},
                         {"ring", totals_.drops.ring},
                         {"interface", totals_.drops.interface},
                         {"queue", totals_.drops.queue},
                         {"application", totals_.drops.application},
                         {"relay", totals_.drops.relay},
                         {"not_whole", not_whole},
                         {"unexplained", known ? Json(unexplained) : Json()}};
  cell.extra["threads"] = threads_json(median);
  cell.extra["gpu"] = gpu_json(median);
  cell.extra["stream"] = known_facts([&] { return stream_->facts(); });
  // A stream with a device of its own runs on that, whatever its link is.
  if (const Json& facts = cell.extra["stream"]; facts.contains("device_kind")) {
    cell.device_kind = facts.at("device_kind");
    cell.device_name = facts.at("device");
  }
  cell.extra["link"] = known_facts([&] { return link_->facts(); });
  if (!totals_.windows.is_null()) cell.extra["windows"] = totals_.windows;
  if (!totals_.injected.is_null()) cell.extra["model"] = {{"injected", totals_.injected}};
  if (accounted_ && explained > totals_.lost)
    result.warnings.push_back(
        fmt::format("{} packets more were dropped than this run has lost: {}", explained - totals_.lost,
                    n.alien > 0 || totals_.unmatched > 0 ? "others use the link"
                    : link_->is_own()                    ? "two layers have counted the same ones"
                                      : "others may use the link, or they were sent again"));
  if (sent_again_ > 0)
    result.warnings.push_back(fmt::format(
        "{} frames were dropped by the link's interfaces of which no packet is missing: they were "
        "sent again, or carried none",
        sent_again_));
  if (!link_gone_.empty())
    result.warnings.push_back(
        fmt::format("the link is gone, and what its interfaces have dropped is not known: {}", link_gone_));
  if (totals_.lost > 0 && !kind_.reliable && share <= o_.max_loss)
    result.warnings.push_back(
        fmt::format("{} of {} packets were lost ({:.3g} %)", totals_.lost, sent_total_, 100 * share));
  if (unexplained > 0 && !kind_.reliable && !o_.faults.any())
    result.warnings.push_back(
        fmt::format("{} packets were lost on the way: no counter of either end has them{}", unexplained,
                    o_.role == Role::sender && not_allowed > 0
                        ? fmt::format("; {} PERCENT allows that", setting::way_loss)
                        : ""));
  if (n.held > 0)
    result.warnings.push_back(fmt::format(
        "{} of {} late packets waited for a receiving thread that did not run, or was busy all the time",
        n.held, n.late));
  if (const double away_s = repeats_.empty() ? 0 : repeats_.back().received.away_s;
      (stuck_ || timed_out_) && away_s >= 0.5 * o_.timeout_s)
    result.warnings.push_back(fmt::format(
        "a receiving thread did not run, or was busy, for {:.1f} s: the sender found no room meanwhile",
        away_s));
  if (o_.windows.convert && o_.windows.check_every == 1)
    result.warnings.push_back(
        fmt::format("{}: every number of every window is converted a second time and compared, and the rate "
                    "is that of the check",
                    setting::every_window));
  if (const u64 in_part =
          totals_.windows.is_null() ? 0 : totals_.windows.value("zeros_checked_in_part", u64{0});
      in_part > 0)
    result.warnings.push_back(fmt::format(
        "{} windows are nearly all zeros of lost packets, of which those were read that may have been written "
        "since they were read last",
        in_part));
  if (!repeats_.empty()) warn_of_target(median, result);
  if (watch_.stop != nullptr && watch_.stop->requested()) result.stopped(StopReason::requested);
  else if (broken_) result.stopped(StopReason::broken);
  else if (stuck_ || timed_out_ || !ended_) result.stopped(StopReason::timeout);
  result.add(std::move(cell));
}

void CellRun::warn_of_target(const RepeatCounts& median, measure::BenchResult& result) const {
  if (c_.target_gbps == 0) return;
  constexpr double kNear = 0.02;
  const double sent = sent_gbps(median), received = goodput_gbps(median.received);
  if (median.sent.skipped > 0 || sent < (1 - kNear) * c_.target_gbps)
    result.warnings.push_back(
        fmt::format("the senders could not keep up with {}: {:.3g} of {:.3g} Gb/s{}", setting::target_gbps,
                    sent, c_.target_gbps,
                    median.sent.skipped > 0
                        ? fmt::format(", and {} packets that were due never left", median.sent.skipped)
                        : ""));
  else if (sent > (1 + kNear) * c_.target_gbps)
    result.warnings.push_back(
        fmt::format("{} {:g}: a repeat has {} packets, too few for a rate as close as {:g} %",
                    setting::target_gbps, c_.target_gbps, median.sent.sent, 100 * kNear));
  else if (received < (1 - kNear) * c_.target_gbps)
    result.warnings.push_back(
        fmt::format("{:.3g} Gb/s were received of the {:.3g} Gb/s that were sent", received, sent));
}

double CellRun::sent_gbps(const RepeatCounts& r) const {
  return gbps(static_cast<double>(r.sent.sent) * static_cast<double>(c_.payload), r.sent.elapsed_s);
}

Json CellRun::net_json(const RepeatCounts& median) const {
  const ReceiveCounts& n = totals_.counts;
  const ReceivePhase& p = median.received;
  const double packets = static_cast<double>(p.counts.unique - p.counts.earlier);
  const double bytes = static_cast<double>(p.counts.unique_bytes - p.counts.earlier_bytes);
  const Framing framing = stream_->framing(sent_total_);
  const double frames = packets * framing.frames_per_packet;
  const double overhead = framing.header_bytes != 0 ? framing.header_bytes : overhead_bytes(o_, kind_);
  Json j;
  j["goodput_gbps"] = gbps(bytes, p.elapsed_s);
  j["l2_gbps"] = gbps(bytes + frames * overhead, p.elapsed_s);
  j["l1_gbps"] = gbps(bytes + frames * (overhead + kL1Bytes), p.elapsed_s);
  j["frames_per_packet"] = framing.frames_per_packet;
  j["frame_overhead_bytes"] = overhead;
  if (framing.estimated) j["frames_estimated"] = true;
  j["tx_gbps"] = sent_gbps(median);
  j["mpps"] = p.elapsed_s > 0 ? packets / p.elapsed_s * 1e-6 : 0;
  j["sent"] = sent_total_;
  j["received"] = n.received;
  j["unique"] = n.unique;
  j["lost"] = totals_.lost;
  j["lost_percent"] =
      sent_total_ > 0 ? 100.0 * static_cast<double>(totals_.lost) / static_cast<double>(sent_total_) : 0;
  j["duplicate"] = n.duplicate;
  j["corrupt"] = n.corrupt;
  j["misplaced"] = n.misplaced;
  j["alien"] = n.alien;
  j["short"] = n.short_;
  j["out_of_order"] = n.out_of_order;
  j["late"] = n.late;
  if (n.held > 0) j["late_at_receiver"] = n.held;
  j["unmatched"] = totals_.unmatched;
  j["repeats"] = repeats_json();
  if (totals_.beyond > 0) j["never_sent"] = totals_.beyond;
  if (c_.target_gbps > 0) {
    const auto& gaps = median.sent.gaps;
    j["gap_target_ns"] = static_cast<double>(c_.payload) * 8 / c_.target_gbps * setup_.flows();
    j["gap_p50_ns"] = gaps.percentile(50) ? Json(*gaps.percentile(50)) : Json();
    j["gap_p99_ns"] = gaps.percentile(99) ? Json(*gaps.percentile(99)) : Json();
  }
  return j;
}

Json CellRun::repeats_json() const {
  Json list = Json::array();
  for (const RepeatCounts& r : repeats_) {
    list.push_back({{"seconds", r.sent.elapsed_s},
                    {"rx_seconds", r.received.elapsed_s},
                    {"sent", r.sent.sent},
                    {"unique", r.received.counts.unique - r.received.counts.earlier},
                    {"earlier", r.received.counts.earlier},
                    {"tx_gbps", sent_gbps(r)},
                    {"rx_gbps", goodput_gbps(r.received)},
                    {"tx_busy_percent", busy_percent(r.sent.threads)},
                    {"rx_busy_percent", busy_percent(r.received.threads)},
                    {"master_busy_percent", busy_percent({r.sent.master})},
                    {"gpu_sm_percent", r.gpu ? Json(r.gpu->sm_percent) : Json()},
                    {"gpu_memory_percent", r.gpu ? Json(r.gpu->memory_percent) : Json()}});
  }
  return list;
}

Json CellRun::threads_json(const RepeatCounts& median) const {
  Json list = Json::array();
  for (const ThreadUse& t : threads_of(median))
    list.push_back({{"role", t.role},
                    {"index", t.index},
                    {"core", t.core >= 0 ? Json(t.core) : Json()},
                    {"seconds", t.elapsed_s},
                    {"busy_percent", busy_percent({t})},
                    {"useful_percent", busy_percent({t}) * t.useful}});
  return {{"polling", polling_ == Polling::busy ? "busy" : "block"},
          {"tx_busy_percent", busy_percent(median.sent.threads)},
          {"rx_busy_percent", busy_percent(median.received.threads)},
          {"rx_useful_percent", useful_percent(median.received.threads)},
          {"master_busy_percent", busy_percent({median.sent.master})},
          {"list", list}};
}

Json CellRun::gpu_json(const RepeatCounts& median) const {
  Json reason;
  if (!gpu_) reason = o_.role == Role::both ? "no GPU takes part" : "the receiving process does not tell";
  else if (!median.gpu) reason = gpu_->why_not();
  const auto& m = median.gpu;
  return {{"sm_percent", m ? Json(m->sm_percent) : Json()},
          {"memory_percent", m ? Json(m->memory_percent) : Json()},
          {"memory_used_bytes", m ? Json(m->memory_used_bytes) : Json()},
          {"readings", m ? m->looks : 0},
          {"reason", reason}};
}

}  // namespace doorbell::net
