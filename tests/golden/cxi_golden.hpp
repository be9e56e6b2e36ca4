// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Helpers that read and compare Cassini's vectors: fields of commands, recorded bytes as words, a ring whose
// bytes are known.
#pragma once

#include <doorbell/cxi/command_queue.hpp>

#include "golden/golden.hpp"

namespace doorbell::golden {

using namespace doorbell::cxi;

inline constexpr OneLane lane;

inline u32 number32(Keys& in, const std::string& key) {
  return static_cast<u32>(in(key));
}
inline u32 optional32(Keys& in, const std::string& key) {
  return in.has(key) ? number32(in, key) : 0;
}

/// The flags that all commands which move data have.
inline void read_flags(Keys& in, DmaFlags& f) {
  f.event_send_disable = optional32(in, "event_send_disable") != 0;
  f.event_success_disable = optional32(in, "event_success_disable") != 0;
  f.event_ct_send = optional32(in, "event_ct_send") != 0;
  f.event_ct_reply = optional32(in, "event_ct_reply") != 0;
  f.event_ct_ack = optional32(in, "event_ct_ack") != 0;
  f.event_ct_bytes = optional32(in, "event_ct_bytes") != 0;
  f.restricted = optional32(in, "restricted") != 0;
}

inline u32 read_dfa(Keys& in) {
  return number32(in, "nid") << 12 | number32(in, "endpoint_defined");
}

inline void read_dma(Keys& in, DmaFields& f) {
  f.index_ext = optional32(in, "index_ext");
  f.lac = optional32(in, "lac");
  read_flags(in, f.flags);
  f.dfa = read_dfa(in);
  f.remote_offset = in.has("remote_offset") ? in("remote_offset") : 0;
  f.local_addr = in("local_addr");
  f.request_len = number32(in, "request_len");
  f.ct = number32(in, "ct");
  f.eq = number32(in, "eq");
}

template <u32 kCount>
Bytes bytes_of_words(const Words<kCount>& v) {
  Bytes out(sizeof v.w);
  std::memcpy(out.data(), v.w, sizeof v.w);
  return out;
}

/// The recorded bytes as words, zeros behind the end.
struct Recorded {
  std::vector<u64> words;
  explicit Recorded(const json& vector) : words(64) {
    const Bytes bytes = from_hex(vector.at("bytes_hex").get<std::string>());
    std::memcpy(words.data(), bytes.data(), bytes.size());
  }
  [[nodiscard]] const u64* data() const { return words.data(); }
};

/// Equal, but for bytes that the reference left as they were (`fill`): ours may be zeros there.
inline void expect_written(const Bytes& got, const Bytes& want, u8 fill) {
  ASSERT_EQ(got.size(), want.size());
  Bytes same = got;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (want[i] == fill && got[i] == 0) same[i] = fill;
  EXPECT_EQ(to_hex(same), to_hex(want));
}

/// A ring whose bytes are known before anybody writes them, and its launch page.
struct Ring {
  explicit Ring(u32 slots, u8 fill = 0xee) : parts(u64{slots} * kSlotParts), launch(kLaunchBytes / 8) {
    std::memset(parts.data(), fill, parts.size() * sizeof(Word16));
    std::memset(launch.data(), kUntouched, kLaunchBytes);
    state.memory.ring = parts.data();
    state.memory.launch = reinterpret_cast<u8*>(launch.data());
    state.memory.slots = slots;
    device_read(kStatusSlots);
  }
  void at(u32 unit) {
    state.wp32 = state.rung32 = state.rp32 = unit;
    device_read(unit / 2);
  }
  void device_read(u32 slot) {
    CommandQueueStatus s;
    s.rd_ptr = slot;
    s.return_code = ReturnCode::ok;
    const u64 word = pack(s).w[0];
    std::memcpy(parts.data(), &word, sizeof word);
  }
  [[nodiscard]] Bytes bytes(u32 unit, std::size_t n) const {
    Bytes out(n);
    std::memcpy(out.data(), parts.data() + u64{unit} * 2, n);
    return out;
  }
  [[nodiscard]] u16 doorbell() const { return static_cast<u16>(launch[0]); }
  void forget_doorbell() { std::memset(launch.data(), kUntouched, 8); }
  [[nodiscard]] bool rung() const {
    u64 untouched;
    std::memset(&untouched, kUntouched, sizeof untouched);
    return launch[0] != untouched;
  }
  static constexpr u8 kUntouched = 0xdd;
  std::vector<Word16> parts;
  std::vector<u64> launch;
  CommandQueueState state;
};

}  // namespace doorbell::golden
