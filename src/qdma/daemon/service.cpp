// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/daemon/service.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "qdma/daemon/retirement.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma::daemon {

namespace {

/// The rights of a user that no section but [user:*] names.
u32 everybodys_rights(const Roles& roles) {
  return roles.rights({.pid = 0, .uid = ~uid_t{0} - 1, .groups = {}});
}

/// One in so many connections is kept for root and for users with rights of their own.
constexpr u32 kReserve = 8;

i64 operate(Driver& card, u32 id, QueueOp op) {
  QpairOp call{.qid = id, .op = static_cast<u32>(op)};
  return card.call(-1, kCallQpairOp, {reinterpret_cast<u8*>(&call), sizeof call}).result;
}

}  // namespace

std::string refused_by_card(std::string_view what, i64 rc) {
  return fmt::format("the card refuses {}: {}", what, reason(static_cast<int>(-rc)));
}

Service::Service(std::shared_ptr<Driver> card, const ServiceOptions& options, Roles roles, Outlet& outlet,
                 Workers& workers, Log& log)
    : card_(std::move(card)),
      options_(options),
      roles_(std::move(roles)),
      everybodys_rights_(everybodys_rights(roles_)),
      outlet_(outlet),
      log_(log),
      accounts_(options.quotas),
      queue_(workers, options.limits) {
  const i64 rc = read_info(*card_, info_);
  if (rc < 0)
    throw Error(card_->name(), "the card does not say what it is: " + reason(static_cast<int>(-rc)));
}

Service::~Service() = default;

int Service::connect(SocketId id, Peer peer) {
  std::string over;
  const u32 rights = roles_.rights(peer);
  // Users with no more than everybody's rights leave some room to the others.
  const bool one_of_all = peer.uid != 0 && (rights & ~everybodys_rights_) == 0;
  const u32 reserve = one_of_all ? options_.max_connections / kReserve : 0;
  if (connections_.size() + reserve >= options_.max_connections) {
    ++metrics_.refused_connections["total"];
    log_.write({.priority = Priority::warning,
                .text = fmt::format("user {} is refused: {} clients are connected already", peer.uid,
                                    connections_.size()),
                .user = peer.uid});
    return EBUSY;
  }
  Accounts::Charge charge = accounts_.charge(peer.uid, {.connections = 1}, over);
  if (!charge) {
    ++metrics_.refused_connections["quota"];
    log_.write({.priority = Priority::warning, .text = "a connection is refused: " + over, .user = peer.uid});
    return EDQUOT;
  }
  Connection& c = connections_[id];
  c.id = id;
  c.peer = std::move(peer);
  c.rights = rights;
  c.charge = std::move(charge);
  c.first_request_by_ns = wall_ns() + options_.first_request_ns;
  ++metrics_.accepted;
  note(Priority::info, c, fmt::format("connected: {}", rights_text(rights)));
  return 0;
}

void Service::message(SocketId id, Message m) {
  if (const auto c = connections_.find(id); c != connections_.end()) return request(c->second, std::move(m));
  const auto h = handouts_.find(id);
  if (h == handouts_.end()) return;
  const std::shared_ptr<Handout> handout = h->second;
  descriptor_message(handout, std::move(m));
}

void Service::closed(SocketId id) {
  if (const auto c = connections_.find(id); c != connections_.end()) {
    c->second.gone = true;
    if (c->second.making) cancel_making(-1, *c->second.making);
    if (!c->second.busy) clean_up(c->second);
    return;
  }
  const auto h = handouts_.find(id);
  if (h == handouts_.end()) return;
  const std::shared_ptr<Handout> handout = h->second;
  handouts_.erase(h);
  std::erase(revoked_, id);
  handout->open = false;
  // No client waits for what has not begun.
  for (const auto& [sequence, pending] : handout->pending) {
    if (queue_.withdraw(caller_of(*handout), Lane::transfer, pending.ticket)) --handout->running;
    else if (handout->fd) card_->cancel(handout->fd->get(), pending.tag);
  }
  handout->pending.clear();
  if (handout->fd)
    for (const auto& making : handout->making) cancel_making(handout->fd->get(), *making);
  handout->host_buffers.clear();
  handout->charge.reset();
  forget(handout);
}

u64 Service::end_silent(u64 now_ns) {
  std::vector<SocketId> late;
  u64 next = 0;
  for (auto& [id, c] : connections_) {
    if (c.gone || c.first_request_by_ns == 0) continue;
    if (c.overdue) {
      late.push_back(id);
      continue;
    }
    c.overdue = c.first_request_by_ns <= now_ns;
    const u64 again = std::max(now_ns, c.first_request_by_ns);
    next = next == 0 ? again : std::min(next, again);
  }
  const std::string why =
      fmt::format("no request within {:g} s", static_cast<double>(options_.first_request_ns) * 1e-9);
  for (const SocketId id : late) {
    ++metrics_.refused_connections["silent"];
    note(Priority::notice, connections_.at(id), why + ": it is disconnected");
    // The reason goes with it although the client has not said hello: it is the only error of this
    // connection.
    outlet_.send(id, refusal_message(ETIMEDOUT, why, 0, true), {});
    outlet_.close(id);
    closed(id);
  }
  return next;
}

