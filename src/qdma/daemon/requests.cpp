// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The requests of clients on their connections.
#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "qdma/daemon/retirement.hpp"
#include "qdma/daemon/service.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma::daemon {

namespace {

/// The rights of which a request needs one.
u32 needed(const Request& r) {
  switch (r.opcode()) {
    case Opcode::num_devices:
    case Opcode::device_info:
    case Opcode::device_by_bdf:
      return kQueryDevices;
    case Opcode::qdma_info:
      return kQueryDevices | kQdma;
    case Opcode::queue_pair_op:
      // A client may give back all that he has, whatever rights are left to him.
      if (r.as<QueuePairRequest>().argument == static_cast<u32>(QueueOp::del)) break;
      return kQdma;
    case Opcode::queue_pair_add:
    case Opcode::queue_pair_descriptor:
    case Opcode::descriptor:
      return kQdma;
    case Opcode::buffer_open:
      return kBuffer;
    case Opcode::buffer_close:
      break;  // as well
    case Opcode::buffer_open_raw:
    case Opcode::holder:
      return kRawMemAccess;
    case Opcode::host_buffer:
      return kQdma | kBuffer | kRawMemAccess;
    case Opcode::hello:
      break;
  }
  return 0;
}

/// A call's structure as Driver takes it.
template <class T>
std::span<u8> structure_of(T& call) {
  return {reinterpret_cast<u8*>(&call), sizeof call};
}

/// The queue pairs' directions of a buffer's.
u32 directions_of(u32 buffer_direction) {
  return buffer_direction == 1 ? kDirH2C : buffer_direction == 2 ? kDirC2H : kDirH2C | kDirC2H;
}

/// Queue pairs and a descriptor that a job on a worker has made, until the loop takes them over.
struct OnCard {
  std::vector<CardQueue> queues;
  std::shared_ptr<const CardDescriptor> fd;
};

i64 open_queues(Driver& card, u32 directions, u32 channel, u32 ring_index, OnCard& out) {
  const bool both = channel == kChannelAuto;
  for (u32 c = both ? kChannel0 : channel; c <= (both ? kChannel1 : channel); ++c) {
    QpairAdd add{.dir_mask = directions, .mm_channel = c, .h2c_ring = ring_index, .c2h_ring = ring_index};
    i64 rc = card.call(-1, kCallQpairAdd, structure_of(add)).result;
    if (rc < 0) return rc;
    out.queues.push_back({add.qid, directions});
    QpairOp start{.qid = add.qid, .op = static_cast<u32>(QueueOp::start)};
    rc = card.call(-1, kCallQpairOp, structure_of(start)).result;
    if (rc < 0) return rc;
  }
  return 0;
}

i64 open_descriptor(const std::shared_ptr<Driver>& card, std::span<const CardQueue> queues,
                    std::shared_ptr<const CardDescriptor>& fd) {
  QpairGetFd get{.flags = kFlagCloseOnExec, .qpair_count = static_cast<u32>(queues.size())};
  for (std::size_t i = 0; i < queues.size(); ++i) get.qpair_ids[i] = queues[i].id;
  const i64 rc = card->call(-1, kCallQpairGetFd, structure_of(get)).result;
  if (rc >= 0) fd = std::make_shared<const CardDescriptor>(card, static_cast<int>(rc));
  return rc;
}

}  // namespace

void Service::request(Connection& c, Message m) {
  const Parsed parsed = parse_request(m.bytes);
  if (!parsed.request || m.truncated || m.lost) {
    ++metrics_.malformed;
    const Asked asked{c.id, Opcode{0xffff},
                      parsed.request ? parsed.request->header.sequence : parsed.malformed.sequence};
    if (m.truncated) return refuse(asked, EBADMSG, "the message is longer than 4096 bytes");
    if (m.lost) return refuse(asked, EMFILE, "the message's descriptors found no place here");
    return refuse(asked, parsed.malformed.error, std::string(parsed.malformed.why));
  }
  c.first_request_by_ns = 0;
  dispatch(c, *parsed.request);
}

bool Service::may(Connection& c, const Request& r) {
  const u32 any_of = needed(r);
  return any_of == 0 || (c.rights & any_of) != 0;
}

