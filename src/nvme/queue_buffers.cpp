// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/queue_buffers.hpp"

#include <doorbell/nvme/wire.hpp>

#include <algorithm>
#include <cstring>

#include "loop/histogram.hpp"

namespace doorbell::nvme {

namespace {
constexpr u64 kPrpPage = 4096;
constexpr u64 round_up(u64 n, u64 to) {
  return (n + to - 1) / to * to;
}
/// Where a slot's buffer and its list lie.
u64 slot_stride(const QueueShape& shape) {
  return round_up(shape.io_bytes, kPrpPage);
}
u64 slot_list_stride(const QueueShape& shape) {
  return round_up(prp_list_qwords(0, shape.io_bytes, kPrpPage) * 8, kPrpPage);
}
constexpr u64 kMoreEarlierBytes = (QueueBuffers::kEarlierAtMost - 1) * sizeof(EarlierWrite);
}  // namespace

u64 queue_memory(const QueueShape& shape) {
  const auto in_host = [](Place place, u64 bytes) { return place == Place::gpu ? 0 : bytes; };
  // A CPU initiator has a mirror of GPU memory.
  const Place data = shape.initiator == Initiator::cpu ? Place::pageable : shape.data;
  return in_host(data, slot_stride(shape) * shape.window) + slot_list_stride(shape) * shape.window +
         in_host(shape.sq, u64{shape.entries} * kSqeBytes) +
         in_host(shape.cq, u64{shape.entries} * kCqeBytes) + round_up(shape.unwritten_bits, 32) / 8 +
         kMoreEarlierBytes + IoScratch::bytes(shape.window, histogram::kBuckets);
}

QueueBuffers::QueueBuffers(AddressSpace& space, const std::shared_ptr<gpu::Gpu>& gpu,
                           const QueueShape& shape) {
  const bool on_gpu = shape.initiator == Initiator::gpu;
  const auto address = [&](const Region& r) { return on_gpu ? r.device() : r.host(); };
  const u64 stride = slot_stride(shape);
  const u64 list_stride = slot_list_stride(shape);
  for (u32 q = 0; q < shape.queues; ++q) {
    data_.emplace_back(space, shape.data, stride * shape.window, Access::read_write, gpu);
    data_.back().region().populate();
    IoQueue io;
    io.data = address(data_.back().region());
    if (shape.data == Place::gpu && !on_gpu) {
      mirrors_.push_back(std::make_unique<GpuMirror>(data_.back().region()));
      io.mirror = mirrors_.back().get();
      io.data = mirrors_.back()->host();
    }
    io.stride = stride;
    io.data_iova = data_.back().iova();
    io.page = kPrpPage;
    const Share own = share_of(shape.positions, shape.queues, q);
    io.first = shape.first + own.first;
    io.span = own.count;
    if (list_stride > 0) {
      lists_.emplace_back(space, Place::pageable, list_stride * shape.window, Access::read, gpu);
      io.list_iova = lists_.back().iova();
      io.list_stride = list_stride;
      // A slot's buffer never moves, so its list is written once.
      for (u32 slot = 0; slot < shape.window; ++slot)
        write_prp_list(reinterpret_cast<u64*>(lists_.back().region().host() + slot * list_stride),
                       io.data_iova + slot * stride, shape.io_bytes, kPrpPage,
                       io.list_iova + slot * list_stride);
    }
    if (shape.unwritten_bits > 0) {
      unwritten_.emplace_back(Place::pageable, round_up(shape.unwritten_bits, 32) / 8, gpu);
      io.unwritten = reinterpret_cast<u32*>(address(unwritten_.back()));
      io.unwritten_bits = shape.unwritten_bits;
    }
    more_earlier_.emplace_back(Place::pageable, kMoreEarlierBytes, gpu);
    io.more_earlier = reinterpret_cast<const EarlierWrite*>(address(more_earlier_.back()));
    io_.push_back(io);
  }
}

void QueueBuffers::check_mirrors() {
  for (const auto& m : mirrors_) m->check();
}

void QueueBuffers::forget_refused_writes() {
  for (Region& r : unwritten_) std::memset(r.host(), 0, r.bytes());
}

void QueueBuffers::set_written_before(u32 queue, std::span<const EarlierWrite> writes) {
  writes = writes.first(std::min(writes.size(), kEarlierAtMost));
  IoQueue& io = io_[queue];
  io.earlier = writes.empty() ? EarlierWrite{} : writes.front();
  io.more_earlier_count = writes.empty() ? 0 : static_cast<u32>(writes.size() - 1);
  if (io.more_earlier_count > 0)
    std::memcpy(more_earlier_[queue].host(), &writes[1], io.more_earlier_count * sizeof(EarlierWrite));
}

}  // namespace doorbell::nvme
