// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Windows that go through the stages behind a receiver: a kernel or a copy, then a workload.
#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "net/assembly/copy_stage.hpp"
#include "net/assembly/gpu_assembly.hpp"
#include "net/kernel_bench/work.hpp"
#include "system/clock.hpp"

namespace doorbell::net {
namespace {

/// Checks windows in GPU memory on their way to the next consumer.
class CheckedWindows final : public WindowConsumer {
 public:
  CheckedWindows(GpuAssembly& assembly, const StoredShape& shape, u64 limit_ns, WindowConsumer& next)
      : assembly_(assembly), shape_(shape), limit_ns_(limit_ns), next_(next) {}
  void take(const Window& window) override {
    const CheckCounts n =
        assembly_.check(window, shape_.data_bytes, {shape_.fill, shape_.seed, 0}, limit_ns_);
    checked += n.checked;
    wrong += n.wrong;
    next_.take(window);
  }
  void poll() override { next_.poll(); }
  void wait(u64 limit_ns) override { next_.wait(limit_ns); }
  void finish() override { next_.finish(); }
  u64 checked = 0, wrong = 0;

 private:
  GpuAssembly& assembly_;
  const StoredShape& shape_;
  u64 limit_ns_;
  WindowConsumer& next_;
};

class ComputedWindows final : public KernelWork, private WindowOwner {
 public:
  ComputedWindows(const KernelBenchOptions& o, const StoredPackets& packets, bool gathers, WorkloadKind kind,
                  const std::shared_ptr<gpu::Gpu>& gpu)
      : packets_(packets),
        shape_(packets.shape()),
        gathers_(gathers),
        kind_(kind),
        limit_ns_(static_cast<u64>(o.timeout_s * 1e9)),
        gpu_(gpu),
        assembly_(gpu, 1),
        out_(shape_.windows) {
    if (gathers) make_lists();
    workload_ = open_workload(0);
    if (!gathers) stage_ = open_stage(*workload_);
  }

  void run(u64 windows) override {
    if (stage_ != nullptr) pass(windows, *stage_);
    else pass(windows, *workload_);
  }
  [[nodiscard]] u64 window_bytes() const override { return shape_.window_bytes(); }
  [[nodiscard]] u64 window_packets() const override { return shape_.packets; }
  /// Checks that a CPU makes would hold the GPU up, so they have windows of their own.
  [[nodiscard]] Checked verify() override {
    index_ = 0;
    const auto workload = open_workload(1);
    CheckedWindows checked(assembly_, shape_, limit_ns_, *workload);
    if (gathers_) {
      pass(shape_.windows, checked);
    } else {
      const auto stage = open_stage(checked);
      pass(shape_.windows, *stage);
    }
    const WorkloadCounts& n = workload->counts();
    worst_ = n.worst;
    return {checked.checked, checked.wrong, n.checked, n.failed, 0};
  }
  [[nodiscard]] nlohmann::ordered_json facts() const override {
    if (kind_ == WorkloadKind::none) return nlohmann::ordered_json::object();
    const WorkloadShape& s = workload_->shape();
    return {{"library", workload_->library()},
            {"n", s.n},
            {"transforms", s.batch},
            {"flop_a_window", s.flop},
            {"runs", workload_->counts().runs},
            {"largest_error_share", worst_}};
  }

 private:
  void give_back(const Window& window) override { out_[window.buffer] = false; }

  std::unique_ptr<Workload> open_workload(u32 check_every) {
    return Workload::open(kind_, {.bytes = window_bytes(),
                                  .gpu = gpu_,
                                  .assembly = assembly_.stream(),
                                  .check_every = check_every,
                                  .limit_ns = limit_ns_});
  }
  std::unique_ptr<CopyStage> open_stage(WindowConsumer& next) {
    return std::make_unique<CopyStage>(gpu_, window_bytes(), shape_.packets, next, 2, 2, limit_ns_);
  }
  void make_lists() {
    results_ = Region(Place::gpu, shape_.total() * shape_.data_bytes, gpu_);
    items_ = Region(Place::pinned, shape_.total() * sizeof(GatherItem), gpu_);
    auto* const items = reinterpret_cast<GatherItem*>(items_.host());
    for (u64 n = 0; n < shape_.total(); ++n)
      items[n] = {packets_.packet(n) + kHeaderBytes,
                  reinterpret_cast<u64>(results_.device()) + n * shape_.data_bytes, shape_.data_bytes};
  }

  /// Hands so many windows to `consumer`, and waits until all are done.
  void pass(u64 windows, WindowConsumer& consumer) {
    for (u64 i = 0; i < windows; ++i, ++index_) {
      const auto w = static_cast<u32>(index_ % shape_.windows);
      consumer.poll();
      wait_for(w, consumer);
      consumer.take(next(w));
    }
    consumer.finish();
    assembly_.wait(assembly_.launch(), limit_ns_);
  }
  void wait_for(u32 w, WindowConsumer& consumer) {
    for (const u64 end = wall_ns() + limit_ns_; out_[w];) {
      const u64 now = wall_ns();
      if (now >= end)
        throw Error(fmt::format("workload {}", name(kind_)),
                    fmt::format("it has kept a window for {:.1f} s", static_cast<double>(limit_ns_) * 1e-9),
                    {}, ExitCode::data);
      consumer.wait(end - now);
    }
  }
  Window next(u32 w) {
    Window window;
    window.index = index_;
    window.first_packet = u64{w} * shape_.packets;
    window.bytes = window_bytes();
    window.packets = shape_.packets;
    window.owner = this;
    window.buffer = w;
    if (gathers_) {
      assembly_.start(
          GatherJob{reinterpret_cast<const GatherItem*>(items_.device()) + u64{w} * shape_.packets,
                    shape_.packets,
                    {}},
          window_bytes());
      window.device = results_.device() + w * window_bytes();
    } else {
      window.host = packets_.host_window(w);
      window.device = packets_.window(w);
    }
    out_[w] = true;
    return window;
  }

  const StoredPackets& packets_;
  const StoredShape& shape_;
  bool gathers_;
  WorkloadKind kind_;
  u64 limit_ns_;
  std::shared_ptr<gpu::Gpu> gpu_;
  GpuAssembly assembly_;
  Region results_, items_;  ///< of kernel `gather`
  std::vector<bool> out_;   ///< each window is with its consumer
  u64 index_ = 0;
  double worst_ = 0;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<CopyStage> stage_;
};

}  // namespace

std::unique_ptr<KernelWork> computing(const KernelBenchOptions& o, const StoredPackets& packets, bool gathers,
                                      WorkloadKind kind, const std::shared_ptr<gpu::Gpu>& gpu) {
  return std::make_unique<ComputedWindows>(o, packets, gathers, kind, gpu);
}

}  // namespace doorbell::net
