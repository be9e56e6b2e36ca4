// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An event queue that holds anything at all: its reader stays inside it, ends, and takes only whole events;
// what decodes survives being written and read again.

#include <doorbell/cxi/event_queue.hpp>

#include <cstring>
#include <vector>

#include "fuzz/fuzz.hpp"

using namespace doorbell;
using namespace doorbell::cxi;
using fuzz::require;

namespace {

template <class E>
void check(const u64* words, u32 bytes) {
  E e;
  if (bytes != E::kWords * 8 || !decode_event(words, e)) return;
  const auto again = encode_event(e);
  E f;
  require(decode_event(again.w, f) && f.type == e.type && f.return_code == e.return_code);
  require(std::memcmp(pack(e).w, pack(f).w, sizeof pack(e).w) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  const OneLane lane;
  // Exactly so many bytes, so that a read beyond them is one beyond an allocation.
  const u32 blocks = 2 + static_cast<u32>(size / 64);
  std::vector<u64> memory(u64{blocks} * 8);
  if (size > 0) std::memcpy(memory.data() + 8, data, size);
  u64 csr = 0;
  EventQueueState state;
  state.memory = {reinterpret_cast<u8*>(memory.data()), &csr, blocks * 64, 1};
  EventQueue<OneLane> queue(state);
  u32 events = 0;
  for (;;) {
    const auto p = queue.poll(lane);
    if (p.bytes == 0) break;
    require(p.return_code != ReturnCode::none && p.type != EventType::null_event);
    const auto* const begin = reinterpret_cast<const u8*>(p.words);
    require(begin >= state.memory.events + kEventQueueHead &&
            begin + p.bytes <= state.memory.events + state.memory.bytes);
    check<InitiatorEvent>(p.words, p.bytes);
    check<InitiatorLongEvent>(p.words, p.bytes);
    check<TriggeredEvent>(p.words, p.bytes);
    check<TriggeredLongEvent>(p.words, p.bytes);
    check<CommandFailureEvent>(p.words, p.bytes);
    check<TargetEvent>(p.words, p.bytes);
    check<TargetLongEvent>(p.words, p.bytes);
    check<StateChangeEvent>(p.words, p.bytes);
    check<StateChangeLongEvent>(p.words, p.bytes);
    (void)queue.ack(lane);
    require(queue.unacked() == 0);
    // Events that were given back are gone: the reader cannot go round for ever.
    require(++events <= 2 * blocks * 4);
  }
  return 0;
}
