// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The queue format of the emulated NIC rocm-ernic, which is that of VMware's PVRDMA: little-endian, WQEs of
// 128 bytes, and rings whose indices lie in memory. Source: rdma-core, providers/vmw_pvrdma.
#pragma once

#include <doorbell/rdma/format.hpp>

namespace doorbell::rdma {

/// rocm-ernic and PVRDMA: a WireFormat. Source: rdma-core, providers/vmw_pvrdma.
struct Ernic {
  /// @name Constants, as WireFormat has them
  /// @{
  static constexpr const char* kName = "ernic";
  static constexpr u32 kUnitParts = 8;
  static constexpr u32 kReceiveParts = 2;
  static constexpr u32 kCqeParts = 4;
  static constexpr Mark kMark = Mark::serial;  ///< modulo 2^32
  static constexpr bool kCqByIndex = true;
  static constexpr u32 kMaxInline = 0;  ///< a flag exists, but no layout: the payload stays in its buffer
  static constexpr bool kCqCredits = false;
  static constexpr bool kHasTable = false;
  static constexpr u32 kMaxSqUnits = 65536;
  static constexpr u32 kCqePartA = 0;
  static constexpr u32 kCqePartB = 1;
  static constexpr bool kRequestInPartB = false;  ///< the other part of a request's CQE matters too
  static constexpr u32 kFirstReceiveMark = 1;
  static constexpr u32 kCqePartC = 2;      ///< has a SEND's immediate, and the vendor's error
  static constexpr int kCqeOwnerWord = 3;  ///< of part B; any dword would do

  /// @}
  /// @name Shape: the sizes of rings, in ring units or entries
  /// @{

  [[nodiscard]] DOORBELL_INLINE static u32 sq_units(u32 requests, u32) { return power_of_two_from(requests); }
  /// Indices run to twice the depth, so that a full ring differs from an empty one.
  [[nodiscard]] DOORBELL_INLINE static u32 sq_reserve(u32) { return 0; }
  [[nodiscard]] DOORBELL_INLINE static u32 rq_entries(u32 receives) { return power_of_two_from(receives); }
  [[nodiscard]] DOORBELL_INLINE static u32 cq_entries(u32 completions) {
    return power_of_two_from(completions);
  }
  /// Marks start again after so many; 0: 2^32.
  [[nodiscard]] DOORBELL_INLINE static u32 mark_modulo(const QueuePairMemory&) { return 0; }

  static constexpr u32 kBadIndex = 0xffffffff;
  /// The index of a position in the ring state. Uses `running` and `units`, a power of two.
  [[nodiscard]] DOORBELL_INLINE static u32 ring_index(const RingPosition& at) {
    return at.running & (2 * at.units - 1);
  }
  /// Entries between consumer and producer, or kBadIndex when no ring of `entries` can have these indices.
  [[nodiscard]] DOORBELL_INLINE static u32 ring_filled(u32 tail, u32 head, u32 entries) {
    const u32 filled = (tail - head) & (2 * entries - 1);
    return tail >= 2 * entries || head >= 2 * entries || filled > entries ? kBadIndex : filled;
  }

  /// @}
  /// @name The initiator's side: see WireFormat
  /// @{

  [[nodiscard]] DOORBELL_INLINE static u32 units(const WorkRequest&) { return 1; }
  [[nodiscard]] DOORBELL_INLINE static u32 parts(const WorkRequest& wr) {
    return kHeaderParts + (wr.bytes != 0 ? 1 : 0);
  }

  [[nodiscard]] DOORBELL_INLINE static Word16 part(const WorkRequest& wr, const RingPosition& at,
                                                   const QueuePairMemory&, u32 p) {
    const bool atomic = is_atomic(wr.op), swap = wr.op == Op::compare_swap, send = is_send(wr.op);
    Word16 v = pick(p == kHeaderParts && wr.bytes != 0, buffer(wr.local, wr.bytes, wr.lkey), {});
    v = pick(p == 3 && atomic, words(swap ? wr.operand : 0, wr.rkey), v);
    v = pick(p == 2 && !send, words(wr.remote, !atomic ? wr.rkey : swap ? wr.compare : wr.operand), v);
    v = pick(p == 1, {{Opcodes::code(wr.op), flags(wr), has_imm(wr.op) ? be32(wr.imm) : 0, 0}}, v);
    return pick(p == 0, words(wr_id(at), join(wr.bytes, wr.bytes != 0 ? 1 : 0)), v);
  }

