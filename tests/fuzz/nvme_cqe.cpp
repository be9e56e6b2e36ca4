// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Completion entries and status codes.

#include <doorbell/nvme/wire.hpp>

#include <cstring>

#include "fuzz/fuzz.hpp"

using namespace doorbell;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  for (; size >= sizeof(Word16); data += sizeof(Word16), size -= sizeof(Word16)) {
    Word16 raw;
    std::memcpy(&raw, data, sizeof raw);
    const nvme::Cqe e = nvme::decode_cqe(raw);
    require(nvme::encode_cqe(e) == raw);
    require(std::memcmp(&e, data, sizeof e) == 0);
    const nvme::Status st = nvme::status_of(e);
    require(st.ok() == (st.type() == 0 && st.code() == 0));
    require((st.field << 1 | (nvme::phase_of(e) ? 1 : 0)) == e.status);
    require(st.type_and_code() == (st.type() << 8 | st.code()));
    require(!nvme::status_name(st.type_and_code()).empty());
    require(!nvme::status_name(e.status).empty());
  }
  return 0;
}
