// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/flow/submitter.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "system/clock.hpp"

namespace doorbell::qdma {

namespace {

/// A thread in the engine does not see deadlines of transfers that are submitted meanwhile, and a thread that
/// waits looks often enough to notice that it did not run.
constexpr u64 kLongestWaitNs = RunningTime::kMostNs / 2;

u64 new_tag() {
  static std::atomic<u64> last{0};
  return ++last;
}

/// CLOCK_MONOTONIC is what steady_clock counts.
std::chrono::steady_clock::time_point time_point(u64 ns) {
  constexpr u64 kFar = u64{1} << 62;
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(std::min(ns, kFar)));
}

}  // namespace

std::string engine_wanted() {
  const char* const text = std::getenv("DOORBELL_QDMA_SUBMIT");
  const std::string wanted = text == nullptr ? "" : text;
  if (wanted.empty() || wanted == "io_uring" || wanted == "threads") return wanted;
  throw Error(fmt::format("DOORBELL_QDMA_SUBMIT={}", wanted), "it is io_uring or threads");
}

// --- LoadShare
// ----------------------------------------------------------------------------------------------

LoadShare::LoadShare(std::shared_ptr<CardState> card, Direction direction, std::array<u64, 2> bytes)
    : card_(std::move(card)), direction_(direction == Direction::host_to_card ? 0 : 1), bytes_(bytes) {
  for (u32 c = 0; c < 2; ++c) card_->queued[direction_][c].fetch_add(bytes_[c], std::memory_order_relaxed);
}

LoadShare::~LoadShare() {
  give_back();
}

LoadShare::LoadShare(LoadShare&& other) noexcept
    : card_(std::move(other.card_)), direction_(other.direction_), bytes_(other.bytes_) {}

LoadShare& LoadShare::operator=(LoadShare&& other) noexcept {
  if (this != &other) {
    give_back();
    card_ = std::move(other.card_);
    direction_ = other.direction_;
    bytes_ = other.bytes_;
  }
  return *this;
}

void LoadShare::give_back() noexcept {
  if (!card_) return;
  for (u32 c = 0; c < 2; ++c) card_->queued[direction_][c].fetch_sub(bytes_[c], std::memory_order_relaxed);
  card_.reset();
}

void add_call(TransferResult& r, const Transfer& call, const CallResult& result,
              std::span<const SubResult> parts) {
  const int error = result.result < 0 ? static_cast<int>(-result.result) : 0;
  u64 longest = 0;
  for (u32 i = 0; i < call.count; ++i) {
    SubResult part;
    if (i < result.parts) {
      part = parts[i];
    } else if (error == 0) {
      part.bytes = call.xfers[i].length;  // the driver's call succeeds only as a whole
    } else {
      part.error = error;
      part.known = false;
    }
    r.bytes += part.bytes;
    if (part.known) longest = std::max(longest, part.ns);
    r.parts.push_back(part);
  }
  r.card_ns += longest;
  if (r.error == 0) r.error = error;
}

// --- Submitter
// ----------------------------------------------------------------------------------------------

struct Submitter::Operation {
  TransferId id = 0;
  Work work;
  std::size_t next = 0;               // the call to begin next
  std::shared_ptr<PendingCall> call;  // in flight; null: the device is quiet
  u64 deadline_ns = 0;                // of CLOCK_MONOTONIC; 0: none
  u64 overdue_ns = kNever;            // when a back end has certainly forgotten the call
  bool cancelled = false;
  bool reported = false;
  bool waited_for = false;  // by run(): it makes no completion
  TransferResult result;
};

Submitter::Submitter(std::shared_ptr<Driver> driver, int fd) : driver_(std::move(driver)) {
  const std::string wanted = engine_wanted();
  if (wanted != "threads") engine_ = driver_->uring_engine(fd);
  if (!engine_ && wanted == "io_uring")
    throw Error("DOORBELL_QDMA_SUBMIT=io_uring", "this kernel or this card's driver has no io_uring commands",
                "leave it unset, or set it to threads");
  if (!engine_) engine_ = thread_engine(driver_, fd);
  engine_->set_ended([this](const std::shared_ptr<PendingCall>& call) { ended(call); });
}

Submitter::~Submitter() {
  Lock lock(mutex_);
  std::vector<std::shared_ptr<PendingCall>> calls;
  u64 until = 0;
  for (auto& [id, op] : in_flight_) {
    op->cancelled = true;
    if (op->call) calls.push_back(op->call);
    // A driver that keeps no deadlines waits for some transfers without limit.
    const u64 end = op->overdue_ns != kNever ? op->overdue_ns : wall_ns() + kDriverLimitNs + kGraceNs;
    until = std::max(until, end);
  }
  lock.unlock();
  for (const auto& call : calls) engine_->cancel(*call);
  lock.lock();
  wait(lock, until, [&] { return in_flight_.empty(); });
  const bool quiet = in_flight_.empty();
  lock.unlock();
  if (!quiet) engine_->abandon();
  engine_.reset();
}

