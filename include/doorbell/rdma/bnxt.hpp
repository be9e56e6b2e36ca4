// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The queue format of Broadcom NICs in variable mode (Thor 2): little-endian, WQEs of 16-byte slots, and
// behind the ring a table that maps messages to packet numbers. Source: rdma-core, providers/bnxt_re.
#pragma once

#include <doorbell/rdma/format.hpp>

namespace doorbell::rdma {

/// Broadcom, variable mode: a WireFormat. Source: rdma-core, providers/bnxt_re.
struct Bnxt {
  /// @name Constants, as WireFormat has them
  /// @{
  static constexpr const char* kName = "bnxt";
  static constexpr u32 kUnitParts = 1;
  static constexpr u32 kReceiveParts = 3;
  static constexpr u32 kCqeParts = 2;
  static constexpr Mark kMark = Mark::serial;  ///< modulo sq_units
  static constexpr bool kCqByIndex = false;
  static constexpr u32 kMaxInline = 96;
  static constexpr bool kCqCredits = true;
  static constexpr bool kHasTable = true;
  static constexpr u32 kMaxSqUnits = 65536;  ///< marks and the table's slots are 16 bits wide
  static constexpr u32 kCqePartA = 0;
  static constexpr u32 kCqePartB = 1;
  static constexpr bool kRequestInPartB = false;  ///< the other part of a request's CQE matters too
  static constexpr u32 kFirstReceiveMark = 0;
  static constexpr int kCqeOwnerWord = 2;  ///< of part B

  /// @}
  /// @name Shape: the sizes of rings, in ring units or entries
  /// @{

  /// The same ring size as the vendor's driver: room for 128 more WQEs, in whole pages.
  [[nodiscard]] DOORBELL_INLINE static u32 sq_units(u32 requests, u32 max_inline) {
    const u32 slots = power_of_two_from(requests + 1 + kSpareWqes) * largest_wqe(max_inline);
    return (slots + 255) / 256 * 256;
  }
  [[nodiscard]] DOORBELL_INLINE static u32 sq_reserve(u32 max_inline) {
    return kSpareWqes * largest_wqe(max_inline) + 1;
  }
  [[nodiscard]] DOORBELL_INLINE static u32 rq_entries(u32 receives) {
    return power_of_two_from(receives + 1);
  }
  [[nodiscard]] DOORBELL_INLINE static u32 cq_entries(u32 completions) {
    return power_of_two_from(completions + 1);
  }
  /// Marks start again after so many; 0: 2^32.
  [[nodiscard]] DOORBELL_INLINE static u32 mark_modulo(const QueuePairMemory& m) { return m.sq_units; }

  /// @}
  /// @name The initiator's side: see WireFormat
  /// @{

  [[nodiscard]] DOORBELL_INLINE static u32 units(const WorkRequest& wr) {
    return kHeaderSlots + (wr.inlined ? inline_slots(wr.bytes) : wr.bytes != 0 ? 1 : 0);
  }
  [[nodiscard]] DOORBELL_INLINE static u32 parts(const WorkRequest& wr) { return units(wr); }

  [[nodiscard]] DOORBELL_INLINE static Word16 part(const WorkRequest& wr, const RingPosition&,
                                                   const QueuePairMemory&, u32 p) {
    if (wr.inlined && p >= kHeaderSlots) return payload_part(wr.payload, wr.bytes, 16 * (p - kHeaderSlots));
    const bool atomic = is_atomic(wr.op);
    const u32 header = Types::code(wr.op) | flags(wr) << 8 | units(wr) << 16;
    const u32 key = atomic ? wr.rkey : has_imm(wr.op) ? wr.imm : 0;
    Word16 v = pick(p == kHeaderSlots && wr.bytes != 0, buffer(wr.local, wr.lkey, wr.bytes), {});
    v = pick(p == 1 && atomic, words(wr.operand, wr.op == Op::compare_swap ? wr.compare : 0), v);
    v = pick(p == 1 && !atomic && !is_send(wr.op), words(wr.remote, wr.rkey), v);
    return pick(p == 0, words(join(key, header), atomic ? wr.remote : wr.bytes), v);
  }

