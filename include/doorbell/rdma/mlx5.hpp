// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The queue format of ConnectX NICs: big-endian, WQEs of 16-byte segments in blocks of 64 bytes.
// Source: rdma-core, providers/mlx5 (mlx5dv.h, wqe.h).
#pragma once

#include <doorbell/rdma/format.hpp>

namespace doorbell::rdma {

/// ConnectX: a WireFormat. Source: rdma-core, providers/mlx5 (mlx5dv.h, wqe.h).
struct Mlx5 {
  /// @name Constants, as WireFormat has them
  /// @{
  static constexpr const char* kName = "mlx5";
  static constexpr u32 kUnitParts = 4;
  static constexpr u32 kReceiveParts = 1;
  static constexpr u32 kCqeParts = 4;
  static constexpr Mark kMark = Mark::unit;
  static constexpr u32 kMarkModulo = 1u << 16;
  static constexpr bool kCqByIndex = false;
  /// A WQE of 1024 bytes less 192 for the largest fixed segments and 4 for the header.
  static constexpr u32 kMaxInline = 828;
  static constexpr bool kCqCredits = false;
  static constexpr bool kHasTable = false;
  static constexpr u32 kMaxSqUnits = 32768;  ///< with a 16-bit counter, a full ring differs from an empty one
  static constexpr u32 kCqePartA = 2;
  static constexpr u32 kCqePartB = 3;
  static constexpr bool kRequestInPartB = true;  ///< part A of a request's CQE is not needed
  static constexpr u32 kFirstReceiveMark = 0;
  static constexpr int kCqeOwnerWord = 3;  ///< of part B

  /// @}
  /// @name Shape: the sizes of rings, in ring units or entries
  /// @{

  [[nodiscard]] DOORBELL_INLINE static u32 sq_units(u32 requests, u32 max_inline) {
    return power_of_two_from(requests * blocks(2 + inline_segments(max_inline)));
  }
  [[nodiscard]] DOORBELL_INLINE static u32 sq_reserve(u32) { return 0; }
  [[nodiscard]] DOORBELL_INLINE static u32 rq_entries(u32 receives) { return power_of_two_from(receives); }
  [[nodiscard]] DOORBELL_INLINE static u32 cq_entries(u32 completions) {
    return power_of_two_from(completions + 1);
  }
  /// Marks start again after so many; 0: 2^32.
  [[nodiscard]] DOORBELL_INLINE static u32 mark_modulo(const QueuePairMemory&) { return kMarkModulo; }

  /// @}
  /// @name The initiator's side: see WireFormat
  /// @{

  /// The number of 16-byte segments, including the control segment.
  [[nodiscard]] DOORBELL_INLINE static u32 segments(const WorkRequest& wr) {
    return data_at(wr.op) + (wr.inlined ? inline_segments(wr.bytes) : wr.bytes != 0 ? 1 : 0);
  }
  [[nodiscard]] DOORBELL_INLINE static u32 units(const WorkRequest& wr) { return blocks(segments(wr)); }
  [[nodiscard]] DOORBELL_INLINE static u32 parts(const WorkRequest& wr) { return units(wr) * kUnitParts; }

