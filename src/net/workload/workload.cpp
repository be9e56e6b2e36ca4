// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/workload/workload.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "net/workload/computing.hpp"

namespace doorbell::net {
namespace {

class NoWorkload final : public Workload {
 public:
  void submit(const Window& window) override { window.give_back(); }
  [[nodiscard]] const WorkloadCounts& counts() const override { return counts_; }
  [[nodiscard]] const WorkloadShape& shape() const override { return shape_; }
  [[nodiscard]] std::string library() const override { return {}; }

 private:
  WorkloadCounts counts_;
  WorkloadShape shape_;
};

}  // namespace

WorkloadCounts& WorkloadCounts::operator+=(const WorkloadCounts& o) {
  runs += o.runs;
  skipped += o.skipped;
  checked += o.checked;
  failed += o.failed;
  timed += o.timed;
  flop += o.flop;
  busy_ns += o.busy_ns;
  check_ns += o.check_ns;
  worst = std::max(worst, o.worst);
  return *this;
}

std::unique_ptr<Workload> Workload::open(WorkloadKind kind, const WorkloadRequest& request) {
  if (kind == WorkloadKind::none) return std::make_unique<NoWorkload>();
  if (request.in_flight < 1 || request.in_flight > Computing::kMaxInFlight)
    throw Error(fmt::format("{} windows in flight", request.in_flight),
                fmt::format("a workload has 1 to {}", Computing::kMaxInFlight));
  const WorkloadShape shape = workload_shape(kind, request.bytes, request.gemm_dim);
  return std::make_unique<Computing>(shape, request, [shape, request] {
    return request.gpu == nullptr ? cpu_engine(shape, Computing::kMaxInFlight)
                                  : gpu_engine(shape, Computing::kMaxInFlight, request.gpu, request.assembly);
  });
}

}  // namespace doorbell::net
