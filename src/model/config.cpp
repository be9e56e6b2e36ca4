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
  shared_gpu = use.shared_gpu;
  faults = use.faults;
  seed = use.seed;
  if (delay_ns == 0) delay_ns = use.late_ns + use.late_ns / 2;
}

Option threads_key(const std::string& queue) {
  return whole_key("threads", "0", 0, 64, "device threads; 0: one a " + queue + ", as far as the cores go",
                   &Config::threads);
}

const std::vector<std::string>& engine_names() {
  static const std::vector<std::string> names = {"cpu", "gpu", "kernel-on-cpu"};
  return names;
}

Option engine_key(const std::string& queues) {
  return {.name = "engine",
          .default_text = "cpu",
          .choices = engine_names(),
          .help = "what serves the " + queues +
                  ": CPU threads, a kernel on the GPU of --gpu, or that kernel's code on CPU threads",
          .into = &Config::engine};
}

Option copy_threads_key() {
  return whole_key("copy-threads", "0", 0, 64,
                   "threads that share copies of 2 KiB and more; 0: by the cores that are free",
                   &Config::copy_threads);
}

Option bandwidth_key(std::string help) {
  Option o = rate_key("bandwidth", u64{1} << 50, std::move(help),
                      {[](u64 bytes) { return static_cast<double>(bytes); }, &Config::bytes_per_s});
  o.aliases = {"rate"};  // an older name in the NIC models
  return o;
}

Option latency_key(std::string help) {
  return time_key("latency", std::move(help), {nanoseconds, &Config::latency_ns});
}

Option delay_key(const std::string& completion) {
  Option o = time_key(
      "delay", "how long --fault delay holds " + completion + " back; 0: one and a half times --late-after",
      {nanoseconds, &Config::delay_ns});
  o.max = 3600;
  return o;
}

Option whole_key(std::string name, std::string default_text, options::Bound min, options::Bound max,
                 std::string help, options::Into into) {
  return {.name = std::move(name),
          .kind = Kind::integer,
          .default_text = std::move(default_text),
          .min = min,
          .max = max,
          .help = std::move(help),
          .into = std::move(into)};
}

Option time_key(std::string name, std::string help, options::Into into) {
  return {.name = std::move(name),
          .kind = Kind::seconds,
          .default_text = "0",
          .min = 0,
          .max = 60,
          .help = std::move(help),
          .into = std::move(into)};
}

Option rate_key(std::string name, u64 most, std::string help, options::Into into) {
  Option o = whole_key(std::move(name), "0", 0, most, std::move(help), std::move(into));
  o.kind = Kind::rate;
  return o;
}

Option bytes_key(std::string name, std::string default_text, options::Bound min, options::Bound max,
                 std::string help, options::Into into) {
  Option o = whole_key(std::move(name), std::move(default_text), min, max, std::move(help), std::move(into));
  o.kind = Kind::size;
  return o;
}

u64 nanoseconds(double seconds) {
  return static_cast<u64>(seconds * 1e9);
}

}  // namespace doorbell::model
