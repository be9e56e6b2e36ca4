// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Receiving records from TCP connections, and delivering them where the kernel has put them.
#pragma once

#include <sys/socket.h>

#include <vector>

#include "net/sockets/mirrored_ring.hpp"
#include "net/sockets/record_parser.hpp"
#include "net/sockets/socket.hpp"

namespace doorbell::net::sockets {

/// One connection and its ring.
class TcpSource {
 public:
  TcpSource(Descriptor socket, MirroredRing ring, u32 payload_bytes);

  /// Adds whole records to the burst; `mark` goes into the high 16 bits of their tokens.
  void deliver(Burst& burst, u64 mark);
  /// Receives at most `bytes` and what the ring has room for.
  void fill(u64 bytes);
  /// Gives bytes back, up to the record of this token.
  void release(u64 token);

  /// Nothing more will be delivered.
  [[nodiscard]] bool ended() const { return closed_ && !has_more(); }
  /// There may be whole records that no burst had room for.
  [[nodiscard]] bool has_more() const { return state_ == RecordParser::State::record; }
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] u64 ring_bytes() const { return ring_.bytes(); }

  struct Counts {
    u64 calls = 0;        ///< that received something
    u64 short_reads = 0;  ///< of them, those that ended inside a record
    u64 resets = 0;
    u64 broken = 0;  ///< records that could not be found or had no end
    const char* why = nullptr;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  /// Ends the connection in a way that the other end's next send() notices.
  void refuse(const char* why);

  Descriptor socket_;
  MirroredRing ring_;
  RecordParser parser_;
  RecordParser::State state_ = RecordParser::State::incomplete;
  u64 received_ = 0, delivered_ = 0, released_ = 0;  ///< positions in the stream
  u64 write_at_ = 0, read_at_ = 0;                   ///< of the first two in the ring
  bool fresh_ = false;                               ///< filled since the last deliver()
  bool closed_ = false;
  Counts counts_;
};

class TcpRxQueue final : public RxQueue {
 public:
  struct Config {
    u16 queue = 0;
    u32 payload_bytes = 0;
    u32 burst = 64;
    Place place = Place::pageable;
    std::shared_ptr<gpu::Gpu> gpu = {};
  };
  /// The sockets are connected.
  TcpRxQueue(std::vector<Descriptor> sockets, const Config& config);

  u32 receive(Burst& burst) override;
  void release(Burst& burst) override;
  void wait(u64 limit_ns) override;
  [[nodiscard]] bool ended() override;
  [[nodiscard]] Drops drops() override { return {}; }
  /// Connections whose bytes were no records any more, or ended inside one.
  [[nodiscard]] u64 unmatched() override;

  [[nodiscard]] const std::vector<TcpSource>& sources() const { return sources_; }

 private:
  u16 queue_;
  u32 payload_bytes_;
  std::vector<TcpSource> sources_;
  std::vector<pollfd> polls_;
  std::size_t turn_ = 0;  ///< the connection to ask first
};

}  // namespace doorbell::net::sockets
