// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The headers of a whole burst in one call, so that the CPU's CRC instructions of several are under way at a
// time.
#pragma once

#include <doorbell/net/queue.hpp>

#include <cstring>

namespace doorbell::net {

/// 8 bytes of a header. By words it stays in registers; a copy of the whole goes through memory.
inline u64 word_at(const void* header, std::size_t offset) {
  u64 word;
  std::memcpy(&word, static_cast<const u8*>(header) + offset, sizeof word);
  return word;
}

/// The headers of packets of one flow that follow each other.
struct HeaderRun {
  u64 mark = 0;             ///< a header's first 8 bytes
  u64 stream_sequence = 0;  ///< of the first one
  u64 tx_time_ns = 0;       ///< of the first one
  u32 count = 0;
  u64 tx_step_ns = 0;  ///< each packet's time is so much later than that of the one before
  u64 left_ns = 0;  ///< not 0: the times are those at which the packets were due, and they leave at this one
};

/// Writes them, with their CRCs, into the slots of packets from `first` on. data_crcs has one for each slot.
void write_headers(const HeaderRun& run, const TxSlots& slots, u64 first, const u32* data_crcs);

/// crcs[i] becomes the header CRC that the packet at packets[i] should have. Those of fewer than kHeaderBytes
/// are passed over.
void header_crcs(const u8* const* packets, const u32* bytes, u32 count, u32* crcs);

}  // namespace doorbell::net