  [[nodiscard]] DOORBELL_INLINE static u64 table_entry(const WorkRequest&, const RingPosition&,
                                                       const QueuePairMemory&) {
    return 0;
  }
  [[nodiscard]] DOORBELL_INLINE static u32 table_index(const RingPosition&, const QueuePairMemory&) {
    return 0;
  }
  [[nodiscard]] DOORBELL_INLINE static u64 sq_doorbell_word(const WorkRequest&, const RingPosition&,
                                                            const QueuePairMemory&) {
    return 0;
  }
  /// Writes only the first dword: the dword behind it is another register.
  DOORBELL_INLINE static void ring_sq(const QueuePairMemory& m, const RingPosition& next, u64) {
    store_release(&m.qp_record[kSendTail], ring_index(next));
    store_release(reinterpret_cast<u32*>(m.sq_doorbell), (m.handle & kHandle) | kSendBit);
  }

  [[nodiscard]] DOORBELL_INLINE static Word16 receive_part(const ReceiveRequest& rr, const RingPosition& at,
                                                           const QueuePairMemory&, u32 p) {
    const Word16 v = pick(p == 1 && rr.bytes != 0, buffer(rr.local, rr.bytes, rr.lkey), {});
    return pick(p == 0, words(wr_id(at), rr.bytes != 0 ? 1 : 0), v);
  }
  DOORBELL_INLINE static void ring_rq(const QueuePairMemory& m, const RingPosition& next) {
    store_release(&m.qp_record[kReceiveTail], ring_index(next));
    store_release(reinterpret_cast<u32*>(m.rq_doorbell), (m.handle & kHandle) | kReceiveBit);
  }

  [[nodiscard]] DOORBELL_INLINE static Word16 cqe_initial(u32) { return {}; }
  /// Only the ring's indices show whether an entry is valid.
  [[nodiscard]] DOORBELL_INLINE static bool cqe_valid(const Word16&, u32) { return true; }
  /// Without part C a SEND's immediate is not reported, though its value is there.
  [[nodiscard]] DOORBELL_INLINE static Completion decode_cqe(const Word16& a, const Word16& b) {
    Completion c;
    c.mark = a.w[0];
    c.receive = b.w[0] == kCqeReceive || b.w[0] == kCqeReceiveWriteImm;
    c.ignore = !c.receive && b.w[0] > kCqeLastRequest;
    c.status = status_of(b.w[1]);
    c.bytes = b.w[2];
    c.with_imm = b.w[0] == kCqeReceiveWriteImm && c.status == Status::ok;
    c.imm = c.receive ? be32(b.w[3]) : 0;
    return c;
  }
  [[nodiscard]] DOORBELL_INLINE static Completion decode_cqe(const Word16& a, const Word16& b,
                                                             const Word16& part_c) {
    Completion c = decode_cqe(a, b);
    c.with_imm = c.with_imm || (c.receive && (part_c.w[1] & kFlagImm) != 0);
    c.vendor_error = part_c.w[2];
    return c;
  }
  /// Needs the position's `running` and `units`.
  DOORBELL_INLINE static void ring_cq(u32* record, u64*, const RingPosition& at, u32) {
    store_release(&record[kCqHead], ring_index(at));
  }

  /// @}
  /// @name The device's side: see WireFormat
  /// @{

  [[nodiscard]] DOORBELL_INLINE static DecodedWqe decode_wqe(const PartReader& read, u32) {
    DecodedWqe d;
    if (read.parts < kUnitParts) return d;
    WorkRequest& wr = d.request;
    const Word16 id = read(0), header = read(1), target = read(2), more = read(3);
    d.wr_id = join(id.w[1], id.w[0]);
    wr.fence = (header.w[1] & kFence) != 0;
    wr.signalled = (header.w[1] & kSignalled) != 0;
    wr.solicited = (header.w[1] & kSolicited) != 0;
    wr.inlined = (header.w[1] & kInline) != 0;
    if (!Opcodes::find(header.w[0], wr.op)) return d;
    if (has_imm(wr.op)) wr.imm = be32(header.w[2]);
    const u64 operand = join(target.w[3], target.w[2]);
    if (!is_send(wr.op)) {
      wr.remote = join(target.w[1], target.w[0]);
      wr.rkey = is_atomic(wr.op) ? more.w[2] : target.w[2];
    }
    if (wr.op == Op::fetch_add) wr.operand = operand;
    if (wr.op == Op::compare_swap) {
      wr.operand = join(more.w[1], more.w[0]);
      wr.compare = operand;
    }
    d.valid = decode_buffers(read, kHeaderParts, id.w[2], kUnitParts - kHeaderParts, d) && plausible(d);
    return d;
  }

