// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Matching: which memory of a portals entry takes which operation, and what is kept of operations that came
// before the memory that they are for. Plain data, which the engine owns.
#pragma once

#include <doorbell/cxi/commands.hpp>

#include "cxi/model/objects.hpp"

namespace doorbell::cxi {

/// An operation on a matching portals entry, as its events tell of it.
struct Message {
  EventType type = EventType::put;
  u32 initiator = 0;
  u64 match_bits = 0;
  u64 header_data = 0;
  u64 remote_offset = 0;
  u64 start = 0;    ///< where its data went
  u32 rlength = 0;  ///< bytes that the initiator asked for
  u32 mlength = 0;  ///< bytes that were moved
  u8 atomic_op = 0, atomic_type = 0, cswap_op = 0;
  bool rendezvous = false;  ///< the rest of the data waits at the initiator, at `source_offset`
  u8 rendezvous_id = 0;
  u64 source_offset = 0;
  u64 target_offset = 0;  ///< in the memory of the target
};

/// A message that the overflow list took, until memory of the priority list matches it.
struct UnexpectedMessage {
  Message message;
  u32 next = kNobody;
};

/// The rest of a rendezvous put, for which the device sends a get.
struct Pull {
  bool due = false;
  u32 owner = 0;  ///< of the memory that it is for
  u32 lac = 0;
  u64 to = 0;  ///< IOVA
  u32 bytes = 0;
  Dfa from;
  u32 vni = 0;
  u64 offset = 0;
  u64 match_bits = 0;
  u32 initiator = 0;
  u32 eq = 0;
  u32 ct = 0;  ///< counts the reply; 0: none
  bool counts_bytes = false;
  u64 user_ptr = 0;
};

/// A memory's place in a portals entry, and how much of it an operation may use.
struct Match {
  ReturnCode code = ReturnCode::entry_not_found;
  PortalsList list = PortalsList::priority;
  u32 before = kNobody, place = kNobody;
  u64 offset = 0;
  u64 room = 0;  ///< bytes from there on
};

/// The state that matching needs beside the portals entries. `kEntries` of them; `kHeaders` as list entries.
template <u32 kEntries>
struct MatchingState {
  Chain unexpected[kEntries];  ///< of each portals entry: messages, the oldest first
  u32 free = kNobody, fresh = 0;
  u64 bytes = 0;  ///< moved by the last operation that matched
  Pull pull;
  WorkQueue puller;  ///< the initiator of the gets
};

/// Whether two numbers of processes, or of NICs, are the same; all ones in what was appended stand for any.
[[nodiscard]] DOORBELL_INLINE bool same_or_any(u32 wanted, u32 given, u32 all) {
  return (wanted & all) == all || (wanted & all) == (given & all);
}

/// Whether memory takes what comes with these bits from this initiator.
[[nodiscard]] DOORBELL_INLINE bool matches(const Append& a, u64 match_bits, u32 initiator, u32 pid_bits) {
  const u32 nic = 32 - pid_bits;
  return ((a.match_bits ^ match_bits) & ~a.ignore_bits) == 0 &&
         same_or_any(a.match_id >> nic, initiator >> nic, (1u << pid_bits) - 1) &&
         same_or_any(a.match_id, initiator, (1u << nic) - 1);
}

/// Where in its memory a message begins: the device itself decides where it hands out piece by piece.
[[nodiscard]] DOORBELL_INLINE u64 offset_in(const Append& a, const Message& m) {
  return (a.flags & append_flag::manage_local) != 0 ? 0 : m.target_offset;
}
/// Bytes that are left from there on.
[[nodiscard]] DOORBELL_INLINE u64 room_in(const Append& a, const Message& m) {
  const u64 offset = offset_in(a, m);
  return offset < a.length ? a.length - offset : 0;
}

/// The match bits of the get that fetches the rest of a rendezvous put. Source: shs-cassini-headers.
struct RendezvousBits {
  static constexpr u32 kWords = 1;
  u32 rendezvous_id = 0;
  u32 transaction_type = 0xf;  ///< as the driver configures it
  u32 match_bits = 0;          ///< the upper 16 of those of the put

  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<0, 0, 8>{}, s.rendezvous_id);
    field(Bits<1, 0, 4>{}, s.transaction_type);
    field(Bits<6, 0, 16>{}, s.match_bits);
  }
};

/// The user pointer in the reply to such a get. Source: shs-cassini-headers.
struct RendezvousPointer {
  static constexpr u32 kWords = 1;
  u32 source_nid = 0;
  u32 source_pid = 0;
  u32 ptlte_index = 0;
  u32 rendezvous_id = 0;
  u32 buffer_id = 0;

  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<0, 0, 20>{}, s.source_nid);
    field(Bits<2, 4, 9>{}, s.source_pid);
    field(Bits<3, 5, 11>{}, s.ptlte_index);
    field(Bits<5, 0, 8>{}, s.rendezvous_id);
    field(Bits<6, 0, 16>{}, s.buffer_id);
  }
};

}  // namespace doorbell::cxi
