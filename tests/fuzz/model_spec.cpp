// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The text behind "--controller model:": accepted with values in range, or refused with an Error.

#include <doorbell/error.hpp>

#include <string>

#include "cxi/model/spec.hpp"
#include "fuzz/fuzz.hpp"
#include "nvme/backends.hpp"

using namespace doorbell;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  for (const std::string& spec : {text, "model:" + text}) {
    try {
      const nvme::ModelConfig c = nvme::parse_model_spec(spec);
      require(c.lba_bytes == 512 || c.lba_bytes == 4096);
      require(c.capacity_bytes >= 1u << 20 && c.capacity_bytes <= u64{1} << 50);
      require(c.max_queues >= 1 && c.max_queues <= 64 && c.threads <= 64);
      require(c.max_entries >= 2 && c.max_entries <= 65536);
      require(c.stride <= 4 && c.mdts <= 16);
      require(c.latency_ns <= 60'000'000'000 && c.delay_ns <= 3'600'000'000'000);
      require(c.media != nvme::ModelConfig::Media::file || !c.path.empty());
    } catch (const Error& e) {
      require(!e.subject().empty());
    }
  }
  try {
    const cxi::ModelConfig c = cxi::parse_model_spec("cxi-model0:" + text);
    require(c.pid_bits >= 6 && c.pid_bits <= 9 && c.max_list_entries >= 1 && c.max_list_entries <= 65536);
    require(c.window <= 1u << 20 && c.overhead <= 4096);
    require(c.nack >= cxi::ReturnCode::undeliverable && static_cast<u32>(c.nack) <= 63);
    require(c.latency_ns <= 60'000'000'000 && c.delay_ns <= 3'600'000'000'000);
  } catch (const Error& e) {
    require(!e.subject().empty());
  }
  return 0;
}
