// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/sockets/record_parser.hpp"

#include <doorbell/net/packet.hpp>

#include <cstring>

namespace doorbell::net::sockets {

RecordParser::State RecordParser::next(const u8* at, u64 have, u32& length) {
  if (why_ != nullptr) return State::broken;
  if (coming_ == 0) {
    if (have < kHeaderBytes) return State::incomplete;
    Header header;
    std::memcpy(&header, at, sizeof header);
    why_ = fault_of(header);
    if (why_ != nullptr) return State::broken;
    coming_ = u64{kHeaderBytes} + header.data_bytes;
  }
  if (have < coming_) return State::incomplete;
  length = static_cast<u32>(coming_);
  coming_ = 0;
  return State::record;
}

const char* RecordParser::fault_of(const Header& header) const {
  if (header.magic != kMagic) return "no magic number where a record starts";
  if (header.version() != kVersion) return "a header of another version";
  if (header.header_crc32c != crc32c(&header, offsetof(Header, header_crc32c)))
    return "a header whose CRC is wrong";
  if (header.data_bytes > max_bytes_ - kHeaderBytes) return "a record longer than the stream's";
  return nullptr;
}

}  // namespace doorbell::net::sockets
