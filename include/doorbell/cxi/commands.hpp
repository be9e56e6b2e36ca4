// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Commands that move data: DMA (data in memory) and IDC (data inside the command).
#pragma once

#include <doorbell/cxi/types.hpp>

namespace doorbell::cxi {

/// The bytes of a command, from its fields and its first byte.
template <class C>
[[nodiscard]] DOORBELL_INLINE Words<C::kWords> encode(const C& command) {
  Words<C::kWords> out = pack(command);
  out.w[0] |= command.header();
  if constexpr (requires { C::kAlways; }) out.w[0] |= C::kAlways;
  return out;
}

/// False if the first byte is that of another command.
template <class C>
[[nodiscard]] DOORBELL_INLINE bool decode(const u64* words, C& out) {
  out = unpack<C>(words);
  return out.take_header(header_of(words[0]));
}

/// Bytes 2.3 to 3.5 of DMA commands and of C_STATE. Source: shs-cassini-headers.
struct DmaFlags {
  bool event_send_disable = false;
  bool event_success_disable = false;
  bool event_ct_send = false;
  bool event_ct_reply = false;
  bool event_ct_ack = false;    ///< adds 1 to success for each acknowledgement
  bool event_ct_bytes = false;  ///< adds the bytes to success instead
  bool get_with_local_flag = false;
  bool restricted = false;
  bool reduction = false;
  bool flush = false;
  bool use_offset_for_get = false;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<2, 3, 1>{}, s.event_send_disable);
    field(Bits<2, 4, 1>{}, s.event_success_disable);
    field(Bits<2, 5, 1>{}, s.event_ct_send);
    field(Bits<2, 6, 1>{}, s.event_ct_reply);
    field(Bits<2, 7, 1>{}, s.event_ct_ack);
    field(Bits<3, 0, 1>{}, s.event_ct_bytes);
    field(Bits<3, 1, 1>{}, s.get_with_local_flag);
    field(Bits<3, 2, 1>{}, s.restricted);
    field(Bits<3, 3, 1>{}, s.reduction);
    field(Bits<3, 4, 1>{}, s.flush);
    field(Bits<3, 5, 1>{}, s.use_offset_for_get);
  }
};

/// The fields at the beginning of every DMA command. Source: shs-cassini-headers.
struct DmaFields {
  u32 index_ext = 0;
  u32 lac = 0;  ///< the address context of local_addr
  DmaFlags flags;
  u32 dfa = 0;
  u64 remote_offset = 0;
  u64 local_addr = 0;  ///< IOVA
  u32 request_len = 0;
  u32 ct = 0;
  u32 eq = 0;

  /// Sets the destination.
  DOORBELL_INLINE void to(const Dfa& d) {
    dfa = d.value;
    index_ext = d.index_ext;
  }
  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<1, 0, 5>{}, s.index_ext);
    field(Bits<2, 0, 3>{}, s.lac);
    DmaFlags::visit(s.flags, field);
    field(Bits<4, 0, 32>{}, s.dfa);
    field(Bits<8, 0, 56>{}, s.remote_offset);
    field(Bits<16, 0, 57>{}, s.local_addr);
    field(Bits<24, 0, 32>{}, s.request_len);
    field(Bits<28, 0, 11>{}, s.ct);
    field(Bits<30, 0, 11>{}, s.eq);
  }
};

/// A put to, or a get from, a non-matching portals entry: 32 bytes. Always restricted.
/// Source: shs-cassini-headers.
struct NomatchDma : DmaFields {
  static constexpr u32 kWords = 4;
  static constexpr u64 kAlways = u64{1} << Bits<3, 2, 1>::kShift;
  Opcode opcode = Opcode::nomatch_put;

  /// The command's first byte.
  [[nodiscard]] DOORBELL_INLINE u32 header() const { return header_byte(CommandType::dma, 0, opcode); }
  /// Takes the opcode over; false for another command's first byte.
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) {
    opcode = static_cast<Opcode>(h.opcode);
    return h.kind() == CommandType::dma && h.size_code == 0 &&
           (opcode == Opcode::nomatch_put || opcode == Opcode::nomatch_get);
  }
};

