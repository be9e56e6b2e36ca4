// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The data that the device writes: events, the status of queues, the counts of a counter; and the word with
// which the reader gives events back.
#pragma once

#include <doorbell/cxi/types.hpp>

namespace doorbell::cxi {

// --- events ----------------------------------------------------------------------------------------------

/// The fields that every event has at the same places: size and type in bytes 14.0 to 14.6, and the return
/// code in the lower six bits of the last byte. Source: shs-cassini-headers.
struct EventHead {
  using Size = Bits<14, 0, 2>;           ///< 1, 2 and 3 for 16, 32 and 64 bytes
  using Type = Bits<14, 2, 5>;           ///< EventType
  static constexpr u32 kCodeShift = 56;  ///< in the last word
  static constexpr u64 kCodeMask = 0x3f;

  EventType type = EventType::null_event;
  ReturnCode return_code = ReturnCode::ok;

  /// 0, 16, 32 or 64 bytes, according to the event's second word.
  [[nodiscard]] DOORBELL_INLINE static u32 bytes(u64 second_word) {
    return 8u << (second_word >> Size::kShift & Size::kMask) & 0x70u;
  }
  /// From the event's second word.
  [[nodiscard]] DOORBELL_INLINE static EventType type_of(u64 second_word) {
    return static_cast<EventType>(second_word >> Type::kShift & Type::kMask);
  }
  /// From the event's last word; ReturnCode::none: the device has not written it.
  [[nodiscard]] DOORBELL_INLINE static ReturnCode code_of(u64 last_word) {
    return static_cast<ReturnCode>(last_word >> kCodeShift & kCodeMask);
  }
};

/// The bytes of an event, as the device writes them.
template <class E>
[[nodiscard]] DOORBELL_INLINE Words<E::kWords> encode_event(const E& event) {
  constexpr u64 size_code = E::kWords == 2 ? 1 : E::kWords == 4 ? 2 : 3;
  Words<E::kWords> out = pack(event);
  out.w[1] |= size_code << EventHead::Size::kShift;
  out.w[1] |= (static_cast<u64>(event.type) & EventHead::Type::kMask) << EventHead::Type::kShift;
  out.w[E::kWords - 1] |= (static_cast<u64>(event.return_code) & EventHead::kCodeMask)
                          << EventHead::kCodeShift;
  return out;
}

/// False if the event has another size, or a type with another layout.
template <class E>
[[nodiscard]] DOORBELL_INLINE bool decode_event(const u64* words, E& out) {
  out = unpack<E>(words);
  out.type = EventHead::type_of(words[1]);
  out.return_code = EventHead::code_of(words[E::kWords - 1]);
  return EventHead::bytes(words[1]) == E::kWords * 8 && E::has(out.type);
}

/// Bytes 16..31 of the long form of small events. Source: shs-cassini-headers.
struct EventTime {
  u32 ns = 0;
  u64 sec = 0;
  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<16, 0, 30>{}, s.ns);
    field(Bits<24, 0, 48>{}, s.sec);
  }
};

/// The layout of SEND, ACK and REPLY. Source: shs-cassini-headers.
struct InitiatorEvent : EventHead {
  static constexpr u32 kWords = 2;
  u64 user_ptr = 0;
  u32 mlength = 0;
  PortalsList ptl_list = PortalsList::priority;
  bool rendezvous = false;
  bool retry = false;
  bool tgt_error = false;  ///< the return code is the target's

  /// True for the types with this layout.
  [[nodiscard]] DOORBELL_INLINE static bool has(EventType t) {
    return t == EventType::send || t == EventType::ack || t == EventType::reply;
  }
  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<0, 0, 64>{}, s.user_ptr);
    field(Bits<8, 0, 32>{}, s.mlength);
    field(Bits<12, 0, 2>{}, s.ptl_list);
    field(Bits<12, 4, 1>{}, s.rendezvous);
    field(Bits<12, 5, 1>{}, s.retry);
    field(Bits<12, 6, 1>{}, s.tgt_error);
  }
};
/// The same with a time stamp. Source: shs-cassini-headers.
struct InitiatorLongEvent : InitiatorEvent {
  static constexpr u32 kWords = 4;
  EventTime time;
  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    InitiatorEvent::visit(s, field);
    EventTime::visit(s.time, field);
  }
};

/// The layout of TRIGGERED_OP. Source: shs-cassini-headers.
struct TriggeredEvent : EventHead {
  static constexpr u32 kWords = 2;
  u64 threshold = 0;
  u32 ct_handle = 0;

