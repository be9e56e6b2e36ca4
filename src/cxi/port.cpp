// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/port.hpp"

#include <doorbell/cxi/cassini.hpp>
#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>

#include <algorithm>
#include <bit>

#include "cxi/names.hpp"
#include "cxi/put_queue_sizes.hpp"
#include "rma/op_runner.hpp"

namespace doorbell::cxi {

namespace {

constexpr u32 kMaxQueues = 128;

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

PutQueueShape put_queue(const rma::QueueShape& shape, bool restricted) {
  return {.requests = shape.requests,
          .max_inline = shape.max_inline,
          .queue_memory = shape.queue_memory,
          .restricted = restricted};
}

measure::KernelNames kernels() {
  return rma::op_kernels("doorbell_cxi_puts");
}

}  // namespace

PutQueues::PutQueues(Endpoint& endpoint, u32 count, const rma::QueueShape& shape, bool restricted)
    : endpoint_(endpoint) {
  for (u32 n = 0; n < count; ++n)
    queues_.push_back(std::make_unique<PutQueueObject>(endpoint, put_queue(shape, restricted)));
}

std::vector<PutQueueState> PutQueues::start(Initiator initiator) {
  std::vector<PutQueueState> states;
  for (const auto& q : queues_) states.push_back(q->start(initiator, endpoint_.address()));
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
      device_(
          open_device({.spec = request.spec,
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
  if (shape.queue_memory == Place::gpu)
    return (kRegisterPages + (endpoint_->counts_on_request() ? 1 : 0)) * kPage;
  const PutQueueShape queue = put_queue(shape, restricted_);
  const u64 ring = u64{std::bit_ceil(std::max(slots_for(queue), kMinSlots))} * 64;
  const u64 asks = endpoint_->counts_on_request() ? u64{kMinSlots} * 64 + kPage : 0;
  return ring + asks + (event_bytes_for(queue) + kPage - 1) / kPage * kPage + (1 + kRegisterPages) * kPage;
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
