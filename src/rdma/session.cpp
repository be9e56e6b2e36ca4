// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/session.hpp"

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <doorbell/rdma/bnxt.hpp>
#include <doorbell/rdma/ernic.hpp>
#include <doorbell/rdma/ionic.hpp>
#include <doorbell/rdma/mlx5.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "rdma/cpu_op_runner.hpp"

namespace doorbell::rdma {

namespace {
constexpr u64 kLine = 64;
}  // namespace

u64 slot_bytes(u32 payload_bytes) {
  const u64 least = payload_bytes < kAtomicBytes ? kAtomicBytes : payload_bytes;
  return (least + kLine - 1) / kLine * kLine;
}

QueuePairShape SessionShape::queue() const {
  return {.sq_requests = std::max(window, requests),
          .rq_requests = window + 1,
          .max_inline = max_inline,
          .queue_memory = queue_memory};
}

namespace {

/// Of one end of one connection.
u64 buffer_bytes(const SessionShape& shape, u32 slots) {
  return slot_bytes(shape.bytes) * (shape.one_offset ? 1 : slots);
}

}  // namespace

u64 memory_needed(const SessionShape& shape, const Device& device) {
  const auto on_host = [](Place place, u64 bytes) { return place == Place::gpu ? 0 : bytes; };
  u64 each = OpScratch::bytes(shape.window, histogram::kBuckets) + sizeof(OpStats);
  if (shape.has_local()) each += on_host(shape.local_memory, buffer_bytes(shape, shape.window));
  if (shape.has_remote()) each += on_host(shape.remote_memory, buffer_bytes(shape, shape.remote_slots()));
  each += device.queue_pair_bytes(shape.queue()) * (shape.ends == Ends::pair ? 2 : 1);
  return each * shape.queue_pairs;
}

/// One connection. Queue pairs end before the memory that they use, and memory is deregistered before
/// it is freed.
struct Session::Connection {
  Region local;
  Region remote;
  std::unique_ptr<MemoryRegion> local_memory;
  std::unique_ptr<MemoryRegion> remote_memory;
  std::unique_ptr<QueuePairObject> own;
  std::unique_ptr<QueuePairObject> peer;
};

Session::Session(Device& device, std::shared_ptr<gpu::Gpu> gpu, const SessionShape& shape)
    : device_(device), gpu_(std::move(gpu)), shape_(shape) {
  const u64 slot = slot_bytes(shape.bytes);
  const u64 stride = shape.one_offset ? 0 : slot;
  const QueuePairShape queue = shape.queue();
  const auto address = [&](const Region& r) {
    return shape.initiator == Initiator::gpu ? r.device() : r.host();
  };
  for (u32 n = 0; n < shape.queue_pairs; ++n) {
    auto c = std::make_unique<Connection>();
    OpQueue q;
    q.number = n;
    q.stride = stride;
    if (shape.has_local()) {
      c->local = device.allocate(shape.local_memory, buffer_bytes(shape, shape.window));
      c->local.populate();
      c->local_memory =
          device.register_memory(c->local, shape.ping_pong ? u32{access::all} : u32{access::local_write});
      q.local = address(c->local);
      q.local_iova = c->local_memory->iova();
      q.lkey = c->local_memory->lkey();
      if (shape.ping_pong) q.local_rkey = c->local_memory->rkey();
    }
    if (shape.has_remote()) {
      c->remote = device.allocate(shape.remote_memory, buffer_bytes(shape, remote_slots()));
      c->remote.populate();
      c->remote_memory = device.register_memory(c->remote, access::all);
      q.remote = address(c->remote);
      q.remote_iova = c->remote_memory->iova();
      q.rkey = c->remote_memory->rkey();
      q.receive_lkey = c->remote_memory->lkey();
    }
    c->own = device.create_queue_pair(queue);
    if (shape.ends == Ends::pair) c->peer = device.create_queue_pair(queue);
    if (shape.ends != Ends::remote) connect_here(*c);
    connections_.push_back(std::move(c));
    queues_.push_back(q);
  }
}

Session::~Session() = default;

void Session::connect_here(Connection& c) {
  QueuePairObject& far = c.peer ? *c.peer : *c.own;
  c.own->initialise(shape_.connection);
  if (c.peer) {
    c.peer->initialise(shape_.connection);
    c.peer->connect(c.own->endpoint(), shape_.connection);
  }
  c.own->connect(far.endpoint(), shape_.connection);
}

std::vector<Endpoint> Session::endpoints() const {
  std::vector<Endpoint> all;
  for (const auto& c : connections_) all.push_back(c->own->endpoint());
  return all;
}

std::vector<MemoryKey> Session::keys() const {
  std::vector<MemoryKey> all;
  for (const OpQueue& q : queues_) {
    // Of an initiator's memory, others reach only what a ping-pong's answers go to.
    if (shape_.role == Role::initiator) all.push_back({q.local_iova, q.local_rkey, q.stride * shape_.window});
    else all.push_back({q.remote_iova, q.rkey, q.stride * remote_slots()});
  }
  return all;
}

void Session::connect(const std::vector<Endpoint>& peers, const std::vector<MemoryKey>& keys) {
  const bool initiates = shape_.role == Role::initiator;
  if (peers.size() != connections_.size() || keys.size() != connections_.size())
    throw Error("the other end", fmt::format("it has {} queue pairs and {} buffers for {} connections",
                                             peers.size(), keys.size(), connections_.size()));
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    OpQueue& q = queues_[i];
    if ((initiates || shape_.ping_pong) && keys[i].bytes < q.stride * remote_slots())
      throw Error("the other end", fmt::format("its buffers have {} bytes, and {} are needed", keys[i].bytes,
                                               q.stride * remote_slots()));
    connections_[i]->own->initialise(shape_.connection);
    connections_[i]->own->connect(peers[i], shape_.connection);
    if (initiates) {
      q.remote_iova = keys[i].address;
      q.rkey = keys[i].rkey;
    } else if (shape_.ping_pong) {
      q.local_iova = keys[i].address;
      q.local_rkey = keys[i].rkey;
    }
  }
}

