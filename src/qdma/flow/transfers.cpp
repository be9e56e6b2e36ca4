// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/flow/transfers.hpp"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <mutex>

#include "qdma/card_state.hpp"
#include "qdma/flow/submitter.hpp"
#include "system/clock.hpp"

namespace doorbell::qdma {

namespace {

u64 limit_of(double deadline_s) {
  return deadline_s > 0 ? std::max<u64>(ticks_of(deadline_s, 1), 1) : 0;
}

TransferResult refused(int error) {
  TransferResult r;
  r.error = error;
  return r;
}

}  // namespace

std::vector<Transfer> calls_of(const WholeTransfer& t, std::span<const Segment> segments) {
  // A part of a longer segment ends at a granule, where the next part's offset may begin.
  static_assert(kMaxCallBytes % kGranule == 0);
  constexpr u64 kHalf = kMaxCallBytes / 2 / kGranule * kGranule;
  std::array<std::deque<Segment>, kMaxDescriptorQueuePairs> todo;
  for (const Segment& s : segments)
    if (s.queue_pair < todo.size() && s.bytes > 0) todo[s.queue_pair].push_back(s);
  std::vector<Transfer> calls;
  while (!todo[0].empty() || !todo[1].empty()) {
    const bool both = !todo[0].empty() && !todo[1].empty();
    Transfer call;
    for (auto& queue : todo) {
      if (queue.empty()) continue;
      Segment& s = queue.front();
      const u64 bytes = std::min(s.bytes, both ? kHalf : kMaxCallBytes);
      call.xfers[call.count++] = {.qpair_index = s.queue_pair,
                                  .direction = static_cast<u32>(t.direction),
                                  .buf_fd = t.buffer,
                                  .buf_offset = t.buffer_offset + s.offset,
                                  .dev_addr = t.address + s.offset,
                                  .length = bytes};
      s.offset += bytes;
      s.bytes -= bytes;
      if (s.bytes == 0) queue.pop_front();
    }
    calls.push_back(call);
  }
  return calls;
}

struct Transfers::Lazy {
  std::mutex mutex;
  std::unique_ptr<Submitter> submitter;
};

Transfers::Transfers(std::shared_ptr<CardState> card, int fd, std::vector<u32> channels, bool owns_fd)
    : card_(std::move(card)),
      fd_(fd),
      owns_fd_(owns_fd),
      channels_(std::move(channels)),
      lazy_(std::make_unique<Lazy>()) {}

Transfers::Transfers(Transfers&& other) noexcept = default;

Transfers::~Transfers() {
  if (!card_) return;  // moved from
  lazy_.reset();
  if (owns_fd_) card_->driver->close(fd_);
}

void Transfers::set_policy(PolicyKind kind, const BalancedPolicy& balanced) {
  policy_ = kind;
  balanced_ = balanced;
}

Submitter& Transfers::submitter() {
  const std::lock_guard lock(lazy_->mutex);
  if (!lazy_->submitter) lazy_->submitter = std::make_unique<Submitter>(card_->driver, fd_);
  return *lazy_->submitter;
}

int Transfers::plan(const WholeTransfer& t, Work& work) const {
  if (t.buffer < 0) return EBADF;
  if (t.bytes == 0 || t.buffer_offset % kGranule != 0) return EINVAL;
  if (t.buffer_offset > t.buffer_bytes || t.bytes > t.buffer_bytes - t.buffer_offset) return EINVAL;
  const TransferShape shape{.direction = t.direction,
                            .buffer_base = t.address,
                            .address = t.address,
                            .bytes = t.bytes,
                            .host_offset = t.buffer_offset,
                            .step = kGranule,
                            .queue_pairs = queue_pairs()};
  std::vector<Segment> segments;
  switch (policy_) {
    case PolicyKind::balanced: {
      ChannelLoad load;
      for (u32 q = 0; q < queue_pairs(); ++q) {
        load.host_to_card[q] = card_->queued[0][channels_[q]].load(std::memory_order_relaxed);
        load.card_to_host[q] = card_->queued[1][channels_[q]].load(std::memory_order_relaxed);
      }
      segments = balanced(shape, balanced_, load);
      break;
    }
    case PolicyKind::v80_compat:
      segments = v80_compat(shape);
      break;
    case PolicyKind::channel0:
    case PolicyKind::channel1:
      segments = {{.queue_pair = policy_ == PolicyKind::channel1 && queue_pairs() > 1 ? 1u : 0u,
                   .offset = 0,
                   .bytes = t.bytes}};
      break;
  }
  if (segments.empty()) return EFAULT;
  std::array<u64, 2> bytes{};
  for (const Segment& s : segments) bytes[channels_[s.queue_pair]] += s.bytes;
  work.calls = calls_of(t, segments);
  work.load = LoadShare(card_, t.direction, bytes);
  return 0;
}

TransferResult Transfers::run(Work work) {
  // Where the driver's call does not return at the deadline, another thread or a ring waits for it.
  if (work.limit_ns != 0 && !card_->driver->keeps_deadlines()) return submitter().run(std::move(work));
  TransferResult r;
  u64 deadline_ns = 0;
  for (Transfer& call : work.calls) {
    u64 left = 0;
    if (work.limit_ns != 0) {
      const u64 now = wall_ns();
      if (deadline_ns == 0) deadline_ns = now + work.limit_ns;
      if (now >= deadline_ns) {
        r.error = ETIMEDOUT;
        break;
      }
      left = deadline_ns - now;
    }
    std::array<SubResult, kMaxSubTransfers> parts{};
    const CallResult c =
        card_->driver->call(fd_, kCallTransfer, std::span(reinterpret_cast<u8*>(&call), sizeof call),
                            {.deadline_ns = left, .parts = parts});
    add_call(r, call, c, parts);
    if (r.error != 0) break;
  }
  return r;
}

TransferResult Transfers::transfer(const WholeTransfer& t, double deadline_s) {
  Work work;
  work.limit_ns = limit_of(deadline_s);
  if (const int error = plan(t, work); error != 0) return refused(error);
  return run(std::move(work));
}

TransferResult Transfers::batch(std::span<const SubXfer> parts, double deadline_s) {
  Transfer call;
  if (parts.empty() || parts.size() > call.xfers.size()) return refused(EINVAL);
  u64 total = 0;
  for (const SubXfer& p : parts) {
    if (p.length > kMaxCallBytes) return refused(EINVAL);
    total += p.length;
    call.xfers[call.count++] = p;
  }
  if (total > kMaxCallBytes) return refused(EINVAL);
  Work work;
  work.limit_ns = limit_of(deadline_s);
  work.calls = {call};
  return run(std::move(work));
}

TransferId Transfers::submit(const WholeTransfer& t, double deadline_s, u64 user) {
  Work work;
  work.user = user;
  work.limit_ns = limit_of(deadline_s);
  if (const int error = plan(t, work); error != 0) card_->fail("submit a transfer", error);
  TransferId id = 0;
  if (const int error = submitter().submit(std::move(work), id); error != 0)
    card_->fail("submit a transfer", error);
  return id;
}

u32 Transfers::complete(std::span<TransferCompletion> out, double wait_s) {
  return submitter().complete(out, wait_s);
}

void Transfers::cancel(TransferId id) {
  submitter().cancel(id);
}

std::string Transfers::submit_engine() {
  return submitter().engine();
}

}  // namespace doorbell::qdma
