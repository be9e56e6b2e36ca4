// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Host buffers: the card's driver makes them, and the memory is their user's as long as a process has it.
#include <fmt/format.h>

#include <cerrno>

#include "qdma/daemon/service.hpp"
#include "qdma/daemon/structure.hpp"

namespace doorbell::qdma::daemon {

std::shared_ptr<HostBufferCall> Service::new_host_buffer(const BufCreate& create) {
  auto call = std::make_shared<HostBufferCall>();
  call->call = create;
  call->tag = next_tag_++;
  return call;
}

void Service::make(Driver& card, int fd, HostBufferCall& c) {
  c.result = -ECANCELED;
  if (c.cancelled) return;
  c.result = card.call(fd, kCallBufCreate, {reinterpret_cast<u8*>(&c.call), sizeof c.call},
                       {.tag = c.tag, .cancelled = &c.cancelled})
                 .result;
  if (c.result < 0) return;
  c.made = Descriptor(static_cast<int>(c.result));
  wire::HostBufferName name;
  if (wire::name_of(c.made.get(), name) == 0 && card.still_held(name)) c.counted_as = name;
}

void Service::cancel_making(int fd, HostBufferCall& call) {
  call.cancelled = true;
  card_->cancel(fd, call.tag);
}

void Service::charge_host_buffer(service::Caller caller, u64 bytes,
                                 std::function<void(Accounts::Charge, std::string over)> then) {
  std::string over;
  const Holdings more{.host_buffers = 1, .host_bytes = bytes};
  Accounts::Charge charge = accounts_.charge(caller.user, more, over);
  if (charge || host_buffers_.empty()) return then(std::move(charge), std::move(over));
  // Some may have gone since the card was asked last.
  sweep_host_buffers(caller, [this, caller, more, then = std::move(then)] {
    std::string still_over;
    Accounts::Charge second = accounts_.charge(caller.user, more, still_over);
    then(std::move(second), std::move(still_over));
  });
}

bool Service::keep_host_buffer(const HostBufferCall& made, Accounts::Charge charge) {
  // The number of a buffer that has gone may be a new one's: what was there has gone, then.
  if (made.counted_as) host_buffers_.insert_or_assign(*made.counted_as, std::move(charge));
  return made.counted_as.has_value();
}

void Service::sweep_host_buffers(service::Caller caller, std::function<void()> then) {
  auto names = std::make_shared<std::vector<wire::HostBufferName>>();
  for (const auto& [name, charge] : host_buffers_) names->push_back(name);
  auto gone = std::make_shared<std::vector<wire::HostBufferName>>();
  queue_.add(
      caller, Lane::control,
      [card = card_, names, gone] {
        for (const auto& name : *names)
          if (!card->still_held(name).value_or(true)) gone->push_back(name);
      },
      [this, gone, then = std::move(then)] {
        for (const auto& name : *gone) host_buffers_.erase(name);
        then();
      });
}

void Service::look_at_host_buffers() {
  if (sweeping_ || host_buffers_.empty()) return;
  sweeping_ = true;
  sweep_host_buffers({}, [this] { sweeping_ = false; });
}

void Service::create_host_buffer(Connection& c, const Asked& a, BufCreate create) {
  if (create.size < smallest_size(kCallBufCreate))
    return refuse(a, EINVAL, fmt::format("a BUF_CREATE of {} bytes is too short", create.size));
  create.size = sizeof create;
  begin(c);
  charge_host_buffer(
      caller_of(c), create.length, [this, a, create](Accounts::Charge charge, std::string over) {
        Connection& owner = connections_.at(a.connection);
        if (!charge) refuse(a, EDQUOT, over);
        if (!charge || owner.gone) return end(a.connection);
        const auto making = new_host_buffer(create);
        owner.making = making;
        call_card(
            a,
            [card = card_, making] {
              make(*card, -1, *making);
              return making->result;
            },
            [this, a, making, charge](i64 rc) {
              Connection& asker = connections_.at(a.connection);
              asker.making.reset();
              if (rc < 0) return refuse(a, static_cast<int>(-rc), refused_by_card("the host buffer", rc));
              if (!keep_host_buffer(*making, charge)) asker.host_buffers.push_back(charge);
              ok(a, bytes_of(making->call), std::move(making->made));
            },
            Lane::host_buffer);
      });
}

void Service::create_buffer_on(const std::shared_ptr<Handout>& h, u64 sequence,
                               std::span<const u8> structure) {
  BufCreate create;
  if (const int error = take_structure(structure, smallest_size(kCallBufCreate), create))
    return answer_making(h, sequence, -error);
  create.size = sizeof create;
  ++h->running;
  charge_host_buffer(caller_of(*h), create.length,
                     [this, h, sequence, create](Accounts::Charge charge, std::string) {
                       if (charge && h->open && !h->revoked)
                         return make_buffer_on(h, sequence, create, std::move(charge));
                       --h->running;
                       answer_making(h, sequence, charge ? -ESTALE : -EDQUOT);
                       settle(h);
                     });
}

void Service::answer_making(const std::shared_ptr<Handout>& h, u64 sequence, i64 result) {
  ++metrics_.host_buffers[error_name(static_cast<int>(-result))];
  answer(h, sequence, result);
}

void Service::make_buffer_on(const std::shared_ptr<Handout>& h, u64 sequence, const BufCreate& create,
                             Accounts::Charge charge) {
  const auto making = new_host_buffer(create);
  h->making.push_back(making);
  queue_.add(
      caller_of(*h), Lane::host_buffer,
      [card = card_, making, fd = h->fd] { make(*card, fd->get(), *making); },
      [this, h, sequence, making, charge] {
        --h->running;
        std::erase(h->making, making);
        look_at(making->result);
        if (making->result < 0) {
          answer_making(h, sequence, making->result);
        } else {
          if (!keep_host_buffer(*making, charge) && h->open) h->host_buffers.push_back(charge);
          ++metrics_.host_buffers[error_name(0)];
          answer(h, sequence, 0, bytes_of(making->call), {}, std::move(making->made));
        }
        settle(h);
      });
}

}  // namespace doorbell::qdma::daemon
