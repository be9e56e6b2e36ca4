// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The queue format of AMD Pensando NICs: WQEs of 64 bytes, big-endian except for their index, with a bit that
// changes with each pass of the ring. Completions count messages. Two versions differ in opcodes and in where
// an atomic keeps its buffer. Source: rdma-core, providers/ionic.
#pragma once

#include <doorbell/rdma/format.hpp>

#include <type_traits>

namespace doorbell::rdma {

/// AMD Pensando: a WireFormat. Source: rdma-core, providers/ionic.
template <u32 kVersion>
struct IonicFormat {
  static_assert(kVersion == 1 || kVersion == 2);
  /// @name Constants, as WireFormat has them
  /// @{
  static constexpr const char* kName = kVersion == 1 ? "ionic" : "ionic-v2";
  static constexpr u32 kUnitParts = 4;
  static constexpr u32 kReceiveParts = 4;
  static constexpr u32 kCqeParts = 2;
  static constexpr Mark kMark = Mark::serial;
  static constexpr u32 kMarkModulo = 1u << 24;
  static constexpr bool kCqByIndex = false;
  static constexpr u32 kMaxInline = 32;
  static constexpr bool kCqCredits = true;
  static constexpr bool kHasTable = false;
  static constexpr u32 kMaxSqUnits = 65536;  ///< positions are 16 bits wide
  static constexpr u32 kCqePartA = 0;
  static constexpr u32 kCqePartB = 1;
  static constexpr bool kRequestInPartB = false;  ///< the other part of a request's CQE matters too
  static constexpr u32 kFirstReceiveMark = 0;
  static constexpr int kCqeOwnerWord = 3;  ///< of part B

  /// @}
  /// @name Shape: the sizes of rings, in ring units or entries
  /// @{

  /// A ring covers one page or more, and one entry stays free.
  [[nodiscard]] DOORBELL_INLINE static u32 sq_units(u32 requests, u32) { return depth(requests, 64); }
  [[nodiscard]] DOORBELL_INLINE static u32 sq_reserve(u32) { return 1; }
  [[nodiscard]] DOORBELL_INLINE static u32 rq_entries(u32 receives) { return depth(receives, 64); }
  /// The driver creates 100 more entries than were asked for.
  [[nodiscard]] DOORBELL_INLINE static u32 cq_entries(u32 completions) {
    return depth(completions + 100, 128);
  }
  /// Marks start again after so many; 0: 2^32.
  [[nodiscard]] DOORBELL_INLINE static u32 mark_modulo(const QueuePairMemory&) { return kMarkModulo; }

  /// @}
  /// @name The initiator's side: see WireFormat
  /// @{

  [[nodiscard]] DOORBELL_INLINE static u32 units(const WorkRequest&) { return 1; }
  [[nodiscard]] DOORBELL_INLINE static u32 parts(const WorkRequest&) { return kUnitParts; }

