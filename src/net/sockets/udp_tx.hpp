// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Sending datagrams: several a system call, and with segmentation (UDP_SEGMENT) several packets a datagram
// that the kernel or the NIC cuts.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "net/sockets/socket.hpp"

namespace doorbell::net::sockets {

/// A connected socket.
class UdpTxQueue final : public TxQueue {
 public:
  /// The most bytes that a datagram carries over IPv4, which also bounds one before it is cut.
  static constexpr u32 kMaxDatagram = 65507;
  static constexpr u32 kManySegments = 128;  ///< the most that any kernel takes in one datagram

  /// `segments`: packets that one datagram may be cut into; 1: no segmentation.
  UdpTxQueue(Descriptor socket, Region memory, u32 payload_bytes, u32 segments);

  [[nodiscard]] TxSlots slots() const override { return slots_; }
  u32 send(u64 first, u32 count, u32 bytes) override;
  [[nodiscard]] u64 completed() override { return accepted_; }
  void wait(u64 limit_ns) override;
  [[nodiscard]] bool broken() override { return error_ != 0; }
  /// True when no datagram is left in the socket's own buffer.
  [[nodiscard]] bool finish() override;

  /// Packets of `bytes` that one datagram carries.
  [[nodiscard]] u32 segments(u32 bytes) const { return std::clamp(kMaxDatagram / bytes, 1u, segments_); }
  [[nodiscard]] int fd() const { return socket_.get(); }
  /// Adds what happened to the facts of a stream.
  struct Counts {
    u64 calls = 0;      ///< system calls that sent something
    u64 reports = 0;    ///< that datagrams were not delivered: most often, that no process listens
    u64 no_buffer = 0;  ///< sends that found no room in the interface's queue
    int error = 0;      ///< the errno that ended the queue
  };
  [[nodiscard]] Counts counts() const { return {calls_, reports_, no_buffer_, error_}; }

 private:
  enum class After { again, later };
  [[nodiscard]] u32 gather(u64 first, u32 count, u32 bytes, u32 per_datagram);
  After failed(int error, u32 per_datagram);
  void set_segment(u32 bytes);
  void take_reports();

  Descriptor socket_;
  Region memory_;
  TxSlots slots_;
  u32 segments_;
  u32 segment_bytes_ = 0;  ///< of the socket's UDP_SEGMENT option
  u64 accepted_ = 0;
  bool queue_full_ = false;
  u64 calls_ = 0, reports_ = 0, no_buffer_ = 0;
  int error_ = 0;
  std::vector<mmsghdr> messages_;
  std::vector<iovec> vectors_;
  std::vector<u32> packets_;  ///< of each message
};

/// How many packets the kernel cuts a datagram into at most, asked by sending one between two sockets of
/// `ip`; 1 without UDP_SEGMENT.
[[nodiscard]] u32 probe_segments(const std::string& ip);

}  // namespace doorbell::net::sockets
