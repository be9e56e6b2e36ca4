// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/nic.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "rdma/model/queue_pair.hpp"

namespace doorbell::rdma {

namespace {

// The first page holds the word that stays 1 while the device is there. Every queue has a doorbell word in a
// cache line of its own. Hardware lets queues share a register because it sees each store, while memory shows
// only the last one.
constexpr u64 kDoorbells = 4096;
constexpr u64 kDoorbellBytes = 5 * 64;
constexpr u32 kMaxQpn = 0x7ffff;  // a CQ's number is twice as large, and the narrowest format takes 20 bits

constexpr std::array<const char*, EngineCounters::kOps> kOpNames = {
    "writes",     "writes_with_immediate", "reads", "sends", "sends_with_immediate",
    "fetch_adds", "compare_swaps"};

}  // namespace

/// A registration: memory that is mapped for the device's DMA and has an entry in the table of keys.
class ModelMemoryRegion final : public MemoryRegion {
 public:
  ModelMemoryRegion(ModelNic& nic, const Region& region, u32 access) : nic_(nic) {
    iova_ = nic.space_.map(region, (access & access::local_write) != 0 ? Access::read_write : Access::read);
    const bool served = nic.served_by_gpu();  // by a kernel, which reaches all memory itself
    const bool gpu = region.place() == Place::gpu && !served;
    try {
      index_ = nic.shared_.memory.add(iova_, region.bytes(),
                                      {gpu || served ? region.device() : region.host(), region.device(), gpu},
                                      access, region.place() == Place::gpu);
    } catch (...) {
      nic.space_.unmap(iova_);
      throw;
    }
    lkey_ = nic.shared_.memory.at(index_).lkey;
    rkey_ = nic.shared_.memory.at(index_).rkey;
  }
  ~ModelMemoryRegion() override { nic_.forget(index_, iova_); }

