// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Messages of InfiniBand's communication management: 256 bytes that queue pairs 1 of two devices exchange.
// Pure encode and decode.
// Source: InfiniBand Architecture Specification 1.3, 12.6 and 13.4; annex A11 for what RDMA's IP addresses
// add.
#pragma once

#include <doorbell/config.hpp>

#include <array>
#include <optional>
#include <span>

namespace doorbell::cm {

inline constexpr std::size_t kMessageBytes = 256;
inline constexpr u32 kManagementQueuePair = 1;
inline constexpr u32 kManagementKey = 0x80010000;  ///< the Q_Key of queue pairs 1

/// AttributeID.
enum class Kind : u16 {
  request = 0x10,           ///< REQ
  patience = 0x11,          ///< MRA
  reject = 0x12,            ///< REJ
  reply = 0x13,             ///< REP
  ready = 0x14,             ///< RTU
  disconnect = 0x15,        ///< DREQ
  disconnected = 0x16,      ///< DREP
  datagram_request = 0x17,  ///< SIDR_REQ
  datagram_reply = 0x18,    ///< SIDR_REP
};

/// Of REJ.
enum Reason : u16 {
  kTimeout = 4,
  kUnsupported = 5,
  kInvalidServiceId = 8,
  kStale = 10,
  kInvalidMtu = 26,
  kConsumer = 28,
};

/// Of SIDR_REP.
enum DatagramStatus : u8 { kDatagramOk = 0, kNoService = 1, kDatagramRejected = 2 };

/// TransportServiceType.
enum class Transport : u8 { rc = 0, uc = 1 };

/// MessageRejected of REJ, and MessageMRAed.
enum class About : u8 { request = 0, reply = 1, other = 2 };

/// All fields of all kinds; a kind has some of them, which encode() and decode() know. Those of 24 bits and
/// less have their value in the low bits.
struct Message {
  Kind kind = Kind::request;
  u64 transaction = 0;
  u32 local_id = 0;   ///< the sender's
  u32 remote_id = 0;  ///< the receiver's; RequestID of SIDR
  u64 service = 0;
  u64 guid = 0;
  u32 queue_pair = 0;
  u32 queue_key = 0;
  u32 psn = 0;
  u8 responder_resources = 0;
  u8 initiator_depth = 0;
  u8 remote_timeout = 0;  ///< codes of 4.096 us << code
  u8 local_timeout = 0;
  u8 service_timeout = 0;  ///< of MRA
  u8 retries = 0;
  u8 rnr_retries = 0;
  u8 message_retries = 0;  ///< MaxCMRetries
  Transport transport = Transport::rc;
  bool flow_control = false;
  bool shared_receives = false;
  u16 partition = 0xFFFF;
  u8 mtu = 0;  ///< 1 to 5
  std::array<u8, 16> local_gid{}, remote_gid{};
  u16 local_lid = 0xFFFF, remote_lid = 0xFFFF;  ///< on Ethernet they say nothing
  u32 flow_label = 0;
  u8 traffic_class = 0;
  u8 hop_limit = 64;
  u8 rate = 0;
  u8 ack_timeout = 0;
  u8 ack_delay = 0;
  About about = About::request;
  u16 reason = 0;
  u8 status = 0;
  u8 info_bytes = 0;
  std::array<u8, 72> info{};
  std::array<u8, 224> private_data{};  ///< as many as private_bytes() says
};

/// How many bytes of private data a kind has; all of them travel.
[[nodiscard]] std::size_t private_bytes(Kind kind);
/// Copies what fits; the rest is zeros.
void set_private(Message& message, std::span<const u8> bytes);

void encode(const Message& message, std::span<u8, kMessageBytes> into);
/// False for what is no message of these kinds.
[[nodiscard]] bool decode(std::span<const u8> bytes, Message& into);

/// The header before the program's private data in REQ and SIDR_REQ where service IDs are ports of IP.
struct AddressHeader {
  static constexpr std::size_t kBytes = 36;
  u16 port = 0;                     ///< the sender's
  u32 source = 0, destination = 0;  ///< IPv4 in the host's order
};
void put(const AddressHeader& header, std::span<u8> into);
/// Nothing for another version, or IPv6.
[[nodiscard]] std::optional<AddressHeader> address_header(std::span<const u8> bytes);

/// The service ID of a port.
[[nodiscard]] constexpr u64 service_of(u32 port_space, u16 port) {
  return u64{port_space} << 16 | port;
}

}  // namespace doorbell::cm