void Service::forget(const std::shared_ptr<Handout>& h) {
  if (h->open || h->running > 0) return;
  h->fd.reset();
  for (const u32 id : h->queue_pairs)
    if (HeldQueuePair* const held = queue_pairs_.find(id)) std::erase(held->handouts, h);
}

void Service::settle(const std::shared_ptr<Handout>& h) {
  forget(h);
  if (!deleting_.empty()) try_deleting();
}

void Service::set_roles(Roles roles) {
  roles_ = std::move(roles);
  everybodys_rights_ = everybodys_rights(roles_);
  for (auto& [id, c] : connections_) c.rights = roles_.rights(c.peer);
}

void Service::close_all() {
  std::vector<SocketId> all;
  for (const auto& [id, c] : connections_)
    if (!c.gone) all.push_back(id);
  for (const SocketId id : all) {
    outlet_.close(id);
    closed(id);
  }
}

void Service::set_card(std::shared_ptr<Driver> card, const Info& info) {
  card_ = std::move(card);
  info_ = info;
  host_buffers_.clear();
}

void Service::look_at(i64 result) {
  if (result != -ENODEV || looking_ || !card_gone_) return;
  looking_ = true;
  auto gone = std::make_shared<bool>(false);
  queue_.add(
      {}, Lane::control,
      [card = card_, gone] {
        Info info;
        *gone = read_info(*card, info) == -ENODEV;
      },
      [this, gone] {
        looking_ = false;
        if (*gone) card_gone_();
      });
}

bool Service::idle() const {
  return connections_.empty() && retiring_ == 0 && queue_.waiting() == 0 && queue_.running() == 0;
}

Gauges Service::gauges() const {
  return {.held = accounts_.total(),
          .users = accounts_.users(),
          .card_memory_used = memory_.used(),
          .queue_pairs = queue_pairs_.size(),
          .descriptors = handouts_.size() - revoked_.size(),
          .revoked_descriptors = revoked_.size(),
          .waiting = queue_.waiting(),
          .running = queue_.running(),
          .log_lost = log_.lost()};
}

void Service::note(Priority p, const Connection& c, std::string text,
                   std::vector<std::pair<std::string, std::string>> fields) {
  fields.emplace_back("CONNECTION", std::to_string(c.id));
  fields.emplace_back("CLIENT_PID", std::to_string(c.peer.pid));
  fields.emplace_back("CLIENT_UID", std::to_string(c.peer.uid));
  log_.write({.priority = p,
              .text = fmt::format("connection {}, pid {}, user {}: {}", c.id, c.peer.pid, c.peer.uid, text),
              .fields = std::move(fields),
              .user = c.peer.uid});
}

void Service::ok(const Asked& a, std::span<const u8> body, Descriptor with) {
  metrics_.count(a.opcode, Code::ok);
  if (!connections_.at(a.connection).gone)
    outlet_.send(a.connection, reply_message(Code::ok, a.sequence, body), std::move(with));
}

void Service::refuse(const Asked& a, int error, const std::string& why) {
  Connection& c = connections_.at(a.connection);
  metrics_.count(a.opcode, code_of(error));
  note(Priority::notice, c, fmt::format("{} refused: {}", name(a.opcode), why),
       {{"OPCODE", std::string(name(a.opcode))},
        {"CODE", std::string(name(code_of(error)))},
        {"ERRNO", std::to_string(error)}});
  if (!c.gone) outlet_.send(c.id, refusal_message(error, why, a.sequence, c.hello), {});
}

void Service::call_card(const Asked& a, std::function<i64()> work, Outcome done, Lane lane) {
  Connection& c = connections_.at(a.connection);
  begin(c);
  auto result = std::make_shared<i64>(-ENOMEM);  // of a worker that finds no memory for it
  queue_.add(
      caller_of(c), lane, [result, work = std::move(work)] { *result = work(); },
      [this, result, id = a.connection, done = std::move(done)] {
        look_at(*result);
        done(*result);
        end(id);
      });
}

void Service::begin(Connection& c) {
  c.busy = true;
  outlet_.pause(c.id);
}

void Service::end(SocketId connection) {
  Connection& c = connections_.at(connection);
  c.busy = false;
  if (c.gone) clean_up(c);
  else outlet_.resume(connection);
}

Descriptor Service::hand_out(const std::shared_ptr<Handout>& h, int& error) {
  h->socket = next_socket();
  Descriptor other = outlet_.open_pair(h->socket, h->user, error);
  if (other.get() < 0) return other;
  handouts_[h->socket] = h;
  return other;
}

