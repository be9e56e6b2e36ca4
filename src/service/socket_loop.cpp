// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/socket_loop.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::service {

namespace {

/// Messages of one socket before others have their turn, and those of all sockets of a user.
constexpr u32 kMessagesAtOnce = 16, kMessagesOfUser = 64;
/// How long a loop waits before it looks again at what no event reports: room in the process, and whether a
/// user's files have been closed.
constexpr u64 kAgainNs = 20'000'000, kAcceptAgainNs = 100'000'000;
/// Sockets count from 1; what is watched has numbers of its own.
constexpr u64 kWatched = u64{1} << 63, kMail = kWatched;

Descriptor open_reserve() {
  return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

SocketLoop::Mailbox::Mailbox() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_.get() < 0) throw Error("event descriptor", reason(errno));
}

void SocketLoop::Mailbox::post(std::function<void()> what) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = letters_.empty();
    letters_.push_back(std::move(what));
  }
  const u64 one = 1;
  // The first letter wakes the loop, which then takes all.
  if (first) static_cast<void>(!::write(wake_.get(), &one, sizeof one));
}

std::vector<std::function<void()>> SocketLoop::Mailbox::take() {
  u64 rung = 0;
  static_cast<void>(!::read(wake_.get(), &rung, sizeof rung));
  std::vector<std::function<void()>> out;
  const std::lock_guard lock(mutex_);
  out.swap(letters_);
  return out;
}

SocketLoop::SocketLoop(const LoopOptions& options)
    : options_(options),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      reserve_(open_reserve()),
      next_watch_(kMail),
      workers_(options.workers, "worker") {
  if (epoll_.get() < 0) throw Error("epoll", reason(errno));
  watch(mail_->fd(), [this] { open_mail(); });
}

SocketLoop::~SocketLoop() {
  stop_listening();
  while (!sockets_.empty()) remove(sockets_.begin()->first);
}

void SocketLoop::watch(int fd, std::function<void()> ready) {
  const u64 id = next_watch_++;
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &e) != 0) throw Error("epoll", reason(errno));
  watched_[id] = std::move(ready);
}

void SocketLoop::open_mail() {
  for (const auto& letter : mail_->take()) letter();
}

void SocketLoop::stop() {
  stop_ = true;
  post([] {});
}

int SocketLoop::wait_ms() const {
  u64 until = timers_.empty() ? kNever : timers_.begin()->first;
  const u64 now = wall_ns();
  for (const u64 again : {look_again_ns_, accept_again_ns_})
    if (again != 0) until = std::min(until, again);
  if (until == kNever) return -1;
  return until <= now ? 0 : static_cast<int>(std::min<u64>((until - now) / 1'000'000 + 1, 1'000'000));
}

void SocketLoop::run() {
  std::array<epoll_event, 64> events{};
  while (!stop_) {
    const int n = ::epoll_wait(epoll_.get(), events.data(), events.size(), wait_ms());
    ++round_;
    run_timers();
    for (int i = 0; i < n && !stop_; ++i)
      handle(events[static_cast<u32>(i)].data.u64, events[static_cast<u32>(i)].events);
    if (look_again_ns_ != 0 && wall_ns() >= look_again_ns_) {
      look_again_ns_ = 0;
      for (auto& [id, s] : sockets_)
        if (s.full) update(s);
    }
    if (accept_again_ns_ != 0 && wall_ns() >= accept_again_ns_) {
      accept_again_ns_ = 0;
      if (reserve_.get() < 0) reserve_ = open_reserve();
      set_listening(true);
    }
  }
}

void SocketLoop::run_timers() {
  const u64 now = wall_ns();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    Timer& t = *timers_.begin()->second;
    t.stop();
    t.what_();
  }
}

void SocketLoop::handle(u64 id, u32 events) {
  if (id >= kWatched) {
    // An event before it may have ended the listening.
    if (const auto w = watched_.find(id); w != watched_.end()) w->second();
    return;
  }
  Socket* s = find(id);
  if (s == nullptr || s->away) return;
  if ((events & EPOLLOUT) != 0) {
    flush(*s);
    s = find(id);
    if (s == nullptr) return;
  }
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable(id);
}

SocketLoop::Socket* SocketLoop::find(SocketId id) {
  const auto s = sockets_.find(id);
  return s == sockets_.end() ? nullptr : &s->second;
}

std::shared_ptr<SocketLoop::Turn> SocketLoop::turn_of(uid_t user) {
  std::erase_if(turns_, [](const auto& t) { return t.second.expired(); });
  std::weak_ptr<Turn>& known = turns_[user];
  auto turn = known.lock();
  if (!turn) known = turn = std::make_shared<Turn>(Turn{.user = user});
  return turn;
}

