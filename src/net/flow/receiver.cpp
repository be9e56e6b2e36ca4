// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/flow/receiver.hpp"

#include <doorbell/net/packet.hpp>
#include <doorbell/pattern.hpp>

#include "net/flow/headers.hpp"
#include "system/clock.hpp"

namespace doorbell::net {

namespace {

constexpr u64 kShortestStallNs = 10'000'000;

/// Of a packet that is long enough.
Header header_of(const Burst& burst, u32 i) {
  Header h;
  std::memcpy(&h, burst.data[i], kHeaderBytes);
  return h;
}

DueTime due_time(u64 word, u64 now_ns) {
  DueTime t = DueTime::of(word, now_ns);
  // So much later that the word does not say when it left: nothing can be said of its way either.
  if (word >> DueTime::kDueBits == DueTime::kMostUnits) t.left_ns = now_ns;
  return t;
}
DueTime times_of(const Header& h, u64 now_ns) {
  return h.has(kIntendedTime) ? due_time(h.tx_time_ns, now_ns) : DueTime{h.tx_time_ns, h.tx_time_ns};
}

}  // namespace

Receiver::Receiver(const ReceiverOptions& options, RxQueue& queue, PacketSink* sink)
    : o_(options),
      flows_(options.spreading, options.queue),
      queue_(queue),
      sink_(sink),
      bursts_{Burst(options.burst), Burst(options.burst)},
      crc_(options.burst),
      key_(options.burst),
      packet_(options.burst),
      flow_(options.burst),
      number_(options.burst) {
  for (u32 i = 0; i < flows_.all().size(); ++i) maps_.emplace_back(o_.first_sequence, o_.map_span);
}

u32 Receiver::step() {
  Burst& burst = bursts_[turn_];
  u32 n = queue_.receive(burst);
  ++counts_.polls;
  if (n == 0 && used_ != 0) {
    // It may be all that the queue has room for.
    settle();
    n = queue_.receive(burst);
  }
  if (n == 0) {
    ++counts_.empty_polls;
    return 0;
  }
  ++counts_.bursts;
  counts_.received += n;
  const u64 now = burst.rx_time_ns != 0 ? burst.rx_time_ns : wall_ns();
  awake(now);
  const u32 unique = classify(burst, now);
  u64 used = 0;
  if (unique > 0) {
    if (!earlier_missing_ || count_earlier(burst, unique) < unique) last_ns_ = now;
    if (sink_ != nullptr)
      used = sink_->take(burst, {packet_.data(), unique}, {flow_.data(), unique}, {number_.data(), unique});
    progress_.store(counts_.unique, std::memory_order_release);
  }
  settle();
  if (used == 0) {
    queue_.release(burst);
  } else {
    used_ = used;
    turn_ = 1 - turn_;
  }
  return n;
}

void Receiver::begin_phase(const std::vector<u64>& sent) {
  phase_first_.assign(maps_.size(), 0);
  earlier_missing_ = false;
  for (const u32 f : flows_.all()) {
    if (f >= sent.size()) continue;
    phase_first_[flows_.place(f)] = sent[f];
    earlier_missing_ = earlier_missing_ || map(f).unique() < sent[f];
  }
  latency_.clear();
  last_ns_ = empty_ns_ = awake_ns_ = stall_begin_ns_ = stall_end_ns_ = 0;
}

void Receiver::awake(u64 now_ns) {
  // A pause that makes nothing late is none.
  const u64 shortest = std::max(o_.late_ns / 4, kShortestStallNs);
  if (awake_ns_ != 0 && now_ns > awake_ns_ + shortest) stall_begin_ns_ = awake_ns_, stall_end_ns_ = now_ns;
  awake_ns_ = now_ns;
}

void Receiver::settle() {
  if (used_ == 0) return;
  sink_->await(used_);
  queue_.release(bursts_[1 - turn_]);
  used_ = 0;
}

u32 Receiver::classify(const Burst& burst, u64 now) {
  // All headers first: the caches' misses of one packet pass beside those of the next.
  header_crcs(burst.data.data(), burst.length.data(), burst.count, crc_.data());
  const u32 good = screen(burst, now);
  u32 unique = 0;
  for (u32 at = 0; at < good;) {
    // A flow's packets mostly follow each other; a sequence that wraps begins anew.
    u32 count = 1;
    while (at + count < good && key_[at + count] == key_[at] + count &&
           (key_[at + count] & kSequenceMask) != 0)
      ++count;
    unique = note_run(at, count, unique);
    at += count;
  }
  count_unique(burst, unique, now);
  return unique;
}

u32 Receiver::screen(const Burst& burst, u64 now) {
  // Magic, version, run tag and bytes, but for the flags.
  Header want;
  want.run_tag = o_.run_tag;
  const u64 mark = word_at(&want, 0) & 0xffffffff;
  constexpr u64 kFlags = 0xf000, kDue = u64{kIntendedTime} << 12;
  // A store below might change any member, as far as the compiler knows; locals are not read again for it.
  u32* const packet = packet_.data();
  u64* const key = key_.data();
  const u32* const crc = crc_.data();
  const bool verify = o_.verify, split = burst.split;
  u32 good = 0;
  u64 stream = ~u64{0};  // of the packet before
  bool owned = false;
  u64 oldest = ~u64{0};
  for (u32 i = 0; i < burst.count; ++i) {
    if (burst.length[i] < kHeaderBytes) {
      refuse(burst, i);
      continue;
    }
    const u8* const header = burst.data[i];
    const u64 stream_sequence = word_at(header, offsetof(Header, stream_sequence));
    const u64 mark_word = word_at(header, 0), time_word = word_at(header, offsetof(Header, tx_time_ns));
    if (stream_sequence >> 48 != stream) {
      stream = stream_sequence >> 48;
      owned = owns(static_cast<u32>(stream));
    }
    const u64 bytes = u64{burst.length[i]} + (split ? burst.body_length[i] : 0);
    if ((mark_word & ~kFlags) != (mark | (bytes - kHeaderBytes) << 32) ||
        crc[i] != word_at(header, offsetof(Header, data_crc32c)) >> 32 || !owned ||
        (verify && !data_good(burst, i))) {
      refuse(burst, i);
      continue;
    }
    packet[good] = i;
    key[good] = stream_sequence;
    const bool due = (mark_word & kDue) != 0;
    oldest = std::min(oldest, due ? due_time(time_word, now).left_ns : time_word);
    ++good;
  }
  oldest_ns_ = oldest;
  return good;
}

void Receiver::refuse(const Burst& burst, u32 i) {
  const Header h = burst.length[i] >= kHeaderBytes ? header_of(burst, i) : Header{};
  const u64 bytes = u64{burst.length[i]} + (burst.split ? burst.body_length[i] : 0);
  if (burst.length[i] < kHeaderBytes || h.magic != kMagic) ++counts_.alien;
  else if (crc_[i] != h.header_crc32c) ++counts_.corrupt;
  else if (h.version() != kVersion || h.run_tag != o_.run_tag) ++counts_.alien;
  else if (h.data_bytes + u64{kHeaderBytes} != bytes) ++counts_.short_;
  else if (!owns(h.stream())) ++counts_.misplaced;
  else ++counts_.corrupt;  // what is left is data that is not as its CRC says
}

u32 Receiver::note_run(u32 at, u32 count, u32 unique) {
  const auto flow = static_cast<u16>(key_[at] >> 48);
  ArrivalMap& map = maps_[flows_.place(flow)];
  if (const u64 first = map.note_newer(key_[at] & kSequenceMask, count); first != ArrivalMap::kNotNewer) {
    for (u32 k = 0; k < count; ++k) {
      packet_[unique + k] = packet_[at + k];
      flow_[unique + k] = flow;
      number_[unique + k] = first + k - o_.first_sequence;
    }
    return unique + count;
  }
  for (u32 k = 0; k < count; ++k) {
    const ArrivalMap::Noted noted = map.note(key_[at + k] & kSequenceMask);
    if (noted.arrival != Arrival::first) {
      ++(noted.arrival == Arrival::duplicate ? counts_.duplicate : counts_.misplaced);
      continue;
    }
    if (!noted.in_order) ++counts_.out_of_order;
    packet_[unique] = packet_[at + k];
    flow_[unique] = flow;
    number_[unique] = noted.number - o_.first_sequence;
    ++unique;
  }
  return unique;
}

void Receiver::count_unique(const Burst& burst, u32 unique, u64 now) {
  counts_.unique += unique;
  u64 bytes = 0;
  for (u32 u = 0; u < unique; ++u)
    bytes += u64{burst.length[packet_[u]]} + (burst.split ? burst.body_length[packet_[u]] : 0);
  counts_.unique_bytes += bytes;
  const bool in_time = now < oldest_ns_ || now - oldest_ns_ <= o_.late_ns;
  for (u32 u = 0; u < unique; ++u) {
    const bool timed = ((o_.first_sequence + number_[u]) & (o_.latency_every - 1)) == 0;
    if (in_time && !timed) continue;
    const DueTime t = times_of(header_of(burst, packet_[u]), now);
    if (now > t.left_ns && now - t.left_ns > o_.late_ns) count_late(t.left_ns, now);
    // By a clock that both ends have, none arrives before it was sent: that is no latency.
    if (timed && t.due_ns <= now && !is_earlier(u)) latency_.record(now - t.due_ns);
  }
  if (!o_.verify) return;
  for (u32 u = 0; u < unique; ++u) {
    const Header h = header_of(burst, packet_[u]);
    if (!checks(h)) continue;
    ++counts_.checked;
    counts_.checked_bytes += h.data_bytes + u64{kHeaderBytes};
  }
}

void Receiver::count_late(u64 sent_ns, u64 now_ns) {
  ++counts_.late;
  const u64 from = std::max(sent_ns, stall_begin_ns_), to = std::min(now_ns, stall_end_ns_);
  const u64 stalled_ns = to > from ? to - from : 0;
  const bool busy_since = empty_ns_ < sent_ns;
  if (busy_since || now_ns - sent_ns - stalled_ns <= o_.late_ns) ++counts_.held;
}

u32 Receiver::count_earlier(const Burst& burst, u32 unique) {
  u32 earlier = 0;
  for (u32 u = 0; u < unique; ++u) {
    if (!is_earlier(u)) continue;
    ++earlier;
    counts_.earlier_bytes +=
        u64{burst.length[packet_[u]]} + (burst.split ? burst.body_length[packet_[u]] : 0);
  }
  counts_.earlier += earlier;
  return earlier;
}

bool Receiver::checks(const Header& h) const {
  return h.has(kHasDataCrc) && pattern::sampled(h.sequence(), o_.seed, o_.verify_below);
}

bool Receiver::data_good(const Burst& burst, u32 i) const {
  const Header h = header_of(burst, i);
  if (!checks(h)) return true;
  u32 crc = crc32c(burst.data[i] + kHeaderBytes, burst.length[i] - kHeaderBytes);
  if (burst.split) crc = crc32c(burst.body[i], burst.body_length[i], crc);
  return crc == h.data_crc32c;
}

}  // namespace doorbell::net
