// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of Cassini's programming interface: limits, opcodes, return codes, addresses of portals entries.
// Source of numbers and layouts: HewlettPackard/shs-cassini-headers 06f69b0; bytes: tests/golden/cxi.json.
#pragma once

#include <doorbell/memory_order.hpp>

// Fields of Cassini's structures. Each field is declared once. A structure has kWords and a static
// visit(self, field) that names the place of every member. Writing, reading and the set of used bits are
// derived from it.
namespace doorbell::cxi {

/// `kWidth` bits, which start at bit `kBit` of byte `kByte`. No field crosses a word of 8 bytes.
template <u32 kByte, u32 kBit, u32 kWidth>
struct Bits {
  /// @name The same in words of 8 bytes: which one, the place in it, and as many ones as the field is wide
  /// @{
  static constexpr u32 kWord = kByte / 8;
  static constexpr u32 kShift = kByte % 8 * 8 + kBit;
  static constexpr u64 kMask = kWidth == 64 ? ~u64{0} : (u64{1} << kWidth % 64) - 1;
  /// @}
  static_assert(kWidth >= 1 && kShift + kWidth <= 64);
};

/// The memory image of a structure of `kCount` words of 8 bytes.
template <u32 kCount>
struct Words {
  static constexpr u32 kParts = (kCount + 1) / 2;  ///< of 16 bytes
  u64 w[kCount] = {};                              ///< in the order of memory

