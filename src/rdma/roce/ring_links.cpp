// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/ring_links.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "rdma/roce/names.hpp"
#include "system/clock.hpp"
#include "system/passed_files.hpp"

namespace doorbell::roce {

namespace {

constexpr u64 kListener = 0, kWatched = 1, kOther = 2;
constexpr int kAcceptedAtOnce = 64;

struct Name {
  sockaddr_un address{};
  socklen_t size = 0;

  explicit Name(Endpoint e) {
    address.sun_family = AF_UNIX;
    // An abstract name, which begins with a zero, is gone with its socket, and belongs to a network namespace
    // as the address does.
    const std::string text = "doorbell-roce/" + name_of(e);
    std::memcpy(address.sun_path + 1, text.data(), text.size());
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

bool of_this_user(int socket) {
  ucred other{};
  socklen_t size = sizeof other;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

constexpr u32 kReadable = EPOLLIN | EPOLLRDHUP;

bool add_to_epoll(int epoll, int fd, u64 id, u32 events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/// Only an eventfd goes into epoll, which asks a file whether it is readable: others may be slow to say so.
bool is_eventfd(int fd) {
  std::array<char, 64> target{};
  const std::string name = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = readlink(name.c_str(), target.data(), target.size());
  return n > 0 && std::string_view(target.data(), static_cast<std::size_t>(n)) == "anon_inode:[eventfd]";
}

}  // namespace

bool OpenDescriptors::add(int fd) {
  for (std::atomic<int>& place : plus_one_) {
    if (place.load(std::memory_order_relaxed) != 0) continue;
    place.store(fd + 1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void OpenDescriptors::remove(int fd) {
  for (std::atomic<int>& place : plus_one_)
    if (place.load(std::memory_order_relaxed) == fd + 1) return place.store(0, std::memory_order_relaxed);
}

void OpenDescriptors::close_all() {
  for (std::atomic<int>& place : plus_one_)
    if (const int fd = place.exchange(0, std::memory_order_relaxed) - 1; fd >= 0) ::close(fd);
}

ListedDescriptor::ListedDescriptor(Descriptor fd, OpenDescriptors& list) : fd_(std::move(fd)), list_(&list) {
  if (fd_.get() >= 0 && !list.add(fd_.get())) fd_.reset();
}

ListedDescriptor::ListedDescriptor(ListedDescriptor&& other) noexcept
    : fd_(std::move(other.fd_)), epoll_(other.epoll_), list_(other.list_) {}

ListedDescriptor& ListedDescriptor::operator=(ListedDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::move(other.fd_);
    epoll_ = other.epoll_;
    list_ = other.list_;
  }
  return *this;
}

bool ListedDescriptor::watch(int epoll, u64 id, u32 events) {
  if (!add_to_epoll(epoll, fd_.get(), id, events)) return false;
  epoll_ = epoll;
  return true;
}

void ListedDescriptor::reset() {
  if (fd_.get() < 0) return;
  if (epoll_ >= 0) epoll_ctl(epoll_, EPOLL_CTL_DEL, fd_.get(), nullptr);
  epoll_ = -1;
  list_->remove(fd_.get());
  fd_.reset();
}

RingLinks::RingLinks(const Options& options, OpenDescriptors& descriptors)
    : options_(options), descriptors_(descriptors) {
  const std::string what = "address " + name_of(options.self);
  epoll_ = ListedDescriptor(Descriptor(epoll_create1(EPOLL_CLOEXEC)), descriptors_);
  spare_ = ListedDescriptor(Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)), descriptors_);
  if (epoll_.get() < 0 || spare_.get() < 0)
    throw Error(what, std::string("no descriptor: ") + std::strerror(errno),
                "raise the limit of open files (ulimit -n)");
  if (!options.listen) return;
  listener_ = ListedDescriptor(Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
                               descriptors_);
  if (listener_.get() < 0)
    throw Error(what, std::string("no local socket: ") + std::strerror(errno),
                "raise the limit of open files (ulimit -n)");
  const Name name(options.self);
  if (bind(listener_.get(), name.get(), name.size) != 0 || listen(listener_.get(), 128) != 0 ||
      !listener_.watch(epoll_.get(), kListener, kReadable))
    throw Error(what,
                errno == EADDRINUSE ? std::string("another NIC of doorbell has it")
                                    : std::string("no local socket: ") + std::strerror(errno),
                "choose another address or port");
}

void RingLinks::watch(int fd) {
  if (!add_to_epoll(epoll_.get(), fd, kWatched, kReadable))
    throw Error("a NIC's socket", std::strerror(errno));
}

void RingLinks::watch_also(int fd) {
  // Level-triggered: a look of another thread takes nothing from the one that sleeps.
  if (!add_to_epoll(epoll_.get(), fd, kOther, EPOLLIN)) throw Error("a NIC's thread", std::strerror(errno));
}

void RingLinks::watch_writable(int fd, bool on) {
  epoll_event event{};
  event.events = on ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = kWatched;
  static_cast<void>(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event));
}

void RingLinks::look(bool asleep) {
  std::array<epoll_event, 64> events;
  watched_readable_ = false;
  const int n = epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < n; ++i) {
    const u64 id = events[static_cast<std::size_t>(i)].data.u64;
    if (id == kListener) {
      accept_all();
      continue;
    }
    if (id == kWatched) {
      watched_readable_ = true;
      continue;
    }
    if (id == kOther) continue;
    for (const auto& ring : incoming_) {
      if (ring->id == (id | 1) - 1 && asleep) ring->reader.ask_for_wake();
      if (ring->id == id && !ring->closed() && !drain(ring->socket)) close(*ring, false);
    }
    for (const auto& ring : outgoing_)
      if (ring->id == id && !ring->gone && !drain(ring->socket)) {
        ring->gone = true;
        ring->socket.reset();
        counts_.closed.add();
      }
  }
  if (pending_.empty()) return;
  const u64 now = wall_ns();
  std::erase_if(pending_, [&](Pending& p) {
    const Hello hello = take_hello(p);
    if (hello == Hello::not_yet && now - p.since_ns < kHelloNs) return false;
    if (hello != Hello::taken) counts_.refused.add();
    return true;
  });
}

void RingLinks::accept_all() {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() < 0 && (errno == EMFILE || errno == ENFILE)) {
      // One that is not taken would have whoever sleeps on descriptor() wake for ever.
      spare_.reset();
      Descriptor(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
      spare_ = ListedDescriptor(Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)), descriptors_);
      counts_.refused.add();
      return;
    }
    if (socket.get() < 0) return;
    if (!of_this_user(socket.get()) || incoming_.size() >= kMostIncoming) {
      counts_.refused.add();
      continue;
    }
    ListedDescriptor listed(std::move(socket), descriptors_);
    const u64 id = next_id_;
    next_id_ += 2;
    if (listed.get() < 0 || !listed.watch(epoll_.get(), id, kReadable)) {
      counts_.refused.add();
      continue;
    }
    if (pending_.size() == kMostPending) {
      pending_.erase(pending_.begin());
      counts_.refused.add();
    }
    pending_.push_back({.id = id, .socket = std::move(listed), .since_ns = wall_ns()});
  }
}

