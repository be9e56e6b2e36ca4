// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/daemon/uv/socket_loop.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "qdma/daemon/protocol.hpp"
#include "qdma/peer/local_socket.hpp"
#include "qdma/peer/wire.hpp"
#include "qdma/server/message.hpp"
#include "system/passed_files.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma::daemon {

namespace {

constexpr u32 kMessagesAtOnce = 16;  // of one socket, before others have their turn
constexpr u64 kRetryMs = 100;

/// Files of one user that may wait to be closed before his sockets are no longer read.
constexpr u64 kMostClosing = 1024;
constexpr u64 kFullMs = 20;

void take_descriptors(msghdr& message, const std::shared_ptr<Closers>& closers, uid_t user,
                      std::vector<ForeignFile>& out) {
  take_files(message, [&](Descriptor file) { out.emplace_back(std::move(file), closers, user); });
}

[[noreturn]] void fail_listening(const std::string& subject, const char* what) {
  throw Error(subject, std::string(what) + ": " + reason(errno));
}

}  // namespace

bool read_peer(int fd, Peer& peer, int& error) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
    error = errno;
    return false;
  }
  peer = {.pid = who.pid, .uid = who.uid, .groups = {who.gid}};
  std::vector<gid_t> more(64);
  for (;;) {
    size = static_cast<socklen_t>(more.size() * sizeof(gid_t));
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, more.data(), &size) == 0) break;
    if (errno == ERANGE) {
      more.resize(size / sizeof(gid_t));
      continue;
    }
    size = 0;  // a kernel before 4.13: the main group only
    break;
  }
  more.resize(size / sizeof(gid_t));
  peer.groups.insert(peer.groups.end(), more.begin(), more.end());
  return true;
}

Descriptor listen_at(const std::string& path, std::optional<unsigned> mode, const std::string& name,
                     int type) {
  const std::string subject = name + " " + path;
  const sockaddr_un address = local_address(path, subject);
  Descriptor fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) fail_listening(subject, "no socket");
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  const Descriptor lock = lock_folder_of(path);
  if (::bind(fd.get(), at, sizeof address) != 0) {
    if (errno != EADDRINUSE) fail_listening(subject, "cannot be bound");
    struct stat existing {};
    if (::lstat(path.c_str(), &existing) != 0 || !S_ISSOCK(existing.st_mode))
      throw Error(subject, "is there and no socket", "name another path");
    if (!is_abandoned(path, type))
      throw Error(subject, "a process listens there already", "name another path, or end the other process");
    if (::unlink(path.c_str()) != 0 || ::bind(fd.get(), at, sizeof address) != 0)
      fail_listening(subject, "cannot be bound");
  }
  if (mode && ::chmod(path.c_str(), *mode) != 0) fail_listening(subject, "its mode cannot be set");
  if (::listen(fd.get(), 128) != 0) fail_listening(subject, "cannot listen");
  return fd;
}

SocketLoop::SocketLoop() : reserve_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
  if (const int rc = uv_loop_init(&loop_); rc != 0) throw Error("libuv", uv_strerror(rc));
  uv_timer_init(&loop_, &retry_);
  uv_timer_init(&loop_, &full_);
  full_.data = this;
}

SocketLoop::~SocketLoop() {
  stop_listening();
  while (!sockets_.empty()) remove(*sockets_.begin()->second);
  for (uv_timer_t* const timer : {&retry_, &full_}) uv_close(reinterpret_cast<uv_handle_t*>(timer), nullptr);
  uv_run(&loop_, UV_RUN_DEFAULT);  // workers end, handles close
  uv_loop_close(&loop_);
}

void SocketLoop::run() {
  uv_run(&loop_, UV_RUN_DEFAULT);
}

SocketLoop::Socket* SocketLoop::find(SocketId id) {
  const auto s = sockets_.find(id);
  return s == sockets_.end() ? nullptr : s->second;
}

SocketLoop::Socket* SocketLoop::add(Descriptor fd, SocketId id, uid_t user, bool client, int& error) {
  auto s = std::make_unique<Socket>();
  s->loop = this;
  s->id = id;
  s->user = user;
  s->client = client;
  if (const int rc = uv_poll_init(&loop_, &s->poll, fd.get()); rc != 0) {
    error = -rc;
    return nullptr;
  }
  s->fd = std::move(fd);
  s->poll.data = s.get();
  Socket* const added = s.release();  // remove() and the handle's end give it back
  sockets_[id] = added;
  update(*added);
  return added;
}

