// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/flow/sender.hpp"

#include <doorbell/net/packet.hpp>

#include <algorithm>
#include <stdexcept>

#include "net/flow/headers.hpp"

namespace doorbell::net {

Sender::Sender(const SenderOptions& options, TxQueue& queue)
    : o_(options), queue_(queue), slots_(queue.slots()), data_crcs_(slots_.count) {
  // A slot always has the same template, so there are as many as slots.
  if (slots_.count == 0 || slots_.count > kTemplates)
    throw std::logic_error("a send queue has at most one slot for each template");
  fill(o_.seed);
}

void Sender::fill(u64 seed) {
  o_.seed = seed;
  const u32 bytes = o_.payload_bytes - kHeaderBytes;
  for (u32 s = 0; s < slots_.count; ++s) {
    u8* data = slots_.payload(s) + kHeaderBytes;
    for (u32 at = 0; at < bytes; at += 8) {
      const u64 w = data_word(o_.fill, o_.seed, o_.flow, s, at / 8);
      std::memcpy(data + at, &w, std::min(8u, bytes - at));
    }
    data_crcs_[s] = o_.data_crc ? crc32c(data, bytes) : 0;
  }
}

u32 Sender::step(u64 limit, u64 now_ns) {
  if (!pending()) {
    u64 n = std::min<u64>(o_.batch, limit - counts_.sent);
    n = std::min<u64>(n, queue_.completed() + slots_.count - counts_.sent);
    n = pacer_.allowed(static_cast<u32>(n), now_ns);
    if (n == 0) return 0;
    write(counts_.sent + n, now_ns);
    pacer_.sent(static_cast<u32>(n));
    if (pacer_.paced()) {
      if (last_burst_ns_ != 0) gaps_.record((now_ns - last_burst_ns_) / last_burst_);
      last_burst_ns_ = now_ns, last_burst_ = static_cast<u32>(n);
    }
  }
  const u32 accepted =
      queue_.send(counts_.sent, static_cast<u32>(prepared_ - counts_.sent), o_.payload_bytes);
  counts_.sent += accepted;
  counts_.skipped = pacer_.skipped();
  sent_.store(counts_.sent, std::memory_order_release);
  return accepted;
}

void Sender::write(u64 end, u64 now_ns) {
  Header h;
  h.run_tag = o_.run_tag;
  h.data_bytes = o_.payload_bytes - kHeaderBytes;
  if (o_.data_crc) h.version_flags |= kHasDataCrc << 4;
  HeaderRun run{.stream_sequence = stream_sequence(o_.flow, o_.first_sequence + prepared_),
                .tx_time_ns = now_ns,
                .count = static_cast<u32>(end - prepared_)};
  if (pacer_.paced()) {
    h.version_flags |= kIntendedTime << 4;
    run.tx_time_ns = pacer_.due_ns();
    run.tx_step_ns = static_cast<u64>(pacer_.gap_ns());
    run.left_ns = now_ns;
  }
  std::memcpy(&run.mark, &h, sizeof run.mark);
  write_headers(run, slots_, prepared_, data_crcs_.data());
  prepared_ = end;
}

}  // namespace doorbell::net
