// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The records of a byte stream, which comes in pieces: some of it real headers, some of it anything.

#include <doorbell/net/packet.hpp>

#include <cstring>
#include <memory>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "net/sockets/record_parser.hpp"

using namespace doorbell;
using namespace doorbell::net;
using fuzz::require;
using sockets::RecordParser;

namespace {

std::vector<u8> bytes_of_stream(FuzzedDataProvider& in) {
  std::vector<u8> stream;
  for (u32 i = 0; i < 16 && in.remaining_bytes() > 0; ++i) {
    if (in.ConsumeBool()) {
      Header h;
      h.data_bytes = in.ConsumeIntegralInRange<u32>(0, 300);
      h.stream_sequence = i;
      h.header_crc32c = crc32c(&h, offsetof(Header, header_crc32c));
      if (in.ConsumeIntegralInRange<u32>(0, 15) == 0) h.magic ^= in.ConsumeIntegral<u8>();
      const auto* const at = reinterpret_cast<const u8*>(&h);
      stream.insert(stream.end(), at, at + sizeof h);
      stream.resize(stream.size() + h.data_bytes, static_cast<u8>(i));
    } else {
      const std::vector<u8> any = in.ConsumeBytes<u8>(in.ConsumeIntegralInRange<std::size_t>(0, 64));
      stream.insert(stream.end(), any.begin(), any.end());
    }
  }
  return stream;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  FuzzedDataProvider in(data, size);
  const u64 longest = in.ConsumeIntegralInRange<u64>(kHeaderBytes, 400);
  const u32 piece = in.ConsumeIntegralInRange<u32>(1, 64);
  const std::vector<u8> stream = bytes_of_stream(in);

  RecordParser whole(longest), pieces(longest);
  u64 at = 0;
  for (u64 have = 0; at <= stream.size();) {
    u32 length = 0, again = 0;
    const auto state = whole.next(stream.data() + at, stream.size() - at, length);
    // In pieces the same comes out; each piece is a copy, so that a look behind its end is seen.
    auto in_pieces = RecordParser::State::incomplete;
    for (;; have = std::min<u64>(have + piece, stream.size())) {
      const u64 here = have > at ? have - at : 0;
      const std::unique_ptr<u8[]> copy(new u8[here]);
      if (here > 0) std::memcpy(copy.get(), stream.data() + at, here);
      in_pieces = pieces.next(copy.get(), here, again);
      if (in_pieces != RecordParser::State::incomplete || have == stream.size()) break;
    }
    require(state == in_pieces && length == again);
    require(whole.broken() == (state == RecordParser::State::broken));
    if (state != RecordParser::State::record) break;
    require(length >= kHeaderBytes && length <= longest && length <= stream.size() - at);
    at += length;
  }
  return 0;
}
