// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The I/Os of one job over a queue pair: the caller says where each goes and which of its buffers it uses,
// and takes the outcomes. An IoLoop decides that by itself; other programs, such as fio, do not leave it to
// us.
#pragma once

#include <doorbell/nvme/controller.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nvme/io_types.hpp"
#include "nvme/jobs/shared_controller.hpp"
#include "system/clock.hpp"
#include "system/polling.hpp"

namespace doorbell::nvme {

/// One read, write or flush. Offsets and lengths in bytes, whole logical blocks; a flush has neither, nor
/// data.
struct IoRequest {
  IoOpcode op = IoOpcode::read;
  u64 offset = 0;
  u64 bytes = 0;
  void* data = nullptr;  ///< in the job's buffer, aligned to 4
  void* tag = nullptr;   ///< the caller's own; comes back with the outcome
  /// Of a read: every 512 bytes of the buffer are marked before, so that data that never arrives is not taken
  /// for the good data that an earlier I/O left there.
  bool poison = false;
  /// Not null: the data lies there instead, at a byte offset that is a multiple of 4; `data` is not used. It
  /// must stay until the queue has ended.
  const Mapped* memory = nullptr;
  u64 memory_offset = 0;
};

/// The end of an I/O.
enum class IoEnd : u32 {
  ok,
  refused,  ///< the controller answered with an error: its status
  timeout,  ///< no answer in time; the controller may still use the I/O's buffer
  gone,     ///< the controller was removed, or reset by somebody else
};
struct IoOutcome {
  void* tag = nullptr;
  IoEnd end = IoEnd::ok;
  u16 status = 0;  ///< type and code, where it was refused
};

/// "NVMe status Write Fault (0x280)", "no answer in time", ...
[[nodiscard]] std::string text_of(IoEnd end, u16 status);
/// The errno of an I/O that ended so; 0 for one that is ok. EIO unless there is a better one.
[[nodiscard]] int errno_of(IoEnd end, u16 status);

/// Throws Error unless I/Os of `least` to `most` bytes, each a multiple of `step`, from offsets that are
/// multiples of `at` can be done on this namespace.
void check_sizes(const ControllerInfo& controller, const NamespaceInfo& ns, u64 least, u64 most, u64 step,
                 u64 at);

/// Thread rule: one thread. Errors: the constructor and buffer() throw; an I/O says what became of it.
class JobQueue {
 public:
  /// `depth` commands in flight at most, each of at most `io_bytes`. The time for an answer is the
  /// controller's.
  JobQueue(std::shared_ptr<SharedController> controller, u32 depth, u64 io_bytes);
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  /// The one buffer in which the data of all I/Os lies, zeroed; page aligned. Once.
  [[nodiscard]] void* make_buffer(Place place, u64 bytes);

  enum class Queued {
    yes,
    full,  ///< take outcomes first
    no,    ///< this I/O cannot be done: refusal() says why, refusal_errno() gives it a number
  };
  /// Writes the command into the ring. The controller sees it after commit(), or with reap().
  [[nodiscard]] Queued queue(const NamespaceInfo& ns, const IoRequest& request);
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  [[nodiscard]] int refusal_errno() const { return refusal_errno_; }
  /// Rings the doorbell if something is new.
  void commit();
  /// Takes up to out.size() outcomes, and waits until there are `least`; fewer only where `limit_ns` has
  /// passed, or where fewer are in flight. Each command has a deadline, so it returns without a limit too.
  [[nodiscard]] u32 reap(std::span<IoOutcome> out, u32 least, u64 limit_ns = ~u64{0});
  [[nodiscard]] u32 in_flight() const { return in_flight_ + ended_count(); }

  /// Deletes the queue pair, after which the controller uses neither buffer nor rings, and frees the buffer.
  /// An I/O that is in flight has no outcome. Once is enough; the destructor does it too.
  void end() noexcept;
  /// Says what makes the results of this queue doubtful though each I/O has its outcome: a completion that
  /// came twice or for no command, a queue that could not be deleted. "" if nothing does. After end() it is
  /// final.
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  struct Slot {
    void* tag = nullptr;
    u64 posted_at = 0;
    u64 list_iova = 0;  // for which data the slot's PRP list was written last
    u64 list_bytes = 0;
    u32 state = 0;  // slot_state
  };
  using Guard = LoopGuard<OneLane, HostClock, 16>;

  [[nodiscard]] Queued refuse(int number, std::string why);
  [[nodiscard]] bool check(const NamespaceInfo& ns, const IoRequest& request);
  [[nodiscard]] u64 offset_of(const IoRequest& request) const;
  void complete(const Cqe& e, std::span<IoOutcome> out, u32* n);
  void take_rest();
  void look();
  void lose(u32 slot, IoEnd end);
  [[nodiscard]] u32 ended_count() const { return static_cast<u32>(ended_.size()) - ended_taken_; }
  [[nodiscard]] u32 hand_out(std::span<IoOutcome> out);
  void note_fault(std::string what);

  std::shared_ptr<SharedController> controller_;
  u32 depth_;
  u64 io_bytes_;
  std::unique_ptr<IoQueuePair> pair_;
  QueuePair<OneLane> queue_;
  Mapped lists_;
  u64 list_stride_ = 0;
  Mapped buffer_;
  std::vector<Slot> slots_;
  std::vector<u16> free_;
  std::vector<IoOutcome> ended_;  // without a completion; the first ended_taken_ have been handed out
  u32 ended_taken_ = 0;
  IoPhase limits_;
  Guard guard_;
  const u32 per_yield_ = polls_per_yield(kInitiatorPollsPerYield);
  u64 oldest_ = 0;  // no command in flight was posted before
  u32 in_flight_ = 0;
  bool unrung_ = false;
  u32 looks_ = 0;
  std::string closed_;  // why no command is taken any more
  int closed_errno_ = 0;
  std::string refusal_, fault_;
  int refusal_errno_ = 0;
};

}  // namespace doorbell::nvme