int SocketLoop::add(Descriptor fd, SocketId id, uid_t user, const Front& front) {
  epoll_event e{};
  e.events = EPOLLIN | EPOLLRDHUP;
  e.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &e) != 0) {
    const int error = errno;
    close_for(user, std::move(fd));
    return error;
  }
  room_.used(1);
  Socket& s = sockets_[id];
  s.id = id;
  s.fd = std::move(fd);
  s.kind = front.kind;
  s.protocol = front.protocol;
  s.turn = turn_of(user);
  s.events = e.events;
  return 0;
}

void SocketLoop::remove(SocketId id) {
  const auto node = sockets_.extract(id);
  const Socket& s = node.mapped();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, s.fd.get(), nullptr);
  // The other end finds that out before it is closed. Messages in it may have files of the client's.
  ::shutdown(s.fd.get(), SHUT_RDWR);
  // A closer that takes a message from it closes it behind that.
  close_for(s.turn->user, std::move(node.mapped().fd));
}

void SocketLoop::lose(SocketId id) {
  Protocol& protocol = *sockets_.at(id).protocol;
  remove(id);
  protocol.closed(id);
}

void SocketLoop::update(Socket& s) {
  s.full = is_full(s.turn->user);
  if (s.full && look_again_ns_ == 0) look_again_ns_ = wall_ns() + kAgainNs;
  u32 events = 0;
  const bool read = is_read(s);
  if (read) events |= EPOLLIN;
  if (!s.unsent.empty()) events |= EPOLLOUT;
  // Without events, still whether the other end has gone.
  if (read || !s.half_closed) events |= EPOLLRDHUP;
  if (s.away || events == s.events) return;
  epoll_event e{};
  e.events = s.events = events;
  e.data.u64 = s.id;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, s.fd.get(), &e);
}

void SocketLoop::readable(SocketId id) {
  for (u32 i = 0; i < kMessagesAtOnce; ++i) {
    Socket* const s = find(id);
    if (s == nullptr || s->away) return;
    if (!is_taken(*s)) break;
    Turn& turn = *s->turn;
    if (turn.round != round_) turn.round = round_, turn.taken = 0;
    if (turn.taken >= kMessagesOfUser) return;
    ++turn.taken;
    if (is_full(turn.user)) {
      update(*s);
      break;
    }
    const Next next = take_one(*s);
    if (next == Next::gone) return lose(id);
    if (next == Next::none) return;
  }
  look_whether_gone(id);
}

void SocketLoop::look_whether_gone(SocketId id) {
  Socket* const s = find(id);
  if (s == nullptr || s->away || is_read(*s)) return;
  std::array<u8, 1> byte{};
  const ssize_t n = ::recv(s->fd.get(), byte.data(), 1, MSG_PEEK | MSG_DONTWAIT);
  const int error = errno;
  // With both directions shut down nobody waits for a reply, whatever messages are left.
  pollfd state{s->fd.get(), POLLRDHUP, 0};
  if (::poll(&state, 1, 0) != 1) state.revents = 0;
  if (n == 0 || (state.revents & POLLHUP) != 0 || (n < 0 && error != EAGAIN && error != EINTR))
    return lose(id);
  // It sends no more, with messages left; the kernel would report that again and again.
  s->half_closed = s->half_closed || (state.revents & POLLRDHUP) != 0;
  update(*s);
}

/// Takes what there is of one message: its header, then the rest of it. Descriptors belong to the message of
/// the bytes that they come with, so no more is read than that.
SocketLoop::Next SocketLoop::take_of_stream(Socket& s) {
  // The kernel would close in this thread all that has no room in this process.
  if (!room_.has(kMostFiles) && next_has_files(s.fd.get())) {
    s.protocol->refused("descriptors");
    return Next::gone;
  }
  if (s.partial.empty()) s.partial.resize(s.kind.stream->header), s.have = 0;
  int flags = 0;
  const std::size_t files = s.files.size();
  const ssize_t n = receive(s.fd.get(), std::span(s.partial).subspan(s.have), flags, [&](Descriptor file) {
    s.files.emplace_back(std::move(file), closers_, s.turn->user);
  });
  if (n <= 0) return n == -EAGAIN ? Next::none : Next::gone;
  room_.used(s.files.size() - files);
  s.have += static_cast<std::size_t>(n);
  const bool lost = (flags & MSG_CTRUNC) != 0 || s.files.size() > kMostFiles;
  s.broken = lost;
  if (!lost && s.have < s.partial.size()) return Next::more;
  if (!lost && !s.sized) {
    const std::size_t length = s.kind.stream->length(s.partial, s.kind.longest);
    s.broken = length < s.have || length > s.kind.longest;
    s.sized = true;
    if (!s.broken && length > s.have) {
      s.partial.resize(length);
      return Next::more;
    }
  }
  const std::vector<u8> bytes = std::exchange(s.partial, {});
  s.sized = false;
  deliver(s, {.bytes = std::span(bytes).first(s.have),
              .files = std::exchange(s.files, {}),
              .truncated = s.broken,
              .lost = lost});
  return Next::more;
}

