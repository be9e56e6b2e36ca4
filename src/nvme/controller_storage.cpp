// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/nvme/wire.hpp>

#include "measure/cpu_runner.hpp"
#include "measure/gpu_runner.hpp"
#include "nvme/backends.hpp"
#include "nvme/storage.hpp"

namespace doorbell::nvme {

namespace {

/// CPU initiators carry to the device what they rang.
class ForwardDoorbells {
 public:
  explicit ForwardDoorbells(DoorbellForwarder& forwarder) : forwarder_(&forwarder) {}
  void begin() { forwarder_->by_initiator(true); }
  void after_step(const IoQueue& queue) { forwarder_->forward(queue.memory.qid); }
  void end() { forwarder_->by_initiator(false); }

 private:
  DoorbellForwarder* forwarder_;
};

model::Use use_of(const BenchOptions& o, u32 threads) {
  model::Use use = o.use(o.num_queues, threads, o.memory_mode != 0);
  use.writes = o.write_io > 0;
  use.must_write = use.writes && (!o.default_counts || o.allow_write);
  return use;
}

class ControllerStorage final : public Storage {
 public:
  ControllerStorage(const BenchOptions& o, std::shared_ptr<gpu::Gpu> gpu)
      : initiator_(o.initiator),
        threads_(o.initiator_threads(o.threads, o.num_queues)),
        checkers_(
            o.checkers(threads_, o.num_queues, o.io_bytes != 0 ? o.io_bytes : u64{o.lbas_per_io} * 512)),
        gpu_(gpu),
        controller_(
            open_device(
                {.spec = o.controller, .gpu = gpu, .use = use_of(o, threads_), .timeout_s = o.timeout_s}),
            {.gpu = gpu,
             .timeout_s = o.timeout_s,
             .gpu_memory = o.memory_mode != 0,
             .shadow_doorbells = o.shadow_doorbells}) {}

  std::string kind() override { return interface().kind(); }
  std::string name() override { return interface().name(); }
  ControllerInfo info() override { return controller_.info(); }
  NamespaceInfo name_space(u32 nsid) override { return controller_.identify_namespace(nsid); }
  u32 grant(u32 queues) override { return controller_.request_queues(queues); }
  bool moves_data() override { return interface().moves_data(); }
  bool scratch() override { return interface().scratch(); }
  std::string image() override { return interface().image(); }
  bool leaving() override { return interface().leaving(); }
  nlohmann::ordered_json counters() override { return interface().counters(); }
  const u32* status_register() override { return controller_.status_register(initiator_); }
  measure::StatusName status_names() const override { return status_name; }

  QueueBuffers& create_queues(const QueueShape& shape) override {
    buffers_ = std::make_unique<QueueBuffers>(interface().address_space(), gpu_, shape);
    for (IoQueue& q : buffers_->queues()) {
      const auto qid = static_cast<u16>(pairs_.size() + 1);
      pairs_.push_back(controller_.create_queue_pair(qid, shape.entries, shape.sq, shape.cq));
      q.memory = pairs_.back().memory(initiator_);
    }
    return *buffers_;
  }

  std::unique_ptr<IoRunner> runner(u32 window) override {
    using Work = IoWork<QueuePair<OneLane>>;
    std::vector<QueuePairState> states(pairs_.size());
    for (std::size_t q = 0; q < states.size(); ++q) states[q].memory = buffers_->queues()[q].memory;
    if (initiator_ == Initiator::gpu)
      return std::make_unique<measure::GpuRunner<Work>>(gpu_, kIoKernels, checkers_, window, states);
    if (DoorbellForwarder* const f = interface().forwarder(); f != nullptr)
      return std::make_unique<measure::CpuRunner<Work, ForwardDoorbells>>(threads_, checkers_, window, states,
                                                                          ForwardDoorbells(*f));
    return std::make_unique<measure::CpuRunner<Work>>(threads_, checkers_, window, states);
  }

  void end_queues() override {
    for (IoQueuePair& p : pairs_) p.delete_sq();
  }

 private:
  ControllerInterface& interface() { return interface_of(controller_); }

  Initiator initiator_;
  u32 threads_;
  u32 checkers_;
  std::shared_ptr<gpu::Gpu> gpu_;
  Controller controller_;
  std::unique_ptr<QueueBuffers> buffers_;
  std::vector<IoQueuePair> pairs_;  // deleted first: they use the buffers
};

}  // namespace

std::unique_ptr<Storage> open_controller(const BenchOptions& options, std::shared_ptr<gpu::Gpu> gpu) {
  return std::make_unique<ControllerStorage>(options, std::move(gpu));
}

}  // namespace doorbell::nvme