/// The 64-byte form with match bits and with the values that events carry: put, get and their relatives.
/// Source: shs-cassini-headers.
struct FullDma : DmaFields {
  static constexpr u32 kWords = 8;
  Opcode opcode = Opcode::put;
  u32 eager_length = 0;
  u32 rendezvous_id = 0;
  u32 initiator = 0;
  u64 match_bits = 0;
  u64 header_data = 0;
  u64 user_ptr = 0;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    DmaFields::visit(s, field);
    field(Bits<32, 0, 20>{}, s.eager_length);
    field(Bits<35, 0, 8>{}, s.rendezvous_id);
    field(Bits<36, 0, 32>{}, s.initiator);
    field(Bits<40, 0, 64>{}, s.match_bits);
    field(Bits<48, 0, 64>{}, s.header_data);
    field(Bits<56, 0, 64>{}, s.user_ptr);
  }
  /// The command's first byte.
  [[nodiscard]] DOORBELL_INLINE u32 header() const { return header_byte(CommandType::dma, 1, opcode); }
  /// Takes the opcode over; false for another command's first byte.
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) {
    opcode = static_cast<Opcode>(h.opcode);
    return h.kind() == CommandType::dma && h.size_code == 1 &&
           (opcode == Opcode::put || opcode == Opcode::get || opcode == Opcode::rendezvous_put);
  }
};

/// The fields that the IDC puts after this command share: 32 bytes, sent once before the first of them.
/// Source: shs-cassini-headers.
struct CState {
  static constexpr u32 kWords = 4;
  static constexpr u64 kAlways = u64{32} << 8;  ///< the command's length, which is constant
  u32 index_ext = 0;
  u32 write_lac = 0;
  DmaFlags flags;
  u32 initiator = 0;
  u64 user_ptr = 0;
  u32 ct = 0;
  u32 eq = 0;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<2, 0, 3>{}, s.write_lac);
    DmaFlags::visit(s.flags, field);
    field(Bits<4, 0, 32>{}, s.initiator);
    field(Bits<8, 0, 5>{}, s.index_ext);
    field(Bits<16, 0, 64>{}, s.user_ptr);
    field(Bits<28, 0, 11>{}, s.ct);
    field(Bits<30, 0, 11>{}, s.eq);
  }
  /// The command's first byte.
  [[nodiscard]] DOORBELL_INLINE u32 header() const {
    return header_byte(CommandType::idc, 0, Opcode::cstate);
  }
  /// Takes the opcode over; false for another command's first byte.
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) const {
    return h.kind() == CommandType::idc && h.size_code == 0 && h.opcode == static_cast<u32>(Opcode::cstate);
  }
};

/// A put whose payload follows its 16-byte header. The encoder does not check idc_limit().
/// Source: shs-cassini-headers.
struct IdcPut {
  static constexpr u32 kHeaderBytes = 16;
  static constexpr u32 kMaxPayload = 239;  ///< the limit of the length byte
  u32 dfa = 0;
  u64 remote_offset = 0;
  u32 bytes = 0;
  const u8* payload = nullptr;  ///< after decoding: points behind the header, in the ring

  /// 0..3, for the smallest command that has room for header and payload.
  [[nodiscard]] DOORBELL_INLINE u32 size_code() const {
    return bytes <= 16 ? 0 : bytes <= 48 ? 1 : bytes <= 112 ? 2 : 3;
  }
  /// Its length in units of 32 bytes.
  [[nodiscard]] DOORBELL_INLINE u32 units() const { return 1u << size_code(); }
  /// Bytes 16p..16p+15; reads the payload.
  [[nodiscard]] DOORBELL_INLINE Word16 part(u32 p) const {
    if (p != 0) return payload_part(payload, bytes, 16 * (p - 1));
    const u32 head = header_byte(CommandType::idc, size_code(), Opcode::put) | ((kHeaderBytes + bytes) & 0xff)
                                                                                   << 8;
    return words(join(dfa, head), remote_offset & Bits<8, 0, 56>::kMask);
  }
};

/// False if the first byte is that of another command, or if the length does not fit its size.
[[nodiscard]] DOORBELL_INLINE bool decode(const u64* words, IdcPut& out) {
  const CommandHeader h = header_of(words[0]);
  const u32 length = static_cast<u32>(words[0] >> 8) & 0xff;
  if (h.kind() != CommandType::idc || h.opcode != static_cast<u32>(Opcode::put)) return false;
  if (length < IdcPut::kHeaderBytes || length > 32 * h.units()) return false;
  out.dfa = high(words[0]);
  out.remote_offset = words[1] & Bits<8, 0, 56>::kMask;
  out.bytes = length - IdcPut::kHeaderBytes;
  out.payload = reinterpret_cast<const u8*>(words + 2);
  return true;
}

