// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The requests on transfer descriptors: wire.hpp's messages, checked against what the descriptor may reach.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "qdma/daemon/service.hpp"
#include "qdma/daemon/structure.hpp"
#include "qdma/peer/wire.hpp"
#include "system/clock.hpp"

namespace doorbell::qdma::daemon {

namespace {

/// A transfer on its way.
struct Move {
  Transfer call;
  std::vector<ForeignFile> buffers;
  Accounts::Charge charge;  // for them
  std::shared_ptr<const CardDescriptor> fd;
  std::vector<std::shared_ptr<const MemoryLease>> leases;
  u64 end_ns = 0;
  u64 tag = 0;
  CallResult result = {-ENOMEM, 0};  // of a worker that finds no memory for it
  std::array<SubResult, kMaxSubTransfers> parts{};
};

/// The fault in the transfer itself, before addresses are checked: 0 or an errno.
int check_shape(const Handout& h, const Transfer& t) {
  if (t.count < 1 || t.count > kMaxSubTransfers) return EINVAL;
  u64 total = 0;
  for (u32 i = 0; i < t.count; ++i) {
    const SubXfer& x = t.xfers[i];
    if (x.qpair_index >= h.queues.size()) return EINVAL;
    if (x.direction != kDirH2C && x.direction != kDirC2H) return EINVAL;
    if ((h.queues[x.qpair_index].directions & h.directions & x.direction) == 0) return ENODEV;
    if (x.length == 0 || x.length > 0xffffffff) return EINVAL;
    if (x.dev_addr + x.length < x.dev_addr) return EINVAL;
    total += x.length;
  }
  return total > kMaxCallBytes ? EINVAL : 0;
}

void run(Driver& card, Move& m) {
  const u64 now = wall_ns();
  if (now >= m.end_ns) {
    m.result = {-ETIMEDOUT, 0};
    return;
  }
  m.result = card.call(m.fd->get(), kCallTransfer, {reinterpret_cast<u8*>(&m.call), sizeof m.call},
                       {.deadline_ns = m.end_ns - now, .parts = m.parts, .tag = m.tag});
}

}  // namespace

void Service::answer(const std::shared_ptr<Handout>& h, u64 sequence, i64 result,
                     std::span<const u8> structure, std::span<const SubResult> parts, Descriptor with) {
  if (!h->open) return;
  const wire::ReplyHeader header{.bytes = static_cast<u32>(structure.size()),
                                 .sequence = sequence,
                                 .result = result,
                                 .parts = static_cast<u32>(parts.size()),
                                 .descriptors = with.get() >= 0 ? 1u : 0u};
  std::vector<u8> message(sizeof header);
  std::memcpy(message.data(), &header, sizeof header);
  message.insert(message.end(), structure.begin(), structure.end());
  for (const SubResult& part : parts) {
    const wire::SubReply reply{.error = static_cast<u32>(part.error), .bytes = part.bytes, .ns = part.ns};
    const auto bytes = bytes_of(reply);
    message.insert(message.end(), bytes.begin(), bytes.end());
  }
  outlet_.send(h->socket, std::move(message), std::move(with));
}

void Service::descriptor_message(const std::shared_ptr<Handout>& h, Message m) {
  wire::RequestHeader header;
  const bool whole = m.bytes.size() >= sizeof header;
  if (whole) std::memcpy(&header, m.bytes.data(), sizeof header);
  const bool fits = whole && header.magic == wire::kMagic && header.bytes == m.bytes.size() - sizeof header &&
                    header.descriptors <= wire::kMaxDescriptors &&
                    (m.lost || header.descriptors == m.files.size());
  if (!fits || m.truncated) {
    ++metrics_.malformed;
    answer(h, header.sequence, -EPROTO);
    outlet_.close(h->socket);
    return closed(h->socket);
  }
  if (m.lost) {
    ++metrics_.transfers[error_name(EMFILE)];
    return answer(h, header.sequence, -EMFILE);
  }
  if (h->revoked) {
    if (header.number == kCallTransfer) ++metrics_.transfers[error_name(ESTALE)];
    return answer(h, header.sequence, -ESTALE);
  }
  const auto structure = m.bytes.subspan(sizeof header);
  switch (header.number) {
    case kCallTransfer:
      return transfer(h, header.sequence, header.deadline_ns, structure, std::move(m.files));
    case kCallBufCreate:
      return create_buffer_on(h, header.sequence, structure);
    case wire::kCancel:
      return cancel(h, header.sequence, structure);
    default:
      return answer(h, header.sequence, -ENOTTY);
  }
}

std::shared_ptr<const MemoryLease> Service::reach(const Handout& h, const SubXfer& x, int& error) {
  error = EACCES;
  if (h.window && !h.window->holds(x.dev_addr, x.length)) return nullptr;
  if (h.lease) return h.lease;  // a buffer's own descriptor
  static const auto kNothing = std::make_shared<const MemoryLease>(nullptr, CardRange{});
  const auto owner = connections_.find(h.owner);
  if (owner == connections_.end()) return nullptr;
  for (const auto& buffer : owner->second.buffers) {
    if (!buffer->lease || !buffer->range.holds(x.dev_addr, x.length)) continue;
    if ((buffer->directions & x.direction) != 0) return buffer->lease;
  }
  // Raw access was granted when the descriptor was handed out.
  return h.owned_only ? nullptr : kNothing;
}

void Service::transfer(const std::shared_ptr<Handout>& h, u64 sequence, u64 deadline_ns,
                       std::span<const u8> structure, std::vector<ForeignFile> buffers) {
  auto move = std::make_shared<Move>();
  Transfer& call = move->call;
  const auto fail = [&](int error) {
    ++metrics_.transfers[error_name(error)];
    answer(h, sequence, -error);
  };
  if (const int error = take_structure(structure, smallest_size(kCallTransfer), call)) return fail(error);
  call.size = sizeof call;
  if (const int error = check_shape(*h, call)) return fail(error);
  for (u32 i = 0; i < call.count; ++i) {
    SubXfer& x = call.xfers[i];
    if (x.buf_fd < 0 || static_cast<std::size_t>(x.buf_fd) >= buffers.size()) return fail(EBADF);
    x.buf_fd = buffers[static_cast<std::size_t>(x.buf_fd)].get();
    int error = 0;
    auto lease = reach(*h, x, error);
    if (!lease) return fail(error);
    move->leases.push_back(std::move(lease));
  }
  if (h->pending.size() >= wire::kMaxInFlight) return fail(EAGAIN);
  if (h->pending.contains(sequence)) return fail(EINVAL);
  std::string over;
  move->charge = accounts_.charge(h->user, {.sent_files = buffers.size()}, over);
  if (!move->charge) return fail(EDQUOT);
  move->buffers = std::move(buffers);
  move->fd = h->fd;
  const u64 wanted = deadline_ns == 0 ? wire::kDriverLimitNs : deadline_ns;
  move->end_ns = wall_ns() + std::min(wanted, options_.max_transfer_ns);

  // Before the call is queued: workers of a test may run it at once.
  move->tag = next_tag_++;
  h->pending[sequence] = {.ticket = 0, .tag = move->tag};
  ++h->running;
  const FairQueue::Ticket ticket = queue_.add(
      caller_of(*h), Lane::transfer, [card = card_, move] { run(*card, *move); },
      [this, h, sequence, move] {
        --h->running;
        h->pending.erase(sequence);
        const i64 result = move->result.result;
        look_at(result);
        ++metrics_.transfers[error_name(result < 0 ? static_cast<int>(-result) : 0)];
        const u32 parts = std::min(move->result.parts, move->call.count);
        for (u32 i = 0; i < move->call.count; ++i) {
          const u64 bytes = parts > i ? move->parts[i].bytes : result > 0 ? move->call.xfers[i].length : 0;
          (move->call.xfers[i].direction == kDirH2C ? metrics_.bytes_to_card : metrics_.bytes_from_card) +=
              bytes;
        }
        // The card is done with the memory and the buffers before its end is reported.
        move->leases.clear();
        move->buffers.clear();
        move->charge.reset();
        move->fd.reset();
        answer(h, sequence, result, {}, std::span(move->parts).first(parts));
        settle(h);
      });
  if (const auto pending = h->pending.find(sequence); pending != h->pending.end())
    pending->second.ticket = ticket;
}

void Service::cancel(const std::shared_ptr<Handout>& h, u64 sequence, std::span<const u8> structure) {
  wire::Cancel which;
  if (structure.size() != sizeof which) return answer(h, sequence, -EPROTO);
  std::memcpy(&which, structure.data(), sizeof which);
  const auto pending = h->pending.find(which.sequence);
  if (pending == h->pending.end()) return answer(h, sequence, -ENOENT);
  if (queue_.withdraw(caller_of(*h), Lane::transfer, pending->second.ticket)) {
    h->pending.erase(pending);
    --h->running;
    ++metrics_.transfers[error_name(ECANCELED)];
    answer(h, which.sequence, -ECANCELED);
  } else {
    card_->cancel(h->fd->get(), pending->second.tag);
  }
  answer(h, sequence, 0);
}

}  // namespace doorbell::qdma::daemon
