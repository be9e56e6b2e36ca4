// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/dropin/server.hpp"

#include <doorbell/error.hpp>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <vector>

#include "system/passed_files.hpp"
#include "system/thread.hpp"

namespace doorbell::cxi::dropin {

Server::Server(const ModelConfig& config, const std::string& path)
    : nic_(config),
      listening_(service::listen_at(path, "socket", {.mode = 0600})),
      file_(path),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = make_thread("the server of the Cassini", [this] {
    pthread_setname_np(pthread_self(), "cxi-server");
    run();
  });
}

Server::~Server() {
  stop_.store(true, std::memory_order_release);
  const u64 one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

nlohmann::ordered_json Server::counts() {
  const std::scoped_lock lock(mutex_);
  auto j = nic_.counts();
  j["clients"] = accepted_;
  j["requests"] = requests_;
  j["refused"] = refused_;
  j["malformed"] = malformed_;
  return j;
}

std::size_t Server::connected() {
  const std::scoped_lock lock(mutex_);
  return clients_.size();
}

void Server::run() {
  std::vector<pollfd> waiting;
  while (!stop_.load(std::memory_order_acquire)) {
    waiting.assign({{wake_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}});
    // At the limit the others wait in the socket's queue.
    if (clients_.size() >= kMostClients) waiting[1].fd = -1;
    for (const auto& [fd, c] : clients_) waiting.push_back({fd, POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return;
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 2; i < waiting.size(); ++i) {
      if (waiting[i].revents == 0) continue;
      const auto at = clients_.find(waiting[i].fd);
      if (!serve(at->second)) clients_.erase(at);
    }
    if (waiting[1].fd >= 0 && (waiting[1].revents & POLLIN) != 0) accept_one();
  }
}

void Server::accept_one() {
  Connected c;
  c.socket = Descriptor(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (c.socket.get() < 0) {
    // Without a free descriptor the connection stays in the queue, and poll() would return at once.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) ::usleep(10'000);
    return;
  }
  c.client = std::make_unique<Client>(nic_, true);
  ++accepted_;
  const int fd = c.socket.get();
  clients_.emplace(fd, std::move(c));
}

bool Server::serve(Connected& c) {
  Request request;
  alignas(cmsghdr) std::array<u8, CMSG_SPACE(kMaxPieces * sizeof(int))> room;
  iovec part{&request, sizeof request};
  msghdr m{};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  m.msg_control = room.data();
  m.msg_controllen = room.size();
  const ssize_t n = ::recvmsg(c.socket.get(), &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  std::vector<Descriptor> files;
  take_files(m, [&](Descriptor file) { files.push_back(std::move(file)); });
  if (n == 0 && files.empty()) return false;
  ++requests_;
  if (n != static_cast<ssize_t>(sizeof request) || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
      (!c.greeted && request.call != Call::hello)) {
    ++malformed_;
    return false;
  }
  const Reply reply = c.client->answer(request, files);
  if (request.call == Call::hello && reply.result == 0) c.greeted = true;
  if (reply.result != 0) ++refused_;
  // A client waits for each answer, so there is room for it; one that does not is not waited for.
  return ::send(c.socket.get(), &reply, sizeof reply, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof reply);
}

}  // namespace doorbell::cxi::dropin