void Service::dispatch(Connection& c, const Request& r) {
  const Asked a{c.id, r.opcode(), r.header.sequence};
  if (!may(c, r))
    return refuse(
        a, EPERM,
        fmt::format("user {} may not: it needs one of the rights {}", c.peer.uid, rights_text(needed(r))));
  if (a.opcode == Opcode::num_devices) return ok(a, bytes_of<u32>(1));
  if (a.opcode == Opcode::hello) return say_hello(c, a, r.as<Hello>());
  if (a.opcode == Opcode::device_by_bdf) return find_device(c, a, r.as<BdfRequest>());
  // All others begin with the device's number.
  const u32 device = r.as<u32>();
  if (device != 0)
    return refuse(a, ENOENT, fmt::format("there is no device {}: this daemon serves one card", device));
  switch (a.opcode) {
    case Opcode::device_info:
      return send_device_info(c, a);
    case Opcode::qdma_info:
      return ok(a, bytes_of(info_));
    case Opcode::queue_pair_add:
      return add_queue_pair(c, a, r.as<QpairAdd>(offsetof(QueuePairAddRequest, add)));
    case Opcode::queue_pair_op:
      return operate_queue_pair(c, a, r.as<QueuePairRequest>());
    case Opcode::queue_pair_descriptor: {
      const auto one = r.as<QueuePairRequest>();
      return get_descriptor(c, a, {.device = 0, .flags = one.argument, .count = 1, .ids = {one.qid, 0}});
    }
    case Opcode::descriptor:
      return get_descriptor(c, a, r.as<DescriptorRequest>());
    case Opcode::buffer_open:
      return open_buffer(c, a, r.as<BufferOpenRequest>());
    case Opcode::buffer_open_raw:
      return open_raw(c, a, r.as<BufferOpenRawRequest>());
    case Opcode::buffer_close:
      return close_buffer(c, a, r.as<BufferCloseRequest>());
    case Opcode::host_buffer:
      return create_host_buffer(c, a, r.as<BufCreate>(offsetof(HostBufferRequest, create)));
    case Opcode::holder:
      return find_holder(c, a, r.as<HolderRequest>());
    default:
      break;
  }
  refuse(a, ENOTTY, "this daemon has no such opcode");
}

void Service::say_hello(Connection& c, const Asked& a, const Hello& h) {
  c.hello = true;
  if (h.version != kProtocolVersion || h.features != 0)
    return refuse(
        a, EPROTONOSUPPORT,
        fmt::format("version {} with features {:#x} is not known here: this daemon speaks version {} "
                    "without features",
                    +h.version, +h.features, kProtocolVersion));
  const Quotas& q = options_.quotas;
  ok(a, bytes_of(HelloReply{.features = card_->kind() == "model" ? kFeatureModel : 0,
                            .connection = static_cast<u32>(c.id),
                            .max_connections = q.connections,
                            .max_queue_pairs = q.queue_pairs,
                            .max_buffers = q.buffers,
                            .max_card_bytes = q.card_bytes,
                            .max_host_bytes = q.host_bytes}));
}

void Service::send_device_info(Connection&, const Asked& a) {
  DeviceInfoReply reply;
  const std::string title = "doorbelld: " + card_->name();
  std::copy_n(title.begin(), std::min(title.size(), reply.name.size() - 1), reply.name.begin());
  reply.bdf = info_.bdf;
  const std::filesystem::path pci = std::filesystem::path("/sys/bus/pci/devices") / info_.bdf.data();
  const auto id = [&](const char* file) { return static_cast<u16>(read_number(pci / file).value_or(0)); };
  reply.vendor = id("vendor"), reply.device = id("device");
  reply.subsystem_vendor = id("subsystem_vendor"), reply.subsystem_device = id("subsystem_device");
  ok(a, bytes_of(reply));
}

void Service::find_device(Connection&, const Asked& a, const BdfRequest& r) {
  const auto end = std::ranges::find(r.bdf, '\0');
  if (end == r.bdf.end()) return refuse(a, EINVAL, "the address does not end with a zero");
  const std::string wanted(r.bdf.begin(), end), own = info_.bdf.data();
  // The card is one device, whichever of its functions is named; a domain of 0 may be left out.
  const auto slot = [](std::string text) {
    if (std::ranges::count(text, ':') == 1) text = "0000:" + text;
    return text.substr(0, text.find('.'));
  };
  if (own.empty() || slot(wanted) != slot(own))
    return refuse(a, ENOENT, "this daemon's card has another address");
  ok(a, bytes_of<u32>(0));
}

