// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/kernel_bench/work.hpp"

#include <algorithm>

#include "net/assembly/gpu_assembly.hpp"

namespace doorbell::net {
namespace {

u64 limit_ns(const KernelBenchOptions& o) {
  return static_cast<u64>(o.timeout_s * 1e9);
}

/// The GPU's streams, and the windows that they write: window w always gets the packets of sequences
/// w * packets and on, in stream w mod streams, so that one run's writes wait for those of the one before.
class AssembledWindows : public KernelWork {
 public:
  AssembledWindows(const KernelBenchOptions& o, const StoredShape& shape, std::shared_ptr<gpu::Gpu> gpu)
      : shape_(shape),
        limit_ns_(limit_ns(o)),
        gpu_(std::move(gpu)),
        results_(Place::gpu, shape_.total() * shape_.data_bytes, gpu_) {
    for (u32 i = 0; i < std::min(o.streams, shape.windows); ++i)
      assemblies_.push_back(std::make_unique<GpuAssembly>(gpu_, 1));
  }

  void run(u64 windows) override {
    for (u64 i = 0; i < windows; ++i) {
      const auto w = static_cast<u32>(i % shape_.windows);
      start(*assemblies_[w % assemblies_.size()], w);
    }
    started_ += windows;
    wait();
  }
  [[nodiscard]] u64 window_bytes() const override { return shape_.window_bytes(); }
  [[nodiscard]] u64 window_packets() const override { return shape_.packets; }
  [[nodiscard]] Checked verify() override {
    Checked c;
    for (u32 w = 0; w < shape_.windows; ++w) {
      Window window;
      window.device = result(w);
      window.bytes = window_bytes();
      window.first_packet = u64{w} * shape_.packets;
      window.packets = shape_.packets;
      const CheckCounts n =
          assemblies_[0]->check(window, shape_.data_bytes, {shape_.fill, shape_.seed, 0}, limit_ns_);
      c.packets += n.checked;
      c.wrong += n.wrong;
    }
    return c;
  }
  [[nodiscard]] nlohmann::ordered_json facts() const override { return {{"streams", assemblies_.size()}}; }

 protected:
  virtual void start(GpuAssembly& assembly, u32 window) = 0;
  void wait() {
    for (const auto& a : assemblies_) a->wait(a->launch(), limit_ns_);
  }
  [[nodiscard]] u8* result(u32 window) const { return results_.device() + window * window_bytes(); }

  StoredShape shape_;
  u64 limit_ns_;
  std::shared_ptr<gpu::Gpu> gpu_;
  Region results_;
  std::vector<std::unique_ptr<GpuAssembly>> assemblies_;
  u64 started_ = 0;  ///< windows, since the beginning
};

class GatheredWindows final : public AssembledWindows {
 public:
  GatheredWindows(const KernelBenchOptions& o, const StoredPackets& packets, Place list,
                  const std::shared_ptr<gpu::Gpu>& gpu)
      : AssembledWindows(o, packets.shape(), gpu), items_(list, shape_.total() * sizeof(GatherItem), gpu) {
    std::vector<GatherItem> items(shape_.total());
    for (u64 n = 0; n < items.size(); ++n)
      items[n] = {packets.packet(n) + kHeaderBytes, reinterpret_cast<u64>(result(0)) + n * shape_.data_bytes,
                  shape_.data_bytes};
    items_.write(0, items.data(), items.size() * sizeof(GatherItem));
  }