  [[nodiscard]] DOORBELL_INLINE static Word16 part(const WorkRequest& wr, const RingPosition& at,
                                                   const QueuePairMemory& m, u32 p) {
    const u32 data = data_at(wr.op);
    if (wr.inlined && p >= data) return inline_part(wr, p - data);
    const bool with_data = p == data && wr.bytes != 0;
    Word16 v = pick(with_data, {{wr.bytes, wr.lkey, high(wr.local), low(wr.local)}}, {});
    v = pick(p == 2 && data > 2, {{high(wr.operand), low(wr.operand), high(compare(wr)), low(compare(wr))}},
             v);
    v = pick(p == 1 && data > 1, {{high(wr.remote), low(wr.remote), wr.rkey, 0}}, v);
    v = pick(
        p == 0,
        {{first_dword(wr, at), m.qpn << 8 | segments(wr), control_flags(wr), has_imm(wr.op) ? wr.imm : 0}},
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

  /// The first 8 bytes of the WQE, in memory order.
  [[nodiscard]] DOORBELL_INLINE static u64 sq_doorbell_word(const WorkRequest& wr, const RingPosition& at,
                                                            const QueuePairMemory& m) {
    return join(be32(m.qpn << 8 | segments(wr)), be32(first_dword(wr, at)));
  }
  DOORBELL_INLINE static void ring_sq(const QueuePairMemory& m, const RingPosition& next, u64 word) {
    store_release(&m.qp_record[1], be32(next.running & 0xffff));
    store64_release(m.sq_doorbell, word);
  }

  /// One buffer, followed by the mark that ends the list. Without a buffer, the mark alone.
  [[nodiscard]] DOORBELL_INLINE static Word16 receive_part(const ReceiveRequest& rr, const RingPosition&,
                                                           const QueuePairMemory&, u32 p) {
    return swapped(pick(p == 0 && rr.bytes != 0, {{rr.bytes, rr.lkey, high(rr.local), low(rr.local)}},
                        {{0, kNoMoreBuffers, 0, 0}}));
  }
  DOORBELL_INLINE static void ring_rq(const QueuePairMemory& m, const RingPosition& next) {
    store_release(&m.qp_record[0], be32(next.running & 0xffff));
  }

  [[nodiscard]] DOORBELL_INLINE static Word16 cqe_initial(u32 part) {
    return {{0, 0, 0, part == kCqePartB ? (kCqeInvalid << 4) << 24 : 0}};
  }
  [[nodiscard]] DOORBELL_INLINE static bool cqe_valid(const Word16& b, u32 pass) {
    const u32 op_own = b.w[3] >> 24;
    return op_own >> 4 != kCqeInvalid && (op_own & 1) == (pass & 1);
  }
  [[nodiscard]] DOORBELL_INLINE static Completion decode_cqe(const Word16& a, const Word16& b) {
    const u32 kind = b.w[3] >> 28;
    Completion c;
    c.mark = be32(b.w[3]) >> 16;
    c.bytes = be32(a.w[3]);
    c.receive = (kind >= kCqeReceiveWriteImm && kind <= kCqeReceiveSendInv) || kind == kCqeReceiveError;
    c.with_imm = kind == kCqeReceiveWriteImm || kind == kCqeReceiveSendImm;
    c.imm = c.with_imm ? be32(a.w[1]) : 0;
    if (kind == kCqeRequestError || kind == kCqeReceiveError) {
      c.status = status_of(b.w[1] >> 24);
      c.vendor_error = b.w[1] >> 16 & 0xff;
    } else {
      c.ignore = kind > kCqeReceiveSendInv;
    }
    return c;
  }
  DOORBELL_INLINE static void ring_cq(u32* record, u64*, const RingPosition& at, u32) {
    store_release(record, be32(at.running & 0xffffff));
  }

  /// @}
  /// @name The device's side: see WireFormat
  /// @{

  [[nodiscard]] DOORBELL_INLINE static DecodedWqe decode_wqe(const PartReader& read, u32) {
    DecodedWqe d;
    WorkRequest& wr = d.request;
    const Word16 control = swapped(read(0));
    const u32 count = control.w[1] & 0x3f;
    d.index = control.w[0] >> 8 & 0xffff;
    d.units = count == 0 ? 1 : blocks(count);
    wr.signalled = (control.w[2] & kAlwaysCqe) == kAlwaysCqe;
    wr.solicited = (control.w[2] & kSolicited) != 0;
    wr.fence = (control.w[2] & kAnyFence) != 0;
    wr.imm = control.w[3];
    if (!Opcodes::find(control.w[0] & 0xff, wr.op) || control.w[0] >> 24 != 0) return d;
    const u32 data = data_at(wr.op);
    if (count < data || count > read.parts) return d;
    if (!has_imm(wr.op)) wr.imm = 0;
    if (data > 1) {
      const Word16 remote = swapped(read(1));
      wr.remote = join(remote.w[0], remote.w[1]);
      wr.rkey = remote.w[2];
    }
    if (data > 2) {
      const Word16 atomic = swapped(read(2));
      wr.operand = join(atomic.w[0], atomic.w[1]);
      if (wr.op == Op::compare_swap) wr.compare = join(atomic.w[2], atomic.w[3]);
    }
    d.valid = decode_data(read, data, count, d) && plausible(d);
    return d;
  }

  [[nodiscard]] DOORBELL_INLINE static DecodedWqe decode_receive(const PartReader& read) {
    DecodedWqe d;
    d.request.op = Op::send;
    const Word16 data = swapped(read(0));
    if (data.w[0] == 0 && data.w[1] == kNoMoreBuffers) {
      d.valid = true;
    } else if (data.w[0] != 0 && data.w[0] <= kMaxMessage) {
      d.valid = add_sge(d, join(data.w[2], data.w[3]), data.w[0], data.w[1]);
      finish_sges(d);
    }
    return d;
  }

  DOORBELL_INLINE static void encode_cqe(const CqeFields& f, u32 pass, Word16* out) {
    const Completion& c = f.completion;
    const bool failed = c.status != Status::ok;
    const u32 kind = !c.receive              ? (failed ? kCqeRequestError : kCqeRequest)
                     : failed                ? kCqeReceiveError
                     : f.op == Op::write_imm ? kCqeReceiveWriteImm
                     : c.with_imm            ? kCqeReceiveSendImm
                                             : kCqeReceiveSend;
    const u32 error = failed ? syndrome_of(c.status) << 24 | (c.vendor_error & 0xff) << 16 : 0;
    const u32 opcode = c.receive ? 0 : Opcodes::code(f.op);
    const u32 op_own = kind << 4 | (pass & 1);
    store_cqe_part(out, {});
    store_cqe_part(out + 1, {});
    store_cqe_part(out + kCqePartA, {{0, c.with_imm ? be32(c.imm) : 0, 0, be32(c.bytes)}});
    store16_release<kCqeOwnerWord>(
        out + kCqePartB, {{0, error, be32(opcode << 24 | (f.qpn & 0xffffff)), be32(c.mark << 16 | op_own)}});
  }

  [[nodiscard]] DOORBELL_INLINE static DoorbellValue decode_doorbell(u64 word) {
    const u32 qpn_and_count = be32(high(word));
    DoorbellValue v;
    // The count includes the control segment, so only a value that is not from a WQE has a count of zero.
    if ((qpn_and_count & 0x3f) != 0) v.queue = DoorbellValue::Queue::send;
    v.id = qpn_and_count >> 8;
    return v;
  }
  /// @}

 private:
  // Control segment, third dword.
  static constexpr u32 kFence = 0x80, kAnyFence = 0xe0, kAlwaysCqe = 0x08, kSolicited = 0x02;
  static constexpr u32 kInlined = 0x80000000, kInlineLength = 0x3ff;
  static constexpr u32 kNoMoreBuffers = 0x100;  ///< the lkey that ends a receive's list
  static constexpr u32 kCqeRequest = 0, kCqeReceiveWriteImm = 1, kCqeReceiveSend = 2, kCqeReceiveSendImm = 3,
                       kCqeReceiveSendInv = 4, kCqeRequestError = 13, kCqeReceiveError = 14, kCqeInvalid = 15;
  using Opcodes = OpTable<0x08, 0x09, 0x10, 0x0a, 0x0b, 0x12, 0x11>;

  // Syndromes of error CQEs: two runs of codes and a single one.
  using LocalErrors = StatusTable<0x01, Status::local_length, Status::local_qp_op, Status::general,
                                  Status::local_protection, Status::flushed, Status::memory_window>;
  using TransportErrors =
      StatusTable<0x10, Status::bad_response, Status::local_access, Status::remote_invalid_request,
                  Status::remote_access, Status::remote_operation, Status::retry_exceeded,
                  Status::rnr_retry_exceeded>;
  static constexpr u32 kRemoteAborted = 0x22, kUndefined = 0xff;

  [[nodiscard]] DOORBELL_INLINE static Status status_of(u32 syndrome) {
    if (syndrome == kRemoteAborted) return Status::remote_aborted;
    return syndrome < TransportErrors::kFirst ? LocalErrors::status(syndrome)
                                              : TransportErrors::status(syndrome);
  }
  [[nodiscard]] DOORBELL_INLINE static u32 syndrome_of(Status s) {
    if (s == Status::remote_aborted) return kRemoteAborted;
    return LocalErrors::code(s, TransportErrors::code(s, kUndefined));
  }

  [[nodiscard]] DOORBELL_INLINE static u32 blocks(u32 segments) {
    return (segments + kUnitParts - 1) / kUnitParts;
  }
  [[nodiscard]] DOORBELL_INLINE static u32 inline_segments(u32 bytes) {
    return bytes == 0 ? 0 : (bytes + 4 + 15) / 16;
  }
  /// The first segment of the data: it follows control, remote address and operands.
  [[nodiscard]] DOORBELL_INLINE static u32 data_at(Op op) {
    return (is_send(op) ? 1u : 2u) + (is_atomic(op) ? 1u : 0u);
  }
  [[nodiscard]] DOORBELL_INLINE static u64 compare(const WorkRequest& wr) {
    return wr.op == Op::compare_swap ? wr.compare : 0;
  }
  [[nodiscard]] DOORBELL_INLINE static u32 first_dword(const WorkRequest& wr, const RingPosition& at) {
    return (at.running & 0xffff) << 8 | Opcodes::code(wr.op);
  }
  [[nodiscard]] DOORBELL_INLINE static u32 control_flags(const WorkRequest& wr) {
    return (wr.signalled ? kAlwaysCqe : 0) | (wr.solicited ? kSolicited : 0) | (wr.fence ? kFence : 0);
  }

  /// Segment `k` of inlined data: a length of 4 bytes, then the payload.
  [[nodiscard]] DOORBELL_INLINE static Word16 inline_part(const WorkRequest& wr, u32 k) {
    if (k != 0) return payload_part(wr.payload, wr.bytes, 16 * k - 4);
    return {{wr.bytes == 0 ? 0 : be32(kInlined | wr.bytes), payload_word(wr.payload, wr.bytes, 0),
             payload_word(wr.payload, wr.bytes, 4), payload_word(wr.payload, wr.bytes, 8)}};
  }

  /// Segments first..end-1: buffers, or one inlined payload.
  [[nodiscard]] DOORBELL_INLINE static bool decode_data(const PartReader& read, u32 first, u32 end,
                                                        DecodedWqe& d) {
    for (u32 i = first; i < end; ++i) {
      const Word16 data = swapped(read(i));
      if ((data.w[0] & kInlined) != 0) {
        const u32 bytes = data.w[0] & ~kInlined;
        if (i != first || bytes > kInlineLength || bytes == 0 || first + inline_segments(bytes) != end)
          return false;
        d.request.inlined = true;
        d.request.bytes = bytes;
        d.inline_part = first;
        d.inline_offset = 4;
        return true;
      }
      // A count of zero stands for 2 GiB, which is beyond the largest message.
      if (data.w[0] == 0 || !add_sge(d, join(data.w[2], data.w[3]), data.w[0], data.w[1])) return false;
    }
    finish_sges(d);
    return true;
  }
};

static_assert(WireFormat<Mlx5>);

}  // namespace doorbell::rdma