void Service::add_queue_pair(Connection& c, const Asked& a, QpairAdd add) {
  if (add.size < smallest_size(kCallQpairAdd))
    return refuse(a, EINVAL, fmt::format("a QPAIR_ADD of {} bytes is too short", add.size));
  if (add.size < offsetof(QpairAdd, aperture_size) + sizeof add.aperture_size) add.aperture_size = 0;
  add.size = sizeof add;
  if (add.aperture_size != 0 && (c.rights & kRawMemAccess) == 0)
    return refuse(a, EPERM, "addresses wrap in an aperture, so it needs the right raw-mem-access");
  std::string over;
  Accounts::Charge charge = accounts_.charge(c.peer.uid, {.queue_pairs = 1}, over);
  if (!charge) return refuse(a, EDQUOT, over);
  auto call = std::make_shared<QpairAdd>(add);
  call_card(
      a, [card = card_, call] { return card->call(-1, kCallQpairAdd, structure_of(*call)).result; },
      [this, a, call, charge](i64 rc) {
        if (rc < 0) return refuse(a, static_cast<int>(-rc), refused_by_card("the queue pair", rc));
        const CardQueue queue{call->qid, call->dir_mask};
        const auto id = queue_pairs_.add(
            {.queue = queue, .aperture = call->aperture_size, .owner = a.connection, .charge = charge});
        if (!id) {
          retire({.client = caller_of(connections_.at(a.connection)),
                  .queues = {queue},
                  .handouts = {},
                  .lease = nullptr,
                  .charge = charge,
                  .then = {}});
          return refuse(a, EBUSY, "all ids of queue pairs are in use");
        }
        connections_.at(a.connection).queue_pairs.push_back(*id);
        QpairAdd added = *call;
        added.qid = *id;
        // The driver goes by its own id, which the client does not see.
        if (added.mm_channel == kChannelAuto) added.mm_channel = kChannel0 + (call->qid & 1);
        ok(a, bytes_of(added));
      });
}

int Service::look_up(Connection& c, u32 id, HeldQueuePair*& found) {
  found = queue_pairs_.find(id);
  if (found == nullptr)
    return queue_pairs_.look(id) == IdTable<HeldQueuePair>::Found::stale ? ESTALE : ENOENT;
  return found->owner == c.id ? 0 : EACCES;
}

void Service::operate_queue_pair(Connection& c, const Asked& a, const QueuePairRequest& r) {
  HeldQueuePair* held = nullptr;
  if (const int error = look_up(c, r.qid, held))
    return refuse(a, error, fmt::format("queue pair {}: {}", +r.qid, reason(error)));
  if (r.argument > static_cast<u32>(QueueOp::del))
    return refuse(a, EINVAL, fmt::format("there is no operation {}", +r.argument));
  const auto answer = [this, a](i64 rc) {
    if (rc < 0) refuse(a, static_cast<int>(-rc), refused_by_card("the operation", rc));
    else ok(a, bytes_of(Zero{}));
  };
  if (r.argument == static_cast<u32>(QueueOp::del)) {
    begin(c);
    return retire_queue_pair(r.qid, [this, a, answer](i64 rc) {
      answer(rc);
      end(a.connection);
    });
  }
  QpairOp op{.qid = held->queue.id, .op = r.argument};
  call_card(
      a, [card = card_, op]() mutable { return card->call(-1, kCallQpairOp, structure_of(op)).result; },
      answer);
}