void SocketLoop::remove(Socket& s) {
  sockets_.erase(s.id);
  uv_close(reinterpret_cast<uv_handle_t*>(&s.poll),
           [](uv_handle_t* h) { delete static_cast<Socket*>(h->data); });
  // Its poll handle is no longer active. The other end finds that out before it is closed.
  ::shutdown(s.fd.get(), SHUT_RDWR);
  close_for(s.user, std::move(s.fd));
}

void SocketLoop::update(Socket& s) {
  // A client that does not read its replies is not asked for more.
  const std::size_t most = s.client ? 1 : wire::kMaxInFlight;
  int events = 0;
  s.full = closers_->waiting(s.user) >= kMostClosing;
  if (s.full && uv_is_active(reinterpret_cast<uv_handle_t*>(&full_)) == 0)
    uv_timer_start(
        &full_, [](uv_timer_t* t) { static_cast<SocketLoop*>(t->data)->look_at_full(); }, kFullMs, 0);
  if (!s.paused && !s.full && s.outgoing.size() < most) events |= UV_READABLE;
  if (!s.outgoing.empty()) events |= UV_WRITABLE;
  // Without events, still whether the other end has gone.
  uv_poll_start(&s.poll, events | UV_DISCONNECT, [](uv_poll_t* poll, int status, int ready) {
    auto* const self = static_cast<Socket*>(poll->data);
    SocketLoop& loop = *self->loop;
    const SocketId id = self->id;
    if ((ready & UV_WRITABLE) != 0) loop.flush(*self);
    if (Socket* const still = loop.find(id); still != nullptr)
      if (status != 0 || (ready & (UV_READABLE | UV_DISCONNECT)) != 0) loop.readable(id);
  });
}

void SocketLoop::look_at_full() {
  for (const auto& [id, s] : sockets_)
    if (s->full) update(*s);
}

void SocketLoop::readable(SocketId id) {
  for (u32 i = 0; i < kMessagesAtOnce; ++i) {
    Socket* const s = find(id);
    if (s == nullptr || s->paused) break;
    if (closers_->waiting(s->user) >= kMostClosing) {
      update(*s);
      break;
    }
    if (!take_message(*s)) return;
  }
  Socket* const s = find(id);
  if (s == nullptr || !(s->paused || s->full)) return;
  // It is not read, but has it gone?
  std::array<u8, 1> byte{};
  const ssize_t n = ::recv(s->fd.get(), byte.data(), 1, MSG_PEEK | MSG_DONTWAIT);
  // With both directions shut down nobody waits for a reply, whatever messages are left.
  pollfd state{s->fd.get(), POLLRDHUP, 0};
  if (::poll(&state, 1, 0) != 1) state.revents = 0;
  if (n == 0 || (state.revents & POLLHUP) != 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
    remove(*s);
    events_.closed(id);
  } else if ((state.revents & POLLRDHUP) != 0) {
    // It has shut down its side, with messages left; the poll would report that again and again.
    uv_poll_start(&s->poll, s->outgoing.empty() ? 0 : UV_WRITABLE, s->poll.poll_cb);
  }
}

bool SocketLoop::take_message(Socket& s) {
  std::array<u8, kMaxMessage> space;
  const std::size_t most = s.client ? kMaxMessage : wire::kMaxMessage;
  iovec part{space.data(), most};
  DescriptorSpace control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  const ssize_t n = ::recvmsg(s.fd.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  const SocketId id = s.id;
  // An empty message may carry descriptors too; then it is a message, and no valid one.
  Message m{.bytes = std::span(space).first(static_cast<std::size_t>(std::max<ssize_t>(n, 0)))};
  if (n >= 0) take_descriptors(message, closers_, s.user, m.descriptors);
  if (n <= 0 && m.descriptors.empty()) {
    remove(s);
    events_.closed(id);
    return false;
  }
  m.truncated = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  events_.message(id, std::move(m));
  return true;
}

void SocketLoop::send(SocketId to, std::vector<u8> message, Descriptor with) {
  Socket* const s = find(to);
  if (s == nullptr) return;
  s->outgoing.push_back({std::move(message), std::move(with)});
  if (s->outgoing.size() == 1) flush(*s);
  else if (s->outgoing.size() == wire::kMaxInFlight) update(*s);  // it is not read any more
}

void SocketLoop::flush(Socket& s) {
  while (!s.outgoing.empty()) {
    const Outgoing& first = s.outgoing.front();
    const int error = send_message(s.fd.get(), first.bytes, first.with.get());
    if (error == EAGAIN || error == ENOBUFS) break;
    if (error != 0) {
      // The other end has gone, or may have no more descriptors on their way: its next read finds the end.
      ::shutdown(s.fd.get(), SHUT_RDWR);
      s.outgoing.clear();
      break;
    }
    s.outgoing.pop_front();
  }
  update(s);
}

Descriptor SocketLoop::open_pair(SocketId id, uid_t user, int& error) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    error = errno;
    return {};
  }
  Descriptor other(ends[1]);
  if (add(Descriptor(ends[0]), id, user, false, error) == nullptr) other.reset();
  return other;
}