  /// True for the types with this layout.
  [[nodiscard]] DOORBELL_INLINE static bool has(EventType t) { return t == EventType::triggered_op; }
  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<0, 0, 48>{}, s.threshold);
    field(Bits<8, 0, 11>{}, s.ct_handle);
  }
};
/// The same with a time stamp. Source: shs-cassini-headers.
struct TriggeredLongEvent : TriggeredEvent {
  static constexpr u32 kWords = 4;
  EventTime time;
  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    TriggeredEvent::visit(s, field);
    EventTime::visit(s.time, field);
  }
};

/// The layout of COMMAND_FAILURE. Source: shs-cassini-headers.
struct CommandFailureEvent : EventHead {
  static constexpr u32 kWords = 2;
  u32 cq_id = 0;
  bool is_target = false;
  u32 fail_loc = 0;      ///< slot
  u32 fail_command = 0;  ///< the first byte of the command

  /// True for the types with this layout.
  [[nodiscard]] DOORBELL_INLINE static bool has(EventType t) { return t == EventType::command_failure; }
  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<0, 0, 10>{}, s.cq_id);
    field(Bits<1, 2, 1>{}, s.is_target);
    field(Bits<2, 0, 16>{}, s.fail_loc);
    field(Bits<4, 0, 8>{}, s.fail_command);
  }
};

/// The fields at the beginning of both forms of a target event, which says what happened to a portals entry.
/// The target of an operation is the end whose memory it reads or writes. Source: shs-cassini-headers.
struct TargetHead : EventHead {
  u64 header_data = 0;
  u32 initiator = 0;
  u32 ptlte_index = 0;
  PortalsList ptl_list = PortalsList::priority;
  bool auto_unlinked = false;
  u64 match_bits = 0;
  u32 buffer_id = 0;
  u32 vni = 0;

  /// True for every type except STATE_CHANGE.
  [[nodiscard]] DOORBELL_INLINE static bool has(EventType t) {
    return static_cast<u32>(t) <= static_cast<u32>(EventType::fetch_atomic_overflow) ||
           t == EventType::link || t == EventType::search || t == EventType::unlink ||
           t == EventType::rendezvous;
  }
  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<0, 0, 64>{}, s.header_data);
    field(Bits<8, 0, 32>{}, s.initiator);
    field(Bits<12, 0, 11>{}, s.ptlte_index);
    field(Bits<15, 0, 2>{}, s.ptl_list);
    field(Bits<15, 4, 1>{}, s.auto_unlinked);
    field(Bits<16, 0, 64>{}, s.match_bits);
    field(Bits<24, 0, 16>{}, s.buffer_id);
    field(Bits<26, 0, 16>{}, s.vni);
  }
};
/// The short form. Source: shs-cassini-headers.
struct TargetEvent : TargetHead {
  static constexpr u32 kWords = 4;
  u32 length = 0;
  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    TargetHead::visit(s, field);
    field(Bits<28, 0, 20>{}, s.length);
  }
};
/// The long form. Source: shs-cassini-headers.
struct TargetLongEvent : TargetHead {
  static constexpr u32 kWords = 8;
  bool rendezvous = false;
  bool get_issued = false;
  u32 ns = 0;
  u32 sec_low = 0;
  u32 mlength = 0;
  u32 rlength = 0;
  u64 remote_offset = 0;
  u64 start = 0;
  u32 lpe_stat_1 = 0;
  u32 lpe_stat_2 = 0;
  u32 atomic_type = 0;
  u32 atomic_op = 0;
  u32 cswap_op = 0;
  u32 rendezvous_id = 0;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    TargetHead::visit(s, field);
    field(Bits<15, 2, 1>{}, s.rendezvous);
    field(Bits<15, 3, 1>{}, s.get_issued);
    field(Bits<28, 0, 30>{}, s.ns);
    field(Bits<31, 6, 2>{}, s.sec_low);
    field(Bits<32, 0, 32>{}, s.mlength);
    field(Bits<36, 0, 32>{}, s.rlength);
    field(Bits<40, 0, 56>{}, s.remote_offset);
    field(Bits<48, 0, 57>{}, s.start);
    field(Bits<56, 0, 16>{}, s.lpe_stat_1);
    field(Bits<58, 0, 16>{}, s.lpe_stat_2);
    field(Bits<60, 0, 4>{}, s.atomic_type);
    field(Bits<60, 4, 4>{}, s.atomic_op);
    field(Bits<61, 0, 3>{}, s.cswap_op);
    field(Bits<62, 0, 8>{}, s.rendezvous_id);
  }
};

/// STATE_CHANGE, in the short form or the long one. Source: shs-cassini-headers.
struct StateChangeEvent : EventHead {
  static constexpr u32 kWords = 4;
  PtlteState ptlte_state = PtlteState::reset;
  u32 reason = 0;
  bool by_nic = false;  ///< no command caused it
  u32 ptlte_index = 0;

