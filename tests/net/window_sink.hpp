// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A consumer of windows that keeps them for as long as a test wants and remembers what was in them.
#pragma once

#include <deque>
#include <vector>

#include "net/assembly/window_buffers.hpp"

namespace doorbell::net::test {

class WindowSink : public WindowConsumer {
 public:
  struct Seen {
    u64 index;
    u64 first_packet;
    std::vector<u8> bytes;
    std::vector<u32> missing;
    std::vector<bool> arrived;
    u32 packets;
    Closing why;
    const u8* at;
    u32 buffer;
  };

  /// Keeps so many windows before it gives the oldest one back.
  explicit WindowSink(u32 keep = 0) : keep_(keep) {}

  void take(const Window& w) override {
    Seen s{w.index, w.first_packet, {},      {w.missing_slots.begin(), w.missing_slots.end()}, {}, w.packets,
           w.why,   w.host,         w.buffer};
    if (w.host != nullptr) s.bytes.assign(w.host, w.host + w.bytes);
    if (!w.arrived.empty())
      for (u32 i = 0; i < w.packets; ++i) s.arrived.push_back((w.arrived[i / 64] >> (i % 64) & 1) != 0);
    seen.push_back(std::move(s));
    kept.push_back(w);
    while (kept.size() > keep_) give_one();
  }
  void wait(u64) override {
    ++waits;
    if (gives_when_asked && !kept.empty()) give_one();
  }
  void finish() override {
    while (!kept.empty()) give_one();
  }

  std::vector<Seen> seen;
  std::deque<Window> kept;
  u32 waits = 0;
  bool gives_when_asked = true;

 private:
  void give_one() {
    const Window w = kept.front();
    // Nobody else has written to it meanwhile.
    if (w.host != nullptr) {
      for (const Seen& s : seen)
        if (s.index == w.index) unchanged &= std::equal(s.bytes.begin(), s.bytes.end(), w.host);
    }
    kept.pop_front();
    w.give_back();
  }
  u32 keep_;

 public:
  bool unchanged = true;
};

}  // namespace doorbell::net::test
