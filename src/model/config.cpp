// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "model/config.hpp"

#include <doorbell/error.hpp>

#include <algorithm>

#include "model/copy_crew.hpp"
#include "model/device_thread.hpp"

namespace doorbell::model {

using options::Kind;
using options::Option;

void Config::read(const options::Options& o) {
  if (o.table().find("threads") != nullptr) threads = static_cast<u32>(o.integer("threads"));
  if (o.table().find("copy-threads") != nullptr) copy_threads = static_cast<u32>(o.integer("copy-threads"));
  if (o.table().find("engine") != nullptr)
    engine =
        static_cast<Engine>(std::ranges::find(engine_names(), o.text("engine")) - engine_names().begin());
  bytes_per_s = static_cast<double>(o.bytes("bandwidth"));
  latency_ns = nanoseconds(o, "latency");
  delay_ns = nanoseconds(o, "delay");
}

void Config::check_engine(const std::string& subject, bool gpu, const Use& use) const {
  if (engine == Engine::kernel_on_cpu && gpu && use.gpu_memory)
    throw Error(subject, "kernel-on-cpu is CPU threads, which do not reach GPU memory", "use engine=gpu");
}

void Config::check_engine_that_gpus_ring(const std::string& subject, bool gpu, const Use& use) const {
  if (engine == Engine::gpu && use.initiator_threads != 0)
    throw Error(subject, "a kernel takes only doorbells that a GPU rings, and CPU threads are the initiators",
                "let a GPU be the initiator, or use engine=cpu");
  check_engine(subject, gpu, use);
}

void Config::fit(const Use& use) {
  // A kernel has a block for each queue, whatever the cores.
  if (threads == 0 && engine == Engine::gpu) threads = std::max(use.queues, 1u);
  if (threads == 0) threads = device_threads(use.queues, use.initiator_threads);
  if (copy_threads == 0) copy_threads = model::copy_threads(use.initiator_threads + threads, threads);
  gpu_memory = use.gpu_memory;
  faults = use.faults;
  seed = use.seed;
  if (delay_ns == 0) delay_ns = use.late_ns + use.late_ns / 2;
}

Option threads_key(const std::string& queue) {
  return whole_key("threads", "0", 0, 64, "device threads; 0: one a " + queue + ", as far as the cores go");
}

const std::vector<std::string>& engine_names() {
  static const std::vector<std::string> names = {"cpu", "gpu", "kernel-on-cpu"};
  return names;
}

Option engine_key(const std::string& queues) {
  return {.name = "engine",
          .kind = Kind::choice,
          .default_text = "cpu",
          .choices = engine_names(),
          .help = "what serves the " + queues +
                  ": CPU threads, a kernel on the GPU of --gpu, or that kernel's code on CPU threads"};
}

Option copy_threads_key() {
  return whole_key("copy-threads", "0", 0, 64,
                   "threads that share copies of 2 KiB and more; 0: by the cores that are free");
}

Option bandwidth_key(std::string help) {
  Option o = bytes_key("bandwidth", "0", 0, u64{1} << 50, std::move(help));
  o.aliases = {"rate"};  // an older name in the NIC models
  return o;
}

Option latency_key(std::string help) {
  return time_key("latency", std::move(help));
}

Option delay_key(const std::string& completion) {
  Option o = time_key(
      "delay", "how long --fault delay holds " + completion + " back; 0: one and a half times --late-after");
  o.max = 3600;
  return o;
}

Option whole_key(std::string name, std::string default_text, options::Bound min, options::Bound max,
                 std::string help) {
  return {.name = std::move(name),
          .kind = Kind::integer,
          .default_text = std::move(default_text),
          .min = min,
          .max = max,
          .help = std::move(help)};
}

Option time_key(std::string name, std::string help) {
  return {.name = std::move(name),
          .kind = Kind::seconds,
          .default_text = "0",
          .min = 0,
          .max = 60,
          .help = std::move(help)};
}

Option bytes_key(std::string name, std::string default_text, options::Bound min, options::Bound max,
                 std::string help) {
  Option o = whole_key(std::move(name), std::move(default_text), min, max, std::move(help));
  o.kind = Kind::size;
  return o;
}

u64 nanoseconds(const options::Options& o, std::string_view key) {
  return static_cast<u64>(o.seconds(key) * 1e9);
}

}  // namespace doorbell::model