  [[nodiscard]] DOORBELL_INLINE static DecodedWqe decode_receive(const PartReader& read) {
    DecodedWqe d;
    d.request.op = Op::send;
    if (read.parts < kReceiveParts) return d;
    const Word16 id = read(0);
    d.wr_id = join(id.w[1], id.w[0]);
    d.valid = decode_buffers(read, 1, id.w[2], kReceiveParts - 1, d) && d.request.bytes <= kMaxMessage;
    return d;
  }

  DOORBELL_INLINE static void encode_cqe(const CqeFields& f, u32, Word16* out) {
    const Completion& c = f.completion;
    const u32 opcode = !c.receive              ? Completed::code(f.op)
                       : f.op == Op::write_imm ? kCqeReceiveWriteImm
                                               : kCqeReceive;
    store_cqe_part(out + kCqePartC, {{f.source_qpn, c.with_imm ? kFlagImm : 0, c.vendor_error, 0}});
    store_cqe_part(out + 3, {});
    store_cqe_part(out + kCqePartA, words(f.wr_id, handle_of(f)));
    store16_release<kCqeOwnerWord>(
        out + kCqePartB, {{opcode, static_cast<u32>(c.status), c.bytes, c.with_imm ? be32(c.imm) : 0}});
  }

  /// Queue pairs ring the first dword of the page, completion queues the second.
  [[nodiscard]] DOORBELL_INLINE static DoorbellValue decode_doorbell(u64 word) {
    using Queue = DoorbellValue::Queue;
    DoorbellValue v;
    const u32 which = low(word) & (kSendBit | kReceiveBit);
    if (which == kSendBit || which == kReceiveBit) {
      v.queue = which == kSendBit ? Queue::send : Queue::receive;
      v.id = low(word) & kHandle;
    } else if (which == 0 && (high(word) & (kPollBit | kArmBits)) != 0) {
      v.queue = (high(word) & kArmBits) != 0 ? Queue::arm : Queue::completion;
      v.id = high(word) & kHandle;
    }
    return v;
  }
  /// @}

 private:
  static constexpr u32 kHeaderParts = 5;
  static constexpr u32 kSendTail = 0, kReceiveTail = 2, kCqHead = 3;
  static constexpr u32 kHandle = 0xffffff, kSendBit = 1u << 30, kReceiveBit = 1u << 31;
  static constexpr u32 kPollBit = 1u << 31, kArmBits = 3u << 29;
  static constexpr u32 kFence = 1, kSignalled = 2, kSolicited = 4, kInline = 8;
  static constexpr u32 kCqeReceive = 0x80, kCqeReceiveWriteImm = 0x81, kCqeLastRequest = 4;
  static constexpr u32 kFlagImm = 2;
  using Opcodes = OpTable<0, 1, 4, 2, 3, 6, 5>;
  using Completed = OpTable<1, 1, 2, 0, 0, 4, 3>;  ///< the codes of operations in a CQE

  /// A number that the device returns: the requests, or receives, up to and including this one.
  [[nodiscard]] DOORBELL_INLINE static u64 wr_id(const RingPosition& at) {
    return static_cast<u64>(at.serial) + 1;
  }
  /// A status code is the verbs number itself.
  [[nodiscard]] DOORBELL_INLINE static Status status_of(u32 code) {
    return code <= static_cast<u32>(Status::general) ? static_cast<Status>(code) : Status::general;
  }
  [[nodiscard]] DOORBELL_INLINE static u32 flags(const WorkRequest& wr) {
    return (wr.fence ? kFence : 0) | (wr.signalled ? kSignalled : 0) | (wr.solicited ? kSolicited : 0) |
           (wr.inlined ? kInline : 0);
  }
  [[nodiscard]] DOORBELL_INLINE static Word16 buffer(u64 address, u32 bytes, u32 lkey) {
    return words(address, join(lkey, bytes));
  }
  [[nodiscard]] DOORBELL_INLINE static bool decode_buffers(const PartReader& read, u32 first, u32 sges,
                                                           u32 most, DecodedWqe& d) {
    if (sges > most) return false;
    for (u32 i = 0; i < sges; ++i) {
      const Word16 b = read(first + i);
      if (!add_sge(d, join(b.w[1], b.w[0]), b.w[2], b.w[3])) return false;
    }
    finish_sges(d);
    return true;
  }
};

static_assert(WireFormat<Ernic>);

}  // namespace doorbell::rdma