/// A put with match bits whose payload follows its 32-byte header; C_STATE has its other fields. The encoder
/// does not check idc_limit(). Source: shs-cassini-headers.
struct IdcMessage {
  static constexpr u32 kHeaderBytes = 32;
  static constexpr u32 kMaxPayload = 223;  ///< the limit of the length byte
  u32 dfa = 0;
  u64 match_bits = 0;
  u64 header_data = 0;
  u64 user_ptr = 0;
  u32 bytes = 0;
  const u8* payload = nullptr;  ///< after decoding: points behind the header, in the ring

  /// 1..3, for the smallest command that has room for header and payload.
  [[nodiscard]] DOORBELL_INLINE u32 size_code() const { return bytes <= 32 ? 1 : bytes <= 96 ? 2 : 3; }
  /// Its length in units of 32 bytes.
  [[nodiscard]] DOORBELL_INLINE u32 units() const { return 1u << size_code(); }
  /// Bytes 16p..16p+15; reads the payload.
  [[nodiscard]] DOORBELL_INLINE Word16 part(u32 p) const {
    if (p > 1) return payload_part(payload, bytes, 16 * (p - 2));
    if (p == 1) return words(header_data, user_ptr);
    const u32 head = header_byte(CommandType::idc, size_code(), Opcode::small_message) |
                     ((kHeaderBytes + bytes) & 0xff) << 8;
    return words(join(dfa, head), match_bits);
  }
};

/// False if the first byte is that of another command, or if the length does not fit its size.
[[nodiscard]] DOORBELL_INLINE bool decode(const u64* words, IdcMessage& out) {
  const CommandHeader h = header_of(words[0]);
  const u32 length = static_cast<u32>(words[0] >> 8) & 0xff;
  if (h.kind() != CommandType::idc || h.opcode != static_cast<u32>(Opcode::small_message)) return false;
  // The command's size first: behind a short one the initiator writes the next.
  if (h.size_code == 0 || length < IdcMessage::kHeaderBytes || length > 32 * h.units()) return false;
  out.dfa = high(words[0]);
  out.match_bits = words[1];
  out.header_data = words[2];
  out.user_ptr = words[3];
  out.bytes = length - IdcMessage::kHeaderBytes;
  out.payload = reinterpret_cast<const u8*>(words + 4);
  return true;
}

// --- what a queue needs to know of any command -------------------------------------------------------------

/// The command's length in units of 32 bytes, which is also its alignment.
template <class C>
[[nodiscard]] DOORBELL_INLINE u32 command_units(const C& command) {
  if constexpr (requires { command.units(); }) return command.units();
  else return C::kWords / 4;
}
/// Bytes 16p..16p+15 of the command.
template <class C>
[[nodiscard]] DOORBELL_INLINE Word16 command_part(const C& command, u32 p) {
  if constexpr (requires { command.part(p); }) return command.part(p);
  else return encode(command).part(p);
}

// Commands that change counting events, and commands that wait for a count.

/// 24 bytes of fields in a command of 64 bytes; each opcode uses some of them. Source: shs-cassini-headers.
struct CounterFields {
  u32 ct = 0;
  u32 trig_ct = 0;  ///< the counter whose success count a triggered command waits for
  u32 eq = 0;
  u64 ct_success = 0;
  u32 ct_failure = 0;
  bool set_ct_success = false;
  bool set_ct_failure = false;
  u64 threshold = 0;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<2, 0, 11>{}, s.ct);
    field(Bits<4, 0, 11>{}, s.trig_ct);
    field(Bits<6, 0, 11>{}, s.eq);
    field(Bits<8, 0, 48>{}, s.ct_success);
    field(Bits<14, 0, 7>{}, s.ct_failure);
    field(Bits<15, 6, 1>{}, s.set_ct_success);
    field(Bits<15, 7, 1>{}, s.set_ct_failure);
    field(Bits<16, 0, 48>{}, s.threshold);
  }
};

/// Every counter command except the triggered DMA. Source: shs-cassini-headers.
struct CounterCommand : CounterFields {
  static constexpr u32 kWords = 8;
  CounterOpcode opcode = CounterOpcode::noop;

