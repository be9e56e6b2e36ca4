// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/dropin/library/connection.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cxi/model/spec.hpp"
#include "system/passed_files.hpp"

namespace doorbell::cxi::dropin {

namespace {

constexpr int kAnswerSeconds = 60;

std::mutex& global() {
  static auto* const mutex = new std::mutex;  // calls may come after static objects have gone
  return *mutex;
}

}  // namespace

void complain(const std::string& text) {
  static auto* const said = new std::set<std::string>;
  const std::scoped_lock lock(global());
  if (said->insert(text).second) std::fprintf(stderr, "libcxi.so.1 (doorbell): %s\n", text.c_str());
}

// --- pages -------------------------------------------------------------------------------------------------

int OwnPages::make(u64 bytes, bool shared) {
  int error = 0;
  if (shared) file_ = sealed_file(bytes, error);
  if (error != 0) return error;
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file_.get(), 0);
  if (at == MAP_FAILED) return -errno;
  data_ = static_cast<u8*>(at);
  bytes_ = bytes;
  return 0;
}

OwnPages::~OwnPages() {
  if (data_ != nullptr) (void)::munmap(data_, bytes_);
}

// --- requests ----------------------------------------------------------------------------------------------

Ask::Ask(Connection& connection, Call call, std::initializer_list<u64> arguments) : connection_(connection) {
  request_.call = call;
  u32 i = 0;
  for (const u64 a : arguments) request_.argument[i++] = a;
}

void Ask::memory(u32 which, const OwnPages& pages) {
  SharedMemory& m = request_.memory[which];
  m.address = reinterpret_cast<u64>(pages.data());
  m.bytes = pages.bytes();
  if (!connection_.remote()) return;
  m.first = static_cast<u32>(files_.size());
  m.pieces = 1;
  request_.piece[m.first] = {0, pages.bytes()};
  files_.push_back(pages.file());
}

int Ask::memory(u32 which, u64 address, u64 bytes, const char* call) {
  SharedMemory& m = request_.memory[which];
  m.address = address;
  m.bytes = bytes;
  if (!connection_.remote()) return 0;
  std::vector<SharedPart> parts;
  std::string why;
  if (const int error = connection_.share(address, bytes, parts, why); error != 0) {
    complain(std::string(call) + ": " + why);
    return error;
  }
  // Room for one piece stays, for pages of the library.
  if (files_.size() + parts.size() >= kMaxPieces) {
    complain(std::string(call) + ": the memory lies in too many pieces");
    return -ENOMEM;
  }
  m.first = static_cast<u32>(files_.size());
  m.pieces = static_cast<u32>(parts.size());
  for (const SharedPart& p : parts) {
    request_.piece[files_.size()] = {p.offset, p.bytes};
    files_.push_back(p.file);
  }
  return 0;
}

Reply Ask::send() {
  return connection_.ask(request_, files_);
}

// --- the connection ----------------------------------------------------------------------------------------

int Connection::of_this_process(std::shared_ptr<Connection>& out) {
  // Never destroyed: the program may call until its very end.
  static auto* const kept = new std::shared_ptr<Connection>;
  const std::scoped_lock lock(global());
  // A child has the parent's Cassini, but none of its threads, nor may it speak for it.
  if (*kept && (*kept)->process_ != ::getpid()) {
    (*kept)->socket_.reset();
    (void)new std::shared_ptr<Connection>(std::move(*kept));
  }
  if (!*kept) {
    std::shared_ptr<Connection> made(new Connection);
    if (const int error = made->open(); error != 0) return error;
    *kept = std::move(made);
  }
  out = *kept;
  return 0;
}

int Connection::open() {
  const char* const path = std::getenv(kServerVariable);
  if (path != nullptr && *path != '\0') {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (std::strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
    std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const timeval limit{kAnswerSeconds, 0};
    if (socket.get() < 0 || ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
        ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return -errno;
    socket_ = std::move(socket);
  } else {
    const char* const spec = std::getenv(kModelVariable);
    try {
      ModelConfig config =
          parse_model_spec(spec != nullptr && *spec != '\0' ? spec : "cxi-model0", kModelVariable);
      config.fit({});
      nic_ = std::make_unique<Nic>(config);
      client_ = std::make_unique<Client>(*nic_, false);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "libcxi.so.1 (doorbell): %s\n", e.what());
      return -ENODEV;
    }
  }
  Request request;
  request.call = Call::hello;
  request.argument[0] = kProtocol;
  const Reply reply = ask(request, {});
  nid_ = static_cast<u32>(reply.value[0]);
  pid_bits_ = static_cast<u32>(reply.value[1]);
  return reply.result;
}

int Connection::share(u64 address, u64 bytes, std::vector<SharedPart>& parts, std::string& why) {
  const std::scoped_lock lock(mutex_);
  return sharing_.share(address, bytes, parts, why);
}

Reply Connection::ask(const Request& request, std::span<const int> files) {
  const std::scoped_lock lock(mutex_);
  Reply reply;
  if (process_ != ::getpid()) {
    reply.result = -ENODEV;
    return reply;
  }
  if (client_) {
    std::vector<Descriptor> mine;
    for (const int fd : files) mine.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    return client_->answer(request, mine);
  }
  if (const int error = exchange(request, files, reply); error != 0) {
    if (socket_.get() >= 0)
      std::fprintf(stderr, "libcxi.so.1 (doorbell): the server of %s does not answer\n", kServerVariable);
    ::shutdown(socket_.get(), SHUT_RDWR);
    reply = {};
    reply.result = error;
  }
  return reply;
}

int Connection::exchange(const Request& request, std::span<const int> files, Reply& reply) {
  alignas(cmsghdr) std::array<u8, CMSG_SPACE(kMaxPieces * sizeof(int))> room;
  iovec part{const_cast<Request*>(&request), sizeof request};
  msghdr m{};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  pass_files(m, files, room);
  ssize_t n = -1;
  do n = ::sendmsg(socket_.get(), &m, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(sizeof request)) return -ENODEV;
  do n = ::recv(socket_.get(), &reply, sizeof reply, 0);
  while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(sizeof reply) ? 0 : -ENODEV;
}

}  // namespace doorbell::cxi::dropin