  /// True for the types with this layout.
  [[nodiscard]] DOORBELL_INLINE static bool has(EventType t) { return t == EventType::state_change; }
  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<8, 0, 3>{}, s.ptlte_state);
    field(Bits<9, 0, 4>{}, s.reason);
    field(Bits<10, 0, 1>{}, s.by_nic);
    field(Bits<12, 0, 11>{}, s.ptlte_index);
  }
};
/// The long form, of which no more fields are used. Source: shs-cassini-headers.
struct StateChangeLongEvent : StateChangeEvent {
  static constexpr u32 kWords = 8;
};

/// Fills a block behind its last event; readers skip it.
template <u32 kSize>
struct NullEvent : EventHead {
  static constexpr u32 kWords = kSize;  ///< 2, 4 or 8
  /// True for the types with this layout.
  [[nodiscard]] DOORBELL_INLINE static bool has(EventType t) { return t == EventType::null_event; }
  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self&, const Field&) {}
};

// --- status and registers --------------------------------------------------------------------------------

/// The first 8 bytes of a command queue. Source: shs-cassini-headers.
struct CommandQueueStatus {
  static constexpr u32 kWords = 1;
  u32 rd_ptr = 0;    ///< slot
  u32 rejected = 0;  ///< writes to low-latency windows
  u32 fail_command = 0;
  ReturnCode return_code = ReturnCode::none;
  bool fail_loc_32 = false;  ///< the failed command began in the slot's upper half
  bool fail_ll = false;
  bool ll_disabled = false;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<0, 0, 16>{}, s.rd_ptr);
    field(Bits<2, 0, 16>{}, s.rejected);
    field(Bits<4, 0, 8>{}, s.fail_command);
    field(Bits<6, 0, 6>{}, s.return_code);
    field(Bits<7, 5, 1>{}, s.fail_loc_32);
    field(Bits<7, 6, 1>{}, s.fail_ll);
    field(Bits<7, 7, 1>{}, s.ll_disabled);
  }
};

/// The first 64 bytes of an event queue. The status is complete if both time stamps agree.
/// Source: shs-cassini-headers.
struct EventQueueStatus {
  static constexpr u32 kWords = 8;
  u32 ns_copy = 0;
  u64 sec_copy = 0;
  bool thld_sts = false;
  u32 thld_id = 0;
  bool unackd_dropped = false;
  bool drop_seq = false;
  u32 slots_free = 0;
  u32 slots_reserved = 0;
  u32 wr_ptr = 0;
  bool buffer_b = false;
  u32 ns = 0;
  u64 sec = 0;

  /// False: the device was writing it; read again.
  [[nodiscard]] DOORBELL_INLINE bool valid() const { return ns == ns_copy && sec == sec_copy; }
  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<0, 0, 30>{}, s.ns_copy);
    field(Bits<8, 0, 48>{}, s.sec_copy);
    field(Bits<14, 0, 1>{}, s.thld_sts);
    field(Bits<14, 4, 2>{}, s.thld_id);
    field(Bits<15, 0, 1>{}, s.unackd_dropped);
    field(Bits<15, 4, 1>{}, s.drop_seq);
    field(Bits<16, 0, 26>{}, s.slots_free);
    field(Bits<20, 0, 26>{}, s.slots_reserved);
    field(Bits<24, 0, 26>{}, s.wr_ptr);
    field(Bits<28, 0, 1>{}, s.buffer_b);
    field(Bits<52, 0, 30>{}, s.ns);
    field(Bits<56, 0, 48>{}, s.sec);
  }
};

/// The register with which the reader gives events back. Source: shs-cassini-headers.
struct EventQueueCsr {
  static constexpr u32 kWords = 1;
  u32 rd_ptr = 0;  ///< offset / 64
  bool reading_buffer_b = false;
  bool event_int_disable = false;
  bool eq_sts_int_disable = false;
  bool event_drop_seq_no = false;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<0, 0, 26>{}, s.rd_ptr);
    field(Bits<3, 7, 1>{}, s.reading_buffer_b);
    field(Bits<4, 0, 1>{}, s.event_int_disable);
    field(Bits<4, 1, 1>{}, s.eq_sts_int_disable);
    field(Bits<5, 0, 1>{}, s.event_drop_seq_no);
  }
};

/// The counts that the device writes back. Source: shs-cassini-headers.
struct CounterCounts {
  static constexpr u32 kWords = 1;
  u64 success = 0;
  u32 failure = 0;
  bool valid = false;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<0, 0, 48>{}, s.success);
    field(Bits<6, 0, 7>{}, s.failure);
    field(Bits<7, 7, 1>{}, s.valid);
  }
};

}  // namespace doorbell::cxi
