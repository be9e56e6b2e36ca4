// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/port.hpp"

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>

#include <algorithm>
#include <bit>

#include "cxi/initial_state.hpp"
#include "cxi/names.hpp"
#include "cxi/portals_table.hpp"
#include "rma/op_runner.hpp"

namespace doorbell::cxi {

namespace {

constexpr u32 kMaxQueues = 128;
constexpr u64 kEventBytes = 64;  // the most that one event takes

/// Local memory. If others may reach it, a portals entry leads to it.
class Memory final : public rma::RegisteredMemory {
 public:
  Memory(Endpoint& endpoint, PortalsTable& portals_table, const Region& region, rma::Reach reach)
      : memory_(endpoint.map(region, Access::read_write)) {
    lkey_ = memory_->lac();
    iova_ = memory_->iova();
    if (reach == rma::Reach::own) return;
    exposed_ = portals_table.expose(*memory_);
    rkey_ = exposed_->offset();
    iova_ = 0;  // others use its offset as address
  }

 private:
  std::unique_ptr<MemoryDescriptor> memory_;
  std::unique_ptr<PortalsTable::Exposed> exposed_;
};

/// Room for twice the longest commands that a queue will hold: the device reports late what it has read.
u32 slots_for(const rma::QueueShape& shape) {
  const u32 each = shape.max_inline > 112 ? 4 : shape.max_inline > 48 ? 2 : 1;
  return std::min(2 * each * shape.requests + 2 * kStatusSlots, kMaxSlots);
}

/// Bytes of a queue's event queue: every operation may fail.
u64 event_bytes_for(const rma::QueueShape& shape) {
  return (u64{shape.requests} + 2) * kEventBytes;
}

measure::KernelNames kernels() {
  return rma::op_kernels("doorbell_cxi_puts");
}

}  // namespace

/// A transmit queue, the counter of its acknowledgements, and the event queue for failures.
class PutQueues::Queue {
 public:
  Queue(Endpoint& endpoint, const rma::QueueShape& shape, bool restricted)
      : endpoint_(endpoint), shape_(shape), restricted_(restricted) {
    create();
  }

  [[nodiscard]] PutQueueState start(Initiator initiator) {
    if (!fresh_) create();
    fresh_ = false;
    const Address a = endpoint_.address();
    PutQueueState s;
    s.commands = initial_state(*commands_, initiator);
    s.events = initial_state(*events_, initiator);
    s.counter = counter_->memory(initiator);
    s.nid = a.nid;
    s.pid = a.pid;
    s.pid_bits = a.pid_bits;
    s.requests = shape_.requests;
    s.restricted = restricted_;
    // For a window, commands are copied out of the ring and the device's status is read: for a GPU that is
    // two more PCIe round trips.
    s.low_latency = shape_.requests == 1 && initiator == Initiator::cpu;
    return s;
  }

 private:
  void create() {
    commands_.reset();
    counter_.reset();
    events_.reset();
    events_ = endpoint_.create_event_queue(event_bytes_for(shape_), shape_.queue_memory);
    counter_ = endpoint_.create_counter(true, shape_.queue_memory);
    commands_ = endpoint_.create_command_queue(
        {.slots = slots_for(shape_), .events = events_.get(), .queue_memory = shape_.queue_memory});
    fresh_ = true;
  }

  Endpoint& endpoint_;
  rma::QueueShape shape_;
  bool restricted_;
  bool fresh_ = true;
  std::unique_ptr<EventQueueObject> events_;
  std::unique_ptr<CounterObject> counter_;
  std::unique_ptr<CommandQueueObject> commands_;
};

PutQueues::PutQueues(Endpoint& endpoint, u32 count, const rma::QueueShape& shape, bool restricted) {
  for (u32 n = 0; n < count; ++n) queues_.push_back(std::make_unique<Queue>(endpoint, shape, restricted));
}

PutQueues::~PutQueues() = default;

std::vector<PutQueueState> PutQueues::start(Initiator initiator) {
  std::vector<PutQueueState> states;
  for (const auto& q : queues_) states.push_back(q->start(initiator));
  return states;
}

std::unique_ptr<rma::OpRunner> PutQueues::runner(const rma::DriverShape& driver) {
  rma::OpStates<PutQueue<OneLane>> states;
  for (const PutQueueState& own : start(driver.initiator)) states.push_back({.own = own, .peer = {}});
  return rma::op_runner<PutQueue<OneLane>>(driver, kernels(), states);
}

CassiniPort::CassiniPort(const rma::PortRequest& request, bool restricted)
    : gpu_(request.gpu),
      restricted_(restricted),
      device_(open_cassini(
          {.spec = request.spec,
           .gpus = gpu_ != nullptr ? std::vector{gpu_} : std::vector<std::shared_ptr<gpu::Gpu>>{},
           .use = request.use})),
      endpoint_(device_->open(kDefaultService)),
      portals_table_(std::make_unique<PortalsTable>(*endpoint_)) {}

CassiniPort::~CassiniPort() = default;

rma::Limits CassiniPort::limits() const {
  const cxi::Limits l = device_->limits();
  return {.max_requests = l.max_slots / 16,
          .max_queues = std::min(kMaxQueues, l.max_buffers),
          .max_inline = idc_limit(restricted_),
          .max_message = static_cast<u32>(std::min<u64>(l.max_transfer, rma::kMaxMessage)),
          .atomics = false,
          .gpu_memory = l.gpu_memory,
          .gpu_initiator = l.gpu_initiator};
}

std::unique_ptr<rma::RegisteredMemory> CassiniPort::register_memory(const Region& region, rma::Reach reach) {
  return std::make_unique<Memory>(*endpoint_, *portals_table_, region, reach);
}

std::unique_ptr<PutQueues> CassiniPort::create_put_queues(u32 count, const rma::QueueShape& shape) {
  return std::make_unique<PutQueues>(*endpoint_, count, shape, restricted_);
}

std::unique_ptr<rma::QueueSet> CassiniPort::create_queues(u32 count, rma::Ends ends,
                                                          const rma::QueueShape& shape) {
  if (ends != rma::Ends::self)
    throw Error("connections of a Cassini", "each leads back to its own endpoint", "use Ends::self");
  return create_put_queues(count, shape);
}

/// The driver makes rings with a power of two of slots. A counter and three registers have one page each.
u64 CassiniPort::queue_bytes(rma::Ends, const rma::QueueShape& shape) const {
  constexpr u64 kPage = 4096, kRegisterPages = 3;
  if (shape.queue_memory == Place::gpu) return kRegisterPages * kPage;
  const u64 ring = u64{std::bit_ceil(std::max(slots_for(shape), kMinSlots))} * 64;
  return ring + (event_bytes_for(shape) + kPage - 1) / kPage * kPage + (1 + kRegisterPages) * kPage;
}

measure::StatusName CassiniPort::status_names() const {
  return [](u16 status) -> std::string { return cxi::name(static_cast<ReturnCode>(status - kStatusOfCode)); };
}

rma::BenchOptions bench_of_puts(bool restricted) {
  rma::BenchOptions b;
  b.texts.path = "cxi";
  b.texts.op_name = [](rma::Op op) -> std::string_view { return op == rma::Op::read ? "get" : "put"; };
  b.texts.kernels = kernels();
  b.open = [restricted](const rma::PortRequest& request) {
    return std::make_unique<CassiniPort>(request, restricted);
  };
  b.device = "cxi-model0";
  return b;
}

}  // namespace doorbell::cxi
