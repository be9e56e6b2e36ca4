// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Set-up of an NVMe controller from user space: reset, admin commands, queue pairs. The same code
// drives every back end. Host code only; not for the hot path.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/nvme/queue_pair.hpp>
#include <doorbell/region.hpp>

#include <memory>
#include <string>

namespace doorbell::nvme {

class Controller;
class ControllerInterface;

/// The controller's own description.
struct ControllerInfo {
  std::string serial;             ///< from Identify Controller, without the spaces at its end
  std::string model;              ///< likewise
  std::string firmware;           ///< likewise
  u64 max_transfer_bytes = 0;     ///< 0: no limit
  u32 max_queue_entries = 0;      ///< CAP.MQES + 1
  u32 max_commands = 0;           ///< outstanding on one queue; 0: no limit of its own
  u32 stride = 0;                 ///< CAP.DSTRD
  u32 version = 0;                ///< VS
  bool shadow_doorbells = false;  ///< it takes Doorbell Buffer Config
};

/// A namespace's size.
struct NamespaceInfo {
  u32 nsid = 0;       ///< from 1
  u64 blocks = 0;     ///< of `lba_bytes` bytes each
  u32 lba_bytes = 0;  ///< of the format in use
};

/// The purpose for which a controller is opened.
struct OpenOptions {
  std::shared_ptr<gpu::Gpu> gpu;  ///< the GPU that will ring doorbells or hold memory; may be null
  double timeout_s = 10;          ///< for each admin command
  bool gpu_memory = true;  ///< queues or data may lie in GPU memory (a model then starts its DMA agent)
  bool shadow_doorbells = false;  ///< configure doorbell buffers; refused when the controller has none
};

/// A created I/O queue pair and its memory. Deleted (if not before) when destroyed; the controller
/// must still be there.
class IoQueuePair {
 public:
  IoQueuePair(IoQueuePair&& other) noexcept;
  IoQueuePair& operator=(IoQueuePair&&) noexcept = delete;
  ~IoQueuePair();

  /// In addresses of `who`. Throws when the initiator cannot reach the queues (a CPU and queues in GPU
  /// memory).
  [[nodiscard]] QueuePairMemory memory(Initiator who) const;
  /// Of both queues.
  [[nodiscard]] u16 qid() const { return qid_; }
  /// Of each queue: N - 1 commands may be on their way.
  [[nodiscard]] u32 entries() const { return entries_; }
  /// Carries the doorbells that the initiator has rung since the last call to a device whose registers are
  /// not memory, where Controller::forward_by_initiator(true) was called; elsewhere does nothing. Any thread,
  /// one at a time for one queue pair.
  void forward_doorbells();
  /// Deletes the submission queue: afterwards every completion that will ever come has come.
  void delete_sq();
  /// Deletes the completion queue, after delete_sq().
  void delete_cq();

 private:
  friend class Controller;
  IoQueuePair() = default;
  Controller* controller_ = nullptr;
  u16 qid_ = 0;
  u32 entries_ = 0;
  Mapped sq_;
  Mapped cq_;
  bool sq_live_ = false;
  bool cq_live_ = false;
};

/// An enabled controller. Thread rule: one thread at a time. Errors: throws doorbell::Error; a
/// command that the controller refused is named with the controller's status.
class Controller {
 public:
  /// Opens what `spec` names ("model", "model:media=null,lba=4096", ...), resets and enables it.
  [[nodiscard]] static std::unique_ptr<Controller> open(const std::string& spec,
                                                        const OpenOptions& options = {});
  /// For back ends of doorbell's own; other programs use open().
  Controller(std::unique_ptr<ControllerInterface> interface, const OpenOptions& options);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  /// From its registers and Identify, read once.
  [[nodiscard]] const ControllerInfo& info() const { return info_; }
  /// Asks the controller. Throws Error for a namespace that is not active.
  [[nodiscard]] NamespaceInfo identify_namespace(u32 nsid);
  /// Asks for `pairs` I/O queue pairs, before the first is created; returns how many were granted.
  u32 request_queues(u32 pairs);
  /// Creates the completion queue, then the submission queue. `entries` 2..info().max_queue_entries.
  [[nodiscard]] IoQueuePair create_queue_pair(u16 qid, u32 entries, Place sq, Place cq);
  /// Memory that the controller can reach. Host places are reachable by the GPU too, if one is open.
  [[nodiscard]] Mapped allocate(Place place, u64 bytes, Access access = Access::read_write);
  /// One admin command (its cid is filled in); waits for its completion, whatever its status is.
  [[nodiscard]] Cqe admin(Sqe command, const char* what);
  /// The same, throwing unless it succeeds.
  Cqe admin_ok(const Sqe& command, const char* what);

  /// "model", "emulated" or "hardware".
  [[nodiscard]] std::string kind() const;
  /// The controller's full name, for what the user wrote.
  [[nodiscard]] std::string name() const;
  /// Where doorbells are not registers that an initiator can write ("qemu"), a thread of doorbell's looks at
  /// every word all the time and carries it to the device, which is what a GPU initiator needs. True:
  /// initiators on CPU threads call IoQueuePair::forward_doorbells() instead, after each ring() and
  /// ring_cq(). Elsewhere without effect.
  void forward_by_initiator(bool on);
  /// OpenOptions::gpu; may be null.
  [[nodiscard]] const std::shared_ptr<gpu::Gpu>& gpu() const { return options_.gpu; }
  /// The controller status register, for loops that watch for a device that is gone.
  [[nodiscard]] const u32* status_register(Initiator who);
  /// True when the device has left: its registers read as all ones.
  [[nodiscard]] bool gone();

 private:
  friend class IoQueuePair;
  friend ControllerInterface& interface_of(Controller& controller);
  void reset_and_enable();
  void identify();
  void configure_shadow_doorbells();
  void require_success(const Cqe& e, const char* what) const;
  void wait_ready(bool ready, double limit_s);
  /// Clears CC.EN and waits: afterwards the device touches no memory. Does not throw.
  void disable() noexcept;
  [[nodiscard]] double shutdown_limit_s() const;

  std::unique_ptr<ControllerInterface> interface_;
  OpenOptions options_;
  ControllerInfo info_;
  Mapped admin_sq_;
  Mapped admin_cq_;
  Mapped page_;  // one page for identify data
  Mapped shadow_;
  Mapped eventidx_;
  QueuePair<OneLane> admin_{QueuePairMemory{}};  // replaced once the queues exist
  u16 next_cid_ = 0;
  bool enabled_ = false;
  bool deaf_ = false;  ///< an admin command got no answer
};

}  // namespace doorbell::nvme