void Session::recover() {
  for (const auto& c : connections_) {
    if (c->own->state() == QpState::rts && (!c->peer || c->peer->state() == QpState::rts)) continue;
    c->own->reset();
    if (c->peer) c->peer->reset();
    connect_here(*c);
  }
}

std::vector<OpState<QueuePairState>> Session::direct_states() {
  std::vector<OpState<QueuePairState>> states;
  for (const auto& c : connections_) {
    OpState<QueuePairState> s;
    s.own = fresh_state(c->own->memory(shape_.initiator));
    if (c->peer) s.peer = fresh_state(c->peer->memory(shape_.initiator));
    s.paired = c->peer != nullptr;
    states.push_back(s);
  }
  return states;
}

template <class Format>
std::unique_ptr<OpRunner> Session::direct_runner(const DriverShape& driver) {
  // The kernel's queue pairs have the same state as this one.
  using Queue = QueuePair<OneLane, Format>;
  if (driver.initiator == Initiator::gpu)
    return std::make_unique<measure::GpuRunner<OpWork<Queue>>>(gpu_, op_kernels(device_.provider()),
                                                               driver.window, direct_states());
  return cpu_op_runner<Queue>(driver, direct_states());
}

std::unique_ptr<OpRunner> Session::runner(u32 threads) {
  std::vector<ConnectedEnds> ends;
  for (const auto& c : connections_) ends.push_back({c->own.get(), c->peer.get()});
  const DriverShape driver = {.initiator = shape_.initiator,
                              .gpu = gpu_,
                              .threads = threads,
                              .window = shape_.window,
                              .ping_pong = shape_.ping_pong};
  if (auto own = device_.runner(ends, driver)) return own;
  switch (device_.provider()) {
    case Provider::mlx5:
      return direct_runner<Mlx5>(driver);
    case Provider::bnxt:
      return direct_runner<Bnxt>(driver);
    case Provider::ionic:
      return direct_runner<Ionic>(driver);
    case Provider::ernic:
      return direct_runner<Ernic>(driver);
    case Provider::verbs:
    case Provider::cxi:
      break;
  }
  throw Error("provider", "it is unknown");
}

measure::KernelNames op_kernels(Provider provider) {
  const std::string plain = fmt::format("doorbell_rdma_{}", name(provider));
  return {plain, plain + "_substeps"};
}

}  // namespace doorbell::rdma
