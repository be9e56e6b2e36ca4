// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rma/cell_setup.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "measure/endless.hpp"
#include "rma/ping_pong_end.hpp"
#include "rma/settings.hpp"

namespace doorbell::rma {

namespace {

constexpr u64 kBufferBudget = u64{256} << 20;  // bytes of one side, if the options leave the window open
constexpr u64 kCeilingFrom = 64 << 10;
constexpr u64 kBatchBytes = 256u << 10;
constexpr u32 kMostInBatch = 64;
constexpr u32 kLeastWindow = 16;
constexpr u64 kBytesByCount = u64{256} << 20;  // moved by one repeat of the rate part
constexpr u64 kMostByCount = 200'000;
constexpr u64 kSingleBytes = u64{64} << 20;
constexpr u64 kMostSingles = 1000;
constexpr u64 kLeastSingles = 10;
constexpr u32 kMessagesASignal = 16;  // of a ping-pong

[[noreturn]] void refuse(const std::string& option, const std::string& why, const std::string& hint = {}) {
  throw Error(option, why, hint);
}

/// Operations of one queue in one repeat, if the options do not give the number.
u64 natural_count(Part part, u64 bytes, u32 window) {
  bytes = std::max<u64>(bytes, 1);
  return part == Part::rate ? std::clamp(kBytesByCount / bytes, u64{2} * window, kMostByCount)
                            : std::clamp(kSingleBytes / bytes, kLeastSingles, kMostSingles);
}

/// Operations in flight on one queue, if the options do not give the number: as many as the memory allows.
u32 natural_window(const BenchOptions& o, u32 bytes, u32 batch) {
  const u64 fit = std::max<u64>(kBufferBudget / (slot_bytes(bytes, o.slot_alignment) * o.queues), 1);
  return static_cast<u32>(std::min<u64>({std::max(4 * batch, kLeastWindow), fit, kMaxWindow}));
}

/// The slots of each connection in a device's own memory: a repeat's operations, as far as the memory allows.
u32 device_slots(const BenchOptions& o, const CellSetup& c) {
  const u64 fit = kBufferBudget / (slot_bytes(c.bytes, o.slot_alignment) * c.shape.queues);
  return static_cast<u32>(std::clamp<u64>(std::min(c.count, fit), c.window, ~u32{0}));
}

void check_ping_pong(const BenchOptions& o) {
  if (!is_ping_pong_op(o.op))
    refuse(setting::measure,
           fmt::format("ping-pong sends messages with write or send, not with {}", name(o.op)));
  if (o.initiator == Initiator::gpu)
    refuse(setting::measure, "ping-pong is played by CPU threads",
           fmt::format("use {} cpu", setting::initiator));
  if (o.local_memory == Place::gpu || o.remote_memory == Place::gpu)
    refuse(setting::measure, "ping-pong looks for its messages in memory that a CPU reaches",
           fmt::format("use {} host", setting::local_memory));
  if (o.ends == Ends::device) refuse(setting::measure, "a device's memory does not answer");
  if (o.op == Op::write && std::ranges::find(o.sizes, 0u) != o.sizes.end())
    refuse(setting::size, "ping-pong sees a write by its last byte, and 0 bytes have none",
           fmt::format("give 1 or more, or use {} send", setting::op));
  if (o.one_offset)
    refuse(setting::offsets, "ping-pong has offsets of its own",
           fmt::format("leave {} out", setting::offsets));
}

}  // namespace

const char* name(Part part) {
  return part == Part::latency ? "latency" : part == Part::rate ? "rate" : "ping-pong";
}

u32 target_slots(Op op, Ends ends, u32 window) {
  return op == Op::write_imm && ends == Ends::remote ? 2 * window : 0;
}

bool measures_ceiling(const CellSetup& setup, const Port& port) {
  return setup.part == Part::rate && setup.bytes >= kCeilingFrom && setup.shape.queues == 1 &&
         port.kind() == "model";
}

u64 memory_needed(const CellSetup& setup, const Port& port) {
  const SessionShape& s = setup.shape;
  u64 bytes = memory_needed(s, port);
  if (s.ends == Ends::device && port.kind() == "model")
    bytes += slot_bytes(s.bytes, s.slot_alignment) * s.remote_slots() * s.queues;
  if (!measures_ceiling(setup, port)) return bytes;
  for (const Place place : {s.local_memory, s.remote_memory})
    if (place != Place::gpu) bytes += u64{setup.bytes} * (s.one_offset ? 1 : setup.window);
  return bytes;
}

CellSetup set_up_cell(const BenchOptions& o, Part part, u32 bytes) {
  CellSetup c;
  c.part = part;
  c.bytes = is_atomic(o.op) ? kAtomicBytes : bytes;
  if (part == Part::rate) {
    const auto natural =
        static_cast<u32>(std::clamp<u64>(kBatchBytes / std::max(c.bytes, 1u), 1, kMostInBatch));
    c.batch = o.batch != 0 ? o.batch : natural;
    c.window = o.in_flight != 0 ? o.in_flight : natural_window(o, c.bytes, c.batch);
    c.batch = std::min(c.batch, c.window);
  }
  // A ping-pong's buffers have so many slots, although only one message is under way.
  if (part == Part::ping_pong) c.window = kPingPongSlots;
  const bool ping_pong = part == Part::ping_pong;
  c.signal_every = o.signal_every != 0 ? o.signal_every : ping_pong ? kMessagesASignal : c.batch;
  c.inlined = c.bytes <= o.inline_below && o.inline_below > 0;
  c.count = o.iterations != 0 ? o.iterations : natural_count(part, c.bytes, c.window);
  if (o.duration_s > 0) c.count = ~u64{0};
  c.shape = {.ends = ping_pong && o.ends == Ends::self ? Ends::pair : o.ends,
             .role = Role::initiator,
             .queues = part == Part::rate ? o.queues : 1,
             .window = c.window,
             .requests = ping_pong ? 2 * c.signal_every : 0,
             .target_slots = target_slots(o.op, o.ends, c.window),
             .slot_alignment = o.slot_alignment,
             .one_offset = o.one_offset,
             .ping_pong = ping_pong,
             .receives = takes_receive(o.op),
             .bytes = c.bytes,
             .max_inline = c.inlined ? o.inline_below : 0,
             .queue_memory = o.queue_memory,
             .local_memory = o.local_memory,
             .remote_memory = o.remote_memory,
             .initiator = o.initiator};
  if (o.ends == Ends::device) c.shape.target_slots = device_slots(o, c);
  return c;
}

void check(const BenchOptions& o) {
  const bool on_gpu = o.initiator == Initiator::gpu;
  if (o.sizes.empty()) refuse(setting::size, "there is none");
  if (is_atomic(o.op) && (o.sizes.size() != 1 || o.sizes.front() != kAtomicBytes))
    refuse(setting::size, fmt::format("{} works on 8 bytes", name(o.op)),
           fmt::format("leave {} out, or give 8", setting::size));
  if (!o.latency && !o.rate && !o.ping_pong) refuse(setting::measure, "there is nothing to measure");
  if (measure::is_endless(o.duration_s) && o.sizes.size() * (o.latency + o.rate + o.ping_pong) > 1)
    refuse(setting::infinite, "more than one cell is asked for, and the first one would not end",
           fmt::format("give one {} and one {}", setting::size, setting::measure));
  if (o.ping_pong) check_ping_pong(o);
  if (o.in_flight > kMaxWindow)
    refuse(setting::in_flight, fmt::format("{} is not in 1..{}", o.in_flight, kMaxWindow));
  if (o.batch > kMaxWindow) refuse(setting::batch, fmt::format("{} is not in 1..{}", o.batch, kMaxWindow));
  if (o.in_flight != 0 && o.in_flight < o.batch)
    refuse(setting::in_flight, fmt::format("{} is less than {} {}", o.in_flight, setting::batch, o.batch));
  if (o.inline_below > 0 && returns_data(o.op))
    refuse(o.texts.inline_below, fmt::format("{} brings data back: nothing travels in the WQE", name(o.op)));
  if (o.one_offset && o.verify)
    refuse(setting::offsets, "one lets operations overwrite each other's data, which cannot be checked then",
           fmt::format("add {} off, or spread them", setting::verify));
  if (!on_gpu && o.queue_memory == Place::gpu)
    refuse(setting::queue_memory, "vram puts queues into GPU memory, which a CPU initiator cannot reach",
           fmt::format("use {} gpu, or {} host", setting::initiator, setting::queue_memory));
}

}  // namespace doorbell::rma