  /// The positions of this message and of the next one, in packets and in the ring.
  [[nodiscard]] DOORBELL_INLINE static u64 table_entry(const WorkRequest& wr, const RingPosition& at,
                                                       const QueuePairMemory& m) {
    const u64 next = (at.psn + packets_of(wr.bytes, m.mtu)) & 0xffffff;
    return (at.psn & 0xffffff) | next << 24 | static_cast<u64>(at.slot) << 48;
  }
  /// The table's length is the power of two that covers the ring; the driver uses half of it.
  [[nodiscard]] DOORBELL_INLINE static u32 table_index(const RingPosition& at, const QueuePairMemory&) {
    return at.serial & (0x7fffffffu >> leading_zeros(at.units - 1));
  }

  [[nodiscard]] DOORBELL_INLINE static u64 sq_doorbell_word(const WorkRequest&, const RingPosition&,
                                                            const QueuePairMemory&) {
    return 0;
  }
  DOORBELL_INLINE static void ring_sq(const QueuePairMemory& m, const RingPosition& next, u64) {
    store64_release(m.sq_doorbell, doorbell(kSendQueue, m.qpn, next.slot, next.pass));
  }

  [[nodiscard]] DOORBELL_INLINE static Word16 receive_part(const ReceiveRequest& rr, const RingPosition& at,
                                                           const QueuePairMemory&, u32 p) {
    const Word16 v = pick(p == kHeaderSlots, buffer(rr.local, rr.lkey, rr.bytes), {});
    return pick(p == 0, {{kReceiveType | kReceiveParts << 16, 0, at.slot, 0}}, v);
  }
  /// Receive positions count WQEs, not slots.
  DOORBELL_INLINE static void ring_rq(const QueuePairMemory& m, const RingPosition& next) {
    store64_release(m.rq_doorbell, doorbell(kReceiveQueue, m.qpn, next.slot, next.pass));
  }

  [[nodiscard]] DOORBELL_INLINE static Word16 cqe_initial(u32) { return {}; }
  [[nodiscard]] DOORBELL_INLINE static bool cqe_valid(const Word16& b, u32 pass) {
    return (b.w[2] & 1) != (pass & 1);
  }
  [[nodiscard]] DOORBELL_INLINE static Completion decode_cqe(const Word16& a, const Word16& b) {
    const u32 type = b.w[2] >> 1 & 0xf, code = b.w[2] >> 8 & 0xff;
    Completion c;
    c.receive = type == kCqeReceive;
    c.flush_all = type == kCqeTerminal;
    c.vendor_error = code;
    if (c.receive) {
      c.status = ReceiveErrors::status(code);
      c.mark = b.w[3] & 0xfffff;
      c.bytes = a.w[0];
      c.with_imm = (b.w[2] >> 16 & kFlagImm) != 0;
      c.imm = c.with_imm ? a.w[1] : 0;
      c.ignore = (a.w[2] | a.w[3]) == 0 || code == kHardwareFlush;
    } else {
      c.status = c.flush_all ? Status::flushed : RequestErrors::status(code);
      c.mark = a.w[2] & 0xffff;
      c.ignore = (a.w[0] | a.w[1]) == 0 || (type != kCqeRequest && !c.flush_all);
    }
    return c;
  }
  /// Needs the position's `running` and `units`.
  DOORBELL_INLINE static void ring_cq(u32*, u64* reg, const RingPosition& at, u32 cqn) {
    store64_release(reg, doorbell(kCompletionQueue, cqn, at.running & (at.units - 1),
                                  (at.running & at.units) != 0 ? 1 : 0));
  }

  /// @}
  /// @name The device's side: see WireFormat
  /// @{

