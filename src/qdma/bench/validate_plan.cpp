// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/bench/validate_plan.hpp"

#include <algorithm>

#include "model/copy_allowance.hpp"
#include "qdma/flow/gpu_stream.hpp"
#include "qdma/model/card.hpp"
#include "system/available_memory.hpp"

namespace doorbell::qdma {

using Phase = ValidatePhase;

const std::vector<std::string>& validate_phase_names() {
  static const std::vector<std::string> names = {"integrity", "read",     "write",
                                                 "duplex",    "gpu-read", "gpu-write"};
  return names;
}

std::string_view name(Layout l) {
  return l == Layout::given ? "as given" : l == Layout::same_channel ? "same channel" : "crossed";
}

bool of_gpu(Phase p) {
  return p == Phase::gpu_read || p == Phase::gpu_write;
}
bool reads(Phase p) {
  return p == Phase::read || p == Phase::gpu_read;
}
const std::string& name(Phase p) {
  return validate_phase_names()[static_cast<u32>(p)];
}

std::vector<MemorySet> memory_sets(const ValidateOptions& o) {
  std::vector<MemorySet> sets;
  if (o.hbm && o.each) sets.push_back({"HBM", {card_memory("hbm")}});
  if (o.ddr && o.each) sets.push_back({"DDR", {card_memory("ddr")}});
  if (o.hbm && o.ddr) sets.push_back({"HBM+DDR", {card_memory("hbm"), card_memory("ddr")}});
  return sets;
}

bool uses_gpu(const ValidateOptions& o) {
  return o.gpu_memory || (o.phase && of_gpu(*o.phase));
}

u32 places(const ValidateOptions& o) {
  return 2 * o.threads;
}

u64 memory_of(const ValidateOptions& o, u64 buffer_bytes, bool model) {
  u64 bytes = places(o) * buffer_bytes;
  if (uses_gpu(o)) bytes += o.threads * std::min(GpuStreamOptions().buffers * o.gpu_chunk, buffer_bytes);
  if (model) bytes += places(o) * buffer_bytes * (o.hbm && o.ddr ? 2 : 1);
  return bytes;
}

u64 buffer_bytes_of(const ValidateOptions& o, bool model) {
  if (o.buffer_bytes != 0) return o.buffer_bytes;
  const u64 most = available_memory().value_or(u64{8} << 30) / 2;
  u64 bytes = kLargestValidateBuffer;
  while (bytes > kGranule && memory_of(o, bytes, model) > most) bytes /= 2;
  return bytes;
}

std::vector<std::pair<Phase, Layout>> measured_phases(const ValidateOptions& o, const MemorySet& set) {
  std::vector<std::pair<Phase, Layout>> all = {
      {Phase::read, Layout::given}, {Phase::write, Layout::given}, {Phase::duplex, Layout::given}};
  if (o.channels.empty()) {
    all.emplace_back(Phase::duplex, Layout::same_channel);
    all.emplace_back(Phase::duplex, Layout::crossed);
  }
  // Each memory by itself.
  if (uses_gpu(o) && set.memories.size() == 1) {
    all.emplace_back(Phase::gpu_read, Layout::given);
    all.emplace_back(Phase::gpu_write, Layout::given);
  }
  if (o.phase) std::erase_if(all, [&](const auto& p) { return p.first != *o.phase; });
  return all;
}

PlannedWork work_of(const ValidateOptions& o) {
  PlannedWork w;
  u64 calls = 0;
  for (const MemorySet& set : memory_sets(o))
    for (const auto& [phase, layout] : measured_phases(o, set)) {
      ++w.cells;
      calls += o.iterations * (phase == Phase::duplex || set.memories.size() > 1 ? places(o) : o.threads);
    }
  w.buffer_bytes = buffer_bytes_of(o, is_model(o.device));
  if (const double rate = expected_rate(o.device); rate > 0 && w.cells > 0)
    w.repeat_s = static_cast<double>(calls) * static_cast<double>(w.buffer_bytes) / rate / w.cells;
  return w;
}

}  // namespace doorbell::qdma
