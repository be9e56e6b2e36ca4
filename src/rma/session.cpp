// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rma/session.hpp"

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "loop/histogram.hpp"

namespace doorbell::rma {

namespace {

/// Bytes of the buffers of one end of one connection.
u64 buffer_bytes(const SessionShape& shape, u32 slots) {
  return slot_bytes(shape.bytes, shape.slot_alignment) * (shape.one_offset ? 1 : slots);
}

}  // namespace

u64 slot_bytes(u32 payload_bytes, u32 alignment) {
  const u64 least = payload_bytes < kAtomicBytes ? kAtomicBytes : payload_bytes;
  return (least + alignment - 1) / alignment * alignment;
}

QueueShape SessionShape::queue() const {
  return {.requests = std::max(window, requests),
          .receives = receives ? window + 1 : 1,
          .max_inline = max_inline,
          .queue_memory = queue_memory};
}

u64 memory_needed(const SessionShape& shape, const Port& port) {
  // A CPU initiator has a mirror of GPU memory.
  const auto on_host = [&](Place place, u64 bytes) {
    return place == Place::gpu && shape.initiator == Initiator::gpu ? 0 : bytes;
  };
  u64 each = OpScratch::bytes(shape.window, histogram::kBuckets) + sizeof(OpStats);
  if (shape.has_local()) each += on_host(shape.local_memory, buffer_bytes(shape, shape.window));
  if (shape.has_remote()) each += on_host(shape.remote_memory, buffer_bytes(shape, shape.remote_slots()));
  each += port.queue_bytes(shape.ends, shape.queue());
  return each * shape.queues;
}

u64 Port::device_memory(u32, u64) {
  throw Error(name(), "it has no memory of its own", "use other ends");
}

Session::Session(Port& port, std::shared_ptr<gpu::Gpu> gpu, const SessionShape& shape)
    : gpu_(std::move(gpu)), shape_(shape) {
  const u64 stride = shape.one_offset ? 0 : slot_bytes(shape.bytes, shape.slot_alignment);
  const auto address = [&](const Region& r, std::unique_ptr<GpuMirror>& mirror) {
    if (shape.initiator == Initiator::gpu) return r.device();
    if (r.place() != Place::gpu) return r.host();
    mirror = std::make_unique<GpuMirror>(r);
    return mirror->host();
  };
  for (u32 n = 0; n < shape.queues; ++n) {
    Buffers b;
    OpQueue q;
    q.number = n;
    q.stride = stride;
    if (shape.has_local()) {
      b.local = port.allocate(shape.local_memory, buffer_bytes(shape, shape.window));
      b.local.populate();
      b.local_memory = port.register_memory(b.local, shape.ping_pong ? Reach::others : Reach::own);
      q.local = address(b.local, b.local_mirror);
      q.local_mirror = b.local_mirror.get();
      q.local_iova = b.local_memory->iova();
      q.lkey = b.local_memory->lkey();
      if (shape.ping_pong) q.local_rkey = b.local_memory->rkey();
    }
    if (shape.has_remote()) {
      b.remote = port.allocate(shape.remote_memory, buffer_bytes(shape, shape.remote_slots()));
      b.remote.populate();
      b.remote_memory = port.register_memory(b.remote, Reach::others);
      q.remote = address(b.remote, b.remote_mirror);
      q.remote_mirror = b.remote_mirror.get();
      q.remote_iova = b.remote_memory->iova();
      q.rkey = b.remote_memory->rkey();
      q.receive_lkey = b.remote_memory->lkey();
    } else if (shape.ends == Ends::device) {
      q.remote_iova = port.device_memory(n, buffer_bytes(shape, shape.remote_slots()));
    }
    buffers_.push_back(std::move(b));
    queues_.push_back(q);
  }
  set_ = port.create_queues(shape.queues, shape.ends, shape.queue());
}

void Session::check_mirrors() {
  for (const Buffers& b : buffers_)
    for (const auto* mirror : {&b.local_mirror, &b.remote_mirror})
      if (*mirror) (*mirror)->check();
}

std::vector<MemoryKey> Session::keys() const {
  std::vector<MemoryKey> all;
  for (const OpQueue& q : queues_) {
    // The other end may write to an initiator's memory only for a ping-pong's answers.
    if (shape_.role == Role::initiator) all.push_back({q.local_iova, q.local_rkey, q.stride * shape_.window});
    else all.push_back({q.remote_iova, q.rkey, q.stride * shape_.remote_slots()});
  }
  return all;
}

void Session::use(const std::vector<MemoryKey>& theirs) {
  const bool initiates = shape_.role == Role::initiator;
  if (theirs.size() != queues_.size())
    throw Error("the other end",
                fmt::format("it has {} buffers for {} connections", theirs.size(), queues_.size()));
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    OpQueue& q = queues_[i];
    const u64 needed = q.stride * shape_.remote_slots();
    if ((initiates || shape_.ping_pong) && theirs[i].bytes < needed)
      throw Error("the other end",
                  fmt::format("its buffers have {} bytes, and {} are needed", theirs[i].bytes, needed));
    if (initiates) {
      q.remote_iova = theirs[i].address;
      q.rkey = theirs[i].rkey;
    } else if (shape_.ping_pong) {
      q.local_iova = theirs[i].address;
      q.local_rkey = theirs[i].rkey;
    }
  }
}

std::unique_ptr<OpRunner> Session::runner(u32 threads, u32 checkers) {
  return set_->runner({.initiator = shape_.initiator,
                       .gpu = gpu_,
                       .threads = threads,
                       .checkers = checkers,
                       .window = shape_.window,
                       .ping_pong = shape_.ping_pong});
}

}  // namespace doorbell::rma