int Submitter::start(Work work, bool waited_for, std::shared_ptr<Operation>& out) {
  auto op = std::make_shared<Operation>();
  op->work = std::move(work);
  op->waited_for = waited_for;
  const Lock lock(mutex_);
  const u64 now = wall_ns();
  note_away(now);
  if (op->work.limit_ns != 0) op->deadline_ns = now + op->work.limit_ns;
  // Completions that have not been taken count as well, so that their number has a bound.
  if (in_flight_.size() + completions_.size() >= TransferDescriptor::kMaxSubmitted) return EAGAIN;
  op->id = next_id_++;
  in_flight_.emplace(op->id, op);
  if (const int error = begin_next(op); error == EAGAIN) {
    in_flight_.erase(op->id);
    return error;
  } else if (error != 0) {
    // An error of the card comes with the completion, whether it is said now or later.
    op->result.error = error;
    report(*op);
    in_flight_.erase(op->id);
  }
  changed_.notify_all();  // a waiting thread has something to drive now, and a deadline
  out = std::move(op);
  return 0;
}

int Submitter::submit(Work work, TransferId& id) {
  std::shared_ptr<Operation> op;
  const int error = start(std::move(work), false, op);
  if (op) id = op->id;
  return error;
}

TransferResult Submitter::run(Work work) {
  std::shared_ptr<Operation> op;
  TransferResult refused;
  refused.error = start(std::move(work), true, op);
  if (!op) return refused;
  Lock lock(mutex_);
  wait(lock, kNever, [&] { return op->reported; });
  return std::move(op->result);
}

int Submitter::begin_next(const std::shared_ptr<Operation>& op) {
  const u64 now = wall_ns();
  auto call = std::make_shared<PendingCall>();
  call->structure = op->work.calls[op->next];
  call->tag = new_tag();
  if (op->deadline_ns != 0) {
    if (now >= op->deadline_ns) return ETIMEDOUT;
    call->deadline_ns = op->deadline_ns - now;
    op->overdue_ns = op->deadline_ns + (driver_->keeps_deadlines() ? kGraceNs : 0);
  } else {
    op->overdue_ns = driver_->keeps_deadlines() ? now + kDriverLimitNs + kGraceNs : kNever;
  }
  op->call = call;
  const int error = engine_->begin(call);
  if (error != 0) op->call.reset();
  return error;
}

void Submitter::ended(const std::shared_ptr<PendingCall>& call) {
  const Lock lock(mutex_);
  const auto it = std::find_if(in_flight_.begin(), in_flight_.end(),
                               [&](const auto& entry) { return entry.second->call == call; });
  if (it == in_flight_.end()) return;
  const std::shared_ptr<Operation> op = it->second;
  note_away(wall_ns());
  op->call.reset();
  if (!op->reported) {
    add_call(op->result, op->work.calls[op->next], call->result, call->parts);
    ++op->next;
    if (op->result.error == 0 && op->next < op->work.calls.size())
      op->result.error = op->cancelled ? ECANCELED : begin_next(op);
    if (op->call) return;
    report(*op);
  }
  in_flight_.erase(op->id);
  changed_.notify_all();
}

void Submitter::report(Operation& op) {
  op.reported = true;
  op.work.load = {};
  if (!op.waited_for) completions_.push_back({op.id, op.work.user, std::move(op.result)});
  changed_.notify_all();
}

void Submitter::note_away(u64 now) {
  const u64 away_ns = running_.away_since_look(now);
  if (away_ns == 0) return;
  for (auto& [id, op] : in_flight_) {
    if (op->deadline_ns != 0) op->deadline_ns += away_ns;
    if (op->overdue_ns != kNever) op->overdue_ns += away_ns;
  }
}

u64 Submitter::report_overdue(u64 now) {
  note_away(now);
  u64 next = kNever;
  for (auto& [id, op] : in_flight_) {
    if (op->reported) continue;
    if (now < op->overdue_ns) {
      next = std::min(next, op->overdue_ns);
      continue;
    }
    // The card may still be at it: the operation stays, only its completion goes.
    add_call(op->result, op->work.calls[op->next], {.result = -ETIMEDOUT, .parts = 0}, {});
    report(*op);
  }
  return next;
}

void Submitter::wait(Lock& lock, u64 until_ns, const std::function<bool()>& done) {
  for (;;) {
    const u64 now = wall_ns();
    const u64 due = report_overdue(now);
    if (done() || now >= until_ns) return;
    const u64 next = in_flight_.empty() ? until_ns : std::min({until_ns, due, now + kLongestWaitNs});
    if (engine_->driven() && !driving_ && !in_flight_.empty()) {
      driving_ = true;
      lock.unlock();
      engine_->drive(next);
      lock.lock();
      driving_ = false;
      changed_.notify_all();
    } else {
      changed_.wait_until(lock, time_point(next));
    }
  }
}

u32 Submitter::complete(std::span<TransferCompletion> out, double wait_s) {
  if (out.empty()) return 0;
  const u64 wait_ns = wait_s > 0 ? ticks_of(wait_s, 1) : 0;
  Lock lock(mutex_);
  if (engine_->driven() && !driving_ && completions_.empty() && wait_ns == 0) {
    // Without waiting, but not without looking.
    driving_ = true;
    lock.unlock();
    engine_->drive(0);
    lock.lock();
    driving_ = false;
    changed_.notify_all();
  }
  wait(lock, wall_ns() + wait_ns, [&] { return !completions_.empty(); });
  u32 taken = 0;
  for (; taken < out.size() && !completions_.empty(); ++taken) {
    out[taken] = std::move(completions_.front());
    completions_.pop_front();
  }
  return taken;
}

void Submitter::cancel(TransferId id) {
  std::shared_ptr<PendingCall> call;
  {
    const Lock lock(mutex_);
    const auto it = in_flight_.find(id);
    if (it == in_flight_.end()) return;
    it->second->cancelled = true;
    call = it->second->call;
  }
  if (call) engine_->cancel(*call);
}

}  // namespace doorbell::qdma
