// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/roce/tx.hpp"

#include <algorithm>

namespace doorbell::net {

using rdma::Status;

RoceTx::RoceTx(rdma::NicDevice& nic, const RoceShape& shape)
    : shape_(shape),
      memory_(nic, Place::pageable, shape.slots * shape.stride),
      queue_pair_(nic.create_queue_pair({.sq_requests = shape.tx_depth, .rq_requests = 1})),
      requests_(shape.window),
      ended_(shape.window),
      watch_(nic.alive(Initiator::cpu), shape.timeout_ns) {
  for (rdma::WorkRequest& r : requests_) {
    r.op = rdma::Op::send;
    r.lkey = memory_.registered->lkey();
  }
}

void RoceTx::begin(rdma::NicDevice& nic, std::function<void()> broke) {
  queue_ = nic.burst_queue(*queue_pair_);
  broke_ = std::move(broke);
}

TxSlots RoceTx::slots() const {
  return {memory_.region.host(), shape_.stride, shape_.slots};
}

u32 RoceTx::send(u64 first, u32 count, u32 bytes) {
  collect();
  if (broken_ || end_posted_) return 0;
  const u32 n = std::min(count, shape_.window - in_flight());
  if (n == 0) return 0;
  u32 slot = static_cast<u32>(first % shape_.slots);
  u32 signal = static_cast<u32>(posted_ % shape_.signal_every);
  for (u32 i = 0; i < n; ++i) {
    rdma::WorkRequest& r = requests_[i];
    r.local = memory_.registered->iova() + slot * shape_.stride;
    r.bytes = bytes;
    // A sender that pauses learns of its last messages only if one of them asks for a completion.
    r.signalled = ++signal == shape_.signal_every || (i + 1 == n && signalled_ <= completed_);
    if (r.signalled) signalled_ = posted_ + i + 1;
    if (signal == shape_.signal_every) signal = 0;
    if (++slot == shape_.slots) slot = 0;
  }
  queue_->post({requests_.data(), n});
  posted_ += n;
  return n;
}

u64 RoceTx::completed() {
  collect();
  return end_posted_ ? std::min(completed_, posted_ - 1) : completed_;
}

bool RoceTx::finish() {
  collect();
  if (broken_) return true;
  if (!end_posted_) {
    // The queue has room for one request beyond the window, which finishes those that asked for no
    // completion.
    rdma::WorkRequest end;
    end.op = rdma::Op::send;
    queue_->post({&end, 1});
    end_posted_ = true;
    signalled_ = ++posted_;
  }
  return completed_ == posted_;
}

void RoceTx::collect() {
  const u32 n = queue_->poll(ended_);
  for (u32 i = 0; i < n; ++i) {
    const rdma::BurstQueue::Ended& e = ended_[i];
    statuses_.count(e.status);
    if (e.status != Status::ok || broken_) failed(e);
    else completed_ += e.serial - static_cast<u32>(completed_);
  }
  if (n > 0) watch_.found();
  else if (signalled_ > completed_ && !broken_) missed();
}

/// The requests before the one that failed first have been acknowledged, those behind it have not.
[[gnu::cold]] void RoceTx::failed(const rdma::BurstQueue::Ended& e) {
  if (broken_) return;
  if (!e.all && e.status != Status::flushed) completed_ += e.serial - static_cast<u32>(completed_) - 1;
  break_off();
}

void RoceTx::missed() {
  switch (watch_.missed()) {
    case IdleWatch::Verdict::wait:
      return;
    case IdleWatch::Verdict::removed:
      removed_ = true;
      break;
    case IdleWatch::Verdict::expired:
      timed_out_ = true;
      break;
  }
  break_off();
}

[[gnu::cold]] void RoceTx::break_off() {
  broken_ = true;
  broke_();
}

}  // namespace doorbell::net
