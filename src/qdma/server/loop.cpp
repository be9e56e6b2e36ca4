// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/server/loop.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "system/sysfs.hpp"
#include "system/thread.hpp"

namespace doorbell::qdma {

namespace {

constexpr u64 kMailId = 0;
/// Messages of one socket that are taken before the others have their turn.
constexpr u32 kMessagesPerTurn = 16;
/// How often the server checks whether another process still has each buffer: nothing reports its end.
constexpr int kSweepMs = 200;
constexpr u32 kListenerEvents = EPOLLIN;
/// The most connections over the limit that wait for their refusal at a time.
constexpr u64 kMostSurplus = 16;

Descriptor open_spare() {
  return Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

std::string title_of(const std::string& path) {
  return fmt::format("listen at {}", path);
}

[[noreturn]] void cannot_listen(const std::string& path, const std::string& why, std::string hint = {}) {
  throw Error(title_of(path), why, std::move(hint));
}

Descriptor listen_at(const std::string& path) {
  const sockaddr_un address = local_address(path, title_of(path));
  Descriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // bind() gives the file the socket's own mode.
  if (fd.get() < 0 || fchmod(fd.get(), 0600) != 0) cannot_listen(path, reason(errno));
  const Descriptor lock = lock_folder_of(path);
  const auto bind_it = [&] {
    return bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  };
  bool bound = bind_it();
  if (!bound && errno == EADDRINUSE) {
    if (!is_abandoned(path, SOCK_SEQPACKET))
      cannot_listen(path, "it is there already and in use, or no socket", "give another path");
    unlink(address.sun_path);
    bound = bind_it();
  }
  if (!bound) cannot_listen(path, reason(errno));
  if (listen(fd.get(), 128) != 0) {
    const std::string why = reason(errno);
    unlink(address.sun_path);
    cannot_listen(path, why);
  }
  return fd;
}

/// Both ends of a connection: this process's, and the one to give away.
std::pair<Descriptor, Descriptor> socket_pair() {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return {};
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

template <class T>
bool read_exactly(std::span<const u8> structure, T& out) {
  if (structure.size() != sizeof out) return false;
  std::memcpy(&out, structure.data(), sizeof out);
  return true;
}

}  // namespace

void CardServer::Loop::Mailbox::ring() const {
  const u64 one = 1;
  // A counter that is full has been rung already.
  static_cast<void>(!write(wake.get(), &one, sizeof one));
}

CardServer::Loop::Loop(std::shared_ptr<ModelCard> card, const ServerLimits& limits)
    : driver_(std::move(card), {.queue_pairs = limits.queue_pairs, .buffers = {.bytes = limits.host_bytes}},
              [this](std::function<void()> work) { makers_.post(std::move(work)); }),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      spare_(open_spare()),
      limits_(limits) {
  mail_->wake = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.u64 = kMailId;
  if (epoll_.get() < 0 || mail_->wake.get() < 0 ||
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, mail_->wake.get(), &e) != 0)
    throw Error("card server", reason(errno));
  thread_ = make_thread("card server", [this] { run(); });
}

CardServer::Loop::~Loop() {
  mail_->leave([&] { mail_->stop = true; });
  thread_.join();
  while (!sockets_.empty()) remove(sockets_.begin()->first);
}

Descriptor CardServer::Loop::connect() {
  auto ends = socket_pair();
  if (ends.first.get() < 0) throw Error("card server", fmt::format("a new connection: {}", reason(errno)));
  mail_->leave([&] { mail_->connections.push_back(std::move(ends.first)); });
  return std::move(ends.second);
}

void CardServer::Loop::listen(const std::string& path) {
  Descriptor fd = listen_at(path);
  files_.emplace_back(path);
  mail_->leave([&] { mail_->listeners.push_back(std::move(fd)); });
}

ServerCounts CardServer::Loop::counts() const {
  const std::lock_guard lock(counts_mutex_);
  ServerCounts c = counts_;
  c.closing = closers_.waiting(0);
  return c;
}

void CardServer::Loop::update_counts() {
  ServerCounts c;
  c.connections = connections_;
  c.descriptors = descriptors_;
  c.buffers = buffers_;
  c.queue_pairs = driver_.queue_pairs();
  c.requests = requests_;
  c.refused = refused_;
  const std::lock_guard lock(counts_mutex_);
  counts_ = c;
}

void CardServer::Loop::run() {
  pthread_setname_np(pthread_self(), "qdma server");
  std::array<epoll_event, 64> events{};
  u64 swept_ns = 0;
  while (!stop_) {
    const int n = epoll_wait(epoll_.get(), events.data(), events.size(), buffers_ > 0 ? kSweepMs : -1);
    for (int i = 0; i < n; ++i)
      serve(events[static_cast<u32>(i)].data.u64, events[static_cast<u32>(i)].events);
    if (buffers_ > 0 && wall_ns() - swept_ns > u64{kSweepMs} * 1'000'000) {
      buffers_ = driver_.sweep_buffers();
      swept_ns = wall_ns();
    }
    update_counts();
  }
}

void CardServer::Loop::serve(u64 id, u32 events) {
  if (id == kMailId) {
    take_mail();
    return;
  }
  if (const auto listener = listeners_.find(id); listener != listeners_.end()) {
    accept(listener->second.get());
    return;
  }
  const auto it = sockets_.find(id);
  if (it == sockets_.end()) return;
  Socket& socket = it->second;
  if ((events & EPOLLOUT) != 0) flush(socket);
  // Who does not read its replies is not read either. A client that has gone is, to find that out.
  const bool hung_up = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if (hung_up) socket.unsent.clear();
  if (socket.unsent.empty() && !socket.closing && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
    read(id, socket);
  if (socket.closing && socket.unsent.empty()) {
    remove(id);
    return;
  }
  watch(id, socket, EPOLL_CTL_MOD);
}

void CardServer::Loop::watch(u64 id, const Socket& socket, int operation) {
  epoll_event e{};
  e.events = socket.unsent.empty() ? EPOLLIN : EPOLLOUT;
  e.data.u64 = id;
  epoll_ctl(epoll_.get(), operation, socket.fd.get(), &e);
}

u64 CardServer::Loop::add(Descriptor fd, std::shared_ptr<Node> node, bool control) {
  const u64 id = next_id_++;
  Socket& socket = sockets_[id];
  socket.fd = std::move(fd);
  socket.node = std::move(node);
  socket.control = control;
  ++(control ? connections_ : descriptors_);
  watch(id, socket, EPOLL_CTL_ADD);
  return id;
}

void CardServer::Loop::add_connection(Descriptor fd) {
  const bool surplus = connections_ >= limits_.connections;
  // A connection over the limit gets a refusal, but only a few are waited for.
  if (surplus && surplus_ == kMostSurplus) {
    ++refused_;
    close(std::move(fd));
    return;
  }
  const u64 id = add(std::move(fd), driver_.open(), true);
  if (!surplus) return;
  sockets_.at(id).surplus = true;
  ++surplus_, --connections_;
}

void CardServer::Loop::remove(u64 id) {
  const auto it = sockets_.find(id);
  auto socket = sockets_.extract(it);
  Socket& s = socket.mapped();
  // Unread messages in it may have files of the client's too.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, s.fd.get(), nullptr);
  shutdown(s.fd.get(), SHUT_RDWR);
  close(std::move(s.fd));
  --(s.surplus ? surplus_ : s.control ? connections_ : descriptors_);
  for (auto& [serial, pending] : socket.mapped().pending)
    if (pending.call) driver_.cancel(*pending.call);
  driver_.close(*socket.mapped().node);
}

void CardServer::Loop::accept(int listener) {
  for (;;) {
    Descriptor fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (fd.get() >= 0) {
      add_connection(std::move(fd));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EMFILE && errno != ENFILE) return;
    // The client would wait, and epoll would report it without end. It is turned away. Without a descriptor
    // accept4() fails the same way when no connection is left, so this ends here; epoll reports further ones.
    spare_.reset();
    Descriptor(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)).reset();
    spare_ = open_spare();
    ++refused_;
    return;
  }
}

void CardServer::Loop::take_mail() {
  u64 rung = 0;
  static_cast<void>(!::read(mail_->wake.get(), &rung, sizeof rung));
  std::vector<Descriptor> connections, listeners;
  {
    const std::lock_guard lock(mail_->mutex);
    finished_.swap(mail_->finished);
    connections.swap(mail_->connections);
    listeners.swap(mail_->listeners);
    stop_ = mail_->stop;
  }
  for (Descriptor& fd : connections) add_connection(std::move(fd));
  for (Descriptor& fd : listeners) {
    const u64 id = next_id_++;
    epoll_event e{};
    e.events = kListenerEvents;
    e.data.u64 = id;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &e);
    listeners_.emplace(id, std::move(fd));
  }
  for (Finished& f : finished_) finish(f);
  finished_.clear();
}

void CardServer::Loop::read(u64 id, Socket& socket) {
  for (u32 i = 0; i < kMessagesPerTurn && socket.unsent.empty() && !socket.closing; ++i) {
    Incoming message = receive_message(socket.fd.get());
    if (message.status == Incoming::Status::none) return;
    const bool closed = message.status == Incoming::Status::closed;
    if (closed) {
      socket.unsent.clear();
      socket.closing = true;
    } else {
      handle(id, socket, message);
    }
    for (u32 d = 0; d < message.descriptor_count; ++d) close(std::move(message.descriptors[d]));
    for (Descriptor& d : message.surplus) close(std::move(d));
  }
}

void CardServer::Loop::refuse(Socket& socket, u64 sequence, int error) {
  ++refused_;
  reply(socket, sequence, -error);
  if (error == EPROTO) socket.closing = true;
}

void CardServer::Loop::handle(u64 id, Socket& socket, Incoming& message) {
  wire::RequestHeader header;
  if (const int error = check_request(message, header); error != 0) {
    refuse(socket, header.sequence, error);
    return;
  }
  const auto structure = std::span<const u8>(message.bytes).subspan(sizeof header, header.bytes);
  if (header.number == wire::kHello) {
    hello(socket, header, structure);
  } else if (socket.control && !socket.greeted) {
    refuse(socket, header.sequence, EPROTO);
  } else if (header.number == wire::kCancel) {
    cancel(socket, header, structure);
  } else if (socket.pending.size() >= wire::kMaxInFlight) {
    reply(socket, header.sequence, -EAGAIN);
  } else {
    call(id, socket, header, message);
  }
}

void CardServer::Loop::hello(Socket& socket, const wire::RequestHeader& header,
                             std::span<const u8> structure) {
  wire::Hello theirs;
  const wire::Hello ours;
  const auto bytes = std::span(reinterpret_cast<const u8*>(&ours), sizeof ours);
  if (socket.surplus) {
    ++refused_;
    reply(socket, header.sequence, -EDQUOT, bytes);
    socket.closing = true;
    return;
  }
  if (socket.control && !socket.greeted && read_exactly(structure, theirs) &&
      theirs.version == wire::kVersion && theirs.caps == 0) {
    socket.greeted = true;
    reply(socket, header.sequence, 0, bytes);
    return;
  }
  // The version that this server speaks comes with the refusal.
  ++refused_;
  reply(socket, header.sequence, -EPROTO, bytes);
  socket.closing = true;
}

void CardServer::Loop::cancel(Socket& socket, const wire::RequestHeader& header,
                              std::span<const u8> structure) {
  wire::Cancel what;
  if (!read_exactly(structure, what)) {
    refuse(socket, header.sequence, EPROTO);
    return;
  }
  i64 result = -ENOENT;
  for (auto& [serial, pending] : socket.pending) {
    if (!pending.call || pending.sequence != what.sequence) continue;
    driver_.cancel(*pending.call);
    result = 0;
  }
  reply(socket, header.sequence, result);
}

void CardServer::Loop::call(u64 id, Socket& socket, const wire::RequestHeader& header, Incoming& message) {
  ++requests_;
  std::array<int, wire::kMaxDescriptors> descriptors{};
  for (u32 d = 0; d < message.descriptor_count; ++d) descriptors[d] = message.descriptors[d].get();
  const u64 serial = socket.next_serial++;
  Socket::Pending& pending = socket.pending[serial];
  pending.sequence = header.sequence;
  auto answer = [mail = mail_, id, serial, sequence = header.sequence](Reply reply) {
    mail->leave([&] { mail->finished.push_back({id, serial, sequence, std::move(reply)}); });
  };
  pending.call =
      driver_.call(socket.node,
                   {.number = header.number,
                    .structure = std::span<const u8>(message.bytes).subspan(sizeof header, header.bytes),
                    .descriptors = std::span(descriptors).first(message.descriptor_count),
                    .deadline_ns = header.deadline_ns},
                   std::move(answer));
}

void CardServer::Loop::finish(Finished& f) {
  const auto it = sockets_.find(f.socket);
  if (f.reply.descriptor.get() >= 0) ++buffers_;  // the next sweep counts again
  if (it == sockets_.end()) {
    if (f.reply.node) driver_.close(*f.reply.node);
    return;
  }
  Socket& socket = it->second;
  socket.pending.erase(f.serial);
  Descriptor descriptor = std::move(f.reply.descriptor);
  if (f.reply.node) {
    const bool over = descriptors_ >= limits_.descriptors;
    auto [ours, theirs] = over ? std::pair<Descriptor, Descriptor>() : socket_pair();
    if (ours.get() < 0) {
      f.reply.result = over ? -EDQUOT : -errno;
      f.reply.structure.clear();
      driver_.close(*f.reply.node);
    } else {
      add(std::move(ours), std::move(f.reply.node), false);
      descriptor = std::move(theirs);
    }
  }
  reply(socket, f.sequence, f.reply.result, f.reply.structure,
        std::span<const wire::SubReply>(f.reply.parts).first(f.reply.part_count), std::move(descriptor));
  if (socket.closing && socket.unsent.empty()) remove(it->first);
  else watch(it->first, socket, EPOLL_CTL_MOD);
}

void CardServer::Loop::reply(Socket& socket, u64 sequence, i64 result, std::span<const u8> structure,
                             std::span<const wire::SubReply> parts, Descriptor descriptor) {
  const wire::ReplyHeader header{.bytes = static_cast<u32>(structure.size()),
                                 .sequence = sequence,
                                 .result = result,
                                 .parts = static_cast<u32>(parts.size()),
                                 .descriptors = descriptor.get() >= 0 ? 1u : 0u};
  socket.unsent.push_back({encode_reply(header, structure, parts), std::move(descriptor)});
  flush(socket);
}

void CardServer::Loop::flush(Socket& socket) {
  while (!socket.unsent.empty()) {
    const Outgoing& out = socket.unsent.front();
    const int error = send_message(socket.fd.get(), out.bytes, out.descriptor.get());
    if (error == EAGAIN || error == ENOBUFS || error == ENOMEM) return;
    if (error != 0) {
      socket.unsent.clear();
      socket.closing = true;
      return;
    }
    socket.unsent.pop_front();
  }
}

}  // namespace doorbell::qdma