  [[nodiscard]] DOORBELL_INLINE static DecodedWqe decode_wqe(const PartReader& read, u32) {
    DecodedWqe d;
    if (read.parts < kHeaderSlots) return d;
    WorkRequest& wr = d.request;
    const Word16 header = read(0), second = read(1);
    const u32 bits = header.w[0] >> 8 & 0xff, slots = header.w[0] >> 16 & 0xff;
    d.units = slots == 0 ? 1 : slots;
    wr.signalled = (bits & kSignalled) != 0;
    wr.fence = (bits & (kFence | kReadFence)) != 0;
    wr.solicited = (bits & kSolicited) != 0;
    if (!Types::find(header.w[0] & 0xff, wr.op) || slots < kHeaderSlots || slots > read.parts) return d;
    if (has_imm(wr.op)) wr.imm = header.w[1];
    if (is_atomic(wr.op)) {
      wr.rkey = header.w[1];
      wr.remote = join(header.w[3], header.w[2]);
      wr.operand = join(second.w[1], second.w[0]);
      if (wr.op == Op::compare_swap) wr.compare = join(second.w[3], second.w[2]);
    } else if (!is_send(wr.op)) {
      wr.remote = join(second.w[1], second.w[0]);
      wr.rkey = second.w[2];
    }
    if ((bits & kInline) != 0) {
      wr.inlined = true;
      wr.bytes = header.w[2];
      d.inline_part = kHeaderSlots;
      d.valid = wr.bytes <= kMaxInline && slots == kHeaderSlots + inline_slots(wr.bytes) && plausible(d);
    } else {
      // In the place where other operations repeat their length, an atomic has an address.
      d.valid =
          decode_buffers(read, slots, d) && (is_atomic(wr.op) || wr.bytes == header.w[2]) && plausible(d);
    }
    return d;
  }

  [[nodiscard]] DOORBELL_INLINE static DecodedWqe decode_receive(const PartReader& read) {
    DecodedWqe d;
    d.request.op = Op::send;
    const Word16 header = read(0);
    const u32 slots = header.w[0] >> 16 & 0xff;
    d.index = header.w[2];
    d.wr_id = header.w[2];
    d.valid = (header.w[0] & 0xff) == kReceiveType && slots >= kHeaderSlots && slots <= kReceiveParts &&
              slots <= read.parts && decode_buffers(read, slots, d) && d.request.bytes <= kMaxMessage;
    return d;
  }

  DOORBELL_INLINE static void encode_cqe(const CqeFields& f, u32 pass, Word16* out) {
    const Completion& c = f.completion;
    const u64 handle = handle_of(f);
    const u32 phase = ~pass & 1;
    if (c.receive && !c.flush_all) {
      const u32 bits = (c.with_imm ? kFlagImm : 0) | (f.op == Op::write_imm ? kFlagRdma : 0);
      const u32 code = ReceiveErrors::code(c.status, kUndefined);
      store_cqe_part(out + kCqePartA, words(join(c.with_imm ? c.imm : 0, c.bytes), handle));
      store16_release<kCqeOwnerWord>(out + kCqePartB,
                                     {{0, 0, phase | kCqeReceive << 1 | code << 8 | bits << 16,
                                       (c.mark & 0xfffff) | (f.source_qpn >> 16 & 0xff) << 24}});
      return;
    }
    const u32 type = c.flush_all ? kCqeTerminal : kCqeRequest;
    const u32 code = c.flush_all ? 0 : RequestErrors::code(c.status, kUndefined);
    const u32 mark = f.ring_units > 1 ? c.mark % f.ring_units : c.mark;
    store_cqe_part(out + kCqePartA, words(handle, c.flush_all ? 0 : mark & 0xffff));
    store16_release<kCqeOwnerWord>(out + kCqePartB, {{0, 0, phase | type << 1 | code << 8, 0}});
  }

