// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One NVMe controller for several jobs of another program, such as fio: each job is a thread with a queue
// pair of its own. Nothing here knows fio.
#pragma once

#include <doorbell/nvme/controller.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "model/fault.hpp"
#include "nvme/controller_interface.hpp"

namespace doorbell::nvme {

/// How a controller is opened. Jobs that share one must agree in all of it.
struct SharedOptions {
  std::string controller = "model";    ///< as open_device() takes it; no file
  model::FaultRates faults = {};       ///< that a model injects; any other controller refuses them
  u64 seed = 1;                        ///< of these faults
  double timeout_s = 10;               ///< how long an answer is waited for, of any command
  std::shared_ptr<gpu::Gpu> gpu = {};  ///< the GPU whose memory it must reach; may be null

  [[nodiscard]] bool operator==(const SharedOptions& o) const {
    return controller == o.controller && faults.probability == o.faults.probability && seed == o.seed &&
           timeout_s == o.timeout_s && gpu == o.gpu;
  }
};

/// "corrupt=0.001,drop=0.1" as probabilities; "" is none. Throws Error that names an unknown kind or a bad
/// value.
[[nodiscard]] model::FaultRates parse_faults(const std::string& text);

/// An enabled controller. Any thread may make any call; what takes admin commands waits for its turn.
/// Errors: doorbell::Error.
class SharedController {
 public:
  explicit SharedController(const SharedOptions& options);

  [[nodiscard]] const SharedOptions& options() const { return options_; }
  [[nodiscard]] std::string name() { return interface().name(); }
  [[nodiscard]] const ControllerInfo& info() const { return controller_.info(); }
  [[nodiscard]] NamespaceInfo name_space(u32 nsid);
  /// Throws, with `hint`, unless what it holds is doorbell's own, so that it may be overwritten. May read all
  /// of it.
  void require_scratch(const std::string& hint);
  /// False where nothing is stored, so that there is nothing to verify.
  [[nodiscard]] bool moves_data() { return interface().moves_data(); }
  /// Throws unless a queue can hold `depth` commands.
  void check_depth(u32 depth) const;
  /// How many commands a queue can hold.
  [[nodiscard]] u32 largest_depth() const;

  /// A queue pair for `depth` commands, under the lowest number that is free.
  [[nodiscard]] IoQueuePair create_queue(u32 depth);
  /// Deletes the submission queue: afterwards every completion has come that will.
  void end_submissions(IoQueuePair& queue);
  /// Deletes what is left of the queue, and frees its number.
  void remove_queue(std::unique_ptr<IoQueuePair> queue) noexcept;
  [[nodiscard]] Mapped allocate(Place place, u64 bytes, Access access);
  /// Memory that is there already; not every controller reaches it.
  [[nodiscard]] Mapped map(Region memory, Access access);
  /// The register that shows whether the controller is there.
  [[nodiscard]] const u32* status_register();
  /// True once the device is to be given back (a hot-unplug request).
  [[nodiscard]] bool leaving() { return interface().leaving(); }

 private:
  [[nodiscard]] ControllerInterface& interface() { return interface_of(controller_); }

  SharedOptions options_;
  std::mutex mutex_;  // of everything below, where it takes admin commands
  Controller controller_;
  u32 granted_ = 0;         // queue pairs
  std::vector<bool> used_;  // by qid - 1
  bool scratch_known_ = false;
  bool scratch_ = false;
};

/// The controller of that name which jobs of this process share; the first call opens it, and it closes when
/// the last user has let it go. Throws Error when others share it with other options, or when a job of
/// another process has it (claim_controller()); `hint` is for that.
[[nodiscard]] std::shared_ptr<SharedController> share_controller(const SharedOptions& options,
                                                                 const std::string& hint = {});

/// Notes, as long as the answer is kept, that one job, which is about to become a process of its own, will
/// open this controller for itself. Throws Error, with `hint`, when any other job has it: processes cannot
/// share a controller.
[[nodiscard]] std::shared_ptr<void> claim_controller(const std::string& name, const std::string& hint = {});

}  // namespace doorbell::nvme
