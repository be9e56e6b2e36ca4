// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/roce/rx.hpp"

#include <doorbell/net/packet.hpp>

#include <algorithm>

#include "system/clock.hpp"

namespace doorbell::net {

namespace {

constexpr u32 kPolled = 64;  ///< completions of a flow taken at once

u64 token(u32 flow, u32 buffer) {
  return u64{flow} << 32 | buffer;
}
u32 flow_of(u64 token) {
  return static_cast<u32>(token >> 32);
}

}  // namespace

RoceRx::RoceRx(rdma::NicDevice& nic, u16 number, const StreamRequest& request, const RoceShape& shape)
    : nic_(nic),
      number_(number),
      shape_(shape),
      place_(request.place),
      gpu_(request.gpu),
      ended_(kPolled),
      receives_(rdma::BurstQueue::kMostReceives),
      copies_(place_ == Place::gpu ? request.burst : 0),
      watch_(nic.alive(Initiator::cpu), 0) {}

rdma::QueuePairObject& RoceRx::add() {
  const u32 depth = shape_.rx_depth;
  Flow f{.memory = RoceMemory(nic_, place_, depth * shape_.stride),
         .headers = {},
         .queue_pair = nullptr,
         .queue = nullptr};
  if (place_ == Place::gpu) f.headers = Region(Place::pinned, u64{depth} * kHeaderBytes, gpu_);
  f.base = place_ == Place::gpu ? f.memory.region.device() : f.memory.region.host();
  f.queue_pair = nic_.create_queue_pair({.sq_requests = 1, .rq_requests = depth});
  flows_.push_back(std::move(f));
  ++open_;
  return *flows_.back().queue_pair;
}

void RoceRx::post() {
  Flow& f = flows_.back();
  f.queue = nic_.burst_queue(*f.queue_pair);
  for (u32 i = 0; i < shape_.rx_depth;) {
    const u32 n = std::min(shape_.rx_depth - i, rdma::BurstQueue::kMostReceives);
    for (u32 k = 0; k < n; ++k, ++i)
      receives_[k] = {f.memory.registered->iova() + i * shape_.stride, f.memory.registered->lkey(),
                      shape_.payload_bytes};
    f.queue->post_receives({receives_.data(), n});
  }
}

u32 RoceRx::receive(Burst& burst) {
  burst.count = 0;
  burst.queue = number_;
  burst.split = place_ == Place::gpu;
  const u32 flows = static_cast<u32>(flows_.size());
  for (u32 i = 0, f = first_; i < flows && burst.count < burst.capacity(); ++i) {
    take(f, burst);
    if (++f == flows) f = 0;
  }
  if (++first_ >= flows) first_ = 0;
  if (burst.count == 0) {
    if (open_ > 0) missed();
    return 0;
  }
  watch_.found();
  burst.rx_time_ns = wall_ns();
  if (burst.split) copy_headers(burst);
  return burst.count;
}

void RoceRx::take(u32 flow, Burst& burst) {
  Flow& f = flows_[flow];
  while (f.open && burst.count < burst.capacity()) {
    const u32 most = std::min(burst.capacity() - burst.count, kPolled);
    const u32 n = f.queue->poll_receives({ended_.data(), most});
    for (u32 i = 0; i < n; ++i) {
      const rdma::BurstQueue::Ended& e = ended_[i];
      statuses_.count(e.status);
      if (e.status != rdma::Status::ok) close(f, true);
      else if (e.bytes == 0) close(f, false);
      else if (f.open) add_message(flow, e.bytes, burst);
    }
    if (n < most) return;
  }
}

void RoceRx::add_message(u32 flow, u32 bytes, Burst& burst) {
  Flow& f = flows_[flow];
  const u32 i = burst.count++;
  u8* const at = f.base + f.next * shape_.stride;
  burst.token[i] = token(flow, f.next);
  if (burst.split) {
    const u32 header = std::min(bytes, kHeaderBytes);
    burst.data[i] = f.headers.host() + u64{f.next} * kHeaderBytes;
    burst.length[i] = header;
    burst.body[i] = at + header;
    burst.body_length[i] = bytes - header;
  } else {
    burst.data[i] = at;
    burst.length[i] = bytes;
  }
  if (++f.next == shape_.rx_depth) f.next = 0;
}

/// One call a burst, which costs far more than a burst of messages in host memory.
void RoceRx::copy_headers(const Burst& burst) {
  if (copies_.size() < burst.count) copies_.resize(burst.capacity());
  for (u32 i = 0; i < burst.count; ++i)
    copies_[i] = {burst.data[i], burst.body[i] - burst.length[i], burst.length[i]};
  gpu_->copy(std::span<const gpu::Copy>(copies_.data(), burst.count));
}

void RoceRx::release(Burst& burst) {
  u32 flow = 0;
  u32 n = 0;
  for (u32 i = 0; i < burst.count; ++i) {
    const u64 t = burst.token[i];
    if (n > 0 && (flow_of(t) != flow || n == receives_.size())) {
      give_back(flows_[flow], n);
      n = 0;
    }
    flow = flow_of(t);
    const Flow& f = flows_[flow];
    receives_[n++] = {f.memory.registered->iova() + static_cast<u32>(t) * shape_.stride,
                      f.memory.registered->lkey(), shape_.payload_bytes};
  }
  if (n > 0) give_back(flows_[flow], n);
  burst.count = 0;
}

void RoceRx::give_back(Flow& f, u32 n) {
  if (f.open) f.queue->post_receives({receives_.data(), n});
}

[[gnu::cold]] void RoceRx::close(Flow& f, bool failed) {
  if (!f.open) return;
  f.open = false;
  --open_;
  broken_ += failed ? 1 : 0;
}

[[gnu::cold]] void RoceRx::missed() {
  if (watch_.missed() != IdleWatch::Verdict::removed) return;
  removed_ = true;
  for (Flow& f : flows_) close(f, true);
}

rdma::BurstQueue::Odd RoceRx::odd() const {
  rdma::BurstQueue::Odd all;
  for (const Flow& f : flows_) {
    const rdma::BurstQueue::Odd o = f.queue->odd();
    all.duplicated += o.duplicated;
    all.skipped += o.skipped;
    all.protocol += o.protocol;
  }
  return all;
}

}  // namespace doorbell::net