RingLinks::Hello RingLinks::take_hello(Pending& pending) {
  struct {
    RingHello hello;
    u8 more = 0;
  } message;
  iovec piece{&message, sizeof message.hello + 1};
  alignas(cmsghdr) std::array<u8, CMSG_SPACE(4 * sizeof(int))> room;
  msghdr m{};
  m.msg_iov = &piece;
  m.msg_iovlen = 1;
  m.msg_control = room.data();
  m.msg_controllen = room.size();
  const ssize_t n = recvmsg(pending.socket.get(), &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? Hello::not_yet : Hello::refused;
  std::array<Descriptor, 4> files;
  std::size_t count = 0;
  take_files(m, [&](Descriptor file) {
    if (count < files.size()) files[count] = std::move(file);
    ++count;
  });
  const RingHello& hello = message.hello;
  const Endpoint source{.address = hello.source_address, .port = hello.source_port};
  const Endpoint destination{.address = hello.destination_address, .port = hello.destination_port};
  RingMemory memory;
  if (n != sizeof hello || count != 2 || (m.msg_flags & MSG_CTRUNC) != 0 ||
      hello.magic != RingHello::kMagic || hello.version != RingHello{}.version ||
      destination != options_.self || source.address == 0 || incoming_.size() >= kMostIncoming ||
      !memory.adopt(files[0], hello.ring_bytes) || !is_eventfd(files[1].get()))
    return Hello::refused;
  ListedDescriptor wakes(std::move(files[1]), descriptors_);
  if (wakes.get() < 0 || !wakes.watch(epoll_.get(), pending.id + 1, EPOLLIN | EPOLLET)) return Hello::refused;
  incoming_.push_back(std::make_unique<Incoming>(Incoming{.id = pending.id,
                                                          .socket = std::move(pending.socket),
                                                          .wakes = std::move(wakes),
                                                          .source = source,
                                                          .icrc = hello.icrc == 1,
                                                          .reader = RingReader(std::move(memory))}));
  // Somebody may sleep who armed the other rings before this one was there.
  incoming_.back()->reader.ask_for_wake();
  counts_.accepted.add();
  return Hello::taken;
}

bool RingLinks::drain(const ListedDescriptor& socket) {
  // A bound for one that sends without end; what is left is found by the next look.
  for (int i = 0; i < 256; ++i) {
    std::array<u8, 2> bytes;
    const ssize_t n = recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n == 1) continue;
    return n < 0 && (errno == EAGAIN || errno == EINTR);
  }
  return true;
}

