// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Commands that change counting events, and commands that wait for a count.
#pragma once

#include <doorbell/cxi/commands.hpp>

namespace doorbell::cxi {

/// 24 bytes of fields in a command of 64 bytes; each opcode uses some of them.
struct CounterFields {
  u32 ct = 0;
  u32 trig_ct = 0;  ///< the counter whose success count a triggered command waits for
  u32 eq = 0;
  u64 ct_success = 0;
  u32 ct_failure = 0;
  bool set_ct_success = false;
  bool set_ct_failure = false;
  u64 threshold = 0;

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

/// Every counter command except the triggered DMA.
struct CounterCommand : CounterFields {
  static constexpr u32 kWords = 8;
  CounterOpcode opcode = CounterOpcode::noop;

  [[nodiscard]] DOORBELL_INLINE u32 header() const { return header_byte(CommandType::counter, 1, opcode); }
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
struct TrigDma {
  static constexpr u32 kWords = 16;
  static constexpr u32 kDmaWord = 3;
  CounterFields when;  ///< trig_ct, threshold, eq
  NomatchDma dma;

  [[nodiscard]] DOORBELL_INLINE static u32 header() {
    return header_byte(CommandType::counter, 2, CounterOpcode::trig_dma);
  }
};
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

}  // namespace doorbell::cxi
