// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/rma_device.hpp"

#include <doorbell/gpu.hpp>

#include <algorithm>
#include <bit>

#include "cxi/fresh_state.hpp"
#include "cxi/names.hpp"
#include "cxi/target.hpp"
#include "measure/cpu_runner.hpp"
#include "rdma/op_work.hpp"
#include "rdma/session.hpp"

namespace doorbell::cxi {

namespace {

using Work = rdma::OpWork<PutQueue<OneLane>>;

constexpr u32 kMaxQueues = 128;
constexpr u64 kEventBytes = 64;  // at most, of one

std::string status_name(u16 status) {
  return name(static_cast<ReturnCode>(status - kStatusOfCode));
}

/// Local memory, and with remote access a portals entry in front of it.
class RmaMemory final : public rdma::MemoryRegion {
 public:
  RmaMemory(Endpoint& endpoint, TargetSide& target, const Region& region, bool remote)
      : memory_(endpoint.map(region, Access::read_write)) {
    lkey_ = memory_->lac();
    iova_ = memory_->iova();
    if (!remote) return;
    exposed_ = target.expose(*memory_);
    rkey_ = exposed_->offset();
    iova_ = 0;  // others address it by its offset
  }

 private:
  std::unique_ptr<MemoryDescriptor> memory_;
  std::unique_ptr<TargetSide::Exposed> exposed_;
};

/// Of the longest commands that a queue will hold, twice: the device says late what it has read.
u32 slots_for(const rdma::QueuePairShape& shape) {
  const u32 each = shape.max_inline > 112 ? 4 : shape.max_inline > 48 ? 2 : 1;
  return std::min(2 * each * shape.sq_requests + 2 * kStatusSlots, kMaxSlots);
}

/// Of its event queue: every operation may fail.
u64 event_bytes_for(const rdma::QueuePairShape& shape) {
  return (u64{shape.sq_requests} + 2) * kEventBytes;
}

/// A transmit queue with the counter of its acknowledgements and the events of what failed.
class RmaQueue final : public rdma::QueuePairObject {
 public:
  RmaQueue(Endpoint& endpoint, const rdma::QueuePairShape& shape, bool restricted)
      : endpoint_(endpoint), shape_(shape), restricted_(restricted) {
    reset();
  }
  /// Puts go to a portals entry, not to a queue: it has no number that others need.
  [[nodiscard]] rdma::Endpoint endpoint() const override { return {.lid = endpoint_.address().nid}; }
  void initialise(const rdma::ConnectionOptions&) override {}
  void connect(const rdma::Endpoint&, const rdma::ConnectionOptions&) override {}
  void reset() override {
    commands_.reset();
    counter_.reset();
    events_.reset();
    events_ = endpoint_.create_event_queue(event_bytes_for(shape_), shape_.queue_memory);
    counter_ = endpoint_.create_counter(true, shape_.queue_memory);
    commands_ = endpoint_.create_command_queue(
        {.slots = slots_for(shape_), .events = events_.get(), .queue_memory = shape_.queue_memory});
    fresh_ = true;
  }
  void fail() override { throw Error("a Cassini queue", "it has no error state that could be asked for"); }
  [[nodiscard]] rdma::QpState state() const override { return rdma::QpState::rts; }
  [[nodiscard]] rdma::QueuePairMemory memory(Initiator) override {
    throw Error("a Cassini queue", "it is no ring of an RDMA wire format");
  }
  [[nodiscard]] u32 max_inline() const override { return idc_limit(restricted_); }

  /// Where an unused queue stands.
  [[nodiscard]] PutQueueState start(Initiator initiator) {
    if (!fresh_) reset();
    fresh_ = false;
    const Address a = endpoint_.address();
    PutQueueState s;
    s.commands = fresh_state(*commands_, initiator);
    s.events = fresh_state(*events_, initiator);
    s.counter = counter_->memory(initiator);
    s.nid = a.nid;
    s.pid = a.pid;
    s.pid_bits = a.pid_bits;
    s.requests = shape_.sq_requests;
    s.restricted = restricted_;
    // A window takes a command that is copied out of the ring, and the device's status: for a GPU two ways
    // over PCIe more.
    s.low_latency = shape_.sq_requests == 1 && initiator == Initiator::cpu;
    return s;
  }

