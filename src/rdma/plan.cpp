// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/plan.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "rdma/ping_pong_end.hpp"

namespace doorbell::rdma {

namespace {

constexpr u64 kBufferBudget = u64{256} << 20;  // bytes of one side, where the window is ours to choose
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

[[noreturn]] void refuse(const char* option, const std::string& why, const std::string& hint = {}) {
  throw Error(option, why, hint);
}

/// Operations of one queue pair in one repeat, where nobody says how many.
u64 natural_count(Part part, u64 bytes, u32 window) {
  bytes = std::max<u64>(bytes, 1);
  return part == Part::rate ? std::clamp(kBytesByCount / bytes, u64{2} * window, kMostByCount)
                            : std::clamp(kSingleBytes / bytes, kLeastSingles, kMostSingles);
}

/// Operations in flight on one queue pair, where nobody says how many: as many as the memory allows.
u32 natural_window(const BenchOptions& o, u32 bytes, u32 batch) {
  const u64 fit = std::max<u64>(kBufferBudget / (slot_bytes(bytes) * o.queue_pairs), 1);
  return static_cast<u32>(std::min<u64>({std::max(4 * batch, kLeastWindow), fit, kMaxWindow}));
}

void check_ping_pong(const BenchOptions& o) {
  if (!is_ping_pong_op(o.op))
    refuse("--measure", fmt::format("ping-pong sends messages with write or send, not with {}", name(o.op)));
  if (o.initiator == Initiator::gpu)
    refuse("--measure", "ping-pong is played by CPU threads", "use --initiator cpu");
  if (o.local_memory == Place::gpu || o.remote_memory == Place::gpu)
    refuse("--measure", "ping-pong looks for its messages in memory that a CPU reaches",
           "use --data-mem host");
  if (o.op == Op::write && std::ranges::find(o.sizes, 0u) != o.sizes.end())
    refuse("--size", "ping-pong sees a write by its last byte, and 0 bytes have none",
           "give 1 or more, or use --op send");
  if (o.one_offset) refuse("--offsets", "ping-pong has offsets of its own", "leave --offsets out");
}

}  // namespace

const char* name(Part part) {
  return part == Part::latency ? "latency" : part == Part::rate ? "rate" : "ping-pong";
}

u32 landing_slots(Op op, Ends ends, u32 window) {
  return op == Op::write_imm && ends == Ends::remote ? 2 * window : 0;
}

bool measures_ceiling(const CellPlan& plan, const Device& device) {
  return plan.part == Part::rate && plan.bytes >= kCeilingFrom && plan.shape.queue_pairs == 1 &&
         device.kind() == "model";
}

u64 memory_needed(const CellPlan& plan, const Device& device) {
  const SessionShape& s = plan.shape;
  u64 bytes = memory_needed(s, device);
  if (!measures_ceiling(plan, device)) return bytes;
  for (const Place place : {s.local_memory, s.remote_memory})
    if (place != Place::gpu) bytes += u64{plan.bytes} * (s.one_offset ? 1 : plan.window);
  return bytes;
}

CellPlan plan_cell(const BenchOptions& o, Part part, u32 bytes) {
  CellPlan c;
  c.part = part;
  c.bytes = is_atomic(o.op) ? kAtomicBytes : bytes;
  if (part == Part::rate) {
    const auto natural =
        static_cast<u32>(std::clamp<u64>(kBatchBytes / std::max(c.bytes, 1u), 1, kMostInBatch));
    c.batch = o.batch != 0 ? o.batch : natural;
    c.window = o.in_flight != 0 ? o.in_flight : natural_window(o, c.bytes, c.batch);
    c.batch = std::min(c.batch, c.window);
  }
  // Buffers of so many slots; one message is under way.
  if (part == Part::ping_pong) c.window = kPingPongSlots;
  const bool ping_pong = part == Part::ping_pong;
  c.signal_every = o.signal_every != 0 ? o.signal_every : ping_pong ? kMessagesASignal : c.batch;
  c.inlined = c.bytes <= o.inline_below && o.inline_below > 0;
  c.count = o.iterations != 0 ? o.iterations : natural_count(part, c.bytes, c.window);
  if (o.duration_s > 0) c.count = ~u64{0};
  c.shape = {.ends = ping_pong && o.ends == Ends::self ? Ends::pair : o.ends,
             .role = Role::initiator,
             .queue_pairs = part == Part::rate ? o.queue_pairs : 1,
             .window = c.window,
             .requests = ping_pong ? 2 * c.signal_every : 0,
             .landing = landing_slots(o.op, o.ends, c.window),
             .one_offset = o.one_offset,
             .ping_pong = ping_pong,
             .bytes = c.bytes,
             .max_inline = c.inlined ? o.inline_below : 0,
             .queue_memory = o.queue_memory,
             .local_memory = o.local_memory,
             .remote_memory = o.remote_memory,
             .initiator = o.initiator,
             .connection = o.connection};
  return c;
}

void check(const BenchOptions& o) {
  const bool on_gpu = o.initiator == Initiator::gpu;
  if (o.sizes.empty()) refuse("--size", "there is none");
  if (is_atomic(o.op) && (o.sizes.size() != 1 || o.sizes.front() != kAtomicBytes))
    refuse("--size", fmt::format("{} works on 8 bytes", name(o.op)), "leave --size out, or give 8");
  if (!o.latency && !o.rate && !o.ping_pong) refuse("--measure", "there is nothing to measure");
  if (o.ping_pong) check_ping_pong(o);
  if (o.in_flight > kMaxWindow)
    refuse("--in-flight", fmt::format("{} is not in 1..{}", o.in_flight, kMaxWindow));
  if (o.batch > kMaxWindow) refuse("--batch-size", fmt::format("{} is not in 1..{}", o.batch, kMaxWindow));
  if (o.in_flight != 0 && o.in_flight < o.batch)
    refuse("--in-flight", fmt::format("{} is less than --batch-size {}", o.in_flight, o.batch));
  if (o.inline_below > 0 && returns_data(o.op))
    refuse("--inline", fmt::format("{} brings data back: nothing travels in the WQE", name(o.op)));
  if (o.one_offset && o.verify)
    refuse("--offsets", "one lets operations overwrite each other's data, which cannot be checked then",
           "add --verify off, or spread them");
  if (!on_gpu && o.queue_memory == Place::gpu)
    refuse("--queue-mem", "vram puts queues into GPU memory, which a CPU initiator cannot reach",
           "use --initiator gpu, or --queue-mem host");
  if (!on_gpu && o.verify && (o.local_memory == Place::gpu || o.remote_memory == Place::gpu))
    refuse(o.local_memory == Place::gpu ? "--data-mem" : "--target-mem",
           "vram puts data where a CPU initiator can neither make nor check it",
           "use --initiator gpu, or --verify off");
  if (on_gpu && o.provider == Provider::verbs)
    refuse("--initiator", "gpu cannot post through libibverbs: its queues belong to a library of the host",
           "use --initiator cpu, or the device's own provider (mlx5)");
}

}  // namespace doorbell::rdma