  /// Bytes 16p..16p+15. Has no variable index into `w`, so that a GPU keeps `w` in registers.
  [[nodiscard]] DOORBELL_INLINE Word16 part(u32 p) const {
    Word16 v = words(w[0], kCount > 1 ? w[kCount > 1 ? 1 : 0] : 0);
    DOORBELL_UNROLL
    for (u32 k = 1; k < kCount / 2; ++k) v = pick(p == k, words(w[2 * k], w[2 * k + 1]), v);
    return v;
  }
};

/// visit() with it writes fields into words that are zero.
struct FieldWriter {
  u64* words;  ///< of the structure
  /// One field.
  template <class Place, class T>
  DOORBELL_INLINE void operator()(Place, const T& value) const {
    words[Place::kWord] |= (static_cast<u64>(value) & Place::kMask) << Place::kShift;
  }
};
/// visit() with it reads fields.
struct FieldReader {
  const u64* words;  ///< of the structure
  /// One field.
  template <class Place, class T>
  DOORBELL_INLINE void operator()(Place, T& value) const {
    value = static_cast<T>(words[Place::kWord] >> Place::kShift & Place::kMask);
  }
};
/// visit() with it sets all bits that belong to fields.
struct FieldMarker {
  u64* words;  ///< of the structure
  /// One field.
  template <class Place, class T>
  DOORBELL_INLINE void operator()(Place, const T&) const {
    words[Place::kWord] |= Place::kMask << Place::kShift;
  }
};

/// The bytes of a structure. Values that are too wide lose their upper bits and never change a neighbouring
/// field.
template <class T>
[[nodiscard]] DOORBELL_INLINE Words<T::kWords> pack(const T& value) {
  Words<T::kWords> out;
  T::visit(value, FieldWriter{out.w});
  return out;
}

/// A structure from its bytes. Ignores bits that belong to no field.
template <class T>
[[nodiscard]] DOORBELL_INLINE T unpack(const u64* words) {
  T out;
  T::visit(out, FieldReader{words});
  return out;
}

/// The bits that belong to fields.
template <class T>
[[nodiscard]] DOORBELL_INLINE Words<T::kWords> used_bits() {
  Words<T::kWords> out;
  const T any{};
  T::visit(any, FieldMarker{out.w});
  return out;
}

// --- limits ----------------------------------------------------------------------------------------------

/// @name Limits of a NIC, and of fields
/// @{
inline constexpr u32 kMaxTransmitQueues = 1024;
inline constexpr u32 kMaxTargetQueues = 512;  ///< indices follow those of the transmit queues
inline constexpr u32 kMaxEventQueues = 2048;  ///< handle 0 means none, as with counters
inline constexpr u32 kMaxCounters = 2048;
inline constexpr u32 kMaxPortalsEntries = 2048;
inline constexpr u32 kMaxTriggers = 2048;  ///< triggered commands that wait, in all queues
inline constexpr u32 kMaxContexts = 8;     ///< address contexts
inline constexpr u32 kMinSlots = 64;
inline constexpr u32 kMaxSlots = 65536;
inline constexpr u32 kMaxNid = 0xfffff;
inline constexpr u32 kAnyPid = 511;
inline constexpr u32 kMaxPidOffset = 255;
inline constexpr u64 kMaxSuccess = (u64{1} << 48) - 1;  ///< of a counter, and of a threshold
inline constexpr u32 kMaxFailure = 0x7f;
inline constexpr u32 kMtu = 2048;  ///< payload of a packet
inline constexpr u32 kLaunchBytes = 4096;
/// @}

/// The longest payload of an IDC put, in bytes.
[[nodiscard]] DOORBELL_INLINE constexpr u32 idc_limit(bool restricted) {
  return restricted ? 224 : 192;
}

// --- commands --------------------------------------------------------------------------------------------

/// The first two bits of a command. Source: shs-cassini-headers.
enum class CommandType : u32 { idc = 0, dma = 1, counter = 2, queue = 3 };

/// For the types idc and dma. Source: shs-cassini-headers.
enum class Opcode : u32 {
  noop = 0,
  put = 1,
  get = 2,
  rendezvous_put = 3,
  atomic = 4,
  fetching_atomic = 5,
  ethernet_tx = 6,
  small_message = 7,
  nomatch_put = 8,
  nomatch_get = 9,
  cstate = 10,
  close = 11,
  clear = 12,
  reduction = 13,
};

/// For the type counter. Source: shs-cassini-headers.
enum class CounterOpcode : u32 {
  noop = 0,
  set = 1,
  get = 2,
  increment = 3,
  cancel = 4,
  trig_dma = 5,
  trig_set = 6,
  trig_increment = 7,
  trig_event = 8,
};

/// For the type queue: first the opcodes for any queue, then those for target queues, which
/// change portals entries. Source: shs-cassini-headers.
enum class QueueOpcode : u32 {
  noop = 0,
  fence = 1,
  lcid = 2,
  append = 8,
  search = 9,
  search_and_delete = 10,
  unlink = 11,
  set_state = 12,
};

/// The first byte of every command.
struct CommandHeader {
  u32 type = 0;       ///< CommandType
  u32 size_code = 0;  ///< 0..3 for 32, 64, 128 and 256 bytes
  u32 opcode = 0;     ///< Opcode, CounterOpcode or QueueOpcode
  /// As it lies in memory.
  [[nodiscard]] DOORBELL_INLINE constexpr u32 byte() const { return type | size_code << 2 | opcode << 4; }
  /// The command's length in units of 32 bytes.
  [[nodiscard]] DOORBELL_INLINE constexpr u32 units() const { return 1u << size_code; }
  /// Which opcodes `opcode` is one of.
  [[nodiscard]] DOORBELL_INLINE constexpr CommandType kind() const { return static_cast<CommandType>(type); }
};
/// The header of a command, from its first word.
[[nodiscard]] DOORBELL_INLINE constexpr CommandHeader header_of(u64 first_word) {
  const u32 b = static_cast<u32>(first_word);
  return {b & 3, b >> 2 & 3, b >> 4 & 15};
}
/// The first byte of a command; `Op` is the opcodes of its type.
template <class Op>
[[nodiscard]] DOORBELL_INLINE constexpr u32 header_byte(CommandType type, u32 size_code, Op op) {
  return CommandHeader{static_cast<u32>(type), size_code, static_cast<u32>(op)}.byte();
}

// --- results ---------------------------------------------------------------------------------------------

/// How a command, an operation or an event ended. More codes exist; 0 means that there is no event yet.
/// Source: shs-cassini-headers.
enum class ReturnCode : u32 {
  none = 0,
  ok = 1,
  undeliverable = 2,
  pt_disabled = 3,
  dropped = 4,
  perm_violation = 5,
  op_violation = 6,
  no_match = 8,
  uncor = 9,
  uncor_trnsnt = 10,
  no_space = 16,
  entry_not_found = 18,
  no_target_conn = 19,
  no_target_mst = 20,
  no_target_trs = 21,
  sequence_error = 22,
  no_matching_conn = 23,
  invalid_dfa_format = 24,
  vni_not_found = 25,
  ptlte_not_found = 26,
  ptlte_sw_managed = 27,
  src_error = 28,
  mst_cancelled = 29,
  hrp_config_error = 30,
  hrp_rsp_error = 31,
  hrp_rsp_discard = 32,
  invalid_ac = 33,
  page_perm_error = 34,
  ats_error = 35,
  no_translation = 36,
  page_req_error = 37,
  pcie_error_poisoned = 38,
  pcie_unsuccess_cmpl = 39,
  amo_inval_op_error = 40,
  amo_align_error = 41,
  amo_fp_invalid = 42,
  amo_fp_underflow = 43,
  amo_fp_overflow = 44,
  amo_fp_inexact = 45,
  illegal_op = 46,
  invalid_endpoint = 47,
  restricted_unicast = 48,
  cmd_align_error = 49,
  cmd_invalid_arg = 50,
  invalid_event = 51,
  addr_out_of_range = 52,
  conn_closed = 53,
  canceled = 54,
  no_matching_trs = 55,
  no_matching_mst = 56,
  delayed = 57,
  amo_length_error = 58,
  pktbuf_error = 59,
  resource_busy = 60,
  flush_translation = 61,
  trs_pend_rsp = 62,
};

/// The kinds of events. Source: shs-cassini-headers.
enum class EventType : u32 {
  put = 0,
  get = 1,
  atomic = 2,
  fetch_atomic = 3,
  put_overflow = 4,
  get_overflow = 5,
  atomic_overflow = 6,
  fetch_atomic_overflow = 7,
  send = 8,
  ack = 9,
  reply = 10,
  link = 11,
  search = 12,
  state_change = 13,
  unlink = 14,
  rendezvous = 15,
  ethernet = 16,
  command_failure = 17,
  triggered_op = 18,
  fgfc = 19,
  pct = 20,
  match = 21,
  error = 28,
  timestamp = 29,
  eq_switch = 30,
  null_event = 31,
};

/// A portals entry's lists of memory. Source: shs-cassini-headers.
enum class PortalsList : u32 { priority = 0, overflow = 1, request = 2, unexpected = 3 };
/// A portals entry's state; only `enabled` takes packets. Source: shs-cassini-headers.
enum class PtlteState : u32 { reset = 0, disabled = 1, enabled = 2, software_managed = 3, ethernet = 4 };

// --- where a put goes ------------------------------------------------------------------------------------

/// The address of a portals entry as it appears in a command.
struct Dfa {
  u32 value = 0;      ///< nid, pid and the upper bits of the pid_offset
  u32 index_ext = 0;  ///< the lower five bits of the pid_offset
};
/// The decoded address of a portals entry.
struct EntryAddress {
  u32 nid = 0;  ///< the NIC, 20 bits
  u32 pid = 0;  ///< the process on it
  u32 idx = 0;  ///< the entry's pid_offset
};

/// The address for a command; `pid_bits` is the NIC's (Address::pid_bits).
[[nodiscard]] DOORBELL_INLINE constexpr Dfa make_dfa(u32 nid, u32 pid, u32 pid_bits, u32 idx) {
  const u32 endpoint = (idx >> 5 << pid_bits | pid) & 0xfff;
  return {endpoint | (nid & kMaxNid) << 12, idx & 31};
}
/// The reverse of make_dfa().
[[nodiscard]] DOORBELL_INLINE constexpr EntryAddress split_dfa(const Dfa& d, u32 pid_bits) {
  const u32 endpoint = d.value & 0xfff;
  return {d.value >> 12, endpoint & ((1u << pid_bits) - 1), endpoint >> pid_bits << 5 | (d.index_ext & 31)};
}
/// The identity of a process as the origin of a put. All ones stand for any process.
[[nodiscard]] DOORBELL_INLINE constexpr u32 initiator_id(u32 nid, u32 pid, u32 pid_bits) {
  return pid << (32 - pid_bits) | (nid & ((1u << (32 - pid_bits)) - 1));
}

// Where Cassini's queues lie, in addresses that the initiator can use. Plain data, which is passed to
// kernels.

/// @name A command queue's slots
/// @{
inline constexpr u32 kSlotBytes = 64;
inline constexpr u32 kSlotParts = 4;    ///< Word16 in a slot
inline constexpr u32 kStatusSlots = 4;  ///< slots 0..3 belong to the device
/// @}

/// A command queue: a ring of 64-byte slots, and the launch page (4096 bytes) that starts it.
struct CommandQueueMemory {
  Word16* ring = nullptr;  ///< slot 0
  u8* launch = nullptr;    ///< write pointer at 0, low-latency windows at 1024, 2048 and 3072
  u32 slots = 0;           ///< of the whole ring, including the status slots; 64..65536
  u32 index = 0;           ///< its number on the NIC
  bool triggered = false;  ///< takes only 64 and 128 byte counter commands
};

/// An event queue: `bytes` bytes; the first 64 are the device's status.
struct EventQueueMemory {
  u8* events = nullptr;  ///< the status; events follow
  u64* csr = nullptr;    ///< the register that takes the read pointer
  u32 bytes = 0;         ///< with the status
  u32 index = 0;         ///< 0: no event queue
};

/// A counting event: its doorbell page, and the 8 bytes that the device writes back (null without a
/// write-back).
struct CounterMemory {
  u64* doorbell = nullptr;   ///< Counter::kSuccess and so on
  u64* writeback = nullptr;  ///< CounterCounts; the initiator clears it to see the next answer
  u32 index = 0;             ///< 0: no counter
};

/// The kinds of command queues, by Cassini's names.
enum class CommandQueueKind {
  transmit,   ///< puts, gets, IDC
  triggered,  ///< counter commands
  target,     ///< append, set state: commands to the endpoint's own portals entries
};

}  // namespace doorbell::cxi