SocketLoop::Next SocketLoop::take_one(Socket& s) {
  if (s.kind.stream) return take_of_stream(s);
  // Files that find no room the kernel closes in the thread that reads: that is another one then.
  if (!room_.has(kMostFiles) && next_has_files(s.fd.get())) {
    take_by_closer(s);
    return Next::none;
  }
  std::array<u8, kLongest> space;
  Message m;
  switch (take_message(s.fd.get(), std::span(space).first(s.kind.longest), closers_, s.turn->user, m)) {
    case Taken::nothing:
      return Next::none;
    case Taken::closed:
      return Next::gone;
    case Taken::message:
      break;
  }
  room_.used(m.files.size());
  deliver(s, std::move(m));
  return Next::more;
}

void SocketLoop::take_by_closer(Socket& s) {
  struct Job {
    std::array<u8, kLongest> space;
    Message message;
    Taken taken = Taken::nothing;
  };
  auto job = std::make_shared<Job>();
  s.away = true;
  // Whether it has gone meanwhile the kernel would report again and again.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, s.fd.get(), nullptr);
  s.events = 0;
  // The number stays this socket's: it is closed by the same thread, after this.
  closers_->run(s.turn->user, [job, fd = s.fd.get(), longest = s.kind.longest, user = s.turn->user, id = s.id,
                               closers = std::weak_ptr(closers_), mail = mail_, this] {
    const auto still = closers.lock();
    job->taken = take_message(fd, std::span(job->space).first(longest), still, user, job->message);
    mail->post([this, job, id] {
      Socket* const back = find(id);
      if (back == nullptr) return;
      back->away = false;
      epoll_event e{};
      e.data.u64 = id;
      if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, back->fd.get(), &e) != 0 || job->taken == Taken::closed)
        return lose(id);
      if (job->taken == Taken::message) deliver(*back, std::move(job->message));
      if (Socket* const there = find(id)) update(*there);
    });
  });
}

void SocketLoop::deliver(Socket& s, Message m) {
  // The socket may be gone when the protocol returns.
  Protocol& protocol = *s.protocol;
  const SocketId id = s.id;
  try {
    protocol.message(id, std::move(m));
  } catch (const std::bad_alloc&) {
    protocol.refused("memory");
    if (find(id) != nullptr) lose(id);
  }
}

void SocketLoop::send(SocketId to, std::vector<u8> message, Descriptor with) {
  Socket* const s = find(to);
  if (s == nullptr) return;
  s->unsent.push_back({std::move(message), std::move(with)});
  if (s->unsent.size() == 1) flush(*s);
  else if (s->unsent.size() == s->kind.most_unsent) update(*s);  // it is not read any more
}

void SocketLoop::flush(Socket& s) {
  while (!s.unsent.empty()) {
    Outgoing& first = s.unsent.front();
    std::size_t sent = 0;
    const int error = send_message(s.fd.get(), std::span(first.bytes).subspan(first.sent),
                                   first.sent == 0 ? first.with.get() : -1, &sent);
    if (error == EAGAIN || error == ENOBUFS || error == ENOMEM) break;
    if (error == 0 && s.kind.stream && (first.sent += sent) < first.bytes.size()) continue;
    if (error != 0) {
      // The other end has gone, or may have no more descriptors on their way: its next read finds the end.
      ::shutdown(s.fd.get(), SHUT_RDWR);
      s.unsent.clear();
      break;
    }
    s.unsent.pop_front();
  }
  if (s.finishing && s.unsent.empty()) finish(s.id);
  else update(s);
}

void SocketLoop::finish(SocketId id) {
  Socket* const s = find(id);
  if (s == nullptr) return;
  s->finishing = true;
  if (!s->unsent.empty()) return update(*s);
  // The caller may be in the middle of a message of it.
  post([this, id] {
    if (find(id) != nullptr) lose(id);
  });
}

Descriptor SocketLoop::open_pair(SocketId id, uid_t user, int& error) {
  return open_pair(id, user, error, {protocol_, options_.pairs});
}

