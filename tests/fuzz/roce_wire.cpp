// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// RoCEv2 packets, any bytes of them: what is accepted lies in the packet, and is encoded to what decodes the
// same.

#include <algorithm>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "rdma/roce/wire.hpp"

using namespace doorbell;
using namespace doorbell::roce;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  Decoded first;
  if (decode({data, size}, first)) return 0;
  require(first.payload.size() + first.headers.pad + header_bytes(first.shape) == size);
  require(first.payload.empty() ||
          (first.payload.data() >= data && first.payload.data() + first.payload.size() <= data + size));
  require(first.headers.pad == pad_bytes(first.payload.size()));
  std::vector<u8> again(kLongestHeaders + size, 0);
  const std::size_t headers = encode(first.headers, first.payload.size(), again.data());
  require(headers == header_bytes(first.shape));
  std::copy(first.payload.begin(), first.payload.end(), again.begin() + static_cast<std::ptrdiff_t>(headers));
  again.resize(size);
  Decoded second;
  require(!decode(again, second));
  std::vector<u8> third(kLongestHeaders + size, 0);
  require(encode(second.headers, second.payload.size(), third.data()) == headers);
  require(std::equal(again.begin(), again.begin() + static_cast<std::ptrdiff_t>(headers), third.begin()));
  return 0;
}
