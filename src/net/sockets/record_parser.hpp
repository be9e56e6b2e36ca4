// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Finds the records of a byte stream: each is a packet header and the data that it announces.
#pragma once

#include <doorbell/net/packet.hpp>

namespace doorbell::net::sockets {

class RecordParser {
 public:
  enum class State {
    record,      ///< a whole record lies at the start of the bytes
    incomplete,  ///< more bytes are needed
    broken,      ///< no record starts here, and where the next one starts is unknown: the end of the stream
  };

  /// `max_bytes`: the longest record, its header included; at least kHeaderBytes.
  explicit RecordParser(u64 max_bytes) : max_bytes_(max_bytes) {}

  /// Looks at `have` bytes, of which the first is the first behind the record found last. With `record`,
  /// `length` is the record's; the next call starts behind it. Reads no byte that is not there.
  State next(const u8* at, u64 have, u32& length);
  [[nodiscard]] bool broken() const { return why_ != nullptr; }
  /// Why no record starts where one should; null while the stream is whole.
  [[nodiscard]] const char* why() const { return why_; }
  /// Bytes of the record that is coming in, header included; 0 before its header has been read.
  [[nodiscard]] u64 coming() const { return coming_; }

 private:
  [[nodiscard]] const char* fault_of(const Header& header) const;

  u64 max_bytes_;
  u64 coming_ = 0;
  const char* why_ = nullptr;
};

}  // namespace doorbell::net::sockets