  /// The command's first byte.
  [[nodiscard]] DOORBELL_INLINE u32 header() const { return header_byte(CommandType::counter, 1, opcode); }
  /// Takes the opcode over; false for another command's first byte.
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) {
    opcode = static_cast<CounterOpcode>(h.opcode);
    return h.kind() == CommandType::counter && h.size_code == 1 &&
           h.opcode <= static_cast<u32>(CounterOpcode::trig_event) && opcode != CounterOpcode::trig_dma;
  }

  /// Sets both counts.
  [[nodiscard]] DOORBELL_INLINE static CounterCommand set(u32 ct, u64 success, u32 failure) {
    CounterCommand c;
    c.opcode = CounterOpcode::set;
    c.ct = ct;
    c.ct_success = success;
    c.ct_failure = failure;
    c.set_ct_success = c.set_ct_failure = true;
    return c;
  }
  /// Adds to the counts; 0 leaves a count unchanged.
  [[nodiscard]] DOORBELL_INLINE static CounterCommand increment(u32 ct, u64 success, u32 failure = 0) {
    CounterCommand c = set(ct, success, failure);
    c.opcode = CounterOpcode::increment;
    c.set_ct_success = success != 0;
    c.set_ct_failure = failure != 0;
    return c;
  }
  /// Causes a TRIGGERED_OP event in `eq` when the successes of `trig_ct` have reached `threshold`.
  [[nodiscard]] DOORBELL_INLINE static CounterCommand trig_event(u32 trig_ct, u64 threshold, u32 eq) {
    CounterCommand c;
    c.opcode = CounterOpcode::trig_event;
    c.trig_ct = trig_ct;
    c.threshold = threshold;
    c.eq = eq;
    return c;
  }
};

/// A put or get that waits for a counter: 128 bytes; the DMA command begins at byte 24.
/// Source: shs-cassini-headers.
struct TrigDma {
  static constexpr u32 kWords = 16;
  static constexpr u32 kDmaWord = 3;
  CounterFields when;  ///< trig_ct, threshold, eq
  NomatchDma dma;

  /// The command's first byte.
  [[nodiscard]] DOORBELL_INLINE static u32 header() {
    return header_byte(CommandType::counter, 2, CounterOpcode::trig_dma);
  }
};
/// The bytes of a triggered DMA command.
[[nodiscard]] DOORBELL_INLINE Words<TrigDma::kWords> encode(const TrigDma& command) {
  Words<TrigDma::kWords> out;
  CounterFields::visit(command.when, FieldWriter{out.w});
  out.w[0] |= TrigDma::header();
  const Words<NomatchDma::kWords> dma = encode(command.dma);
  DOORBELL_UNROLL
  for (u32 k = 0; k < NomatchDma::kWords; ++k) out.w[TrigDma::kDmaWord + k] = dma.w[k];
  return out;
}
/// False for another command, or if the DMA command inside does not have 32 bytes.
[[nodiscard]] DOORBELL_INLINE bool decode(const u64* words, TrigDma& out) {
  CounterFields::visit(out.when, FieldReader{words});
  return (words[0] & 0xff) == TrigDma::header() && decode(words + TrigDma::kDmaWord, out.dma);
}

// Commands that change portals entries, and commands that change the queue itself.

/// Bits of Append::flags. Source: shs-cassini-headers.
namespace append_flag {
inline constexpr u32 ct_bytes = 1u << 0, ct_overflow = 1u << 1, ct_comm = 1u << 2, unlink_disable = 1u << 3,
                     success_disable = 1u << 4, comm_disable = 1u << 5, link_disable = 1u << 6,
                     unrestricted_end_ro = 1u << 7, unrestricted_body_ro = 1u << 8,
                     unexpected_hdr_disable = 1u << 9, use_once = 1u << 10, no_truncate = 1u << 11,
                     manage_local = 1u << 12, op_get = 1u << 13, op_put = 1u << 14;
}  // namespace append_flag

