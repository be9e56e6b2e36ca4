// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A client of the sockets of AMD's emulation, as slash/wire.hpp describes them, and a card that tests reach
// through it.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eventually.hpp"
#include "qdma/driver.hpp"
#include "qdma/slash/wire.hpp"
#include "system/descriptor.hpp"
#include "system/passed_files.hpp"

namespace doorbell::qdma::slash {

struct SlashReply {
  Header header;
  std::vector<u8> structure;
  Descriptor descriptor;

  template <class T>
  [[nodiscard]] T as() const {
    T out;
    EXPECT_EQ(structure.size(), sizeof out);
    std::memcpy(static_cast<void*>(&out), structure.data(), std::min(structure.size(), sizeof out));
    return out;
  }
};

/// Connected, or -1 with errno.
inline Descriptor connect_to(const std::string& path) {
  Descriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fd.reset();
  return fd;
}

template <class T>
std::vector<u8> bytes_of_structure(const T& structure) {
  const auto* const at = reinterpret_cast<const u8*>(&structure);
  return {at, at + sizeof structure};
}

/// One socket. A request waits for its reply.
class SlashClient {
 public:
  explicit SlashClient(Descriptor socket) : socket_(std::move(socket)) {}
  explicit SlashClient(const std::string& path) : SlashClient(connect_to(path)) {}
  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] bool connected() const { return socket_.get() >= 0; }
  void close() { socket_.reset(); }

  /// False if the other end has gone or takes nothing more.
  bool send_bytes(std::span<const u8> bytes, std::span<const int> files = {}) {
    iovec io{const_cast<u8*>(bytes.data()), bytes.size()};
    std::vector<std::max_align_t> room(CMSG_SPACE(files.size_bytes()) / sizeof(std::max_align_t) + 1);
    msghdr m{};
    m.msg_iov = &io;
    m.msg_iovlen = 1;
    pass_files(m, files, room);
    return sendmsg(socket_.get(), &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
  }
  bool send(u32 number, std::span<const u8> structure = {}, std::span<const int> files = {},
            std::optional<u32> sequence = {}) {
    const Header h{.number = number, .sequence = sequence.value_or(sequence_++)};
    std::vector<u8> bytes(sizeof h + structure.size());
    std::memcpy(bytes.data(), &h, sizeof h);
    if (!structure.empty()) std::memcpy(bytes.data() + sizeof h, structure.data(), structure.size());
    return send_bytes(bytes, files);
  }
  /// The next reply; empty when the other end has closed.
  std::optional<SlashReply> receive() {
    pollfd p{socket_.get(), POLLIN, 0};
    if (poll(&p, 1, static_cast<int>(doorbell::test::kWaitLimitS * 1000)) <= 0) {
      ADD_FAILURE() << "no reply";
      return std::nullopt;
    }
    std::vector<u8> bytes(kMaxMessage);
    iovec io{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    msghdr m{};
    m.msg_iov = &io;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(socket_.get(), &m, MSG_CMSG_CLOEXEC);
    if (n <= 0) return std::nullopt;
    SlashReply r;
    take_files(m, [&](Descriptor file) {
      EXPECT_LT(r.descriptor.get(), 0) << "more than one descriptor";
      r.descriptor = std::move(file);
    });
    if (static_cast<std::size_t>(n) < sizeof r.header) {
      ADD_FAILURE() << "a reply of " << n << " bytes";
      return std::nullopt;
    }
    std::memcpy(&r.header, bytes.data(), sizeof r.header);
    EXPECT_EQ(r.header.pad, 0u);
    r.structure.assign(bytes.begin() + sizeof r.header, bytes.begin() + n);
    if (r.header.result < 0) {
      EXPECT_LT(r.descriptor.get(), 0) << "a refusal with a descriptor";
    }
    return r;
  }
  SlashReply call_bytes(u32 number, std::span<const u8> structure = {}, std::span<const int> files = {}) {
    const u32 sequence = sequence_;
    if (!send(number, structure, files)) return gone();
    auto r = receive();
    if (!r) return gone();
    EXPECT_EQ(r->header.number, number);
    EXPECT_EQ(r->header.sequence, sequence);
    return std::move(*r);
  }
  template <class T>
  SlashReply call(u32 number, const T& structure, std::span<const int> files = {}) {
    return call_bytes(number, bytes_of_structure(structure), files);
  }
  template <class T>
  i64 result(u32 number, const T& structure, std::span<const int> files = {}) {
    return call(number, structure, files).header.result;
  }

  // The calls that a test of something else needs.
  [[nodiscard]] u32 queue_pair(const QpairAdd& add = {}) {
    const SlashReply r = call(kCallQpairAdd, add);
    EXPECT_EQ(r.header.result, 0);
    const u32 id = r.as<QpairAdd>().qid;
    EXPECT_EQ(result(kCallQpairOp, QpairOp{.qid = id, .op = 0}), 0);
    return id;
  }
  [[nodiscard]] SlashClient descriptor(u32 id) {
    SlashReply r = call(kCallQpairGetFd, QpairGetFd{.qid = id});
    EXPECT_EQ(r.header.result, 0);
    return SlashClient(std::move(r.descriptor));
  }
  [[nodiscard]] i64 transfer(Direction d, int buffer, u64 address, u64 bytes, u64 offset = 0) {
    Transfer t;
    t.count = 1;
    t.xfers[0] = {.direction = static_cast<u32>(d),
                  .buf_fd = 0,
                  .buf_offset = offset,
                  .dev_addr = address,
                  .length = bytes};
    return result(kCallTransfer, t, std::span(&buffer, 1));
  }

 private:
  /// As the vendor's client reports any fault of the socket.
  static SlashReply gone() {
    SlashReply r;
    r.header.result = -ENODEV;
    return r;
  }
  Descriptor socket_;
  u32 sequence_ = 0;
};

/// A client's buffer and its mapping.
class SlashBuffer {
 public:
  SlashBuffer(SlashClient& client, u64 bytes) : bytes_(bytes) {
    SlashReply r = client.call(kCallBufCreate, BufCreate{.length = bytes});
    EXPECT_EQ(r.header.result, 0);
    fd_ = std::move(r.descriptor);
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    EXPECT_NE(p, MAP_FAILED);
    data_ = p == MAP_FAILED ? nullptr : static_cast<u8*>(p);
  }
  ~SlashBuffer() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  SlashBuffer(const SlashBuffer&) = delete;
  SlashBuffer& operator=(const SlashBuffer&) = delete;
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] u8* data() const { return data_; }
  [[nodiscard]] std::span<u8> bytes() const { return {data_, bytes_}; }

 private:
  u64 bytes_;
  Descriptor fd_;
  u8* data_ = nullptr;
};

/// A card behind these sockets for what knows drivers only: the vendor's client library, as far as its calls
/// of a card go.
class SlashDriver final : public Driver {
 public:
  explicit SlashDriver(const std::string& path) : control_(path) {
    EXPECT_TRUE(control_.connected()) << path;
  }
  [[nodiscard]] std::string kind() const override { return "model"; }
  [[nodiscard]] std::string name() const override { return "slash"; }
  [[nodiscard]] bool descriptors_are_sockets() const override { return false; }
  [[nodiscard]] bool keeps_deadlines() const override { return false; }

