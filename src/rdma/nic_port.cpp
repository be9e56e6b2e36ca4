// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/nic_port.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

namespace doorbell::rdma {

namespace {

QueuePairShape queue_pair(const QueueShape& shape) {
  return {.sq_requests = shape.requests,
          .rq_requests = shape.receives,
          .max_inline = shape.max_inline,
          .queue_memory = shape.queue_memory};
}

}  // namespace

NicQueues::NicQueues(NicDevice& nic, u32 count, Ends ends, const QueueShape& shape,
                     const ConnectionOptions& connection)
    : nic_(nic), options_(connection) {
  for (u32 n = 0; n < count; ++n) {
    Connection c{.own = nic.create_queue_pair(queue_pair(shape)), .peer = nullptr};
    if (ends == Ends::pair) c.peer = nic.create_queue_pair(queue_pair(shape));
    if (ends != Ends::remote) connect_here(c);
    connections_.push_back(std::move(c));
  }
}

void NicQueues::connect_here(const Connection& c) {
  rdma::connect(*c.own, c.peer ? *c.peer : *c.own, options_);
}

void NicQueues::recover() {
  // Those that have not failed too: the next runner's loops begin at the first entry of every queue.
  for (const Connection& c : connections_) {
    c.own->reset();
    if (c.peer) c.peer->reset();
    connect_here(c);
  }
}

std::vector<ConnectedEnds> NicQueues::ends() const {
  std::vector<ConnectedEnds> all;
  for (const Connection& c : connections_) all.push_back({c.own.get(), c.peer.get()});
  return all;
}

std::unique_ptr<OpRunner> NicQueues::runner(const DriverShape& driver) {
  return nic_.runner(ends(), driver);
}

std::vector<QueuePairAddress> NicQueues::addresses() const {
  std::vector<QueuePairAddress> all;
  for (const Connection& c : connections_) all.push_back(c.own->address());
  return all;
}

void NicQueues::connect(const std::vector<QueuePairAddress>& peers) {
  if (peers.size() != connections_.size())
    throw Error("the other end",
                fmt::format("it has {} queue pairs for {} connections", peers.size(), connections_.size()));
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    connections_[i].own->initialise(options_);
    connections_[i].own->connect(peers[i], options_);
  }
}

std::unique_ptr<RegisteredMemory> NicPort::register_memory(const Region& region, Reach reach) {
  return nic_.register_memory(region, reach == Reach::others ? u32{access::all} : u32{access::local_write});
}

std::unique_ptr<QueueSet> NicPort::create_queues(u32 count, Ends ends, const QueueShape& shape) {
  auto queues = std::make_unique<NicQueues>(nic_, count, ends, shape, connection_);
  queues_ = queues.get();
  return queues;
}

u64 NicPort::queue_bytes(Ends ends, const QueueShape& shape) const {
  return nic_.queue_pair_bytes(queue_pair(shape)) * (ends == Ends::pair ? 2 : 1);
}

}  // namespace doorbell::rdma
