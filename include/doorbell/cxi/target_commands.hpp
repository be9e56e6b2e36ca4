// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Commands that change portals entries, and commands that change the queue itself.
#pragma once

#include <doorbell/cxi/commands.hpp>

namespace doorbell::cxi {

/// Bits of Append::flags.
namespace append_flag {
inline constexpr u32 ct_bytes = 1u << 0, ct_overflow = 1u << 1, ct_comm = 1u << 2, unlink_disable = 1u << 3,
                     success_disable = 1u << 4, comm_disable = 1u << 5, link_disable = 1u << 6,
                     unrestricted_end_ro = 1u << 7, unrestricted_body_ro = 1u << 8,
                     unexpected_hdr_disable = 1u << 9, use_once = 1u << 10, no_truncate = 1u << 11,
                     manage_local = 1u << 12, op_get = 1u << 13, op_put = 1u << 14;
}  // namespace append_flag

/// Appends memory to a list of a portals entry.
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
  [[nodiscard]] DOORBELL_INLINE u32 header() const {
    return header_byte(CommandType::queue, 1, QueueOpcode::append);
  }
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) const {
    return h.byte() == header();
  }
};

struct SetState {
  static constexpr u32 kWords = 8;
  PtlteState ptlte_state = PtlteState::reset;
  u32 ptlte_index = 0;
  u64 current_addr = 0;
  u32 drop_count = 0;

  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<1, 0, 3>{}, s.ptlte_state);
    field(Bits<2, 0, 11>{}, s.ptlte_index);
    field(Bits<8, 0, 57>{}, s.current_addr);
    field(Bits<16, 0, 24>{}, s.drop_count);
  }
  [[nodiscard]] DOORBELL_INLINE u32 header() const {
    return header_byte(CommandType::queue, 1, QueueOpcode::set_state);
  }
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) const {
    return h.byte() == header();
  }
};

/// Sets the communication profile for the following commands. Aligned to 128 bytes: 64 bytes and a NOOP of
/// 64.
struct Lcid {
  static constexpr u32 kWords = 16;
  /// The NOOP that follows the command.
  static constexpr u64 kNoopWord = 8;
  u32 lcid = 0;

  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<4, 0, 4>{}, s.lcid);
  }
  [[nodiscard]] DOORBELL_INLINE u32 header() const {
    return header_byte(CommandType::queue, 1, QueueOpcode::lcid);
  }
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) const {
    return h.byte() == header();
  }
  [[nodiscard]] DOORBELL_INLINE Word16 part(u32 p) const {
    constexpr u64 noop = header_byte(CommandType::queue, 1, QueueOpcode::noop);
    return words(p == 0 ? encode(*this).w[0] : p == 4 ? noop : 0, 0);
  }
};

}  // namespace doorbell::cxi
