// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/server/loop.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "system/sysfs.hpp"
#include "system/thread.hpp"

namespace doorbell::qdma {

namespace {

/// How often the server checks whether another process still has each buffer: nothing reports its end.
constexpr u64 kSweepNs = 200'000'000;
/// The most connections over the limit that wait for their refusal at a time.
constexpr u64 kMostSurplus = 16;

template <class T>
bool read_exactly(std::span<const u8> structure, T& out) {
  if (structure.size() != sizeof out) return false;
  std::memcpy(&out, structure.data(), sizeof out);
  return true;
}

}  // namespace

CardServer::Loop::Loop(std::shared_ptr<ModelCard> card, const ServerLimits& limits)
    : books_{.limits = limits, .buffer_made = [this] { buffer_made(); }},
      driver_(std::move(card), {.queue_pairs = limits.queue_pairs, .buffers = {.bytes = limits.host_bytes}},
              [this](std::function<void()> work) { loop_.run(std::move(work), [] {}); }),
      loop_({.clients = {.longest = wire::kMaxMessage},
             .pairs = {.longest = wire::kMaxMessage},
             .one_user = true}) {
  loop_.serve(*this);
  thread_ = make_thread("card server", [this] {
    pthread_setname_np(pthread_self(), "qdma server");
    loop_.run();
  });
}

CardServer::Loop::~Loop() {
  loop_.stop();
  thread_.join();
  for (auto& [id, socket] : sockets_) give_back(socket);
}

Descriptor CardServer::Loop::connect() {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error("card server", fmt::format("a new connection: {}", reason(errno)));
  Descriptor theirs(ends[1]);
  loop_.post([this, ours = std::make_shared<Descriptor>(ends[0])] { loop_.take_client(std::move(*ours)); });
  return theirs;
}

void CardServer::Loop::listen(const std::string& path) {
  auto fd = std::make_shared<Descriptor>(
      service::listen_at(path, fmt::format("listen at {}", path), {.mode = 0600}));
  {
    const std::lock_guard lock(files_mutex_);
    files_.emplace_back(path);
  }
  loop_.post([this, fd] { loop_.listen(std::move(*fd)); });
}

void CardServer::Loop::listen_slash(const std::string& folder, const SlashNotice& notice) {
  slash_ = std::make_unique<slash::Front>(
      slash::Surroundings{.loop = loop_, .driver = driver_, .books = books_, .notice = notice}, folder);
  loop_.post([this] { slash_->open(); });
}

ServerCounts CardServer::Loop::counts() const {
  return {.connections = books_.connections,
          .descriptors = books_.descriptors,
          .buffers = books_.buffers,
          .queue_pairs = driver_.queue_pairs(),
          .closing = loop_.closing(),
          .requests = books_.requests,
          .refused = books_.refused};
}

void CardServer::Loop::sweep() {
  books_.buffers = driver_.sweep_buffers();
  if (books_.buffers > 0) sweeping_.start(kSweepNs);
}

void CardServer::Loop::buffer_made() {
  ++books_.buffers;  // the next sweep counts again
  if (!sweeping_.running()) sweeping_.start(kSweepNs);
}

int CardServer::Loop::connect(service::SocketId id, service::Peer peer) {
  const bool surplus = books_.connections >= books_.limits.connections;
  // A connection over the limit gets a refusal, but only a few are waited for.
  if (surplus && surplus_ == kMostSurplus) {
    ++books_.refused;
    return EDQUOT;
  }
  Socket& socket = sockets_[id];
  socket.node = driver_.open();
  socket.process = static_cast<uid_t>(peer.pid);
  socket.control = true;
  socket.surplus = surplus;
  ++(surplus ? surplus_ : books_.connections);
  return 0;
}

void CardServer::Loop::give_back(Socket& socket) {
  for (auto& [serial, pending] : socket.pending)
    if (pending.call) driver_.cancel(*pending.call);
  driver_.close(*socket.node);
}

void CardServer::Loop::closed(service::SocketId id) {
  auto socket = sockets_.extract(id);
  Socket& s = socket.mapped();
  --(s.surplus ? surplus_ : s.control ? books_.connections : books_.descriptors);
  give_back(s);
}

void CardServer::Loop::refuse(u64 id, u64 sequence, int error) {
  ++books_.refused;
  reply(id, sequence, -error);
  if (error == EPROTO) loop_.finish(id);
}

void CardServer::Loop::message(service::SocketId id, service::Message m) {
  Socket& socket = sockets_.at(id);
  wire::RequestHeader header;
  if (const int error = check_request(m, header); error != 0) return refuse(id, header.sequence, error);
  const auto structure = m.bytes.subspan(sizeof header);
  if (header.number == wire::kHello) return hello(id, socket, header, structure);
  if (socket.control && !socket.greeted) return refuse(id, header.sequence, EPROTO);
  if (header.number == wire::kCancel) return cancel(id, socket, header, structure);
  if (header.number == wire::kHeld && socket.control) return held(id, header, structure);
  if (socket.pending.size() >= wire::kMaxInFlight) return reply(id, header.sequence, -EAGAIN);
  call(id, socket, header, m);
}

void CardServer::Loop::hello(u64 id, Socket& socket, const wire::RequestHeader& header,
                             std::span<const u8> structure) {
  wire::Hello theirs;
  const wire::Hello ours;
  const auto bytes = std::span(reinterpret_cast<const u8*>(&ours), sizeof ours);
  const bool known = socket.control && !socket.greeted && read_exactly(structure, theirs) &&
                     theirs.version == wire::kVersion && theirs.caps == 0;
  if (known && !socket.surplus) {
    socket.greeted = true;
    return reply(id, header.sequence, 0, bytes);
  }
  // The version that this server speaks comes with the refusal.
  ++books_.refused;
  reply(id, header.sequence, socket.surplus ? -EDQUOT : -EPROTO, bytes);
  loop_.finish(id);
}

void CardServer::Loop::cancel(u64 id, Socket& socket, const wire::RequestHeader& header,
                              std::span<const u8> structure) {
  wire::Cancel what;
  if (!read_exactly(structure, what)) return refuse(id, header.sequence, EPROTO);
  i64 result = -ENOENT;
  for (auto& [serial, pending] : socket.pending) {
    if (!pending.call || pending.sequence != what.sequence) continue;
    driver_.cancel(*pending.call);
    result = 0;
  }
  reply(id, header.sequence, result);
}

void CardServer::Loop::held(u64 id, const wire::RequestHeader& header, std::span<const u8> structure) {
  wire::HostBufferName which;
  if (!read_exactly(structure, which)) return refuse(id, header.sequence, EPROTO);
  reply(id, header.sequence, driver_.holds(which) ? 1 : 0);
}

void CardServer::Loop::call(u64 id, Socket& socket, const wire::RequestHeader& header,
                            const service::Message& message) {
  ++books_.requests;
  std::array<int, wire::kMaxDescriptors> descriptors{};
  for (std::size_t d = 0; d < message.files.size(); ++d) descriptors[d] = message.files[d].get();
  const u64 serial = socket.next_serial++;
  Socket::Pending& pending = socket.pending[serial];
  pending.sequence = header.sequence;
  // A call may outlive the loop.
  auto answer = [this, mail = loop_.mailbox(), id, serial, sequence = header.sequence](Reply reply) {
    mail->post([this, id, serial, sequence, reply = std::make_shared<Reply>(std::move(reply))] {
      finish(id, serial, sequence, *reply);
    });
  };
  pending.call = driver_.call(socket.node,
                              {.number = header.number,
                               .structure = message.bytes.subspan(sizeof header),
                               .descriptors = std::span(descriptors).first(message.files.size()),
                               .deadline_ns = header.deadline_ns},
                              std::move(answer));
}

void CardServer::Loop::finish(u64 id, u64 serial, u64 sequence, Reply& r) {
  const auto it = sockets_.find(id);
  if (r.descriptor.get() >= 0) buffer_made();
  if (it == sockets_.end()) {
    if (r.node) driver_.close(*r.node);
    return;
  }
  it->second.pending.erase(serial);
  Descriptor descriptor = std::move(r.descriptor);
  if (r.node) {
    int error = books_.descriptors >= books_.limits.descriptors ? EDQUOT : 0;
    const u64 pair = books_.next_socket++;
    if (error == 0) descriptor = loop_.open_pair(pair, it->second.process, error);
    if (error == 0) {
      Socket& own = sockets_[pair];
      own.node = std::move(r.node);
      own.process = it->second.process;
      ++books_.descriptors;
    } else {
      r.result = -error;
      r.structure.clear();
      driver_.close(*r.node);
    }
  }
  reply(id, sequence, r.result, r.structure, std::span<const wire::SubReply>(r.parts).first(r.part_count),
        std::move(descriptor));
}

void CardServer::Loop::reply(u64 id, u64 sequence, i64 result, std::span<const u8> structure,
                             std::span<const wire::SubReply> parts, Descriptor descriptor) {
  const wire::ReplyHeader header{.bytes = static_cast<u32>(structure.size()),
                                 .sequence = sequence,
                                 .result = result,
                                 .parts = static_cast<u32>(parts.size()),
                                 .descriptors = descriptor.get() >= 0 ? 1u : 0u};
  loop_.send(id, encode_reply(header, structure, parts), std::move(descriptor));
}

}  // namespace doorbell::qdma