  [[nodiscard]] CallResult call(int fd, u32 number, std::span<u8> structure, const CallOptions&) override {
    const std::lock_guard lock(mutex_);
    // Shorter structures come whole, and keep their own size in front.
    std::vector<u8> whole(structure.begin(), structure.end());
    whole.resize(std::max<std::size_t>(whole.size(), structure_size(number)));
    std::vector<int> files;
    if (number == kCallTransfer) {
      Transfer t;
      std::memcpy(&t, whole.data(), sizeof t);
      for (u32 i = 0; i < std::min(t.count, kMaxSubTransfers); ++i) {
        if (t.xfers[i].buf_fd < 0 || fcntl(t.xfers[i].buf_fd, F_GETFD) < 0) continue;
        files.push_back(t.xfers[i].buf_fd);
        t.xfers[i].buf_fd = static_cast<int>(files.size()) - 1;
      }
      std::memcpy(whole.data(), &t, sizeof t);
    }
    SlashClient& to = fd < 0 ? control_ : pairs_.at(fd);
    SlashReply r = to.call_bytes(number, whole, files);
    if (r.header.result >= 0 && number != kCallTransfer)
      std::copy_n(r.structure.begin(), std::min(structure.size(), r.structure.size()), structure.begin());
    if (r.descriptor.get() < 0) return {r.header.result, 0};
    if (number == kCallBufCreate) return {r.descriptor.release(), 0};
    const int pair = r.descriptor.get();
    pairs_.emplace(pair, std::move(r.descriptor));
    return {pair, 0};
  }
  void close(int fd) override {
    const std::lock_guard lock(mutex_);
    if (pairs_.erase(fd) == 0) ::close(fd);
  }

 private:
  std::mutex mutex_;
  SlashClient control_;
  std::map<int, SlashClient> pairs_;
};

}  // namespace doorbell::qdma::slash
