// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/dropin/cm/messages.hpp"

#include <algorithm>
#include <cstring>

namespace doorbell::cm {

namespace {

constexpr std::size_t kHeader = 24;
constexpr u8 kBaseVersion = 1, kClass = 7, kClassVersion = 2, kMethodSend = 3;

/// Where the private data of a kind begins, and the bytes of it. Offsets are those of the specification,
/// which counts from the end of the header.
struct Place {
  std::size_t at, bytes;
};
constexpr Place place_of(Kind kind) {
  switch (kind) {
    case Kind::request:
      return {140, 92};
    case Kind::patience:
      return {10, 222};
    case Kind::reject:
      return {84, 148};
    case Kind::reply:
      return {36, 196};
    case Kind::ready:
      return {8, 224};
    case Kind::disconnect:
      return {12, 220};
    case Kind::disconnected:
      return {8, 224};
    case Kind::datagram_request:
      return {16, 216};
    case Kind::datagram_reply:
      return {96, 136};
  }
  return {0, 0};
}

template <class T>
void put(u8* at, T value, int bytes = sizeof(T)) {
  for (int i = 0; i < bytes; ++i) at[i] = static_cast<u8>(value >> 8 * (bytes - 1 - i));
}
template <class T>
T get(const u8* at, int bytes = sizeof(T)) {
  T value = 0;
  for (int i = 0; i < bytes; ++i) value = static_cast<T>(value << 8 | at[i]);
  return value;
}
/// Bits above a field of the same byte.
template <class... Fields>
u8 pack(Fields... fields) {
  return static_cast<u8>((... | static_cast<unsigned>(fields)));
}

void encode_request(const Message& m, u8* b) {
  put(b, m.local_id);
  put(b + 8, m.service);
  put(b + 16, m.guid);
  put(b + 28, m.queue_key);
  put(b + 32, m.queue_pair, 3);
  b[35] = m.responder_resources;
  b[39] = m.initiator_depth;
  b[43] = pack(m.remote_timeout << 3, static_cast<u8>(m.transport) << 1, m.flow_control ? 1 : 0);
  put(b + 44, m.psn, 3);
  b[47] = pack(m.local_timeout << 3, m.retries & 7);
  put(b + 48, m.partition);
  b[50] = pack(m.mtu << 4, m.rnr_retries & 7);
  b[51] = pack(m.message_retries << 4, m.shared_receives ? 8 : 0);
  // The primary path. There is no alternate one.
  put(b + 52, m.local_lid);
  put(b + 54, m.remote_lid);
  put(b + 88, m.flow_label << 12);
  std::memcpy(b + 56, m.local_gid.data(), 16);
  std::memcpy(b + 72, m.remote_gid.data(), 16);
  b[91] = pack(m.rate & 0x3F);
  b[92] = m.traffic_class;
  b[93] = m.hop_limit;
  b[95] = pack(m.ack_timeout << 3);
}

void decode_request(const u8* b, Message& m) {
  m.local_id = get<u32>(b);
  m.service = get<u64>(b + 8);
  m.guid = get<u64>(b + 16);
  m.queue_key = get<u32>(b + 28);
  m.queue_pair = get<u32>(b + 32, 3);
  m.responder_resources = b[35];
  m.initiator_depth = b[39];
  m.remote_timeout = b[43] >> 3;
  m.transport = static_cast<Transport>(b[43] >> 1 & 3);
  m.flow_control = (b[43] & 1) != 0;
  m.psn = get<u32>(b + 44, 3);
  m.local_timeout = b[47] >> 3;
  m.retries = b[47] & 7;
  m.partition = get<u16>(b + 48);
  m.mtu = b[50] >> 4;
  m.rnr_retries = b[50] & 7;
  m.message_retries = b[51] >> 4;
  m.shared_receives = (b[51] & 8) != 0;
  std::memcpy(m.local_gid.data(), b + 56, 16);
  std::memcpy(m.remote_gid.data(), b + 72, 16);
  m.local_lid = get<u16>(b + 52);
  m.remote_lid = get<u16>(b + 54);
  m.flow_label = get<u32>(b + 88) >> 12;
  m.rate = b[91] & 0x3F;
  m.traffic_class = b[92];
  m.hop_limit = b[93];
  m.ack_timeout = b[95] >> 3;
}

void encode_reply(const Message& m, u8* b) {
  put(b + 8, m.queue_key);
  put(b + 12, m.queue_pair, 3);
  put(b + 20, m.psn, 3);
  b[24] = m.responder_resources;
  b[25] = m.initiator_depth;
  b[26] = pack(m.ack_delay << 3, m.flow_control ? 1 : 0);
  b[27] = pack(m.rnr_retries << 5, m.shared_receives ? 0x10 : 0);
  put(b + 28, m.guid);
}

void decode_reply(const u8* b, Message& m) {
  m.queue_key = get<u32>(b + 8);
  m.queue_pair = get<u32>(b + 12, 3);
  m.psn = get<u32>(b + 20, 3);
  m.responder_resources = b[24];
  m.initiator_depth = b[25];
  m.ack_delay = b[26] >> 3;
  m.flow_control = (b[26] & 1) != 0;
  m.rnr_retries = b[27] >> 5;
  m.shared_receives = (b[27] & 0x10) != 0;
  m.guid = get<u64>(b + 28);
}

}  // namespace

std::size_t private_bytes(Kind kind) {
  return place_of(kind).bytes;
}

void set_private(Message& message, std::span<const u8> bytes) {
  message.private_data.fill(0);
  const std::size_t fits = std::min(bytes.size(), private_bytes(message.kind));
  if (fits != 0) std::memcpy(message.private_data.data(), bytes.data(), fits);
}

void encode(const Message& m, std::span<u8, kMessageBytes> into) {
  u8* header = into.data();
  std::memset(header, 0, kMessageBytes);
  header[0] = kBaseVersion;
  header[1] = kClass;
  header[2] = kClassVersion;
  header[3] = kMethodSend;
  put(header + 8, m.transaction);
  put(header + 16, static_cast<u16>(m.kind));
  u8* b = header + kHeader;
  if (m.kind != Kind::request && m.kind != Kind::datagram_request && m.kind != Kind::datagram_reply) {
    put(b, m.local_id);
    put(b + 4, m.remote_id);
  }
  switch (m.kind) {
    case Kind::request:
      encode_request(m, b);
      break;
    case Kind::patience:
      b[8] = pack(static_cast<u8>(m.about) << 6);
      b[9] = pack(m.service_timeout << 3);
      break;
    case Kind::reject:
      b[8] = pack(static_cast<u8>(m.about) << 6);
      b[9] = pack(m.info_bytes << 1);
      put(b + 10, m.reason);
      std::memcpy(b + 12, m.info.data(), m.info.size());
      break;
    case Kind::reply:
      encode_reply(m, b);
      break;
    case Kind::disconnect:
      put(b + 8, m.queue_pair, 3);
      break;
    case Kind::datagram_request:
      put(b, m.remote_id);
      put(b + 4, m.partition);
      put(b + 8, m.service);
      break;
    case Kind::datagram_reply:
      put(b, m.remote_id);
      b[4] = m.status;
      b[5] = m.info_bytes;
      put(b + 8, m.queue_pair, 3);
      put(b + 12, m.service);
      put(b + 20, m.queue_key);
      std::memcpy(b + 24, m.info.data(), m.info.size());
      break;
    case Kind::ready:
    case Kind::disconnected:
      break;
  }
  const Place place = place_of(m.kind);
  std::memcpy(b + place.at, m.private_data.data(), place.bytes);
}

bool decode(std::span<const u8> bytes, Message& m) {
  if (bytes.size() < kMessageBytes) return false;
  const u8* header = bytes.data();
  if (header[0] != kBaseVersion || header[1] != kClass || header[2] != kClassVersion ||
      header[3] != kMethodSend)
    return false;
  const u16 attribute = get<u16>(header + 16);
  if (attribute < static_cast<u16>(Kind::request) || attribute > static_cast<u16>(Kind::datagram_reply))
    return false;
  m = {};
  m.kind = static_cast<Kind>(attribute);
  m.transaction = get<u64>(header + 8);
  const u8* b = header + kHeader;
  if (m.kind != Kind::request && m.kind != Kind::datagram_request && m.kind != Kind::datagram_reply) {
    m.local_id = get<u32>(b);
    m.remote_id = get<u32>(b + 4);
  }
  switch (m.kind) {
    case Kind::request:
      decode_request(b, m);
      break;
    case Kind::patience:
      m.about = static_cast<About>(b[8] >> 6);
      m.service_timeout = b[9] >> 3;
      break;
    case Kind::reject:
      m.about = static_cast<About>(b[8] >> 6);
      m.info_bytes = std::min<u8>(b[9] >> 1, static_cast<u8>(m.info.size()));
      m.reason = get<u16>(b + 10);
      std::memcpy(m.info.data(), b + 12, m.info.size());
      break;
    case Kind::reply:
      decode_reply(b, m);
      break;
    case Kind::disconnect:
      m.queue_pair = get<u32>(b + 8, 3);
      break;
    case Kind::datagram_request:
      m.remote_id = get<u32>(b);
      m.partition = get<u16>(b + 4);
      m.service = get<u64>(b + 8);
      break;
    case Kind::datagram_reply:
      m.remote_id = get<u32>(b);
      m.status = b[4];
      m.info_bytes = std::min<u8>(b[5], static_cast<u8>(m.info.size()));
      m.queue_pair = get<u32>(b + 8, 3);
      m.service = get<u64>(b + 12);
      m.queue_key = get<u32>(b + 20);
      std::memcpy(m.info.data(), b + 24, m.info.size());
      break;
    case Kind::ready:
    case Kind::disconnected:
      break;
  }
  const Place place = place_of(m.kind);
  std::memcpy(m.private_data.data(), b + place.at, place.bytes);
  return true;
}

void put(const AddressHeader& header, std::span<u8> into) {
  constexpr u8 kIpv4 = 4 << 4;
  std::memset(into.data(), 0, AddressHeader::kBytes);
  into[1] = kIpv4;
  put(into.data() + 2, header.port);
  put(into.data() + 16, header.source);
  put(into.data() + 32, header.destination);
}

std::optional<AddressHeader> address_header(std::span<const u8> bytes) {
  if (bytes.size() < AddressHeader::kBytes || bytes[0] != 0 || bytes[1] >> 4 != 4) return std::nullopt;
  return AddressHeader{.port = get<u16>(bytes.data() + 2),
                       .source = get<u32>(bytes.data() + 16),
                       .destination = get<u32>(bytes.data() + 32)};
}

}  // namespace doorbell::cm
