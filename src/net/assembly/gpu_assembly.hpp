// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Windows in GPU memory: lists of packets that a kernel gathers, and what else is done to a window there, all
// in one stream. It is an urgent one: received packets wait for it, and a workload for nobody.
#pragma once

#include <optional>

#include "net/assembly/assemble.hpp"
#include "net/assembly/stream_marks.hpp"
#include "net/assembly/window_buffers.hpp"

namespace doorbell::net {

/// The origin of the data that a check looks for.
struct DataOrigin {
  Fill fill = Fill::bytes;
  u64 seed = 0;
  u16 stream = 0;
};

/// Thread rule: one thread at a time, except stream().
class GpuAssembly {
 public:
  /// `list_packets`: how many packets a list holds before it is launched by itself.
  GpuAssembly(std::shared_ptr<gpu::Gpu> gpu, u32 list_packets, std::optional<Conversion> convert = {});
  ~GpuAssembly();
  GpuAssembly(const GpuAssembly&) = delete;
  GpuAssembly& operator=(const GpuAssembly&) = delete;

  [[nodiscard]] const std::shared_ptr<gpu::Gpu>& gpu() const { return gpu_; }
  [[nodiscard]] gpu::Stream stream() const { return stream_; }

  /// Puts a copy on the list: `from` is memory that the GPU reaches and that stays as it is until the list
  /// has been done.
  void add(const u8* from, u8* to, u32 bytes) {
    if (used_ == capacity_) launch();
    items_[used_++] = {reinterpret_cast<u64>(from), reinterpret_cast<u64>(to), bytes};
    used_bytes_ += bytes;
    low_ |= reinterpret_cast<u64>(from) | reinterpret_cast<u64>(to);
  }
  /// Starts what is on the list. Returns a mark behind all that has been started so far.
  u64 launch();
  [[nodiscard]] bool done(u64 mark) const { return marks_.reached(mark); }
  /// Throws Error when the GPU takes longer than `limit_ns`.
  void wait(u64 mark, u64 limit_ns);

  /// Jobs whose lists the caller has made, in memory that the GPU reaches: starts one behind what has been
  /// launched. The lists stay as they are until a later mark is done; `form` and
  /// `slot_bytes` of a placing are this object's.
  /// `pinned_bytes`: of all packets of the list, where they are pinned memory and no more multiprocessors
  /// shall work on them than PCIe needs; 0: a warp a packet.
  void start(GatherJob job, u64 pinned_bytes = 0);
  void start(PlaceJob job);
  void start(ZeroJob job);

  /// Behind what has been launched: writes zeros into the window's missing slots.
  void zero_missing(const Window& window, u64 slot_bytes);
  /// Launches the list and waits: compares each slot that arrived with what the sender made.
  [[nodiscard]] CheckCounts check(const Window& window, u32 data_bytes, const DataOrigin& origin,
                                  u64 limit_ns);
  /// Packets in memory that only the GPU reads: puts those of `window`'s sequences into it by their headers,
  /// and waits. `packets` are `count` addresses in memory that the GPU reaches; `arrived` is its bitmap,
  /// reachable too.
  struct Arrivals {
    const u64* packets;
    u32 count;
    u64* arrived;
    u64 first_sequence;
    u32 window_packets;
    u32 data_bytes;
    u16 run_tag;
    u16 stream;
  };
  [[nodiscard]] PlaceCounts place(const Arrivals& arrivals, u8* window, u64 limit_ns);

 private:
  static constexpr u32 kLists = 4;

  template <class Job>
  void start(gpu::Kernel kernel, Job& job, u32 warps);
  void take_list();

  std::shared_ptr<gpu::Gpu> gpu_;
  gpu::Stream stream_;
  gpu::Kernel gather_, place_, zero_, check_;
  StreamMarks marks_;
  DataForm form_;
  u32 capacity_;
  Region lists_;   ///< kLists of them, used in turn
  Region counts_;  ///< what a check or a placing reports
  GatherItem* items_ = nullptr;
  u32 list_ = 0;
  u32 used_ = 0;
  u64 used_bytes_ = 0;
  u64 low_ = 0;               ///< all addresses of the list
  u64 mark_of_[kLists] = {};  ///< when each list is done
  u64 last_mark_ = 0;
  bool unmarked_ = false;
};

}  // namespace doorbell::net