void Service::revoke(const std::shared_ptr<Handout>& h) {
  if (h->revoked) return;
  h->revoked = true;
  const auto pending = h->pending;
  for (const auto& [sequence, transfer] : pending) {
    if (!queue_.withdraw(caller_of(*h), Lane::transfer, transfer.ticket)) continue;
    --h->running;
    h->pending.erase(sequence);
    ++metrics_.transfers[error_name(ESTALE)];
    answer(h, sequence, -ESTALE);
  }
  if (h->fd)
    for (const auto& making : h->making) cancel_making(h->fd->get(), *making);
  h->fd.reset();
  h->lease.reset();
  h->charge.reset();
  h->host_buffers.clear();
  if (!h->open) return;
  revoked_.push_back(h->socket);
  if (revoked_.size() <= options_.max_revoked) return;
  const SocketId oldest = revoked_.front();
  outlet_.close(oldest);
  closed(oldest);
}

void Service::retire(Retirement what) {
  ++retiring_;
  for (const auto& handout : what.handouts) revoke(handout);
  auto shared = std::make_shared<Retirement>(std::move(what));
  queue_.add(
      shared->client, Lane::control,
      [card = card_, shared] {
        // A queue pair that is not started cannot be stopped; what is wrong with one shows when it is
        // deleted.
        for (const CardQueue& q : shared->queues) static_cast<void>(operate(*card, q.id, QueueOp::stop));
      },
      [this, shared] { stopped(shared); });
}

void Service::stopped(std::shared_ptr<Retirement> what) {
  deleting_.push_back(std::move(what));
  try_deleting();
}

void Service::try_deleting() {
  std::vector<std::shared_ptr<Retirement>> ready;
  std::erase_if(deleting_, [&](const std::shared_ptr<Retirement>& r) {
    const bool quiet = std::ranges::all_of(r->handouts, [](const auto& h) { return h->running == 0; });
    if (quiet) ready.push_back(r);
    return quiet;
  });
  for (const auto& r : ready) {
    auto results = std::make_shared<std::vector<i64>>();
    queue_.add(
        r->client, Lane::control,
        [card = card_, r, results] {
          for (const CardQueue& q : r->queues) results->push_back(operate(*card, q.id, QueueOp::del));
        },
        [this, r, results] {
          i64 failed = 0;
          for (const i64 rc : *results) {
            // A card that has gone has no queue pairs either.
            const bool deleted = rc >= 0 || rc == -ENOENT || rc == -ESTALE || rc == -ENODEV;
            ++(deleted ? metrics_.retired : metrics_.retire_failures);
            if (!deleted) failed = rc;
            look_at(rc);
          }
          if (failed != 0) {
            if (r->lease) r->lease->kept = true;
            log_.write({Priority::error,
                        fmt::format("the card did not delete a queue pair of connection {}: {}; its card "
                                    "memory stays reserved",
                                    r->client.client, reason(static_cast<int>(-failed)))});
          }
          --retiring_;
          // Amounts that the quotas count are given back before the client receives the reply.
          const Outcome then = std::move(r->then);
          r->lease.reset();
          r->charge.reset();
          if (then) then(failed);
        });
  }
}

void Service::retire_buffer(std::shared_ptr<HeldBuffer> buffer, Outcome then) {
  std::erase(connections_.at(buffer->owner).buffers, buffer);
  Retirement what{.client = caller_of(connections_.at(buffer->owner)),
                  .queues = buffer->queues,
                  .handouts = {},
                  .lease = std::move(buffer->lease),
                  .charge = std::move(buffer->charge),
                  .then = std::move(then)};
  if (buffer->handout) what.handouts.push_back(std::move(buffer->handout));
  retire(std::move(what));
}

void Service::retire_queue_pair(u32 id, Outcome then) {
  HeldQueuePair& held = *queue_pairs_.find(id);
  std::erase(connections_.at(held.owner).queue_pairs, id);
  Retirement what{.client = caller_of(connections_.at(held.owner)),
                  .queues = {held.queue},
                  .handouts = std::move(held.handouts),
                  .lease = nullptr,
                  .charge = std::move(held.charge),
                  .then = std::move(then)};
  queue_pairs_.remove(id);
  retire(std::move(what));
}

void Service::clean_up(Connection& c) {
  const SocketId id = c.id;
  note(Priority::info, c,
       fmt::format("gone: {} buffers and {} queue pairs are taken back", c.buffers.size(),
                   c.queue_pairs.size()));
  while (!c.buffers.empty()) retire_buffer(c.buffers.back());
  while (!c.queue_pairs.empty()) retire_queue_pair(c.queue_pairs.back());
  connections_.erase(id);
}

}  // namespace doorbell::qdma::daemon
