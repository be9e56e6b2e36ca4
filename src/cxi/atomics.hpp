// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Atomic operations of a Cassini: their commands, and what they do to memory.
#pragma once

#include <doorbell/cxi/commands.hpp>

#include <cstddef>

namespace doorbell::cxi {

/// Source: shs-cassini-headers.
enum class AtomicOp : u32 {
  min = 0,
  max = 1,
  sum = 2,
  logical_or = 4,
  logical_and = 5,
  bit_or = 6,
  bit_and = 7,
  logical_xor = 8,
  bit_xor = 9,
  swap = 10,
  compare_swap = 11,
  and_xor = 12,  ///< (memory AND second operand) XOR first one
};

/// Source: shs-cassini-headers.
enum class AtomicType : u32 {
  i8 = 0,
  u8 = 1,
  i16 = 2,
  u16 = 3,
  i32 = 4,
  u32 = 5,
  i64 = 6,
  u64 = 7,
  f32 = 8,
  f32_complex = 9,
  f64 = 10,
  f64_complex = 11,
  u128 = 12,
};

/// When a COMPARE_SWAP stores its first operand: if the second one stands so to what is in memory.
/// Source: shs-cassini-headers.
enum class SwapIf : u32 {
  equal = 0,
  not_equal = 1,
  less_equal = 2,
  less = 3,
  greater_equal = 4,
  greater = 5
};

/// Bytes of an operand; 0: no such type.
[[nodiscard]] DOORBELL_INLINE constexpr u32 atomic_bytes(AtomicType type) {
  // Four bits a type: the logarithm of its bytes.
  constexpr u64 sizes = 0x4'4332'3322'1100;
  return type <= AtomicType::u128 ? 1u << (sizes >> (4 * static_cast<u32>(type)) & 15) : 0;
}

/// The operation on the memory.
struct Atomic {
  AtomicOp op = AtomicOp::sum;
  AtomicType type = AtomicType::u64;
  SwapIf swap_if = SwapIf::equal;
  u64 first[2] = {};   ///< operands, in the order of memory
  u64 second[2] = {};  ///< of COMPARE_SWAP and AND_XOR
};

/// An atomic operation whose first operand is in memory: 128 bytes. Source: shs-cassini-headers.
struct DmaAtomic : DmaFields {
  static constexpr u32 kWords = 16;
  bool fetching = false;
  u32 initiator = 0;
  u64 match_bits = 0;
  u64 header_data = 0;
  u64 user_ptr = 0;
  u64 local_write_addr = 0;  ///< of what was in memory before
  u32 write_lac = 0;
  Atomic atomic;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    DmaFields::visit(s, field);
    field(Bits<36, 0, 32>{}, s.initiator);
    field(Bits<40, 0, 64>{}, s.match_bits);
    field(Bits<48, 0, 64>{}, s.header_data);
    field(Bits<56, 0, 64>{}, s.user_ptr);
    field(Bits<64, 0, 57>{}, s.local_write_addr);
    field(Bits<72, 0, 4>{}, s.atomic.op);
    field(Bits<73, 0, 4>{}, s.atomic.type);
    field(Bits<74, 0, 3>{}, s.atomic.swap_if);
    field(Bits<76, 0, 3>{}, s.write_lac);
    field(Bits<80, 0, 64>{}, s.atomic.second[0]);
    field(Bits<88, 0, 64>{}, s.atomic.second[1]);
  }
  [[nodiscard]] DOORBELL_INLINE u32 header() const {
    return header_byte(CommandType::dma, 2, fetching ? Opcode::fetching_atomic : Opcode::atomic);
  }
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) {
    fetching = h.opcode == static_cast<u32>(Opcode::fetching_atomic);
    return h.kind() == CommandType::dma && h.size_code == 2 &&
           (fetching || h.opcode == static_cast<u32>(Opcode::atomic));
  }
};

/// The fields at the beginning of IDC commands with data. Source: shs-cassini-headers.
struct IdcHead {
  u32 length = 0;
  u32 dfa = 0;
  u64 remote_offset = 0;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    field(Bits<1, 0, 8>{}, s.length);
    field(Bits<4, 0, 32>{}, s.dfa);
    field(Bits<8, 0, 56>{}, s.remote_offset);
  }
};

/// An atomic operation with its operands in the command: 64 bytes. Source: shs-cassini-headers.
struct IdcAtomic : IdcHead {
  static constexpr u32 kWords = 8;
  bool fetching = false;
  u64 local_addr = 0;  ///< of what was in memory before
  Atomic atomic;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    IdcHead::visit(s, field);
    field(Bits<16, 0, 57>{}, s.local_addr);
    field(Bits<24, 0, 4>{}, s.atomic.op);
    field(Bits<25, 0, 4>{}, s.atomic.type);
    field(Bits<26, 0, 3>{}, s.atomic.swap_if);
    field(Bits<32, 0, 64>{}, s.atomic.first[0]);
    field(Bits<40, 0, 64>{}, s.atomic.first[1]);
    field(Bits<48, 0, 64>{}, s.atomic.second[0]);
    field(Bits<56, 0, 64>{}, s.atomic.second[1]);
  }
  [[nodiscard]] DOORBELL_INLINE u32 header() const {
    return header_byte(CommandType::idc, 1, fetching ? Opcode::fetching_atomic : Opcode::atomic);
  }
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) {
    fetching = h.opcode == static_cast<u32>(Opcode::fetching_atomic);
    return h.kind() == CommandType::idc && h.size_code == 1 &&
           (fetching || h.opcode == static_cast<u32>(Opcode::atomic));
  }
};

/// The same with one operand of 8 bytes at most, and nothing fetched: 32 bytes. Source: shs-cassini-headers.
struct SmallAtomic : IdcHead {
  static constexpr u32 kWords = 4;
  Atomic atomic;

  /// The place of each field, for pack() and unpack().
  template <class Self, class Field>
  DOORBELL_INLINE static void visit(Self& s, const Field& field) {
    IdcHead::visit(s, field);
    field(Bits<16, 0, 4>{}, s.atomic.op);
    field(Bits<17, 0, 4>{}, s.atomic.type);
    field(Bits<24, 0, 64>{}, s.atomic.first[0]);
  }
  [[nodiscard]] DOORBELL_INLINE u32 header() const {
    return header_byte(CommandType::idc, 0, Opcode::atomic);
  }
  [[nodiscard]] DOORBELL_INLINE bool take_header(const CommandHeader& h) const {
    return h.byte() == header();
  }
};

/// Whether there is such an operation on that type.
[[nodiscard]] bool is_atomic(const Atomic& a);
/// Carries a valid operation out on host memory, aligned to the type. Single with respect to other atomic
/// accesses if it has 8 bytes or fewer. `old` gets what was there.
void apply_atomic(const Atomic& a, u8* memory, u8* old);

}  // namespace doorbell::cxi
