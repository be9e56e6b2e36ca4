// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/fair_queue.hpp"

#include <algorithm>
#include <utility>

namespace doorbell::service {

namespace {

/// The entry behind `last` in turn that `may` takes; the map's end if there is none.
template <class Map, class May>
auto next_after(Map& map, typename Map::key_type last, May may) {
  auto at = map.upper_bound(last);
  for (std::size_t looked = 0; looked < map.size(); ++looked, ++at) {
    if (at == map.end()) at = map.begin();
    if (may(at->second)) return at;
  }
  return map.end();
}

/// The calls that a user may have in hand while others have `others` of `most`: three quarters of what they
/// leave, so that whoever comes next finds a thread.
u32 share(u32 most, u32 others) {
  return std::max(1u, (most - others) * 3 / 4);
}

}  // namespace

FairQueue::FairQueue(Workers& workers, const FairQueueLimits& limits) : workers_(workers) {
  const auto limit = [&](Lane lane, u32 most, u32 most_per_client) {
    state(lane).most = most;
    state(lane).most_per_client = most_per_client;
  };
  limit(Lane::control, limits.control, limits.control);
  limit(Lane::host_buffer, limits.host_buffers, 1);
  limit(Lane::transfer, limits.transfers, limits.transfers_per_client);
}

FairQueue::Ticket FairQueue::add(Caller caller, Lane lane, std::function<void()> work,
                                 std::function<void()> done) {
  LaneState& s = state(lane);
  const Ticket ticket = next_++;
  s.users[caller.user].clients[caller.client].waiting.emplace(ticket, Call{std::move(work), std::move(done)});
  ++s.waiting;
  start_what_may(lane);
  return ticket;
}

bool FairQueue::withdraw(Caller caller, Lane lane, Ticket ticket) {
  LaneState& s = state(lane);
  const auto user = s.users.find(caller.user);
  if (user == s.users.end()) return false;
  const auto client = user->second.clients.find(caller.client);
  if (client == user->second.clients.end() || client->second.waiting.erase(ticket) == 0) return false;
  --s.waiting;
  forget_idle(s, caller.user, caller.client);
  return true;
}

void FairQueue::forget_idle(LaneState& s, uid_t user, u64 client) {
  const auto of = s.users.find(user);
  const auto one = of->second.clients.find(client);
  if (one->second.waiting.empty() && one->second.running == 0) of->second.clients.erase(one);
  if (of->second.clients.empty()) s.users.erase(of);
}

void FairQueue::start_what_may(Lane lane) {
  LaneState& s = state(lane);
  const auto client_may = [&](const Client& c) {
    return !c.waiting.empty() && c.running < s.most_per_client;
  };
  while (s.running < s.most && s.waiting > 0) {
    std::map<u64, Client>::iterator client;
    const auto user = next_after(s.users, s.last, [&](User& u) {
      if (u.running >= share(s.most, s.running - u.running)) return false;
      client = next_after(u.clients, u.last, client_may);
      return client != u.clients.end();
    });
    if (user == s.users.end()) return;
    s.last = user->first;
    user->second.last = client->first;
    start(lane, user->first, client->first);
  }
}

void FairQueue::start(Lane lane, uid_t user, u64 client) {
  LaneState& s = state(lane);
  User& of = s.users.at(user);
  Client& one = of.clients.at(client);
  Call call = std::move(one.waiting.extract(one.waiting.begin()).mapped());
  --s.waiting;
  ++one.running, ++of.running, ++s.running;
  workers_.run(std::move(call.work), [this, lane, user, client, done = std::move(call.done)] {
    LaneState& ended = state(lane);
    User& his = ended.users.at(user);
    --his.clients.at(client).running, --his.running, --ended.running;
    forget_idle(ended, user, client);
    done();
    start_what_may(lane);
  });
}

}  // namespace doorbell::service
