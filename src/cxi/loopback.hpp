// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Puts from a NIC to itself, as `cxi_gpu_loopback_bw` does them: each iteration is many puts to one place and
// ends with one event of a counter. Nothing here prints.
#pragma once

#include <doorbell/cxi/events.hpp>
#include <doorbell/error.hpp>
#include <doorbell/region.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cxi/cassini_device.hpp"
#include "measure/stop.hpp"
#include "report/result.hpp"

namespace doorbell::cxi {

/// Puts of one iteration. Each may take four slots of a command queue, and the status takes four more.
inline constexpr u32 kMaxLoopbackPuts = (kMaxSlots - kStatusSlots) / 4 - 1;

struct LoopbackBuffer {
  Place place = Place::pageable;
  std::shared_ptr<gpu::Gpu> gpu = nullptr;  ///< for Place::gpu
};

struct LoopbackOptions {
  LoopbackBuffer source;
  LoopbackBuffer destination;
  u64 duration_us = 0;  ///< of a repeat, checked between iterations; 0: by count
  u64 iterations = 25;  ///< of a repeat
  u32 bytes = 512 << 10;
  u32 puts = 8192;        ///< of an iteration
  u64 warmup = 1;         ///< untimed iterations before the first repeat
  u32 repeats = 1;        ///< how often the timed part is repeated
  bool steady = false;    ///< measure once more without the pause between iterations
  bool verify = true;     ///< compare what arrived
  double timeout_s = 10;  ///< the longest time without progress
  u64 seed = 1;           ///< of the data
};

/// Why the NIC did not do what it was asked to do.
struct LoopbackFailure {
  enum class Kind { timeout, unexpected_event, bad_return_code, queue_full, removed };
  Kind kind = Kind::timeout;
  EventType expected = EventType::triggered_op;
  EventType got = EventType::null_event;
  ReturnCode code = ReturnCode::ok;
  // For failures while puts were under way:
  bool counting = false;
  CounterCounts counts;         ///< of acknowledgements; not valid if the device did not report
  u64 threshold = 0;            ///< the count that was awaited
  bool events_dropped = false;  ///< the event queue had no room for some events
  CommandQueueStatus queue;
};

/// A refused call or a missing event before the first put.
class LoopbackError : public Error {
 public:
  explicit LoopbackError(const LoopbackFailure& failure);
  [[nodiscard]] const LoopbackFailure& failure() const noexcept { return failure_; }

 private:
  LoopbackFailure failure_;
};

/// One timed part.
struct LoopbackPart {
  u64 iterations = 0;
  u64 elapsed_ns = 0;
  double cpu_user_s = 0;
  double cpu_system_s = 0;
};

struct LoopbackResult {
  std::vector<LoopbackPart> repeats;
  std::optional<LoopbackPart> steady;  ///< each iteration is posted before the last one has ended
  report::Verify verify;               ///< in puts
  u64 refused = 0;                     ///< acknowledged with another return code than OK
  u64 lost = 0;                        ///< not acknowledged when the deadline came
  u64 unexpected = 0;                  ///< other events than the awaited kind, if not counted above
  u64 submitted = 0;                   ///< puts of all parts
  u64 doorbells = 0;                   ///< register writes that started commands
  u64 polls = 0;
  std::map<std::string, u64> statuses;     ///< of refused puts, by name
  std::optional<LoopbackFailure> failure;  ///< what ended the run early
  bool interrupted = false;

  [[nodiscard]] bool failed() const { return failure || verify.failed() > 0; }
};

/// Sets up both ends, runs, checks, and removes everything. Throws CallError, LoopbackError or Error for what
/// cannot be set up; later failures are in the result. `stop` ends the run between two iterations.
[[nodiscard]] LoopbackResult run_loopback(CassiniDevice& device, Endpoint& endpoint,
                                          const LoopbackOptions& options,
                                          const measure::StopFlag* stop = nullptr);

}  // namespace doorbell::cxi
