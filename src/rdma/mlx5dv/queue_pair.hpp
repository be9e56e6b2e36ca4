// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A ConnectX queue pair whose rings the initiator writes itself. libibverbs creates and connects it, and
// libmlx5 shows where its parts lie.
#pragma once

#include <memory>

#include "rdma/mlx5dv/gpu_mappings.hpp"
#include "rdma/mlx5dv/library.hpp"
#include "rdma/verbs/nic.hpp"

namespace doorbell::rdma {

/// A queue pair's parts as libmlx5 shows them.
struct Mlx5Queues {
  mlx5dv_qp qp = {};
  mlx5dv_cq send_cq = {};
  mlx5dv_cq recv_cq = {};
};
/// Converts that to the format's terms, without the track table. Throws Error if the layout is not the one
/// that the format expects.
[[nodiscard]] QueuePairMemory mlx5_memory(const Mlx5Queues& queues, const QueuePairShape& shape, u32 qpn);

/// State that the queue pairs of a device share.
struct Mlx5Shared {
  std::shared_ptr<const VerbsContext> context;
  Mlx5Library mlx5;
  std::shared_ptr<GpuMappings> mappings;  ///< null without a GPU
};

class Mlx5QueuePairObject final : public QueuePairObject {
 public:
  Mlx5QueuePairObject(std::shared_ptr<const Mlx5Shared> shared, const QueuePairShape& shape);

  [[nodiscard]] QueuePairAddress address() const override { return made_.verbs->address(); }
  void initialise(const ConnectionOptions& options) override { made_.verbs->initialise(options); }
  void connect(const QueuePairAddress& peer, const ConnectionOptions& options) override {
    made_.verbs->connect(peer, options);
  }
  /// Creates a new queue pair in its place: address() and memory() change.
  void reset() override;
  void fail() override { made_.verbs->fail(); }
  [[nodiscard]] QpState state() const override { return made_.verbs->state(); }
  [[nodiscard]] QueuePairMemory memory(Initiator initiator) override;
  [[nodiscard]] u32 max_inline() const override { return shape_.max_inline; }

 private:
  struct Made {
    std::unique_ptr<VerbsQueuePairObject> verbs;
    QueuePairMemory memory;               ///< in the CPU's addresses
    std::unique_ptr<GpuMapping> mapping;  ///< destroyed before the queue pair
    QueuePairMemory gpu_memory;           ///< valid with `mapping`
  };
  [[nodiscard]] Made make() const;
  void map_for_gpu();

  std::shared_ptr<const Mlx5Shared> shared_;
  QueuePairShape shape_;
  Made made_;
  Region track_;
};

}  // namespace doorbell::rdma