RingLinks::Outgoing* RingLinks::connect(Endpoint peer) {
  ListedDescriptor socket(Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
                          descriptors_);
  const Name name(peer);
  if (socket.get() < 0 || ::connect(socket.get(), name.get(), name.size) != 0 || !of_this_user(socket.get()))
    return nullptr;
  RingMemory memory;
  Descriptor file;
  ListedDescriptor wakes(Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), descriptors_);
  if (wakes.get() < 0 || !memory.make(options_.ring_bytes, file)) return nullptr;
  RingHello hello{.icrc = options_.icrc ? 1U : 0U,
                  .ring_bytes = options_.ring_bytes,
                  .source_address = options_.self.address,
                  .destination_address = peer.address,
                  .source_port = options_.self.port,
                  .destination_port = peer.port};
  iovec piece{&hello, sizeof hello};
  msghdr m{};
  m.msg_iov = &piece;
  m.msg_iovlen = 1;
  alignas(cmsghdr) std::array<u8, CMSG_SPACE(2 * sizeof(int))> room{};
  const std::array<int, 2> files{file.get(), wakes.get()};
  pass_files(m, files, room);
  const u64 id = next_id_;
  next_id_ += 2;
  if (sendmsg(socket.get(), &m, MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof hello ||
      !socket.watch(epoll_.get(), id, kReadable))
    return nullptr;
  outgoing_.push_back(std::make_unique<Outgoing>(Outgoing{.id = id,
                                                          .socket = std::move(socket),
                                                          .wakes = std::move(wakes),
                                                          .writer = RingWriter(std::move(memory))}));
  counts_.opened.add();
  return outgoing_.back().get();
}

void RingLinks::disconnect(Outgoing& ring) {
  std::erase_if(outgoing_, [&](const auto& r) { return r.get() == &ring; });
}

void RingLinks::wake_reader(const Outgoing& ring) {
  const u64 one = 1;
  static_cast<void>(!write(ring.wakes.get(), &one, sizeof one));
  counts_.wakes.add();
}

void RingLinks::wake_writer(const Incoming& ring) {
  if (ring.closed()) return;
  const u8 byte = 0;
  // A full socket holds enough of them.
  static_cast<void>(send(ring.socket.get(), &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL));
  counts_.wakes.add();
}

void RingLinks::close(Incoming& ring, bool read_to_end) {
  if (!ring.closed()) counts_.closed.add();
  ring.socket.reset();
  ring.wakes.reset();
  ring.read_to_end = ring.read_to_end || read_to_end;
  any_closed_ = true;
}

void RingLinks::forget() {
  if (!any_closed_) return;
  std::erase_if(incoming_, [](const auto& ring) { return ring->closed() && ring->read_to_end; });
  any_closed_ = std::ranges::any_of(incoming_, [](const auto& ring) { return ring->closed(); });
}

}  // namespace doorbell::roce