  [[nodiscard]] DOORBELL_INLINE static DoorbellValue decode_doorbell(u64 word) {
    using Queue = DoorbellValue::Queue;
    DoorbellValue v;
    const u32 type = high(word) >> 28;
    if ((high(word) & kDoorbellValid) != 0)
      v.queue = type == kSendQueue                              ? Queue::send
                : type == kReceiveQueue                         ? Queue::receive
                : type == kCompletionQueue                      ? Queue::completion
                : type > kCompletionQueue && type <= kArmEnable ? Queue::arm
                                                                : Queue::unknown;
    v.id = high(word) & 0xfffff;
    v.index = low(word) & 0xffffff;
    v.epoch = low(word) >> 24 & 1;
    return v;
  }
  /// @}

 private:
  static constexpr u32 kHeaderSlots = 2;
  static constexpr u32 kSpareWqes = 128;
  static constexpr u32 kReceiveType = 0x80;
  static constexpr u32 kSignalled = 0x01, kReadFence = 0x02, kFence = 0x04, kSolicited = 0x08, kInline = 0x10;
  static constexpr u32 kSendQueue = 0, kReceiveQueue = 1, kCompletionQueue = 4, kArmEnable = 7;
  static constexpr u32 kDoorbellValid = 1u << 26;  ///< in the upper half
  static constexpr u32 kCqeRequest = 0, kCqeReceive = 1, kCqeTerminal = 14;
  static constexpr u32 kFlagImm = 2, kFlagRdma = 8;
  using Types = OpTable<0x04, 0x05, 0x06, 0x00, 0x01, 0x0b, 0x08>;
  static constexpr u32 kHardwareFlush = 8, kUndefined = 0xff;
  using RequestErrors =
      StatusTable<0, Status::ok, Status::bad_response, Status::local_length, Status::local_qp_op,
                  Status::local_protection, Status::memory_window, Status::remote_invalid_request,
                  Status::remote_access, Status::remote_operation, Status::rnr_retry_exceeded,
                  Status::retry_exceeded, Status::flushed>;
  using ReceiveErrors = StatusTable<0, Status::ok, Status::local_access, Status::local_length,
                                    Status::local_protection, Status::local_qp_op, Status::memory_window,
                                    Status::remote_invalid_request, Status::flushed, Status::flushed>;

  [[nodiscard]] DOORBELL_INLINE static u32 inline_slots(u32 bytes) { return (bytes + 15) / 16; }
  [[nodiscard]] DOORBELL_INLINE static u32 largest_wqe(u32 max_inline) {
    return kHeaderSlots + (max_inline <= 16 ? 1 : inline_slots(max_inline));
  }
  [[nodiscard]] DOORBELL_INLINE static u32 flags(const WorkRequest& wr) {
    return (wr.signalled ? kSignalled : 0) | (wr.fence ? kFence : 0) | (wr.solicited ? kSolicited : 0) |
           (wr.inlined && wr.bytes != 0 ? kInline : 0);
  }
  [[nodiscard]] DOORBELL_INLINE static Word16 buffer(u64 address, u32 lkey, u32 bytes) {
    return words(address, join(bytes, lkey));
  }
  [[nodiscard]] DOORBELL_INLINE static u64 doorbell(u32 type, u32 id, u32 index, u32 epoch) {
    return join(type << 28 | kDoorbellValid | (id & 0xfffff), (epoch & 1) << 24 | (index & 0xffffff));
  }
  /// `v` is not 0.
  [[nodiscard]] DOORBELL_INLINE static u32 leading_zeros(u32 v) {
#if defined(DOORBELL_ON_GPU)
    return static_cast<u32>(__clz(static_cast<int>(v)));
#else
    return static_cast<u32>(__builtin_clz(v));
#endif
  }
  [[nodiscard]] DOORBELL_INLINE static bool decode_buffers(const PartReader& read, u32 slots, DecodedWqe& d) {
    for (u32 i = kHeaderSlots; i < slots; ++i) {
      const Word16 b = read(i);
      if (!add_sge(d, join(b.w[1], b.w[0]), b.w[3], b.w[2])) return false;
    }
    finish_sges(d);
    return true;
  }
};

static_assert(WireFormat<Bnxt>);

}  // namespace doorbell::rdma