void Service::get_descriptor(Connection& c, const Asked& a, const DescriptorRequest& r) {
  if ((r.flags & ~kFlagCloseOnExec) != 0) return refuse(a, EINVAL, "the only flag is O_CLOEXEC");
  if (r.count < 1 || r.count > kMaxDescriptorQueuePairs)
    return refuse(a, EINVAL, fmt::format("{} queue pairs; 1..2 are possible", +r.count));
  if (r.count == 2 && r.ids[0] == r.ids[1]) return refuse(a, EINVAL, "the same queue pair twice");
  if ((r.directions & ~(kDirH2C | kDirC2H)) != 0) return refuse(a, EINVAL, "an unknown direction");
  if (r.window_bytes == 0 ? r.window_base != 0 : r.window_base + r.window_bytes < r.window_base)
    return refuse(a, EINVAL, "the window is no range of addresses");

  auto h = std::make_shared<Handout>();
  h->owner = c.id;
  h->user = c.peer.uid;
  h->owned_only = (c.rights & kRawMemAccess) == 0;
  h->directions = r.directions != 0 ? r.directions : kDirH2C | kDirC2H;
  if (r.window_bytes != 0) h->window = CardRange{r.window_base, r.window_bytes};
  for (u32 i = 0; i < r.count; ++i) {
    HeldQueuePair* held = nullptr;
    if (const int error = look_up(c, r.ids[i], held))
      return refuse(a, error, fmt::format("queue pair {}: {}", r.ids[i], reason(error)));
    if (held->aperture != 0 && h->owned_only)
      return refuse(a, EPERM, "addresses wrap in an aperture, so it needs the right raw-mem-access");
    h->queues.push_back(held->queue);
    h->queue_pairs.push_back(r.ids[i]);
  }
  std::string over;
  h->charge = accounts_.charge(c.peer.uid, {.descriptors = 1}, over);
  if (!h->charge) return refuse(a, EDQUOT, over);
  call_card(
      a, [card = card_, h] { return open_descriptor(card, h->queues, h->fd); },
      [this, a, h](i64 rc) {
        if (rc < 0) return refuse(a, static_cast<int>(-rc), refused_by_card("the descriptor", rc));
        int error = 0;
        Descriptor other = hand_out(h, error);
        if (other.get() < 0) return refuse(a, error, "no socket for the descriptor: " + reason(error));
        // One request of a client at a time: none has deleted them meanwhile.
        for (const u32 id : h->queue_pairs) queue_pairs_.find(id)->handouts.push_back(h);
        ok(a, bytes_of(Zero{}), std::move(other));
      });
}

void Service::open_buffer(Connection& c, const Asked& a, const BufferOpenRequest& r) {
  if (r.type > static_cast<u32>(AllocationType::hbm_vnoc))
    return refuse(a, EINVAL, fmt::format("there is no memory of type {}", +r.type));
  if (r.direction > kMaxBufferDirection)
    return refuse(a, EINVAL, fmt::format("there is no direction {}", +r.direction));
  if (r.channel > kChannel1) return refuse(a, EINVAL, fmt::format("there is no channel {}", +r.channel));
  if (r.size == 0 || r.size > kRegionBytes)
    return refuse(a, EINVAL, fmt::format("a buffer of {} bytes; 1..{} are possible", +r.size, kRegionBytes));
  const auto type = AllocationType{r.type};
  if (type == AllocationType::hbm && r.argument >= kRegions)
    return refuse(a, EINVAL, fmt::format("there is no HBM region {}", +r.argument));
  const u64 bytes = whole_units(r.size);
  std::string over;
  auto buffer = std::make_shared<HeldBuffer>();
  buffer->charge = accounts_.charge(c.peer.uid,
                                    {.queue_pairs = r.channel == kChannelAuto ? 2u : 1u,
                                     .buffers = 1,
                                     .descriptors = 1,
                                     .card_bytes = bytes},
                                    over);
  if (!buffer->charge) return refuse(a, EDQUOT, over);
  const auto range = memory_.allocate(type, r.argument, r.size);
  if (!range) return refuse(a, ENOMEM, "no card memory of this kind is free");
  buffer->lease = std::make_shared<MemoryLease>(&memory_, *range);
  buffer->range = *range;
  buffer->size = range->bytes;
  buffer->directions = directions_of(r.direction);
  open_on_card(c, a, std::move(buffer), r.channel);
}

