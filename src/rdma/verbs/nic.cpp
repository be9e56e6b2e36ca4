// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/verbs/nic.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "options/spec.hpp"
#include "rdma/settings.hpp"
#include "rdma/verbs/context.hpp"
#include "system/sysfs.hpp"

namespace doorbell::rdma {

namespace {

class VerbsMemoryRegion final : public MemoryRegion {
 public:
  VerbsMemoryRegion(std::shared_ptr<const VerbsContext> context, ibv_mr* mr, u64 iova)
      : context_(std::move(context)), mr_(mr) {
    iova_ = iova;
    lkey_ = mr->lkey;
    rkey_ = mr->rkey;
  }
  ~VerbsMemoryRegion() override { context_->verbs.dereg_mr(mr_); }

 private:
  std::shared_ptr<const VerbsContext> context_;
  ibv_mr* mr_;
};

ibv_mr* register_gpu_memory(const VerbsContext& c, gpu::Gpu& gpu, const Region& region, int access) {
  const auto address = reinterpret_cast<u64>(region.device());
  const Descriptor file(gpu.export_dmabuf(region.device(), region.bytes()));
  return c.verbs.reg_dmabuf_mr(c.pd, 0, region.bytes(), address, file.get(), access);
}

/// The kernel reads a device's counters again only when its last values are older than `lifespan`. This
/// function waits for that time, so that the next values include everything before this call.
void outlive_cached_counters(const std::filesystem::path& port) {
  constexpr i64 longest_ms = 1000, tick_ms = 10;
  const auto lifespan_ms = read_number(port / "hw_counters/lifespan");
  if (!lifespan_ms) return;
  std::this_thread::sleep_for(
      std::chrono::milliseconds(std::clamp<i64>(*lifespan_ms, 0, longest_ms) + tick_ms));
}

/// Reads every counter file of a port that holds a number.
nlohmann::ordered_json read_counters(const VerbsContext& c) {
  auto all = nlohmann::ordered_json::object();
  const auto root = c.sysfs / "class/infiniband" / c.facts.name / "ports" / std::to_string(c.port);
  outlive_cached_counters(root);
  for (const char* folder : {"counters", "hw_counters"}) {
    for (const std::string& name : names_in(root / folder)) {
      if (name == "lifespan") continue;  // the interval between refreshes, not a counter
      if (const auto value = read_number(root / folder / name)) all[name] = *value;
    }
  }
  return all;
}

}  // namespace

options::OptionTable verbs_keys() {
  options::OptionTable t;
  t.add({.name = "port",
         .default_text = "0",
         .max = 255,
         .help = "number of the device's port; 0: the first active one",
         .into = &VerbsConfig::port});
  t.add({.name = "gid",
         .metavar = "INDEX",
         .max = 255,
         .help = "index of the port's GID (not given: RoCE v2, an IPv4 address before an IPv6 one)",
         .into = &VerbsConfig::gid});
  return t;
}

VerbsConfig parse_verbs_spec(const std::string& spec) {
  VerbsConfig c;
  const auto colon = spec.find(':');
  if (colon == std::string::npos) return c;
  std::string rest = spec.substr(colon + 1);
  // The name comes first, but it may be left out.
  if (const auto comma = rest.find(','); rest.substr(0, comma).find('=') == std::string::npos) {
    c.device = rest.substr(0, comma);
    if (c.device.empty())
      throw Error(setting::device, "the device's name is empty", "write verbs:NAME or verbs");
    if (comma == std::string::npos) return c;
    rest = rest.substr(comma + 1);
  }
  const options::Options o =
      options::parse_spec(fmt::format("{} {}", setting::device, c.device.empty() ? "verbs" : c.device),
                          verbs_keys(), "verbs:" + rest);
  o.read_into(c);
  return c;
}

VerbsNic::VerbsNic(const VerbsConfig& config, std::shared_ptr<gpu::Gpu> gpu)
    : context_(std::make_shared<VerbsContext>(config)),
      gpu_(std::move(gpu)),
      events_(std::make_unique<VerbsEvents>(context_)),
      counted_before_(read_counters(*context_)),
      max_inline_(probe_max_inline()) {}

VerbsNic::~VerbsNic() = default;

std::string VerbsNic::kind() const {
  return context_->facts.software ? "emulated" : "hardware";
}

std::string VerbsNic::name() const {
  return fmt::format("verbs:{},port={},gid={}", context_->facts.name, context_->port,
                     context_->gid.gid_index);
}

/// No device attribute gives this value; a queue pair shows how much it was granted.
u32 VerbsNic::probe_max_inline() const {
  for (u32 bytes = 1024; bytes >= 16; bytes /= 2) {
    try {
      return VerbsQueuePairObject(context_, {.sq_requests = 1, .rq_requests = 1, .max_inline = bytes})
          .max_inline();
    } catch (const Error&) {
      continue;  // too much for this device
    }
  }
  return 0;
}

NicLimits VerbsNic::limits() const {
  const ibv_device_attr& a = context_->attributes;
  const u32 message = context_->port_attributes.max_msg_sz;
  NicLimits l;
  l.max_requests = static_cast<u32>(std::max(std::min(a.max_qp_wr, a.max_cqe), 1));
  l.max_receives = l.max_requests;
  l.max_queues = static_cast<u32>(std::max(std::min(a.max_qp, a.max_cq / 2), 1));
  l.max_inline = max_inline_;
  l.max_message = message != 0 ? std::min(message, kMaxMessage) : kMaxMessage;
  l.active_mtu = context_->active_mtu();
  l.atomics = a.atomic_cap != IBV_ATOMIC_NONE;
  l.gpu_memory = gpu_ != nullptr && !context_->facts.software && context_->verbs.reg_dmabuf_mr != nullptr;
  return l;
}

Region VerbsNic::allocate(Place place, u64 bytes) {
  return {place, bytes, gpu_};
}

std::unique_ptr<MemoryRegion> VerbsNic::register_memory(const Region& region, u32 access) {
  const std::string what = fmt::format("registration of {} bytes of {} with {}", region.bytes(),
                                       doorbell::name(region.place()), name());
  if ((access & (access::remote_write | access::remote_atomic)) != 0 && (access & access::local_write) == 0)
    throw Error(what, "remote writes and atomics need local write access as well");
  const int flags = static_cast<int>(access & access::all);
  const bool on_gpu = region.place() == Place::gpu;
  if (on_gpu && context_->facts.software)
    throw Error(
        what,
        fmt::format("{} moves data with the CPU, which cannot reach GPU memory", context_->facts.driver),
        "use host memory, or a NIC");
  if (on_gpu && context_->verbs.reg_dmabuf_mr == nullptr)
    throw Error(what, "this libibverbs cannot register a dma-buf",
                "install version 34 of rdma-core or newer");
  if (on_gpu && gpu_ == nullptr) throw Error(what, "the device was opened without a GPU");
  ibv_mr* mr = on_gpu ? register_gpu_memory(*context_, *gpu_, region, flags)
                      : context_->verbs.reg_mr(context_->pd, region.host(), region.bytes(), flags);
  if (mr == nullptr)
    verbs_failed(what, errno,
                 errno == ENOMEM ? "raise the locked-memory limit: ulimit -l unlimited"
                 : on_gpu ? "the NIC's and the GPU's drivers must both know dma-buf (Linux 5.12 or newer)"
                          : "");
  return std::make_unique<VerbsMemoryRegion>(context_, mr,
                                             reinterpret_cast<u64>(on_gpu ? region.device() : region.host()));
}

void VerbsNic::check(const QueuePairShape& shape) const {
  const u32 max = limits().max_requests;
  for (const u32 n : {shape.sq_requests, shape.rq_requests})
    if (n > max || shape.sq_requests == 0)
      throw Error(fmt::format("a queue of {} requests", n),
                  fmt::format("{} takes 1..{}", context_->facts.name, max));
  if (shape.max_inline > max_inline_)
    throw Error(fmt::format("{} inlined bytes", shape.max_inline),
                fmt::format("{} takes 0..{}", context_->facts.name, max_inline_));
}

std::unique_ptr<VerbsQueuePairObject> VerbsNic::create_verbs_queue_pair(const QueuePairShape& shape) {
  check(shape);
  return std::make_unique<VerbsQueuePairObject>(context_, shape);
}

std::unique_ptr<QueuePairObject> VerbsNic::create_queue_pair(const QueuePairShape& shape) {
  return create_verbs_queue_pair(shape);
}

const u32* VerbsNic::alive(Initiator initiator) {
  return initiator == Initiator::cpu ? events_->alive() : nullptr;
}

nlohmann::ordered_json VerbsNic::counters() {
  nlohmann::ordered_json all = read_counters(*context_);
  for (auto& [name, value] : all.items())
    if (counted_before_.contains(name)) value = value.get<i64>() - counted_before_[name].get<i64>();
  all["events"] = events_->counts();
  return all;
}

}  // namespace doorbell::rdma