/// Appends memory to a list of a portals entry. Source: shs-cassini-headers.
struct Append {
  static constexpr u32 kWords = 8;
  PortalsList ptl_list = PortalsList::priority;
  u32 ptlte_index = 0;
  u32 flags = 0;
  u32 ct = 0;
  u32 buffer_id = 0;
  u32 lac = 0;
  bool restart_seq = false;
  u64 start = 0;  ///< IOVA
  u64 length = 0;
  u32 min_free = 0;
  u32 match_id = 0;
  u64 match_bits = 0;
  u64 ignore_bits = 0;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<1, 0, 2>{}, s.ptl_list);
    field(Bits<2, 0, 11>{}, s.ptlte_index);
    field(Bits<4, 0, 15>{}, s.flags);
    field(Bits<6, 0, 11>{}, s.ct);
    field(Bits<8, 0, 16>{}, s.buffer_id);
    field(Bits<10, 0, 3>{}, s.lac);
    field(Bits<11, 0, 1>{}, s.restart_seq);
    field(Bits<16, 0, 57>{}, s.start);
    field(Bits<24, 0, 56>{}, s.length);
    field(Bits<32, 0, 24>{}, s.min_free);
    field(Bits<36, 0, 32>{}, s.match_id);
    field(Bits<40, 0, 64>{}, s.match_bits);
    field(Bits<48, 0, 64>{}, s.ignore_bits);
  }
  /// The command's first byte.
  [[nodiscard]] DOORBELL_INLINE u32 header() const {
    return header_byte(CommandType::queue, 1, QueueOpcode::append);
  }
  /// Takes the opcode over; false for another command's first byte.
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) const {
    return h.byte() == header();
  }
};

/// Looks for unexpected messages that match, each of which SEARCH reports; SEARCH_AND_DELETE takes them out,
/// too. With use_once only the first; else an event with NO_MATCH ends the answer. Source:
/// shs-cassini-headers.
struct Search : Append {
  QueueOpcode opcode = QueueOpcode::search;

  /// The command's first byte.
  [[nodiscard]] DOORBELL_INLINE u32 header() const { return header_byte(CommandType::queue, 1, opcode); }
  /// Takes the opcode over; false for another command's first byte.
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) {
    opcode = static_cast<QueueOpcode>(h.opcode);
    return h.kind() == CommandType::queue && h.size_code == 1 &&
           (opcode == QueueOpcode::search || opcode == QueueOpcode::search_and_delete);
  }
};

/// Takes memory out of a list of a portals entry: the first with that buffer_id. UNLINK answers.
/// Source: shs-cassini-headers.
struct Unlink {
  static constexpr u32 kWords = 8;
  PortalsList ptl_list = PortalsList::priority;
  u32 ptlte_index = 0;
  u32 buffer_id = 0;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<1, 0, 2>{}, s.ptl_list);
    field(Bits<2, 0, 11>{}, s.ptlte_index);
    field(Bits<8, 0, 16>{}, s.buffer_id);
  }
  /// The command's first byte.
  [[nodiscard]] DOORBELL_INLINE u32 header() const {
    return header_byte(CommandType::queue, 1, QueueOpcode::unlink);
  }
  /// Takes the opcode over; false for another command's first byte.
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) const {
    return h.byte() == header();
  }
};

/// Sets the state of a portals entry. Source: shs-cassini-headers.
struct SetState {
  static constexpr u32 kWords = 8;
  PtlteState ptlte_state = PtlteState::reset;
  u32 ptlte_index = 0;
  u64 current_addr = 0;
  u32 drop_count = 0;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<1, 0, 3>{}, s.ptlte_state);
    field(Bits<2, 0, 11>{}, s.ptlte_index);
    field(Bits<8, 0, 57>{}, s.current_addr);
    field(Bits<16, 0, 24>{}, s.drop_count);
  }
  /// The command's first byte.
  [[nodiscard]] DOORBELL_INLINE u32 header() const {
    return header_byte(CommandType::queue, 1, QueueOpcode::set_state);
  }
  /// Takes the opcode over; false for another command's first byte.
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) const {
    return h.byte() == header();
  }
};

/// Sets the communication profile for the following commands. Aligned to 128 bytes: 64 bytes and a NOOP of
/// 64. Source: shs-cassini-headers.
struct Lcid {
  static constexpr u32 kWords = 16;
  /// The NOOP that follows the command.
  static constexpr u64 kNoopWord = 8;
  u32 lcid = 0;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<4, 0, 4>{}, s.lcid);
  }
  /// The command's first byte.
  [[nodiscard]] DOORBELL_INLINE u32 header() const {
    return header_byte(CommandType::queue, 1, QueueOpcode::lcid);
  }
  /// Takes the opcode over; false for another command's first byte.
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) const {
    return h.byte() == header();
  }
  /// Bytes 16p..16p+15, of both commands.
  [[nodiscard]] DOORBELL_INLINE Word16 part(u32 p) const {
    constexpr u64 noop = header_byte(CommandType::queue, 1, QueueOpcode::noop);
    return words(p == 0 ? encode(*this).w[0] : p == 4 ? noop : 0, 0);
  }
};

}  // namespace doorbell::cxi
