// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Carriers for tests: addresses that no other process has, and packets that say what they are.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "eventually.hpp"
#include "rdma/roce/carriers.hpp"
#include "rdma/roce/names.hpp"
#include "rdma/roce/ring.hpp"

namespace doorbell::roce::test {

/// An address of 127.128.0.0/9 by the process and a count.
inline Endpoint fresh_endpoint() {
  static u32 count = 0;
  const auto pid = static_cast<u32>(getpid());
  return {.address = 0x7F80'0000 | (pid & 0x7F'FFFF), .port = static_cast<u16>(20000 + count++)};
}

inline const char* name_of(CarrierKind kind) {
  return kind == CarrierKind::ring ? "ring" : kind == CarrierKind::udp ? "udp" : "automatic";
}

inline std::unique_ptr<Carrier> carrier(CarrierKind kind, CarrierOptions options = {}) {
  options.self = fresh_endpoint();
  options.kind = kind;
  return make_carrier(options);
}

/// A packet of `bytes` whose content follows from `number`. It begins as BTH of a SEND does.
inline std::vector<u8> packet(u64 number, std::size_t bytes) {
  std::vector<u8> p(bytes);
  u64 state = number * 0x9E37'79B9'7F4A'7C15 + bytes;
  for (std::size_t i = 0; i < bytes; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    p[i] = static_cast<u8>(state >> 56);
  }
  const u8 begin[] = {0x04, 0x40, 0xFF, 0xFF, 0};
  std::memcpy(p.data(), begin, sizeof begin);
  return p;
}
/// Of a size from 12 to 4136 that follows from `number`.
inline std::vector<u8> packet(u64 number) {
  return packet(number, 12 + number * 2654435761 % 4096 / 4 * 4);
}

/// Writes a packet; false when there is no room.
inline bool put(Path& path, const std::vector<u8>& p) {
  u8* const room = path.room(p.size());
  if (room == nullptr) return false;
  std::memcpy(room, p.data(), p.size());
  path.sent(p.size());
  return true;
}

/// Everything that has come, copied.
struct Received {
  std::vector<std::vector<u8>> packets;
  std::vector<Endpoint> sources;

  bool take(Carrier& from) {
    const auto arrivals = from.receive();
    for (const Arrival& a : arrivals) {
      packets.emplace_back(a.bytes.begin(), a.bytes.end());
      sources.push_back(a.source);
    }
    return !arrivals.empty();
  }
  bool wait_for(Carrier& from, std::size_t count) {
    return doorbell::test::eventually([&] {
      take(from);
      return packets.size() >= count;
    });
  }
};

}  // namespace doorbell::roce::test
