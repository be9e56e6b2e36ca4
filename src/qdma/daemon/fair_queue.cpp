// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/daemon/fair_queue.hpp"

#include <utility>

namespace doorbell::qdma::daemon {

FairQueue::FairQueue(Workers& workers, const FairQueueLimits& limits) : workers_(workers) {
  const auto limit = [&](Lane lane, u32 most, u32 most_per_client) {
    state(lane).most = most;
    state(lane).most_per_client = most_per_client;
  };
  limit(Lane::control, limits.control, limits.control);
  limit(Lane::host_buffer, limits.host_buffers, 1);
  limit(Lane::transfer, limits.transfers, limits.transfers_per_client);
}

FairQueue::Ticket FairQueue::add(u64 client, Lane lane, std::function<void()> work,
                                 std::function<void()> done) {
  LaneState& s = state(lane);
  const Ticket ticket = next_++;
  s.clients[client].waiting.emplace(ticket, Call{std::move(work), std::move(done)});
  ++s.waiting;
  start_what_may(lane);
  return ticket;
}

bool FairQueue::withdraw(u64 client, Lane lane, Ticket ticket) {
  LaneState& s = state(lane);
  const auto of = s.clients.find(client);
  if (of == s.clients.end() || of->second.waiting.erase(ticket) == 0) return false;
  --s.waiting;
  if (of->second.waiting.empty() && of->second.running == 0) s.clients.erase(of);
  return true;
}

void FairQueue::start_what_may(Lane lane) {
  LaneState& s = state(lane);
  while (s.running < s.most && s.waiting > 0) {
    // The next client after the last one that has something to do and may.
    auto client = s.clients.upper_bound(s.last);
    std::size_t looked = 0;
    for (; looked < s.clients.size(); ++looked, ++client) {
      if (client == s.clients.end()) client = s.clients.begin();
      if (!client->second.waiting.empty() && client->second.running < s.most_per_client) break;
    }
    if (looked == s.clients.size()) return;
    const u64 id = s.last = client->first;
    Call call = std::move(client->second.waiting.extract(client->second.waiting.begin()).mapped());
    --s.waiting;
    ++client->second.running;
    ++s.running;
    workers_.run(std::move(call.work), [this, lane, id, done = std::move(call.done)] {
      LaneState& ended = state(lane);
      --ended.running;
      const auto of = ended.clients.find(id);
      --of->second.running;
      if (of->second.waiting.empty() && of->second.running == 0) ended.clients.erase(of);
      done();
      start_what_may(lane);
    });
  }
}

}  // namespace doorbell::qdma::daemon