void Service::open_raw(Connection& c, const Asked& a, const BufferOpenRawRequest& r) {
  if (r.direction > kMaxBufferDirection)
    return refuse(a, EINVAL, fmt::format("there is no direction {}", +r.direction));
  if (r.channel > kChannel1) return refuse(a, EINVAL, fmt::format("there is no channel {}", +r.channel));
  if (r.size == 0 || r.address + r.size < r.address)
    return refuse(a, EINVAL, fmt::format("{} bytes at {:#x} are no range of addresses", +r.size, +r.address));
  std::string over;
  auto buffer = std::make_shared<HeldBuffer>();
  buffer->charge = accounts_.charge(
      c.peer.uid, {.queue_pairs = r.channel == kChannelAuto ? 2u : 1u, .buffers = 1, .descriptors = 1}, over);
  if (!buffer->charge) return refuse(a, EDQUOT, over);
  buffer->range = {r.address, r.size};
  buffer->lease = std::make_shared<MemoryLease>(nullptr, buffer->range);
  buffer->size = r.size;
  buffer->raw = true;
  buffer->directions = directions_of(r.direction);
  open_on_card(c, a, std::move(buffer), r.channel);
}

void Service::open_on_card(Connection& c, const Asked& a, std::shared_ptr<HeldBuffer> buffer, u32 channel) {
  buffer->owner = c.id;
  auto opened = std::make_shared<OnCard>();
  call_card(
      a,
      [card = card_, opened, directions = buffer->directions, channel, ring = options_.ring_index] {
        const i64 rc = open_queues(*card, directions, channel, ring, *opened);
        return rc < 0 ? rc : open_descriptor(card, opened->queues, opened->fd);
      },
      [this, a, opened, buffer](i64 rc) {
        Connection& owner = connections_.at(a.connection);
        buffer->queues = opened->queues;
        owner.buffers.push_back(buffer);
        if (rc < 0) {
          retire_buffer(buffer);
          return refuse(a, static_cast<int>(-rc), refused_by_card("the buffer's queue pairs", rc));
        }
        auto h = std::make_shared<Handout>();
        h->owner = a.connection;
        h->user = owner.peer.uid;
        h->fd = std::move(opened->fd);
        h->queues = buffer->queues;
        h->directions = buffer->directions;
        h->window = buffer->range;
        h->lease = buffer->lease;
        int error = 0;
        Descriptor other = hand_out(h, error);
        if (other.get() < 0) {
          retire_buffer(buffer);
          return refuse(a, error, "no socket for the descriptor: " + reason(error));
        }
        buffer->handout = h;
        const u32 count = static_cast<u32>(buffer->queues.size());
        if (buffer->raw) return ok(a, bytes_of(count), std::move(other));
        ok(a, bytes_of(BufferOpenReply{buffer->size, buffer->range.base, count}), std::move(other));
      });
}

void Service::close_buffer(Connection& c, const Asked& a, const BufferCloseRequest& r) {
  bool own = false;
  std::shared_ptr<HeldBuffer> found;
  for (const auto& buffer : c.buffers) {
    if (buffer->range.base != r.address) continue;
    own = true;
    if (buffer->size == r.size) found = buffer;
  }
  if (!own) {
    for (const auto& [id, other] : connections_)
      for (const auto& buffer : other.buffers)
        if (buffer->range.base == r.address)
          return refuse(a, EACCES, fmt::format("the buffer at {:#x} belongs to another client", +r.address));
    return refuse(a, ENOENT, fmt::format("there is no buffer at {:#x}", +r.address));
  }
  if (!found)
    return refuse(a, EINVAL, fmt::format("the buffer at {:#x} is not of {} bytes", +r.address, +r.size));
  begin(c);
  retire_buffer(found, [this, a](i64 rc) {
    if (rc < 0) refuse(a, static_cast<int>(-rc), refused_by_card("to delete the buffer's queue pairs", rc));
    else ok(a, bytes_of(Zero{}));
    end(a.connection);
  });
}

void Service::find_holder(Connection& c, const Asked& a, const HolderRequest& r) {
  if (r.bytes == 0 || r.base + r.bytes < r.base)
    return refuse(a, EINVAL, fmt::format("{} bytes at {:#x} are no range of addresses", +r.bytes, +r.base));
  HolderReply reply;
  for (const auto& [id, other] : connections_) {
    if (id == c.id) continue;
    for (const auto& buffer : other.buffers) {
      const CardRange& held = buffer->range;
      if (held.base >= r.base + r.bytes || r.base >= held.base + held.bytes) continue;
      if (reply.buffers++ > 0) continue;
      reply.user = other.peer.uid;
      reply.connection = static_cast<u32>(id);
      reply.base = held.base, reply.bytes = held.bytes;
    }
  }
  ok(a, bytes_of(reply));
}

}  // namespace doorbell::qdma::daemon
