// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Any RDMA device that libibverbs knows: a NIC through its kernel driver, or the kernel's soft-RoCE.
#pragma once

#include <doorbell/gpu.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "options/option.hpp"
#include "rdma/nic_device.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace doorbell::rdma {

/// "verbs:NAME,port=1,gid=3"
struct VerbsConfig {
  std::string device;  ///< "rxe0"; empty: the only one there is
  u32 port = 0;        ///< 0: the first active one
  int gid = -1;        ///< index in the port's table; -1: RoCE v2, IPv4 before IPv6
  std::filesystem::path sysfs = "/sys";
};
[[nodiscard]] options::OptionTable verbs_keys();
[[nodiscard]] VerbsConfig parse_verbs_spec(const std::string& spec);

/// The GID of a port to use if the user names none; null if the port has none.
[[nodiscard]] const ibv_gid_entry* preferred_gid(const std::vector<ibv_gid_entry>& entries);

class VerbsContext;
class VerbsEvents;

class VerbsQueuePairObject final : public QueuePairObject {
 public:
  /// Makes the queue pair if ibv_create_qp() is not enough; returns null and sets errno on failure.
  using Create = std::function<ibv_qp*(const VerbsContext&, ibv_qp_init_attr&)>;

  VerbsQueuePairObject(std::shared_ptr<const VerbsContext> context, const QueuePairShape& shape);
  /// For back ends that drive the queues themselves: queue_state() has no buffers.
  VerbsQueuePairObject(std::shared_ptr<const VerbsContext> context, const QueuePairShape& shape,
                       const Create& create);
  ~VerbsQueuePairObject() override;

  [[nodiscard]] QueuePairAddress address() const override;
  void initialise(const ConnectionOptions& options) override;
  void connect(const QueuePairAddress& peer, const ConnectionOptions& options) override;
  void reset() override;
  void fail() override;
  [[nodiscard]] QpState state() const override;
  [[nodiscard]] QueuePairMemory memory(Initiator initiator) override;
  [[nodiscard]] u32 max_inline() const override { return max_inline_; }

  /// The initial state of a VerbsQueuePair, after creation and after each reset(). Valid as long as this
  /// object.
  [[nodiscard]] VerbsQueuePair::State queue_state() const;
  [[nodiscard]] ibv_qp* qp() const { return qp_; }
  [[nodiscard]] ibv_cq* send_cq() const { return send_cq_; }
  [[nodiscard]] ibv_cq* recv_cq() const { return recv_cq_; }

 private:
  void modify(ibv_qp_attr attributes, int mask, const char* what);
  void release() noexcept;

  std::shared_ptr<const VerbsContext> context_;
  QueuePairShape shape_;
  std::unique_ptr<VerbsBuffers> buffers_;
  ibv_cq* send_cq_ = nullptr;
  ibv_cq* recv_cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  u32 max_inline_ = 0;
  u32 psn_ = 0;
};

class VerbsNic final : public NicDevice {
 public:
  /// Throws doorbell::Error: ExitCode::absent without libibverbs or without such a device.
  explicit VerbsNic(const VerbsConfig& config, std::shared_ptr<gpu::Gpu> gpu = nullptr);
  ~VerbsNic() override;

  [[nodiscard]] std::string kind() const override;
  [[nodiscard]] std::string name() const override;
  [[nodiscard]] Provider provider() const override { return Provider::verbs; }
  [[nodiscard]] NicLimits limits() const override;
  [[nodiscard]] Region allocate(Place place, u64 bytes) override;
  [[nodiscard]] std::unique_ptr<MemoryRegion> register_memory(const Region& region, u32 access) override;
  [[nodiscard]] std::unique_ptr<QueuePairObject> create_queue_pair(const QueuePairShape& shape) override;
  /// create_queue_pair() with its own type, for callers that drive it with VerbsQueuePair.
  [[nodiscard]] std::unique_ptr<VerbsQueuePairObject> create_verbs_queue_pair(const QueuePairShape& shape);
  /// Throws Error if the device cannot have such a queue pair.
  void check(const QueuePairShape& shape) const;
  [[nodiscard]] std::unique_ptr<OpRunner> runner(const std::vector<ConnectedEnds>& ends,
                                                 const DriverShape& shape) override;
  [[nodiscard]] std::unique_ptr<BurstQueue> burst_queue(QueuePairObject& queue_pair) override;
  /// The open device, for back ends that make its objects themselves.
  [[nodiscard]] const std::shared_ptr<const VerbsContext>& context() const { return context_; }
  [[nodiscard]] const u32* alive(Initiator initiator) override;
  /// Port counters since the device was opened, and asynchronous events by name.
  [[nodiscard]] nlohmann::ordered_json counters() override;

 private:
  [[nodiscard]] u32 probe_max_inline() const;

  std::shared_ptr<const VerbsContext> context_;
  std::shared_ptr<gpu::Gpu> gpu_;
  std::unique_ptr<VerbsEvents> events_;
  nlohmann::ordered_json counted_before_;
  u32 max_inline_ = 0;
};

}  // namespace doorbell::rdma