Descriptor SocketLoop::open_pair(SocketId id, uid_t user, int& error, const Front& front) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    error = errno;
    return {};
  }
  Descriptor other(ends[1]);
  error = add(Descriptor(ends[0]), id, user, front);
  if (error != 0) other.reset();
  return other;
}

void SocketLoop::close(SocketId id) {
  Socket* const s = find(id);
  if (s == nullptr) return;
  // Messages that still wait after this are for a client that does not read. The quotas count the socket no
  // longer, so it goes.
  flush(*s);
  if (find(id) != nullptr) remove(id);
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
  workers_.post([mail = mail_, work = std::move(work), done = std::move(done)]() mutable {
    try {
      work();
    } catch (const std::bad_alloc&) {
      // Its result says so unless it has been set.
    }
    work = nullptr;
    mail->post(std::move(done));
  });
}

u64 SocketLoop::listen(Descriptor socket, const Front& front) {
  // Clients are strangers from now on.
  closers_->keep_thread();
  const int fd = socket.get();
  // The service manager's waits.
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  const u64 listener = next_watch_;
  listeners_.emplace_back(listener, std::move(socket));
  watch(fd, [this, fd, front] { accept_some(fd, front); });
  return listener;
}

void SocketLoop::stop_listening(u64 listener) {
  const auto it = std::ranges::find(listeners_, listener, &std::pair<u64, Descriptor>::first);
  if (it == listeners_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second.get(), nullptr);
  watched_.erase(listener);
  // Clients that wait there may have sent files already.
  close_for(kNobody, std::move(it->second));
  listeners_.erase(it);
}

void SocketLoop::set_listening(bool on) {
  for (const auto& [id, fd] : listeners_) {
    epoll_event e{};
    e.events = on ? u32{EPOLLIN} : 0u;
    e.data.u64 = id;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd.get(), &e);
  }
}

void SocketLoop::stop_listening() {
  accepting_ = false;
  accept_again_ns_ = 0;
  for (const auto& [id, fd] : listeners_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
  listeners_.clear();
}

void SocketLoop::pause_listening() {
  set_listening(false);
  accept_again_ns_ = wall_ns() + kAcceptAgainNs;
}

void SocketLoop::accept_some(int listener, const Front& front) {
  for (u32 i = 0; i < kMessagesAtOnce && accepting_; ++i) {
    Descriptor fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (fd.get() >= 0) {
      take_client(std::move(fd), front);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    if (errno == EMFILE || errno == ENFILE) refuse_without_descriptor(listener, *front.protocol);
    else front.protocol->refused("system");
    // The kernel would report the next one again and again while nothing is free.
    return pause_listening();
  }
}

void SocketLoop::refuse_without_descriptor(int listener, Protocol& protocol) {
  reserve_.reset();
  Descriptor fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (fd.get() >= 0) {
    if (const auto said = protocol.refusal(EMFILE); !said.empty())
      static_cast<void>(send_message(fd.get(), said, -1));
    protocol.refused("descriptors");
    const uid_t user = options_.owner(read_peer(fd.get()));
    close_for(user, std::move(fd));
  }
  reserve_ = open_reserve();
}

void SocketLoop::take_client(Descriptor fd, const Front& front) {
  int error = 0;
  const SocketId id = front.protocol->next_socket();
  std::optional<Peer> peer = read_peer(fd.get());
  const uid_t user = options_.owner(peer);
  if (!peer) {
    error = errno;
    front.protocol->refused("peer");
  } else if (!SpareMemory::there()) {
    error = ENOMEM;
    front.protocol->refused("memory");
  } else if (error = front.protocol->connect(id, *std::move(peer)); error == 0) {
    error = add(std::move(fd), id, user, front);
    if (error == 0) return;
    front.protocol->closed(id);
    front.protocol->refused("system");
    return;
  }
  if (const auto said = front.protocol->refusal(error); !said.empty())
    static_cast<void>(send_message(fd.get(), said, -1));
  ::shutdown(fd.get(), SHUT_WR);
  close_for(user, std::move(fd));
}

void Timer::start(u64 in_ns) {
  stop();
  at_ns_ = wall_ns() + in_ns;
  loop_.timers_.emplace(at_ns_, this);
}

void Timer::stop() {
  if (at_ns_ == 0) return;
  const auto [first, last] = loop_.timers_.equal_range(at_ns_);
  for (auto t = first; t != last; ++t) {
    if (t->second != this) continue;
    loop_.timers_.erase(t);
    break;
  }
  at_ns_ = 0;
}

}  // namespace doorbell::service
