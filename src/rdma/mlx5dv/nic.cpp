// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/mlx5dv/nic.hpp"

#include <doorbell/error.hpp>
#include <doorbell/rdma/mlx5.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "rdma/settings.hpp"
#include "rdma/verbs/context.hpp"

namespace doorbell::rdma {

namespace {

/// Gives an environment variable another value for a while.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name); before != nullptr) before_ = before;
    ::setenv(name, value, 1);
  }
  ~ScopedVariable() {
    if (before_) ::setenv(name_, before_->c_str(), 1);
    else ::unsetenv(name_);
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// libmlx5 maps doorbell registers write-combining unless the environment says otherwise when the device is
/// opened. In such a mapping a CPU's store waits for a flush, and a store for another queue pair may replace
/// it, so each doorbell needs a fence. An uncached register needs no fence.
std::unique_ptr<VerbsNic> open_uncached(const VerbsConfig& config, std::shared_ptr<gpu::Gpu> gpu) {
  const ScopedVariable uncached("MLX5_SHUT_UP_BF", "1");
  return std::make_unique<VerbsNic>(config, std::move(gpu));
}

}  // namespace

Mlx5Nic::Mlx5Nic(const VerbsConfig& config, std::shared_ptr<gpu::Gpu> gpu)
    : shared_(std::make_shared<Mlx5Shared>()), verbs_(open_uncached(config, gpu)) {
  shared_->context = verbs_->context();
  if (!shared_->mlx5.is_supported(shared_->context->context->device))
    throw Error(
        fmt::format("RDMA device {}", shared_->context->facts.name), "it is no ConnectX that libmlx5 drives",
        fmt::format("use {} verbs, which takes any RDMA device", setting::provider), ExitCode::absent);
  if (gpu != nullptr) shared_->mappings = std::make_shared<GpuMappings>(std::move(gpu));
}

std::string Mlx5Nic::name() const {
  const std::string name = verbs_->name();
  return name.substr(name.find(':') + 1);
}

NicLimits Mlx5Nic::limits() const {
  NicLimits l = verbs_->limits();
  l.max_requests = std::min(l.max_requests, Mlx5::kMaxSqUnits);
  l.max_inline = std::min(l.max_inline, Mlx5::kMaxInline);
  l.gpu_initiator = shared_->mappings != nullptr;
  return l;
}

std::unique_ptr<QueuePairObject> Mlx5Nic::create_queue_pair(const QueuePairShape& shape) {
  if (shape.queue_memory == Place::gpu)
    throw Error("queues in GPU memory", "libmlx5 allocates those of a ConnectX in host memory",
                "use host memory");
  if (shape.signal_all)
    throw Error("a queue pair that signals all requests", "a ConnectX looks at each request's own flag",
                "signal each request");
  verbs_->check(shape);
  return std::make_unique<Mlx5QueuePairObject>(shared_, shape);
}

}  // namespace doorbell::rdma
