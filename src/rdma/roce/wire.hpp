// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// RoCEv2 packets from BTH to pad: pure encode and decode. All fields are big-endian on the wire and in the
// host's order here. Sources: InfiniBand Architecture Specification 1.4, volume 1, chapter 9 and annexes A14
// (XRC), A17 and A19 (atomic write); Linux's rdma_rxe as an independent reader.
#pragma once

#include <doorbell/config.hpp>

#include <optional>
#include <span>

namespace doorbell::roce {

/// UDP's destination port.
inline constexpr u16 kPort = 4791;
/// The longest headers of a packet: BTH, XRCETH and AtomicETH.
inline constexpr std::size_t kLongestHeaders = 44;
inline constexpr std::size_t kIcrcBytes = 4;
/// The largest path MTU: payload bytes of one packet.
inline constexpr u32 kLargestMtu = 4096;
/// PSNs, and numbers of queue pairs and of shared receive queues, have 24 bits.
inline constexpr u32 kMask24 = 0xFF'FFFF;

/// Which service a queue pair has: the top three bits of an opcode.
enum class Service : u8 { rc = 0, uc = 1, ud = 3, xrc = 5 };
/// Whether packets are acknowledged.
[[nodiscard]] constexpr bool reliable(Service service) {
  return service == Service::rc || service == Service::xrc;
}

/// The low five bits of an opcode.
enum class Operation : u8 {
  send_first = 0,
  send_middle = 1,
  send_last = 2,
  send_last_immediate = 3,
  send_only = 4,
  send_only_immediate = 5,
  write_first = 6,
  write_middle = 7,
  write_last = 8,
  write_last_immediate = 9,
  write_only = 10,
  write_only_immediate = 11,
  read_request = 12,
  read_response_first = 13,
  read_response_middle = 14,
  read_response_last = 15,
  read_response_only = 16,
  acknowledge = 17,
  atomic_acknowledge = 18,
  compare_swap = 19,
  fetch_add = 20,
  send_last_invalidate = 22,
  send_only_invalidate = 23,
  atomic_write = 29,  ///< answered by a READ response without data
};

/// Of an operation: which headers follow BTH, and its place in a message.
struct Shape {
  bool exists = false;   ///< false: no operation of that service
  bool request = false;  ///< from requester to responder
  bool starts = false;   ///< first or only packet of a message
  bool ends = false;     ///< last or only packet of a message
  bool payload = false;  ///< payload may follow
  bool reth = false;
  bool atomic = false;  ///< AtomicETH
  bool aeth = false;
  bool atomic_ack = false;  ///< AtomicAckETH, behind AETH
  bool immediate = false;
  bool invalidate = false;  ///< IETH
  bool deth = false;
  bool xrceth = false;  ///< directly behind BTH
};
[[nodiscard]] Shape shape_of(Service service, Operation operation);

/// RETH, and of AtomicETH the first two fields.
struct RemoteRange {
  u64 address = 0;
  u32 key = 0;
  u32 length = 0;  ///< bytes of the whole message; 0 in AtomicETH
};

/// The contents of AETH.
struct Acknowledge {
  /// Bits 6:5 of the syndrome.
  enum class Kind : u8 { ack = 0, rnr = 1, reserved = 2, nak = 3 };
  Kind kind = Kind::ack;
  u8 value = 0x1F;  ///< credits (1Fh: none are counted), RNR timer code, or NakCode
  u32 msn = 0;
};
enum class NakCode : u8 {
  sequence = 0,
  invalid_request = 1,
  remote_access = 2,
  remote_operation = 3,
  invalid_rd = 4
};

/// A packet without its payload. Fields that its Shape lacks are not read and not written.
struct Headers {
  Service service = Service::rc;
  Operation operation = Operation::send_only;
  bool solicited = false;
  bool migrated = true;  ///< the migration bit, which is 1 outside of path migration
  bool becn = false;
  u8 pad = 0;  ///< 0 to 3 bytes behind the payload; encode() sets it from the payload's size
  u16 partition = 0xFFFF;
  u32 queue_pair = 0;  ///< the destination's, 24 bits
  bool wants_ack = false;
  u32 psn = 0;  ///< 24 bits
  RemoteRange range;
  u64 swap_or_add = 0;  ///< AtomicETH: the swap value, or the addend
  u64 compare = 0;
  Acknowledge ack;
  u64 original = 0;  ///< AtomicAckETH
  u32 immediate =
      0;  ///< the four bytes as they lie in the packet (no conversion: programs give them in network order)
  u32 invalidate_key = 0;
  u32 queue_key = 0;
  u32 source_queue_pair = 0;
  u32 shared_receives = 0;  ///< XRCETH: the number of a shared receive queue, 24 bits
};

struct Decoded {
  Headers headers;
  Shape shape;
  std::span<const u8> payload;  ///< in the bytes given; without pad
};

enum class DecodeError : u8 { short_packet, bad_version, unknown_opcode, bad_padding };

/// Bytes of the headers that `shape` has, BTH's 12 included.
[[nodiscard]] std::size_t header_bytes(const Shape& shape);
/// Writes the headers to `out` (kLongestHeaders of room) for `payload_bytes` of payload, and returns their
/// size. The caller puts the payload behind them, and pad_bytes() zeros behind that.
std::size_t encode(const Headers& headers, std::size_t payload_bytes, u8* out);
[[nodiscard]] inline u8 pad_bytes(std::size_t payload_bytes) {
  return static_cast<u8>((4 - payload_bytes % 4) % 4);
}

/// Reads each byte of the headers once, so that `bytes` may lie in memory that another process writes.
/// `bytes` is BTH to pad.
[[nodiscard]] std::optional<DecodeError> decode(std::span<const u8> bytes, Decoded& into);

/// a - b as signed 24-bit numbers: negative when a is behind b.
[[nodiscard]] inline int psn_difference(u32 a, u32 b) {
  return static_cast<int>((a - b) << 8) >> 8;
}
[[nodiscard]] inline u32 psn_after(u32 psn, u32 packets) {
  return (psn + packets) & kMask24;
}
/// Packets of a message: at least one.
[[nodiscard]] inline u32 packets_of(u64 bytes, u32 mtu) {
  return bytes == 0 ? 1 : static_cast<u32>((bytes + mtu - 1) / mtu);
}

/// Nanoseconds of an RNR timer code (0 to 31).
[[nodiscard]] u64 rnr_timer_ns(u8 code);
/// The retransmission time of a queue pair's timeout code (0 to 31): 4.096 us << code; 0 for code 0, which
/// means never.
[[nodiscard]] u64 timeout_ns(u8 code);

}  // namespace doorbell::roce
