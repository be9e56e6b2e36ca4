// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Engine: several operations of one queue at a time, a lane of a warp each.
#pragma once

#include "cxi/model/engine.hpp"
#include "model/apart.hpp"
#include "model/copy_words.hpp"

namespace doorbell::cxi {

/// Executes the next commands of `q` together, as far as they are plain: puts and gets between the memories
/// of the queue's last operation, whose success is only counted, in commands of the first one's size, none
/// of which touches what an earlier one moves; and NOOPs of that size. Returns the number of commands; 0:
/// serve() goes on. All lanes call it together, between two calls of other functions by lane 0, which
/// publishes the queue's read pointer and the counter afterwards. The data of several operations becomes
/// visible in any order, their acknowledgements behind all of it.
template <class Parts>
template <class Warp>
DOORBELL_HD u32 Engine<Parts>::burst(const Warp& warp, WorkQueue& q, Word16* stage) {
  if (!q.has_commands() || !bursts(q)) return 0;
  const u32 lane = warp.lane();
  auto* const ring = reinterpret_cast<Word16*>(q.ring.host);
  const u32 end = 2 * (q.write < q.read32 / 2 ? q.slots : q.write);
  const u32 first = q.read32;
  const u32 units = header_of(load64_relaxed(reinterpret_cast<const u64*>(ring + u64{first} * 2))).units();
  if (units > 2 || (first & (units - 1)) != 0) return 0;
  // A write pointer at the slot whose first half has been read announces nothing.
  if (end <= first) return 0;
  const u32 left = (end - first) / units, most = kStage / (2 * units);
  u32 here = left < Warp::size ? left : Warp::size;
  if (here > most) here = most;
  model::gather_words(warp, stage, here * units * 2, [&](u32 i) { return ring + u64{first} * 2 + i; });
  warp.sync();

  Plain mine;
  bool plain = lane < here && is_plain(q, stage + lane * units * 2, units, mine);
  // One counter for all that count.
  const u64 counting = warp.ballot(plain && mine.ct != 0);
  const u32 ct = warp.shfl(mine.ct, counting == 0 ? 0 : lowest_bit(counting));
  plain = plain && (mine.ct == 0 || mine.ct == ct);
  u32 n = leading_run(warp.ballot(plain));
  if (n > Warp::size) n = Warp::size;
  n = model::apart(warp, mine.to, mine.from, mine.bytes, n);
  if (n == 0) return 0;

  const bool taken = lane < n;
  parts_.mover.copy_all(warp, mine.to, mine.from, taken ? mine.bytes : 0, mine.to_gpu);
  const u32 operations = count_bits(warp.ballot(taken && !mine.noop));
  const u32 gets = count_bits(warp.ballot(taken && mine.is_get));
  const u32 counted = count_bits(warp.ballot(taken && mine.ct != 0));
  const u32 loose = count_bits(warp.ballot(taken && mine.unrestricted));
  const u64 bytes = reduce_add(warp, taken ? u64{mine.bytes} : 0);
  const u64 packets = reduce_add(warp, taken && !mine.noop ? packets_of(mine.bytes) : 0);
  warp.sync();  // all lanes have used what lane 0 changes now
  if (lane == 0) {
    EngineCounters& c = parts_.counters;
    c.commands += n;
    c.puts += operations - gets;
    c.gets += gets;
    c.unrestricted += loose;
    c.bytes += bytes;
    c.packets += packets;
    if (operations > 1) c.in_bursts += operations;
    q.serial += operations;
    parts_.objects.table[q.pte].operations += operations;
    q.read32 = first + n * units;
    if (q.read32 >= 2 * q.slots) q.read32 = 2 * kStatusSlots;
    if (counted > 0) count(ct, counted, 0);
  }
  warp.sync();
  return n;
}

/// Whether commands of `q` can be plain at all.
template <class Parts>
DOORBELL_HD bool Engine<Parts>::bursts(const WorkQueue& q) const {
  if (!plain_ || q.kind != CommandQueueKind::transmit || q.ready_ns != 0 || q.epoch != epoch_ ||
      q.pte == kNobody || q.memory == kNobody || parts_.mover.pending())
    return false;
  const TableEntry& pte = parts_.objects.table[q.pte];
  const u32 place = !pte.lists[0].empty() ? pte.lists[0].first : pte.lists[1].first;
  if (pte.state != PtlteState::enabled || place == kNobody) return false;
  const ListEntry& entry = parts_.list_entry(place);
  const bool silent = entry.has(append_flag::success_disable) || entry.has(append_flag::comm_disable);
  const bool counts = entry.has(append_flag::ct_comm) && entry.append.ct != 0;
  return entry.epoch == epoch_ && entry.memory != kNobody && silent && !counts &&
         !entry.has(append_flag::use_once);
}

/// Whether one command is plain, and what it moves. bursts() has been true.
template <class Parts>
DOORBELL_HD bool Engine<Parts>::is_plain(const WorkQueue& q, const Word16* command, u32 units,
                                         Plain& out) const {
  const u64 words[NomatchDma::kWords] = {
      join(command[0].w[1], command[0].w[0]), join(command[0].w[3], command[0].w[2]),
      join(command[1].w[1], command[1].w[0]), join(command[1].w[3], command[1].w[2])};
  const CommandHeader h = header_of(words[0]);
  if (h.units() != units) return false;
  if (h.opcode == static_cast<u32>(Opcode::noop) &&
      (h.kind() == CommandType::idc || h.kind() == CommandType::dma)) {
    out.noop = true;
    return true;
  }
  if (h.kind() != CommandType::dma) return false;
  // The longer form begins with the fields of the shorter one.
  const auto f = unpack<DmaFields>(words);
  const auto opcode = static_cast<Opcode>(h.opcode);
  const Opcode get = units == 1 ? Opcode::nomatch_get : Opcode::get;
  const Opcode put = units == 1 ? Opcode::nomatch_put : Opcode::put;
  if (opcode != get && opcode != put) return false;
  out.is_get = opcode == get;
  if (!f.flags.event_success_disable || f.flags.event_ct_bytes ||
      (!out.is_get && (f.flags.event_ct_send || !f.flags.event_send_disable)))
    return false;
  if ((f.ct != 0 && counting_event(q.owner, f.ct) == nullptr) ||
      (f.eq != 0 && !has_event_queue(q.owner, f.eq)))
    return false;
  if (f.dfa != q.dfa.value || f.index_ext != q.dfa.index_ext || f.lac != q.lac) return false;
  const MappedMemory& near = parts_.objects.memories[q.memory];
  const TableEntry& pte = parts_.objects.table[q.pte];
  const ListEntry& entry = parts_.list_entry(!pte.lists[0].empty() ? pte.lists[0].first : pte.lists[1].first);
  const MappedMemory& far = parts_.objects.memories[entry.memory];
  const Append& a = entry.append;
  if (!near.covers(f.local_addr, f.request_len) ||
      !allows(near.access, out.is_get ? Access::write : Access::read) ||
      !allows(far.access, out.is_get ? Access::read : Access::write) ||
      !entry.has(out.is_get ? append_flag::op_get : append_flag::op_put) || f.remote_offset > a.length ||
      f.request_len > a.length - f.remote_offset)
    return false;
  if (out.is_get ? f.flags.event_ct_reply : f.flags.event_ct_ack) out.ct = f.ct;
  out.unrestricted = !f.flags.restricted;
  out.bytes = f.request_len;
  // Without bytes there are no places, which apart() takes for neighbours of others.
  if (f.request_len == 0) return true;
  u8* const local = near.at(f.local_addr).address;
  u8* const remote = far.at(a.start + f.remote_offset).address;
  out.to = out.is_get ? local : remote;
  out.from = out.is_get ? remote : local;
  out.to_gpu = out.is_get ? near.on_gpu : far.on_gpu;
  return true;
}

}  // namespace doorbell::cxi
