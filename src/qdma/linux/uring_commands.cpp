// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "qdma/flow/call_engine.hpp"
#include "qdma/linux/kernel_driver.hpp"
#include "system/clock.hpp"

namespace doorbell::qdma {

namespace {

/// Calls that were abandoned: the kernel still reads their structures.
void keep_for_good(std::shared_ptr<PendingCall> call) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::shared_ptr<PendingCall>>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(call));
}

class UringCommands : public CallEngine {
 public:
  explicit UringCommands(int fd) : fd_(fd) {}
  ~UringCommands() override {
    if (open_) io_uring_queue_exit(&ring_);
  }

  /// False if there is no ring, or no command for this file.
  [[nodiscard]] bool open() {
    io_uring_params p{};
    p.flags = IORING_SETUP_CQSIZE;
    p.cq_entries = 2 * TransferDescriptor::kMaxSubmitted;
    if (io_uring_queue_init_params(kEntries, &ring_, &p) != 0) return false;
    open_ = true;
    io_uring_probe* const probe = io_uring_get_probe_ring(&ring_);
    if (probe == nullptr) return false;
    const bool has = io_uring_opcode_supported(probe, IORING_OP_URING_CMD) != 0;
    io_uring_free_probe(probe);
    return has && (p.features & IORING_FEAT_EXT_ARG) != 0 && file_takes_commands();
  }

  [[nodiscard]] std::string name() const override { return "io_uring"; }
  [[nodiscard]] bool driven() const override { return true; }

  [[nodiscard]] int begin(std::shared_ptr<PendingCall> call) override {
    const std::lock_guard lock(mutex_);
    const u64 tag = call->tag;
    if (const int error = put(call->structure, tag); error != 0) return error;
    in_flight_.emplace(tag, InFlight{std::move(call), wall_ns()});
    return 0;
  }

  /// The driver has no cancellation: the command ends when it ends.
  void cancel(PendingCall&) override {}

  void drive(u64 until_ns) override {
    io_uring_cqe* e = nullptr;
    if (io_uring_peek_cqe(&ring_, &e) != 0) {
      const u64 now = wall_ns();
      if (now >= until_ns) return;
      const u64 left = std::min<u64>(until_ns - now, 3'600'000'000'000);
      __kernel_timespec limit{static_cast<i64>(left / 1'000'000'000), static_cast<i64>(left % 1'000'000'000)};
      if (io_uring_wait_cqe_timeout(&ring_, &e, &limit) != 0) return;
    }
    const u64 tag = e->user_data;
    const i64 result = e->res;
    io_uring_cqe_seen(&ring_, e);
    std::shared_ptr<PendingCall> call;
    {
      const std::lock_guard lock(mutex_);
      const auto it = in_flight_.find(tag);
      if (it == in_flight_.end()) return;
      call = std::move(it->second.call);
      call->result.result = kernel_transfer_result(result, wall_ns() - it->second.begin_ns);
      in_flight_.erase(it);
    }
    ended_(call);
  }

  void abandon() override {
    const std::lock_guard lock(mutex_);
    for (auto& [tag, f] : in_flight_) keep_for_good(std::move(f.call));
    in_flight_.clear();
  }

 private:
  static constexpr u32 kEntries = 64;
  struct InFlight {
    std::shared_ptr<PendingCall> call;
    u64 begin_ns = 0;
  };

  [[nodiscard]] int put(Transfer& structure, u64 tag) {
    io_uring_sqe* const e = io_uring_get_sqe(&ring_);
    if (e == nullptr) return EAGAIN;
    std::memset(static_cast<void*>(e), 0, sizeof *e);
    e->opcode = IORING_OP_URING_CMD;
    e->fd = fd_;
    e->cmd_op = kUringTransfer;
    e->user_data = tag;
    const u64 payload = reinterpret_cast<u64>(&structure);
    std::memcpy(reinterpret_cast<u8*>(e) + kPayloadOffset, &payload, sizeof payload);
    int n = 0;
    do {
      n = io_uring_submit(&ring_);
    } while (n == -EINTR);
    if (n >= 0) return 0;
    // The entry stays in the ring and goes with the next one, when its caller has given it up.
    io_uring_prep_nop(e);
    io_uring_sqe_set_data64(e, 0);
    return -n;
  }

  /// A transfer of no sub-transfers moves nothing: the driver refuses it, another file refuses the command.
  [[nodiscard]] bool file_takes_commands() {
    Transfer none;
    if (put(none, 0) != 0) return false;
    io_uring_cqe* e = nullptr;
    int error = 0;
    do {
      error = io_uring_wait_cqe(&ring_, &e);
    } while (error == -EINTR);
    if (error != 0) return false;
    const i64 result = e->res;
    io_uring_cqe_seen(&ring_, e);
    return result != -EOPNOTSUPP && result != -ENOTTY && result != -ENOSYS;
  }

  /// Of the command's own bytes in an entry of 64 (Linux, io_uring.h: sqe->cmd).
  static constexpr std::size_t kPayloadOffset = 48;

  const int fd_;
  bool open_ = false;
  io_uring ring_{};
  std::mutex mutex_;
  std::map<u64, InFlight> in_flight_;
};

}  // namespace

std::unique_ptr<CallEngine> uring_commands(int fd) {
  auto engine = std::make_unique<UringCommands>(fd);
  if (!engine->open()) return nullptr;
  return engine;
}

}  // namespace doorbell::qdma