 private:
  void start(GpuAssembly& assembly, u32 w) override {
    assembly.start(GatherJob{
        reinterpret_cast<const GatherItem*>(items_.device()) + u64{w} * shape_.packets, shape_.packets, {}});
  }
  Region items_;
};

/// Each window of a stream has a bitmap of its own until the stream has used them all; one kernel then clears
/// them for the next windows.
class PlacedWindows final : public AssembledWindows {
 public:
  PlacedWindows(const KernelBenchOptions& o, const StoredPackets& packets, Place list,
                const std::shared_ptr<gpu::Gpu>& gpu)
      : AssembledWindows(o, packets.shape(), gpu),
        addresses_(list, shape_.total() * 8, gpu),
        bitmap_bytes_((u64{shape_.packets} + 63) / 64 * 8),
        bitmaps_(Place::gpu, assemblies_.size() * kBitmaps * bitmap_bytes_, gpu),
        slots_(Place::gpu, kBitmaps * sizeof(u32), gpu),
        counts_(Place::gpu, sizeof(PlaceCounts), gpu),
        used_(assemblies_.size()) {
    std::vector<u64> addresses(shape_.total());
    for (u64 n = 0; n < addresses.size(); ++n) addresses[n] = packets.packet(n);
    addresses_.write(0, addresses.data(), addresses.size() * 8);
    std::vector<u32> slots(kBitmaps);
    for (u32 i = 0; i < kBitmaps; ++i) slots[i] = i;
    slots_.write(0, slots.data(), slots.size() * sizeof(u32));
  }
  [[nodiscard]] Checked verify() override {
    Checked c = AssembledWindows::verify();
    PlaceCounts n;
    counts_.read(0, &n, sizeof n);
    // The kernel's counters have 32 bits and go round.
    c.uncounted = static_cast<u32>(started_ * shape_.packets) - n.placed;
    c.uncounted += u64{n.duplicate} + n.outside;
    return c;
  }

 private:
  static constexpr u32 kBitmaps = 64;

  void start(GpuAssembly& assembly, u32 w) override {
    const u64 stream = w % assemblies_.size();
    u8* const bitmaps = bitmaps_.device() + stream * kBitmaps * bitmap_bytes_;
    if (used_[stream] == kBitmaps) {
      assembly.start(
          ZeroJob{bitmaps, reinterpret_cast<const u32*>(slots_.device()), kBitmaps, bitmap_bytes_});
      used_[stream] = 0;
    }
    assembly.start(PlaceJob{reinterpret_cast<const u64*>(addresses_.device()) + u64{w} * shape_.packets,
                            shape_.packets,
                            shape_.packets,
                            result(w),
                            reinterpret_cast<u64*>(bitmaps + used_[stream]++ * bitmap_bytes_),
                            reinterpret_cast<PlaceCounts*>(counts_.device()),
                            u64{w} * shape_.packets,
                            shape_.data_bytes,
                            0,
                            0,
                            0,
                            {}});
  }
  Region addresses_;
  u64 bitmap_bytes_;
  Region bitmaps_;  ///< kBitmaps of each stream
  Region slots_;    ///< 0, 1, ...: all of them
  Region counts_;
  std::vector<u32> used_;  ///< bitmaps of each stream
};

class CopiedWindows final : public AssembledWindows {
 public:
  CopiedWindows(const KernelBenchOptions& o, const StoredShape& shape, Place source,
                const std::shared_ptr<gpu::Gpu>& gpu)
      : AssembledWindows(o, shape, gpu), source_(shape, StoredPackets::Order::windows, source, gpu) {}
  void run(u64 windows) override {
    batch_.clear();
    for (u64 i = 0; i < windows; ++i) {
      const auto w = static_cast<u32>(i % shape_.windows);
      batch_.push_back({result(w), source_.window(w), window_bytes()});
    }
    gpu_->copy(batch_);
  }
  [[nodiscard]] u64 window_packets() const override { return 1; }
  [[nodiscard]] nlohmann::ordered_json facts() const override { return {{"streams", 1}}; }

 private:
  void start(GpuAssembly&, u32) override {}
  StoredPackets source_;
  std::vector<gpu::Copy> batch_;
};

}  // namespace

std::unique_ptr<KernelWork> gathering(const KernelBenchOptions& o, const StoredPackets& packets, Place list,
                                      const std::shared_ptr<gpu::Gpu>& gpu) {
  return std::make_unique<GatheredWindows>(o, packets, list, gpu);
}

std::unique_ptr<KernelWork> placing(const KernelBenchOptions& o, const StoredPackets& packets, Place list,
                                    const std::shared_ptr<gpu::Gpu>& gpu) {
  return std::make_unique<PlacedWindows>(o, packets, list, gpu);
}

std::unique_ptr<KernelWork> copies(const KernelBenchOptions& o, const std::shared_ptr<gpu::Gpu>& gpu,
                                   Place source) {
  // One packet a window: the checked unit is what is copied at once.
  const StoredShape shape{static_cast<u32>(o.window_bytes), 1, o.windows, Fill::bytes, o.seed};
  return std::make_unique<CopiedWindows>(o, shape, source, gpu);
}

}  // namespace doorbell::net