  [[nodiscard]] DOORBELL_INLINE static Word16 part(const WorkRequest& wr, const RingPosition& at,
                                                   const QueuePairMemory&, u32 p) {
    if (wr.inlined && p >= kDataPart) return payload_part(wr.payload, wr.bytes, 16 * (p - kDataPart));
    const bool atomic = is_atomic(wr.op);
    const u32 sges = wr.inlined || wr.bytes == 0 ? 0 : 1;
    const u64 remote = is_send(wr.op) ? 0 : wr.remote;
    const u64 compare = wr.op == Op::compare_swap ? wr.compare : 0;
    Word16 v = pick(p == kDataPart && sges != 0 && !atomic, buffer(wr.local, wr.bytes, wr.lkey), {});
    v = pick(p == kDataPart && atomic,
             {{low(wr.operand), high(compare), low(compare), kVersion == 2 ? wr.lkey : 0}}, v);
    v = pick(p == kDataPart + 1 && atomic,
             buffer(wr.local, kVersion == 1 ? kAtomicBytes : 0, kVersion == 1 ? wr.lkey : 0), v);
    v = pick(
        p == 1,
        {{high(remote), low(remote), is_send(wr.op) ? 0 : wr.rkey, atomic ? high(wr.operand) : wr.bytes}}, v);
    // The index is the only little-endian field.
    v = pick(p == 0,
             {{be32(at.slot), 0, Opcodes::code(wr.op) << 24 | sges << 16 | flags(wr, at.pass),
               has_imm(wr.op) ? wr.imm : 0}},
             v);
    return swapped(v);
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
  DOORBELL_INLINE static void ring_sq(const QueuePairMemory& m, const RingPosition& next, u64) {
    store64_release(m.sq_doorbell, doorbell(m.qpn, next.slot));
  }

  [[nodiscard]] DOORBELL_INLINE static Word16 receive_part(const ReceiveRequest& rr, const RingPosition& at,
                                                           const QueuePairMemory&, u32 p) {
    const u32 sges = rr.bytes == 0 ? 0 : 1;
    const Word16 v = pick(p == kDataPart && sges != 0, buffer(rr.local, rr.bytes, rr.lkey), {});
    return swapped(pick(p == 0, {{be32(at.slot), 0, sges << 16, rr.bytes}}, v));
  }
  DOORBELL_INLINE static void ring_rq(const QueuePairMemory& m, const RingPosition& next) {
    store64_release(m.rq_doorbell, doorbell(m.qpn, next.slot));
  }

  [[nodiscard]] DOORBELL_INLINE static Word16 cqe_initial(u32) { return {}; }
  [[nodiscard]] DOORBELL_INLINE static bool cqe_valid(const Word16& b, u32 pass) {
    return (b.w[3] >> 24 & kCqeColour) != (pass & 1);
  }
  [[nodiscard]] DOORBELL_INLINE static Completion decode_cqe(const Word16& a, const Word16& b) {
    const u32 last = be32(b.w[3]), type = last >> 5 & 7;
    const u32 code_or_bytes = be32(b.w[2]);
    Completion c;
    c.receive = type == kCqeReceive;
    // Local operations complete by index, but they are never posted here.
    c.ignore = type != kCqeReceive && type != kCqeSendMsn;
    c.mark = c.receive ? a.w[0] & 0xffff : be32(a.w[1]) & (kMarkModulo - 1);
    if ((last & kCqeError) != 0) {
      c.status = Errors::status(code_or_bytes);
      c.vendor_error = code_or_bytes;
      c.flush_all = c.status == Status::flushed;
      return c;
    }
    c.bytes = code_or_bytes;
    if (c.receive) {
      const u32 op = be32(a.w[2]) >> 24 & 0x1f;
      c.with_imm = op == kReceivedSendImm || op == kReceivedWriteImm;
      c.imm = c.with_imm ? be32(b.w[1]) : 0;
    }
    return c;
  }
  /// Needs the position's `running` and `units`.
  DOORBELL_INLINE static void ring_cq(u32*, u64* reg, const RingPosition& at, u32 cqn) {
    store64_release(reg, doorbell(cqn, at.running & (at.units - 1)));
  }

  /// @}
  /// @name The device's side: see WireFormat
  /// @{

  [[nodiscard]] DOORBELL_INLINE static DecodedWqe decode_wqe(const PartReader& read, u32 pass) {
    DecodedWqe d;
    if (read.parts < kUnitParts) return d;
    WorkRequest& wr = d.request;
    const Word16 raw = read(0), header = swapped(raw), target = swapped(read(1));
    const u32 bits = header.w[2] & 0xffff, sges = header.w[2] >> 16 & 0xff;
    d.index = raw.w[0];
    d.owned = (bits & kColour) == colour(pass);
    wr.signalled = (bits & kSignalled) != 0;
    wr.fence = (bits & kFence) != 0;
    wr.solicited = (bits & kSolicited) != 0;
    if (!Opcodes::find(header.w[2] >> 24, wr.op) || (bits & kSpecFormats) != 0) return d;
    if (has_imm(wr.op)) wr.imm = header.w[3];
    if (!is_send(wr.op)) {
      wr.remote = join(target.w[0], target.w[1]);
      wr.rkey = target.w[2];
    }
    const bool inlined = (bits & kInline) != 0;
    if (is_atomic(wr.op)) {
      d.valid = !inlined && sges == 1 && decode_atomic(read, target.w[3], d) && plausible(d);
    } else if (inlined) {
      wr.inlined = target.w[3] != 0;
      wr.bytes = target.w[3];
      d.inline_part = kDataPart;
      d.valid = sges == 0 && wr.bytes <= kMaxInline && plausible(d);
    } else {
      d.valid = decode_buffers(read, sges, d) && wr.bytes == target.w[3] && plausible(d);
    }
    return d;
  }

  [[nodiscard]] DOORBELL_INLINE static DecodedWqe decode_receive(const PartReader& read) {
    DecodedWqe d;
    d.request.op = Op::send;
    if (read.parts < kReceiveParts) return d;
    const Word16 header = read(0);
    d.index = header.w[0];
    d.valid = decode_buffers(read, header.w[2] >> 8 & 0xff, d) && d.request.bytes <= kMaxMessage;
    return d;
  }

  DOORBELL_INLINE static void encode_cqe(const CqeFields& f, u32 pass, Word16* out) {
    const Completion& c = f.completion;
    const bool failed = c.status != Status::ok;
    const u32 last = f.qpn << 8 | (c.receive ? kCqeReceive : kCqeSendMsn) << 5 | (failed ? kCqeError : 0) |
                     (~pass & kCqeColour);
    const u32 op = f.op == Op::write_imm ? kReceivedWriteImm : c.with_imm ? kReceivedSendImm : 0;
    const u32 source = op << 24 | (f.source_qpn & 0xffffff);
    store_cqe_part(out + kCqePartA, c.receive ? Word16{{c.mark & 0xffff, 0, be32(source), 0}}
                                              : Word16{{0, be32(c.mark & (kMarkModulo - 1)), 0, 0}});
    store16_release<kCqeOwnerWord>(
        out + kCqePartB, {{0, c.with_imm ? be32(c.imm) : 0,
                           be32(failed ? Errors::code(c.status, kUndefined) : c.bytes), be32(last)}});
  }

  [[nodiscard]] DOORBELL_INLINE static DoorbellValue decode_doorbell(u64 word) {
    using Queue = DoorbellValue::Queue;
    DoorbellValue v;
    v.queue = (low(word) & kArmBits) != 0 ? Queue::arm : Queue::by_register;
    v.id = static_cast<u32>(word >> 24) & 0xffffff;
    v.index = low(word) & 0xffff;
    return v;
  }
  /// @}

 private:
  static constexpr u32 kDataPart = 2;
  static constexpr u32 kFence = 0x01, kSolicited = 0x02, kInline = 0x04, kSignalled = 0x08, kColour = 0x10,
                       kSpecFormats = 0x3000;
  static constexpr u32 kArmBits = 3u << 16;
  static constexpr u32 kCqeColour = 1, kCqeError = 2, kCqeReceive = 1, kCqeSendMsn = 2;
  static constexpr u32 kReceivedSendImm = 2, kReceivedWriteImm = 3;
  using Opcodes = std::conditional_t<kVersion == 1, OpTable<0x04, 0x05, 0x03, 0x00, 0x02, 0x07, 0x06>,
                                     OpTable<0x21, 0x61, 0x02, 0x20, 0x60, 0x05, 0x04>>;
  static constexpr u32 kUndefined = 0xff;
  using Errors = StatusTable<1, Status::local_length, Status::local_qp_op, Status::local_protection,
                             Status::flushed, Status::memory_window, Status::bad_response,
                             Status::local_access, Status::remote_invalid_request, Status::remote_access,
                             Status::remote_operation, Status::retry_exceeded, Status::rnr_retry_exceeded>;

  [[nodiscard]] DOORBELL_INLINE static u32 depth(u32 wanted, u32 least) {
    return power_of_two_from(wanted + 1 > least ? wanted + 1 : least);
  }
  [[nodiscard]] DOORBELL_INLINE static u32 colour(u32 pass) { return (pass & 1) != 0 ? 0 : kColour; }
  /// The device refuses `solicited` for operations that take no receive.
  [[nodiscard]] DOORBELL_INLINE static u32 flags(const WorkRequest& wr, u32 pass) {
    return (wr.fence ? kFence : 0) | (wr.solicited && takes_receive(wr.op) ? kSolicited : 0) |
           (wr.inlined && wr.bytes != 0 ? kInline : 0) | (wr.signalled ? kSignalled : 0) | colour(pass);
  }
  [[nodiscard]] DOORBELL_INLINE static Word16 buffer(u64 address, u32 bytes, u32 lkey) {
    return {{high(address), low(address), bytes, lkey}};
  }
  [[nodiscard]] DOORBELL_INLINE static u64 doorbell(u32 id, u32 position) {
    return static_cast<u64>(id & 0xffffff) << 24 | (position & 0xffff);
  }

  [[nodiscard]] DOORBELL_INLINE static bool decode_atomic(const PartReader& read, u32 operand_high,
                                                          DecodedWqe& d) {
    const Word16 operands = swapped(read(kDataPart)), b = swapped(read(kDataPart + 1));
    d.request.operand = join(operand_high, operands.w[0]);
    if (d.request.op == Op::compare_swap) d.request.compare = join(operands.w[1], operands.w[2]);
    const bool added = add_sge(d, join(b.w[0], b.w[1]), kVersion == 1 ? b.w[2] : kAtomicBytes,
                               kVersion == 1 ? b.w[3] : operands.w[3]);
    finish_sges(d);
    return added;
  }
  [[nodiscard]] DOORBELL_INLINE static bool decode_buffers(const PartReader& read, u32 sges, DecodedWqe& d) {
    if (sges > kUnitParts - kDataPart) return false;
    for (u32 i = 0; i < sges; ++i) {
      const Word16 b = swapped(read(kDataPart + i));
      if (!add_sge(d, join(b.w[0], b.w[1]), b.w[2], b.w[3])) return false;
    }
    finish_sges(d);
    return true;
  }
};

/// The version of the provider "ionic".
using Ionic = IonicFormat<1>;
/// The later one, encoded and decoded alone.
using IonicV2 = IonicFormat<2>;

static_assert(WireFormat<Ionic> && WireFormat<IonicV2>);

}  // namespace doorbell::rdma
