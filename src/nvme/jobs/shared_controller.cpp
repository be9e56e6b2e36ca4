// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/jobs/shared_controller.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "nvme/backends.hpp"
#include "nvme/io_types.hpp"
#include "nvme/settings.hpp"
#include "options/spec.hpp"

namespace doorbell::nvme {

namespace {

constexpr u32 kQueuesWanted = 128;  // more than any job file asks for; a controller grants fewer

DeviceRequest request_of(const SharedOptions& o) {
  if (o.controller.starts_with("file:"))
    throw Error(setting::controller + " " + o.controller,
                "a file goes through the kernel, not through queues",
                "use an engine of fio's own, or model:media=" + o.controller);
  if (o.faults.any() && backend_of(o.controller).kind != "model")
    throw Error(setting::fault,
                fmt::format("{} is not a model: faults cannot be injected into it", o.controller),
                "use the model");
  DeviceRequest r;
  r.spec = o.controller;
  r.timeout_s = o.timeout_s;
  r.gpu = o.gpu;
  r.use.gpu_memory = o.gpu != nullptr;
  r.use.shared_gpu = true;
  r.use.faults = o.faults;
  r.use.seed = o.seed;
  r.use.must_write = false;  // a file that may only be read refuses the writes, not the reads
  return r;
}

/// Who has which controller. Never destroyed: threads of a job may still run while the process ends.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<SharedController>> shared;
  std::set<std::string> claimed;
};
Registry& registry() {
  static auto* const r = new Registry;
  return *r;
}

[[noreturn]] void refuse_processes(const std::string& name, const std::string& hint) {
  throw Error(setting::controller + " " + name, "jobs that are processes cannot share a controller", hint);
}

}  // namespace

model::FaultRates parse_faults(const std::string& text) {
  model::FaultRates rates;
  if (text.empty()) return rates;
  options::OptionTable table;
  for (const std::string& kind : model::fault_names())
    table.add({.name = kind,
               .kind = options::Kind::real,
               .default_text = "0",
               .min = 0.0,
               .max = 1.0,
               .help = "probability of this fault, for each command"});
  const options::Options o = options::parse_spec(setting::fault, table, ":" + text);
  for (u32 i = 0; i < model::kFaultKinds; ++i) rates.probability[i] = o.real(model::fault_names()[i]);
  return rates;
}

SharedController::SharedController(const SharedOptions& options)
    : options_(options),
      controller_(
          open_device(request_of(options)),
          {.gpu = options.gpu, .timeout_s = options.timeout_s, .gpu_memory = options.gpu != nullptr}) {
  granted_ = controller_.request_queues(kQueuesWanted);
  used_.resize(granted_);
}

NamespaceInfo SharedController::name_space(u32 nsid) {
  const std::scoped_lock lock(mutex_);
  return controller_.identify_namespace(nsid);
}

void SharedController::require_scratch(const std::string& hint) {
  const std::scoped_lock lock(mutex_);
  if (!scratch_known_) scratch_ = interface().scratch();
  scratch_known_ = true;
  if (scratch_) return;
  throw Error(setting::controller + " " + options_.controller,
              "it holds data that doorbell did not write, which this job would overwrite", hint);
}

u32 SharedController::largest_depth() const {
  const u32 most = std::min(kMaxWindow, info().max_queue_entries - 1);
  return info().max_commands != 0 ? std::min(most, info().max_commands) : most;
}

void SharedController::check_depth(u32 depth) const {
  const u32 most = largest_depth();
  if (depth >= 1 && depth <= most) return;
  throw Error(fmt::format("{} commands in flight", depth),
              fmt::format("a queue of this controller takes 1 to {}", most));
}

IoQueuePair SharedController::create_queue(u32 depth) {
  check_depth(depth);
  const std::scoped_lock lock(mutex_);
  const auto free = std::ranges::find(used_, false);
  if (free == used_.end())
    throw Error(options_.controller, fmt::format("its {} queue pairs are in use, one a job", granted_),
                "run fewer jobs at a time");
  const auto qid = static_cast<u16>(free - used_.begin() + 1);
  // A ring of N holds N - 1.
  IoQueuePair queue =
      controller_.create_queue_pair(qid, std::max(depth + 1, 2u), Place::pageable, Place::pageable);
  *free = true;
  return queue;
}

void SharedController::end_submissions(IoQueuePair& queue) {
  const std::scoped_lock lock(mutex_);
  queue.delete_sq();
}

void SharedController::remove_queue(std::unique_ptr<IoQueuePair> queue) noexcept {
  if (queue == nullptr) return;
  const std::scoped_lock lock(mutex_);
  const u16 qid = queue->qid();
  queue.reset();
  used_[qid - 1u] = false;
}

Mapped SharedController::allocate(Place place, u64 bytes, Access access) {
  const std::scoped_lock lock(mutex_);
  return controller_.allocate(place, bytes, access);
}

Mapped SharedController::map(Region memory, Access access) {
  const std::scoped_lock lock(mutex_);
  return Mapped(interface().address_space(), std::move(memory), access);
}

const u32* SharedController::status_register() {
  return controller_.status_register(Initiator::cpu);
}

std::shared_ptr<SharedController> share_controller(const SharedOptions& options, const std::string& hint) {
  Registry& r = registry();
  const std::scoped_lock lock(r.mutex);
  if (r.claimed.contains(options.controller)) refuse_processes(options.controller, hint);
  std::weak_ptr<SharedController>& known = r.shared[options.controller];
  if (auto shared = known.lock()) {
    if (shared->options() == options) return shared;
    throw Error(setting::controller + " " + options.controller,
                "jobs that share it must agree in its faults, their seed and the time for an answer");
  }
  auto shared = std::make_shared<SharedController>(options);
  known = shared;
  return shared;
}

std::shared_ptr<void> claim_controller(const std::string& name, const std::string& hint) {
  Registry& r = registry();
  const std::scoped_lock lock(r.mutex);
  if (const auto shared = r.shared.find(name);
      r.claimed.contains(name) || (shared != r.shared.end() && !shared->second.expired()))
    refuse_processes(name, hint);
  r.claimed.insert(name);
  return {nullptr, [name](void*) {
            Registry& all = registry();
            const std::scoped_lock ending(all.mutex);
            all.claimed.erase(name);
          }};
}

}  // namespace doorbell::nvme
