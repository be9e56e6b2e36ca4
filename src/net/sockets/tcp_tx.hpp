// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Sending records over a TCP connection.
#pragma once

#include <sys/uio.h>

#include <vector>

#include "net/sockets/socket.hpp"

namespace doorbell::net::sockets {

class TcpTxQueue final : public TxQueue {
 public:
  /// `socket` is connected.
  TcpTxQueue(Descriptor socket, Region memory, u32 payload_bytes);

  [[nodiscard]] TxSlots slots() const override { return slots_; }
  /// The last packet accepted may still have bytes that the socket has not taken: its slot stays the queue's,
  /// which sends them first in the next send() or finish().
  u32 send(u64 first, u32 count, u32 bytes) override;
  [[nodiscard]] u64 completed() override { return accepted_ - (left_ > 0 ? 1 : 0); }
  void wait(u64 limit_ns) override;
  [[nodiscard]] bool broken() override { return error_ != 0; }
  /// True when the other end's kernel has acknowledged every byte and the end of the stream, or is gone.
  [[nodiscard]] bool flush() override;
  [[nodiscard]] u64 moved() override { return bytes_; }
  [[nodiscard]] bool finish() override;

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] u64 partial_sends() const { return partial_sends_; }
  [[nodiscard]] u64 calls() const { return calls_; }
  /// The errno that ended the connection; 0: none.
  [[nodiscard]] int error() const { return error_; }

 private:
  struct Gathered {
    u32 vectors = 0;
    u64 bytes = 0;
  };
  [[nodiscard]] Gathered gather(u64 first, u32 count, u32 bytes);
  /// Bytes that the socket took; 0 with no room or after an error.
  [[nodiscard]] u64 write(u32 vectors);

  Descriptor socket_;
  Region memory_;
  TxSlots slots_;
  u64 accepted_ = 0;
  u8* rest_ = nullptr;  ///< of the last packet accepted
  u64 left_ = 0;        ///< its bytes that the socket has not taken
  bool shut_ = false;
  int error_ = 0;
  u64 calls_ = 0, partial_sends_ = 0;
  u64 bytes_ = 0;  ///< that the socket has taken
  std::vector<iovec> vectors_;
};

}  // namespace doorbell::net::sockets