 private:
  Endpoint& endpoint_;
  rdma::QueuePairShape shape_;
  bool restricted_;
  bool fresh_ = true;
  std::unique_ptr<EventQueueObject> events_;
  std::unique_ptr<CounterObject> counter_;
  std::unique_ptr<CommandQueueObject> commands_;
};

class RmaDevice final : public rdma::Device {
 public:
  RmaDevice(const rdma::DeviceRequest& request, bool restricted)
      : gpu_(request.gpu),
        restricted_(restricted),
        device_(open_device(
            {.spec = request.spec,
             .gpus = gpu_ != nullptr ? std::vector{gpu_} : std::vector<std::shared_ptr<gpu::Gpu>>{},
             .use = request.use})),
        endpoint_(device_->open(kDefaultService)),
        target_(*endpoint_) {}

  [[nodiscard]] std::string kind() const override { return device_->kind(); }
  [[nodiscard]] std::string name() const override { return device_->name(); }
  [[nodiscard]] rdma::Provider provider() const override { return rdma::Provider::cxi; }
  [[nodiscard]] rdma::Limits limits() const override {
    const cxi::Limits l = device_->limits();
    return {.max_requests = l.max_slots / 16,
            .max_queue_pairs = kMaxQueues,
            .max_inline = idc_limit(restricted_),
            .max_message = static_cast<u32>(std::min<u64>(l.max_transfer, rdma::kMaxMessage)),
            .atomics = false,
            .gpu_memory = l.gpu_memory,
            .gpu_initiator = l.gpu_initiator};
  }
  [[nodiscard]] Region allocate(Place place, u64 bytes) override {
    return device_->allocate(place, bytes, gpu_);
  }
  [[nodiscard]] std::unique_ptr<rdma::MemoryRegion> register_memory(const Region& region,
                                                                    u32 access) override {
    const bool remote = (access & (rdma::access::remote_read | rdma::access::remote_write)) != 0;
    return std::make_unique<RmaMemory>(*endpoint_, target_, region, remote);
  }
  [[nodiscard]] std::unique_ptr<rdma::QueuePairObject> create_queue_pair(
      const rdma::QueuePairShape& shape) override {
    return std::make_unique<RmaQueue>(*endpoint_, shape, restricted_);
  }
  /// The driver makes rings of a power of two; a counter, and each of three registers, has a page of its own.
  [[nodiscard]] u64 queue_pair_bytes(const rdma::QueuePairShape& shape) const override {
    constexpr u64 kPage = 4096, kRegisterPages = 3;
    if (shape.queue_memory == Place::gpu) return kRegisterPages * kPage;
    const u64 ring = u64{std::bit_ceil(std::max(slots_for(shape), kMinSlots))} * 64;
    return ring + (event_bytes_for(shape) + kPage - 1) / kPage * kPage + (1 + kRegisterPages) * kPage;
  }
  [[nodiscard]] std::unique_ptr<rdma::OpRunner> runner(const std::vector<rdma::ConnectedEnds>& ends,
                                                       const rdma::DriverShape& shape) override {
    std::vector<Work::State> states;
    for (const rdma::ConnectedEnds& e : ends) {
      Work::State s;
      s.own = put_state(*e.own, shape.initiator);
      states.push_back(s);
    }
    if (shape.initiator == Initiator::gpu)
      return std::make_unique<measure::GpuRunner<Work>>(shape.gpu, rdma::op_kernels(provider()), shape.window,
                                                        states);
    return std::make_unique<measure::CpuRunner<Work>>(shape.threads, shape.window, states);
  }
  [[nodiscard]] measure::StatusName status_names() const override { return status_name; }
  [[nodiscard]] const u32* alive(Initiator initiator) override { return device_->alive(initiator); }
  [[nodiscard]] nlohmann::ordered_json counters() override { return device_->counters(); }

 private:
  std::shared_ptr<gpu::Gpu> gpu_;
  bool restricted_;
  std::unique_ptr<cxi::Device> device_;
  std::unique_ptr<Endpoint> endpoint_;
  TargetSide target_;
};

}  // namespace

std::unique_ptr<rdma::Device> open_rma_device(const rdma::DeviceRequest& request) {
  return std::make_unique<RmaDevice>(request, true);
}

std::unique_ptr<rdma::Device> open_unrestricted_rma_device(const rdma::DeviceRequest& request) {
  return std::make_unique<RmaDevice>(request, false);
}

rdma::BenchOptions rma_bench() {
  rdma::BenchOptions b;
  b.path = "cxi";
  b.open = open_rma_device;
  b.op_name = [](rdma::Op op) -> std::string_view { return op == rdma::Op::read ? "get" : "put"; };
  b.queues_option = "--num-queues";
  b.provider = rdma::Provider::cxi;
  b.device = "cxi-model0";
  return b;
}

PutQueueState put_state(rdma::QueuePairObject& queue, Initiator initiator) {
  return dynamic_cast<RmaQueue&>(queue).start(initiator);
}

}  // namespace doorbell::cxi
