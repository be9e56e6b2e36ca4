// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/assembly/gpu_assembly.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace doorbell::net {
namespace {

constexpr u32 kThreads = 256;
constexpr u32 kMaxBlocks = 2048;  // warps take several packets each beyond that
constexpr u64 kListLimitNs = 10'000'000'000;

/// So many keep PCIe busy with packets of so many bytes in all, copied in vectors; more would only keep a
/// workload from the multiprocessors.
u32 warps_for_pcie(u32 packets, u64 bytes) {
  constexpr u64 kInFlight = 256 << 10;  // measured on an H100, PCIe 5 x16: half of it is too little
  constexpr u64 kAtOnce = 2048;         // what a warp reads at a time
  const u64 each = std::max<u64>(bytes / packets, 1);
  // One more for the packet's place in the list.
  const u64 reads = 1 + (each + kAtOnce - 1) / kAtOnce;
  return static_cast<u32>(std::clamp<u64>(kInFlight * reads / each, 1, packets));
}

u32 checked_capacity(u32 packets) {
  if (packets < 1 || packets > kMaxWindowPackets)
    throw Error(fmt::format("a list of {} packets", packets),
                fmt::format("a list for the GPU has 1 to {} packets", kMaxWindowPackets));
  return packets;
}

}  // namespace

GpuAssembly::GpuAssembly(std::shared_ptr<gpu::Gpu> gpu, u32 list_packets, std::optional<Conversion> convert)
    : gpu_(std::move(gpu)),
      stream_(gpu_->create_urgent_stream()),
      gather_(gpu_->kernel("doorbell_net_gather")),
      place_(gpu_->kernel("doorbell_net_place")),
      zero_(gpu_->kernel("doorbell_net_zero")),
      check_(gpu_->kernel("doorbell_net_check")),
      marks_(gpu_, stream_),
      form_{convert.value_or(Conversion{}), convert ? 1u : 0u},
      capacity_(checked_capacity(list_packets)),
      lists_(Place::pinned, u64{kLists} * capacity_ * sizeof(GatherItem), gpu_),
      counts_(Place::pinned, std::max(sizeof(CheckCounts), sizeof(PlaceCounts)), gpu_) {
  take_list();
}

GpuAssembly::~GpuAssembly() {
  gpu_->destroy(stream_);
}

template <class Job>
void GpuAssembly::start(gpu::Kernel kernel, Job& job, u32 warps) {
  const u32 a_block = kThreads / static_cast<u32>(gpu_->info().warp_size);
  std::array<void*, 1> args = {&job};
  gpu_->launch(kernel,
               {.blocks = std::min((warps + a_block - 1) / a_block, kMaxBlocks),
                .threads = kThreads,
                .shared_bytes = 0},
               stream_, args);
  unmarked_ = true;
}

void GpuAssembly::start(GatherJob job, u64 pinned_bytes) {
  job.form = form_;
  start(gather_, job, pinned_bytes != 0 ? warps_for_pcie(job.count, pinned_bytes) : job.count);
}

void GpuAssembly::start(PlaceJob job) {
  job.form = form_;
  job.slot_bytes = form_.converts != 0 ? converted_bytes(form_.conversion, job.data_bytes) : job.data_bytes;
  start(place_, job, job.count);
}

void GpuAssembly::start(ZeroJob job) {
  start(zero_, job, job.count);
}

void GpuAssembly::take_list() {
  wait(mark_of_[list_], kListLimitNs);
  items_ = reinterpret_cast<GatherItem*>(lists_.host()) + u64{list_} * capacity_;
  used_ = 0;
  used_bytes_ = 0;
  low_ = 0;
}

u64 GpuAssembly::launch() {
  if (used_ != 0) {
    // Only whole vectors that are copied as they are keep PCIe busy with few warps.
    const bool few = form_.converts == 0 && low_ % 16 == 0;
    start(GatherJob{reinterpret_cast<const GatherItem*>(lists_.device()) + u64{list_} * capacity_, used_, {}},
          few ? used_bytes_ : 0);
    mark_of_[list_] = last_mark_ = marks_.mark();
    unmarked_ = false;
    list_ = (list_ + 1) % kLists;
    take_list();
  }
  if (unmarked_) {
    last_mark_ = marks_.mark();
    unmarked_ = false;
  }
  return last_mark_;
}

void GpuAssembly::wait(u64 mark, u64 limit_ns) {
  if (marks_.wait(mark, limit_ns)) return;
  throw Error(
      fmt::format("GPU {}", gpu_->info().index),
      fmt::format("it has not put packets together within {:.1f} s", static_cast<double>(limit_ns) * 1e-9),
      {}, ExitCode::data);
}

void GpuAssembly::zero_missing(const Window& window, u64 slot_bytes) {
  if (window.missing == 0) return;
  // The address is the window's own, which may be written only through the GPU.
  start(ZeroJob{const_cast<u8*>(window.device), window.device_missing_slots, window.missing, slot_bytes});
}

CheckCounts GpuAssembly::check(const Window& window, u32 data_bytes, const DataOrigin& origin, u64 limit_ns) {
  std::memset(counts_.host(), 0, sizeof(CheckCounts));
  CheckJob job{window.device,       window.device_arrived, reinterpret_cast<CheckCounts*>(counts_.device()),
               window.first_packet, origin.seed,           window.packets,
               data_bytes,          origin.fill,           origin.stream};
  launch();
  start(check_, job, window.packets);
  wait(launch(), limit_ns);
  CheckCounts counts;
  std::memcpy(&counts, counts_.host(), sizeof counts);
  return counts;
}

PlaceCounts GpuAssembly::place(const Arrivals& a, u8* window, u64 limit_ns) {
  std::memset(counts_.host(), 0, sizeof(PlaceCounts));
  launch();
  start(PlaceJob{a.packets,
                 a.count,
                 a.window_packets,
                 window,
                 a.arrived,
                 reinterpret_cast<PlaceCounts*>(counts_.device()),
                 a.first_sequence,
                 a.data_bytes,
                 a.run_tag,
                 a.stream,
                 0,
                 {}});
  wait(launch(), limit_ns);
  PlaceCounts counts;
  std::memcpy(&counts, counts_.host(), sizeof counts);
  return counts;
}

}  // namespace doorbell::net