 private:
  ModelNic& nic_;
  u32 index_ = 0;
};

ModelNic::ModelNic(const ModelConfig& config, Provider provider, const FormatShape& format, std::string name,
                   std::shared_ptr<gpu::Gpu> gpu)
    : name_(std::move(name)),
      provider_(provider),
      format_(format),
      shared_(config),
      gpu_(std::move(gpu)),
      registers_(gpu_ ? Place::pinned : Place::pageable, kDoorbells + config.max_queue_pairs * kDoorbellBytes,
                 gpu_),
      slots_(config.max_queue_pairs) {
  shared_.presence.show(reinterpret_cast<u32*>(registers_.host()));
  // The agent's polling slows every other kernel's fences and PCIe reads, so it runs only where it is needed.
  if (gpu_ && config.gpu_memory && config.engine == ModelConfig::Engine::cpu)
    agent_ = std::make_unique<model::DmaAgent>(gpu_, config.threads);
  if (config.engine == ModelConfig::Engine::cpu) serve_by_threads();
  else serve_by_kernel();
  connected_.resize(engines_.size());
}

void ModelNic::serve_by_threads() {
  for (u32 i = 0; i < shared_.config.threads; ++i) {
    auto engine = format_.engine(shared_, space_, agent_.get(), i);
    polled_.push_back(engine.get());
    engines_.push_back(std::move(engine));
  }
  for (u32 i = 0; i < polled_.size() && shared_.config.own_threads; ++i)
    threads_.push_back(std::make_unique<model::DeviceThread>(
        fmt::format("rdma-model-{}", i), [engine = polled_[i]] { return engine->poll(); }));
}

void ModelNic::serve_by_kernel() {
  if (served_by_gpu() && !gpu_) throw Error(name_, "its engine is a kernel, and it was opened without a GPU");
  if (served_by_gpu()) gpu_doorbells_ = Region(Place::gpu, registers_.bytes(), gpu_);
  kernel_ = std::make_unique<KernelEngines>(shared_, format_, served_by_gpu() ? gpu_ : nullptr, registers_);
  for (u32 i = 0; i < kernel_->count(); ++i) engines_.push_back(kernel_->engine(i));
}

/// An engine in a kernel has room for so many queue pairs.
void ModelNic::no_room(const EngineBase& engine) const {
  throw Error("queue pairs of the model NIC",
              fmt::format("an engine in a kernel serves at most {}", engine.most_queue_pairs()),
              "give the model more threads, or engine=cpu");
}

ModelNic::~ModelNic() {
  threads_.clear();
}

bool ModelNic::poll() {
  bool work = false;
  for (PolledEngine* const e : polled_) work = e->poll() || work;
  return work;
}

NicLimits ModelNic::limits() const {
  const ModelConfig& c = shared_.config;
  NicLimits l;
  l.max_requests = c.max_sends;
  l.max_receives = c.max_receives;
  l.max_queues = c.max_queue_pairs;
  if (kernel_) l.max_queues = std::min(l.max_queues, kernel_->count() * kServedQps);
  l.max_inline = c.max_inline == 0 ? format_.max_inline : std::min(c.max_inline, format_.max_inline);
  l.active_mtu = c.mtu;
  l.gpu_memory = reaches_gpu_memory();
  l.gpu_initiator = gpu_ != nullptr;
  return l;
}

Region ModelNic::allocate(Place place, u64 bytes) {
  return space_.allocate(place, bytes, gpu_);
}

std::unique_ptr<MemoryRegion> ModelNic::register_memory(const Region& region, u32 access) {
  if ((access & ~access::all) != 0) throw Error("registering memory", "an unknown access flag is set");
  if ((access & (access::remote_write | access::remote_atomic)) != 0 && (access & access::local_write) == 0)
    throw Error("registering memory", "remote writes and atomics need local_write as well");
  if (served_by_gpu() && region.device() == nullptr)
    throw Error("registering memory", "a kernel is the NIC's engine, and its GPU does not reach the memory");
  if (region.place() == Place::gpu && !reaches_gpu_memory())
    throw Error("registering GPU memory", "this NIC was opened without access to a GPU's memory");
  const std::scoped_lock lock(mutex_);
  return std::make_unique<ModelMemoryRegion>(*this, region, access);
}

/// The keys fail at once. The caller may use the memory again when every engine has finished its round.
void ModelNic::forget(u32 index, Iova iova) {
  const std::scoped_lock lock(mutex_);
  shared_.memory.invalidate(index);
  for (const auto& e : engines_) e->run_between_rounds([] {});
  space_.unmap(iova);
  shared_.memory.release(index);
}

std::unique_ptr<QueuePairObject> ModelNic::create_queue_pair(const QueuePairShape& shape) {
  const NicLimits l = limits();
  const auto range = [](const char* what, u32 value, u32 max) {
    if (value < 1 || value > max) throw Error(what, fmt::format("{} is not in 1..{}", value, max));
  };
  range("send queue of the model NIC", shape.sq_requests, shared_.config.max_sends);
  range("receive queue of the model NIC", shape.rq_requests, shared_.config.max_receives);
  if (shape.max_inline > l.max_inline)
    throw Error("inlined payload", fmt::format("{} bytes are not in 0..{}", shape.max_inline, l.max_inline));
  if (shape.queue_memory == Place::gpu && !reaches_gpu_memory())
    throw Error("queues in GPU memory", "this NIC was opened without access to a GPU's memory");
  if (const u32 units = format_.sq_units(shape.sq_requests, shape.max_inline); units > format_.max_sq_units)
    throw Error(
        "send queue of the model NIC",
        fmt::format("{} requests with {} inlined bytes take {} units of the {} format, which counts {}",
                    shape.sq_requests, shape.max_inline, units, format_.name, format_.max_sq_units));
  const std::scoped_lock lock(mutex_);
  auto q = std::make_unique<ModelQueuePair>(*this, shape);
  q->engine_ = q->qp_.ordinal % static_cast<u32>(engines_.size());
  queue_pairs_[q->qp_.qpn] = q.get();
  EngineBase& e = *engines_[q->engine_];
  if (e.room() == 0) no_room(e);
  e.run_between_rounds([&] { e.add(q->qp_); });
  return q;
}

u64 ModelNic::queue_pair_bytes(const QueuePairShape& shape) const {
  const QueueLayout l = layout_of(format_, shape);
  if (shape.queue_memory == Place::gpu) return kRecordBytes;
  return l.bytes + kRecordBytes + u64{l.track_entries} * sizeof(Word16);
}

const u32* ModelNic::alive(Initiator initiator) {
  u8* const at = initiator == Initiator::gpu ? registers_.device() : registers_.host();
  return reinterpret_cast<const u32*>(at);
}

ModelNic::Registers ModelNic::claim_registers() {
  const auto free = std::find(slots_.begin(), slots_.end(), false);
  if (free == slots_.end())
    throw Error("queue pairs of the model NIC", fmt::format("all {} are in use", slots_.size()));
  *free = true;
  const auto slot = static_cast<u32>(free - slots_.begin());
  return {kDoorbells + slot * kDoorbellBytes, slot};
}

void ModelNic::release_registers(u32 slot) {
  slots_[slot] = false;
}

/// Numbers are reused as late as possible, so that packets and doorbells for an earlier queue pair reach no
/// other one.
u32 ModelNic::new_qpn() {
  do {
    next_qpn_ = next_qpn_ >= kMaxQpn ? 0x40 : next_qpn_ + 1;
  } while (queue_pairs_.contains(next_qpn_));
  return next_qpn_;
}

/// Connected queue pairs share an engine, which then executes a request at both ends by itself.
EngineBase& ModelNic::place(ModelQueuePair& q, u32 remote_qpn) {
  const auto peer = queue_pairs_.find(remote_qpn);
  if (peer != queue_pairs_.end() && peer->second != &q) {
    ModelQueuePair& other = *peer->second;
    const auto least =
        static_cast<u32>(std::min_element(connected_.begin(), connected_.end()) - connected_.begin());
    const auto fits = [&](u32 engine) {
      const u32 come = (other.engine_ != engine ? 1 : 0) + (q.engine_ != engine ? 1 : 0);
      return engines_[engine]->room() >= come;
    };
    const u32 to = other.counted_    ? other.engine_
                   : fits(least)     ? least
                   : fits(q.engine_) ? q.engine_
                                     : other.engine_;
    if (!fits(to)) no_room(*engines_[to]);
    move(other, to);
    move(q, to);
  }
  q.counted_ = true;
  ++connected_[q.engine_];
  return *engines_[q.engine_];
}

void ModelNic::move(ModelQueuePair& q, u32 engine) {
  if (q.engine_ == engine) return;
  q.engine().run_between_rounds([&] { q.engine().remove(q.qp_); });
  q.engine_ = engine;
  q.engine().run_between_rounds([&] { q.engine().add(q.qp_); });
}

nlohmann::ordered_json ModelNic::counters() {
  const std::scoped_lock lock(mutex_);
  refresh();
  const auto sum = [this](auto&& of) {
    u64 n = 0;
    for (const auto& e : engines_) n += of(*e);
    return n;
  };
  nlohmann::ordered_json j;
  for (u32 op = 0; op < EngineCounters::kOps; ++op)
    j[kOpNames[op]] = sum([op](const EngineBase& e) { return e.counters().requests[op].value(); });
  const auto add = [&](const char* key, model::Count EngineCounters::*member) {
    j[key] = sum([member](const EngineBase& e) { return (e.counters().*member).value(); });
  };
  add("bytes", &EngineCounters::bytes);
  add("packets", &EngineCounters::packets);
  add("retransmissions", &EngineCounters::retransmissions);
  add("rnr_naks", &EngineCounters::rnr_naks);
  add("rnr_wait_ns", &EngineCounters::rnr_wait_ns);
  add("error_completions", &EngineCounters::error_completions);
  add("cq_overflows", &EngineCounters::cq_overflows);
  j["dma_faults"] = sum([](const EngineBase& e) { return e.dma_faults(); });
  add("doorbells", &EngineCounters::doorbells);
  add("invalid_doorbell_values", &EngineCounters::invalid_doorbell_values);
  if (kernel_) add("in_bursts", &EngineCounters::in_bursts);
  j["injected"] = shared_.faults.json();
  return j;
}

}  // namespace doorbell::rdma
