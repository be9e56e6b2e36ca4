// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A command slot that holds anything at all, as a Cassini reads it: one command at most, which survives being
// written and read again.

#include <doorbell/cxi/commands.hpp>

#include <cstring>

#include "fuzz/fuzz.hpp"

using namespace doorbell;
using namespace doorbell::cxi;
using fuzz::require;

namespace {

template <class C>
u32 check(const u64* words) {
  C c;
  if (!decode(words, c)) return 0;
  require(command_units(c) >= header_of(words[0]).units());
  const auto again = encode(c);
  C d;
  require(decode(again.w, d) && d.header() == c.header());
  require(std::memcmp(pack(c).w, pack(d).w, sizeof pack(c).w) == 0 || C::kWords == 4);
  return 1;
}

u32 check_idc(const u64* words) {
  IdcPut c;
  if (!decode(words, c)) return 0;
  // Never beyond the command, whose size its header says.
  require(IdcPut::kHeaderBytes + c.bytes <= 32 * header_of(words[0]).units());
  u64 again[32] = {};
  for (u32 p = 0; p < 2 * c.units(); ++p) {
    const Word16 part = c.part(p);
    std::memcpy(again + 2 * p, &part, sizeof part);
  }
  IdcPut d;
  require(decode(again, d) && d.bytes == c.bytes && d.dfa == c.dfa && d.remote_offset == c.remote_offset);
  require(std::memcmp(c.payload, d.payload, c.bytes) == 0);
  return 1;
}

u32 check_trigger(const u64* words) {
  TrigDma c;
  if (!decode(words, c)) return 0;
  TrigDma d;
  require(decode(encode(c).w, d));
  require(d.when.threshold == c.when.threshold && d.when.trig_ct == c.when.trig_ct && d.when.eq == c.when.eq);
  require(d.dma.request_len == c.dma.request_len && d.dma.opcode == c.dma.opcode);
  return 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  alignas(16) u64 words[32] = {};
  if (size > 0) std::memcpy(words, data, size < sizeof words ? size : sizeof words);
  const u32 takers = check<NomatchDma>(words) + check<FullDma>(words) + check<CState>(words) +
                     check<CounterCommand>(words) + check<Append>(words) + check<SetState>(words) +
                     check<Lcid>(words) + check_idc(words) + check_trigger(words);
  require(takers <= 1);
  const u32 pid_bits = 6 + static_cast<u32>(words[1] & 3);
  const Dfa dfa{static_cast<u32>(words[0]), static_cast<u32>(words[1] >> 2) & 31};
  const EntryAddress t = split_dfa(dfa, pid_bits);
  const Dfa again = make_dfa(t.nid, t.pid, pid_bits, t.idx);
  require(again.value == dfa.value && again.index_ext == dfa.index_ext);
  return 0;
}
