// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// RDMA from a program of your own: a NIC by its name, registered memory, connected queue pairs; put, get,
// send and atomics by a CPU thread or a kernel (GpuWarp in the place of OneLane), in the queue format of the
// NIC's vendor.
//
//   const auto nic = rdma::open_nic({.device = "model", .provider = "mlx5"});  // as the command line does
//   const Region from = nic->allocate(Place::pageable, 4096), to = nic->allocate(Place::pageable, 4096);
//   const auto here = nic->register_memory(from, rdma::access::local_write);
//   const auto there = nic->register_memory(to, rdma::access::all);
//   const auto pair = nic->create_queue_pair({});
//   rdma::connect(*pair, *pair);  // to itself
//   const rdma::QueuePairState state = rdma::initial_state(pair->memory(Initiator::cpu));
//   const rdma::QueuePair<OneLane, rdma::Mlx5> queue(state);
//   rdma::RemoteOperations<OneLane, rdma::Mlx5, rdma::NsClock> remote(queue, /*1 s*/ 1'000'000'000);
//   const rdma::Status status =
//       remote.put(OneLane{}, {there->iova(), there->rkey()}, {here->iova(), here->lkey()}, 4096);
//
// The head of remote_operations.hpp has the same in a kernel; examples/rdma_put is a whole program, over all
// formats.
#pragma once

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <doorbell/pattern.hpp>
#include <doorbell/rdma/bnxt.hpp>
#include <doorbell/rdma/ernic.hpp>
#include <doorbell/rdma/ionic.hpp>
#include <doorbell/rdma/mlx5.hpp>
#include <doorbell/rdma/nic.hpp>
#include <doorbell/rdma/remote_operations.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace doorbell::rdma {

/// The Clock of a RemoteOperations whose ticks are nanoseconds, on a CPU and in a kernel.
struct NsClock {
  /// Nanoseconds since an arbitrary start: only differences mean something.
  static DOORBELL_HD u64 now() {
#if defined(DOORBELL_ON_GPU)
    return gpu_global_ns();
#else
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
#endif
  }
};

/// Calls `f` with an empty object of the queue format that Nic::provider_name() names, and returns its
/// result: `with_format(name, [&]<class Format>(Format) { ... })`. Throws Error for "verbs", whose queues
/// libibverbs writes, and for a name of none. Host code only.
template <class F>
auto with_format(std::string_view provider, F&& f) {
  if (provider == Mlx5::kName) return std::forward<F>(f)(Mlx5{});
  if (provider == Bnxt::kName) return std::forward<F>(f)(Bnxt{});
  if (provider == Ionic::kName) return std::forward<F>(f)(Ionic{});
  if (provider == Ernic::kName) return std::forward<F>(f)(Ernic{});
  throw Error("the provider " + std::string(provider), "its queues have no format that doorbell writes",
              "one of mlx5, bnxt, ionic and ernic has");
}

}  // namespace doorbell::rdma
