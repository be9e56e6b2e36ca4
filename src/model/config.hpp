// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The configuration that every model has, and the keys of "model:KEY=VALUE,..." that mean the same in all of
// them.
#pragma once

#include <string>
#include <vector>

#include "model/use.hpp"
#include "options/option.hpp"

namespace doorbell::model {

struct Config {
  /// The engine that serves the queues: threads of the CPU; a kernel on the GPU that the device is opened
  /// with; or that kernel's code on threads of the CPU.
  enum class Engine { cpu, gpu, kernel_on_cpu };
  Engine engine = Engine::cpu;
  u32 threads = 1;          ///< device threads; 0: chosen for the run
  u32 copy_threads = 1;     ///< that share one large copy; 0: chosen for the run
  double bytes_per_s = 0;   ///< of the link; 0: no limit
  u64 latency_ns = 0;       ///< from a command to its completion
  bool gpu_memory = true;   ///< with a GPU: start the DMA agent, which reaches its memory
  bool shared_gpu = false;  ///< the agent is no kernel
  FaultRates faults;
  u64 seed = 1;
  bool rests = false;            ///< device threads sleep in between when there is nothing to do for long
  u64 delay_ns = 1'500'000'000;  ///< how long Fault::delay holds a completion back; 0: chosen for the run

  /// Throws Error, with `subject`, for an engine that cannot reach what the run has. `gpu`: the device is
  /// opened with one.
  void check_engine(const std::string& subject, bool gpu, const Use& use) const;
  /// The same for a model whose kernel takes only doorbells that a GPU rings.
  void check_engine_that_gpus_ring(const std::string& subject, bool gpu, const Use& use) const;
  /// Chooses for the run what was left open.
  void fit(const Use& use);
};

/// The values of the key "engine", in the order of Config::Engine.
[[nodiscard]] const std::vector<std::string>& engine_names();

// The keys that all models share, bound to members of Config. `help` and the nouns use the path's words.
[[nodiscard]] options::Option threads_key(const std::string& queue);
[[nodiscard]] options::Option copy_threads_key();
/// `queues`: what is served.
[[nodiscard]] options::Option engine_key(const std::string& queues);
[[nodiscard]] options::Option bandwidth_key(std::string help);
[[nodiscard]] options::Option latency_key(std::string help);
[[nodiscard]] options::Option delay_key(const std::string& completion);

// Table entries for keys that only one model has.
[[nodiscard]] options::Option whole_key(std::string name, std::string default_text, options::Bound min,
                                        options::Bound max, std::string help, options::Into into = {});
/// A time from 0 to a minute; default 0.
[[nodiscard]] options::Option time_key(std::string name, std::string help, options::Into into);
/// Bytes a second; default 0, which sets no limit.
[[nodiscard]] options::Option rate_key(std::string name, u64 most, std::string help, options::Into into = {});
[[nodiscard]] options::Option bytes_key(std::string name, std::string default_text, options::Bound min,
                                        options::Bound max, std::string help, options::Into into = {});
/// For the member of a time key.
[[nodiscard]] u64 nanoseconds(double seconds);

}  // namespace doorbell::model
