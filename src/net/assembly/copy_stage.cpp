// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/assembly/copy_stage.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "system/clock.hpp"

namespace doorbell::net {

namespace {

/// The largest window, 1 GiB, is copied in less.
constexpr u64 kLateNs = 200'000'000;

[[noreturn]] void not_copied(const Window& window, u64 limit_ns) {
  throw Error(fmt::format("window {}", window.index),
              fmt::format("the GPU has not copied it within {:.1f} s", static_cast<double>(limit_ns) * 1e-9),
              {}, ExitCode::data);
}

}  // namespace

CopyStage::Lane::Lane(const std::shared_ptr<gpu::Gpu>& gpu)
    : gpu_(gpu),
      stream_(gpu_->create_stream()),
      source_(Place::gpu, sizeof kDone, gpu_),
      report_(Place::pinned, sizeof kDone, gpu_) {
  source_.write(0, &kDone, sizeof kDone);
}

CopyStage::Lane::~Lane() {
  gpu_->destroy(stream_);
}

void CopyStage::Lane::start(const Window& window, u32 buffer, u8* address) {
  from = window;
  to = buffer;
  store64_release(reinterpret_cast<u64*>(report_.host()), 0);
  gpu_->start_copy({address, window.host, window.bytes}, stream_);
  gpu_->start_copy({report_.host(), source_.device(), sizeof kDone}, stream_);
  begin_ns_ = wall_ns();
}

bool CopyStage::Lane::ended(u64 limit_ns) {
  const u64 age_ns = wall_ns() - begin_ns_;
  if (age_ns <= kLateNs) return false;
  if (wait(0)) return true;
  if (age_ns > limit_ns) not_copied(from, limit_ns);
  return false;
}

bool CopyStage::Lane::wait(u64 limit_ns) {
  if (reported()) return true;
  if (!gpu_->wait(stream_, limit_ns)) return false;
  // A copy that the stream has finished is there, whether or not this CPU has seen the report.
  store64_release(reinterpret_cast<u64*>(report_.host()), kDone);
  return true;
}

CopyStage::CopyStage(std::shared_ptr<gpu::Gpu> gpu, u64 window_bytes, u32 window_packets,
                     WindowConsumer& consumer, u32 copies, u32 in_flight, u64 limit_ns)
    : gpu_(std::move(gpu)),
      buffers_(Place::gpu, gpu_, copies + in_flight, window_bytes, window_packets),
      consumer_(consumer),
      limit_ns_(limit_ns) {
  for (u32 i = 0; i < copies; ++i) lanes_.push_back(std::make_unique<Lane>(gpu_));
}

void CopyStage::take(const Window& window) {
  poll();
  if (waiting() == lanes_.size() && !wait_for_copy(limit_ns_)) not_copied(oldest().from, limit_ns_);
  if (!buffers_.available()) wait_for_buffer(buffers_, consumer_, limit_ns_);
  const u32 buffer = buffers_.acquire();
  lanes_[taken_ % lanes_.size()]->start(window, buffer, buffers_.device(buffer));
  ++taken_;
}

void CopyStage::poll() {
  while (waiting() != 0 && oldest().done(limit_ns_)) {
    const Lane& lane = oldest();
    const Window from = lane.from, there = buffers_.describe(lane.to, from);
    ++delivered_;
    from.give_back();
    consumer_.take(there);
  }
  consumer_.poll();
}

bool CopyStage::wait_for_copy(u64 limit_ns) {
  if (!oldest().wait(limit_ns)) return false;
  poll();
  return true;
}

void CopyStage::wait(u64 limit_ns) {
  if (waiting() != 0) (void)wait_for_copy(limit_ns);
  else consumer_.wait(limit_ns);
}

void CopyStage::finish() {
  while (waiting() != 0)
    if (!wait_for_copy(limit_ns_))
      throw Error("windows", fmt::format("the GPU has not copied {} of them", waiting()), {}, ExitCode::data);
  consumer_.finish();
}

}  // namespace doorbell::net
