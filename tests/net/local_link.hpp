// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Helpers of the tests of socket streams: a link over 127.0.0.1, packets, and sockets of other programs.
#pragma once

#include <arpa/inet.h>
#include <doorbell/net/packet.hpp>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <vector>

#include "eventually.hpp"
#include "net/stream.hpp"
#include "system/descriptor.hpp"

namespace doorbell::net::test {

class LocalLink final : public Link {
 public:
  explicit LocalLink(u32 mtu = 65536) : mtu_(mtu) {}
  std::string name() const override { return "lo"; }
  std::string kind() const override { return "kernel"; }
  std::string interface(End) const override { return "lo"; }
  std::string ip(End) const override { return "127.0.0.1"; }
  u32 mtu() const override { return mtu_; }

 private:
  u32 mtu_;
};

/// Writes the whole packet of `bytes` payload.
inline void write_packet(u8* at, u16 stream, u64 sequence, u32 bytes) {
  Header h;
  h.data_bytes = bytes - kHeaderBytes;
  h.stream_sequence = stream_sequence(stream, sequence);
  h.header_crc32c = crc32c(&h, offsetof(Header, header_crc32c));
  std::memcpy(at, &h, sizeof h);
  for (u32 i = 0; i < h.data_bytes; ++i) at[kHeaderBytes + i] = static_cast<u8>(sequence * 7 + stream + i);
}

inline std::vector<u8> packet(u16 stream, u64 sequence, u32 bytes) {
  std::vector<u8> p(bytes);
  write_packet(p.data(), stream, sequence, bytes);
  return p;
}

inline ::testing::AssertionResult holds(const u8* at, u32 length, u16 stream, u64 sequence, u32 bytes) {
  if (length != bytes) return ::testing::AssertionFailure() << length << " bytes, not " << bytes;
  const std::vector<u8> right = packet(stream, sequence, bytes);
  for (u32 i = 0; i < bytes; ++i)
    if (at[i] != right[i])
      return ::testing::AssertionFailure() << "packet " << sequence << ": byte " << i << " differs";
  return ::testing::AssertionSuccess();
}

inline sockaddr_in local(u16 port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

inline u16 port_of(int fd) {
  sockaddr_in a{};
  socklen_t bytes = sizeof a;
  EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&a), &bytes), 0);
  return ntohs(a.sin_port);
}

/// A blocking socket of another program; with a port, bound to it, 0 being any.
inline Descriptor other_socket(int type, int port = -1) {
  Descriptor s(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  EXPECT_GE(s.get(), 0);
  if (port >= 0) {
    const sockaddr_in a = local(static_cast<u16>(port));
    EXPECT_EQ(::bind(s.get(), reinterpret_cast<const sockaddr*>(&a), sizeof a), 0) << std::strerror(errno);
  }
  return s;
}

inline void connect_to(int fd, u16 port) {
  const sockaddr_in a = local(port);
  ASSERT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a), 0) << std::strerror(errno);
}

/// Fills the slots of packets 0 .. count - 1.
inline void fill(TxQueue& tx, u16 stream, u64 count, u32 bytes) {
  const TxSlots slots = tx.slots();
  for (u64 n = 0; n < count; ++n) write_packet(slots.payload(n), stream, n, bytes);
}

/// Sends packets [first, first + count), with waits.
inline bool send_all(TxQueue& tx, u64 first, u32 count, u32 bytes) {
  u32 done = 0;
  return doorbell::test::eventually([&] {
    done += tx.send(first + done, count - done, bytes);
    if (done < count) tx.wait(10'000'000);
    return done == count;
  });
}

/// Receives until `count` packets of a stream have come, which must be those from `first` on, in order.
inline bool receive_all(RxQueue& rx, Burst& burst, u16 stream, u64 first, u32 count, u32 bytes) {
  u32 got = 0;
  return doorbell::test::eventually([&] {
    if (rx.receive(burst) == 0) rx.wait(10'000'000);
    for (u32 i = 0; i < burst.count; ++i)
      EXPECT_TRUE(holds(burst.data[i], burst.length[i], stream, first + got + i, bytes));
    got += burst.count;
    rx.release(burst);
    EXPECT_LE(got, count);
    return got >= count || ::testing::Test::HasFailure();
  });
}

}  // namespace doorbell::net::test