void SocketLoop::close(SocketId id) {
  Socket* const s = find(id);
  if (s == nullptr) return;
  // Messages that still wait after this are for a client that does not read. The quotas count the socket no
  // longer, so it goes.
  flush(*s);
  remove(*s);
}

void SocketLoop::pause(SocketId id) {
  Socket* const s = find(id);
  if (s == nullptr || s->paused) return;
  s->paused = true;
  update(*s);
}

void SocketLoop::resume(SocketId id) {
  Socket* const s = find(id);
  if (s == nullptr || !s->paused) return;
  s->paused = false;
  update(*s);
}

void SocketLoop::run(std::function<void()> work, std::function<void()> done) {
  struct Job {
    uv_work_t request{};
    std::function<void()> work, done;
  };
  auto* const job = new Job{.work = std::move(work), .done = std::move(done)};
  job->request.data = job;
  uv_queue_work(
      &loop_, &job->request, [](uv_work_t* r) { static_cast<Job*>(r->data)->work(); },
      [](uv_work_t* r, int) {
        const std::unique_ptr<Job> ended(static_cast<Job*>(r->data));
        ended->work = nullptr;
        ended->done();
      });
}

void SocketLoop::listen(Descriptor socket) {
  auto* const l = new Listener{.loop = this, .fd = std::move(socket)};
  uv_poll_init(&loop_, &l->poll, l->fd.get());
  l->poll.data = l;
  listeners_.push_back(l);
  uv_poll_start(&l->poll, UV_READABLE, [](uv_poll_t* poll, int, int) {
    auto* const self = static_cast<Listener*>(poll->data);
    self->loop->accept_some(*self);
  });
}

void SocketLoop::stop_listening() {
  accepting_ = false;
  uv_timer_stop(&retry_);
  for (Listener* const l : listeners_) {
    uv_close(reinterpret_cast<uv_handle_t*>(&l->poll),
             [](uv_handle_t* h) { delete static_cast<Listener*>(h->data); });
    l->fd.reset();
  }
  listeners_.clear();
}

void SocketLoop::accept_some(Listener& l) {
  for (u32 i = 0; i < kMessagesAtOnce && accepting_; ++i) {
    Descriptor fd(::accept4(l.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd.get() >= 0) {
      take_client(std::move(fd));
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if ((errno == EMFILE || errno == ENFILE) && reserve_.get() >= 0) {
      refuse_without_descriptor(l);
      continue;
    }
    // Out of memory, or even the reserve could not be had again: later.
    events_.refused("system");
    for (Listener* const each : listeners_) uv_poll_stop(&each->poll);
    retry_.data = this;
    uv_timer_start(
        &retry_,
        [](uv_timer_t* t) {
          auto* const self = static_cast<SocketLoop*>(t->data);
          if (self->reserve_.get() < 0)
            self->reserve_ = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
          for (Listener* const each : self->listeners_)
            uv_poll_start(&each->poll, UV_READABLE, each->poll.poll_cb);
        },
        kRetryMs, 0);
    return;
  }
}

void SocketLoop::refuse_without_descriptor(Listener& l) {
  reserve_.reset();
  {
    Descriptor fd(::accept4(l.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd.get() >= 0) {
      static_cast<void>(send_message(fd.get(), refusal_message(EMFILE, "", 0, false), -1));
      events_.refused("descriptors");
      Peer peer;
      int error = 0;
      const bool known = read_peer(fd.get(), peer, error);
      close_for(known ? peer.uid : ~uid_t{0}, std::move(fd));
    }
  }
  reserve_ = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

void SocketLoop::take_client(Descriptor fd) {
  Peer peer;
  int error = 0;
  const SocketId id = events_.next();
  const bool known = read_peer(fd.get(), peer, error);
  const uid_t user = known ? peer.uid : ~uid_t{0};
  if (!known) {
    events_.refused("peer");
  } else if (error = events_.connect(id, std::move(peer)); error == 0) {
    if (add(std::move(fd), id, user, true, error) != nullptr) return;
    events_.closed(id);
    events_.refused("system");
    return;
  }
  static_cast<void>(send_message(fd.get(), refusal_message(error, "", 0, false), -1));
  ::shutdown(fd.get(), SHUT_WR);
  close_for(user, std::move(fd));
}

}  // namespace doorbell::qdma::daemon
