// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A client of a card server that sends what a test tells it to, byte for byte.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "eventually.hpp"
#include "qdma/peer/wire.hpp"
#include "system/descriptor.hpp"

namespace doorbell::qdma {

struct WireReply {
  wire::ReplyHeader header;
  std::vector<u8> structure;
  std::vector<wire::SubReply> parts;
  Descriptor descriptor;

  template <class T>
  [[nodiscard]] T as() const {
    T out;
    EXPECT_EQ(structure.size(), sizeof out);
    std::memcpy(static_cast<void*>(&out), structure.data(), std::min(structure.size(), sizeof out));
    return out;
  }
};

class WireClient {
 public:
  explicit WireClient(Descriptor socket) : socket_(std::move(socket)) {}
  [[nodiscard]] int fd() const { return socket_.get(); }
  void close() { socket_.reset(); }

  /// False if the other end has gone or takes nothing more.
  bool send_bytes(std::span<const u8> bytes, std::span<const int> descriptors = {}) {
    iovec io{const_cast<u8*>(bytes.data()), bytes.size()};
    std::vector<char> control(CMSG_SPACE(descriptors.size_bytes()));
    msghdr m{};
    m.msg_iov = &io;
    m.msg_iovlen = 1;
    if (!descriptors.empty()) {
      m.msg_control = control.data();
      m.msg_controllen = control.size();
      cmsghdr* c = CMSG_FIRSTHDR(&m);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(descriptors.size_bytes());
      std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size_bytes());
    }
    return sendmsg(socket_.get(), &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
  }
  template <class T>
  bool send(u32 number, const T& structure, std::vector<int> descriptors = {}, u64 deadline_ns = 0) {
    wire::RequestHeader h{.number = number,
                          .sequence = ++sequence_,
                          .deadline_ns = deadline_ns,
                          .bytes = sizeof structure,
                          .descriptors = static_cast<u32>(descriptors.size())};
    std::vector<u8> bytes(sizeof h + sizeof structure);
    std::memcpy(bytes.data(), &h, sizeof h);
    std::memcpy(bytes.data() + sizeof h, &structure, sizeof structure);
    return send_bytes(bytes, descriptors);
  }
  [[nodiscard]] u64 sequence() const { return sequence_; }

  /// The next reply; empty when the other end has closed.
  std::optional<WireReply> receive() {
    pollfd p{socket_.get(), POLLIN, 0};
    if (poll(&p, 1, static_cast<int>(test::kWaitLimitS * 1000)) <= 0) {
      ADD_FAILURE() << "no reply";
      return std::nullopt;
    }
    std::vector<u8> bytes(wire::kMaxMessage);
    iovec io{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr m{};
    m.msg_iov = &io;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(socket_.get(), &m, MSG_CMSG_CLOEXEC);
    if (n <= 0) return std::nullopt;
    WireReply r;
    if (const cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
      r.descriptor = Descriptor(fd);
    }
    const auto length = static_cast<std::size_t>(n);
    if (length < sizeof r.header) {
      ADD_FAILURE() << "a reply of " << length << " bytes";
      return std::nullopt;
    }
    std::memcpy(&r.header, bytes.data(), sizeof r.header);
    EXPECT_EQ(r.header.magic, wire::kMagic);
    EXPECT_EQ(length, sizeof r.header + r.header.bytes + r.header.parts * sizeof(wire::SubReply));
    EXPECT_EQ(r.header.descriptors, r.descriptor.get() >= 0 ? 1u : 0u);
    const u8* at = bytes.data() + sizeof r.header;
    r.structure.assign(at, at + r.header.bytes);
    r.parts.resize(r.header.parts);
    if (r.header.parts > 0)
      std::memcpy(r.parts.data(), at + r.header.bytes, r.header.parts * sizeof(wire::SubReply));
    return r;
  }
  template <class T>
  WireReply call(u32 number, const T& structure, std::vector<int> descriptors = {}, u64 deadline_ns = 0) {
    EXPECT_TRUE(send(number, structure, std::move(descriptors), deadline_ns));
    auto r = receive();
    if (!r) {
      ADD_FAILURE() << "the server has closed the connection";
      return {};
    }
    EXPECT_EQ(r->header.sequence, sequence_);
    return std::move(*r);
  }

  // The calls that a test of something else needs.
  [[nodiscard]] bool hello() { return call(wire::kHello, wire::Hello{}).header.result == 0; }
  /// A started queue pair's number.
  [[nodiscard]] u32 queue_pair(const QpairAdd& add = {}) {
    const WireReply r = call(kCallQpairAdd, add);
    EXPECT_EQ(r.header.result, 0);
    const u32 id = r.as<QpairAdd>().qid;
    EXPECT_EQ(call(kCallQpairOp, QpairOp{.qid = id, .op = 0}).header.result, 0);
    return id;
  }
  [[nodiscard]] Descriptor descriptor(u32 id) {
    WireReply r = call(kCallQpairGetFd, QpairGetFd{.qid = id});
    EXPECT_EQ(r.header.result, 0);
    return std::move(r.descriptor);
  }

 private:
  Descriptor socket_;
  u64 sequence_ = 0;
};

/// A client's buffer and its mapping.
class ClientBuffer {
 public:
  ClientBuffer(WireClient& client, u64 bytes) : bytes_(bytes) {
    WireReply r = client.call(kCallBufCreate, BufCreate{.length = bytes});
    EXPECT_EQ(r.header.result, 0);
    fd_ = std::move(r.descriptor);
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    EXPECT_NE(p, MAP_FAILED);
    data_ = p == MAP_FAILED ? nullptr : static_cast<u8*>(p);
  }
  ~ClientBuffer() { unmap(); }
  ClientBuffer(const ClientBuffer&) = delete;
  ClientBuffer& operator=(const ClientBuffer&) = delete;
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] u8* data() const { return data_; }
  [[nodiscard]] u64 bytes() const { return bytes_; }
  void close() { fd_.reset(); }
  void unmap() {
    if (data_ != nullptr) munmap(data_, bytes_);
    data_ = nullptr;
  }

 private:
  u64 bytes_;
  Descriptor fd_;
  u8* data_ = nullptr;
};

inline Transfer one_transfer(Direction direction, u64 address, u64 bytes, u64 offset = 0) {
  Transfer t;
  t.count = 1;
  t.xfers[0] = {.direction = static_cast<u32>(direction),
                .buf_fd = 0,
                .buf_offset = offset,
                .dev_addr = address,
                .length = bytes};
  return t;
}

}  // namespace doorbell::qdma
