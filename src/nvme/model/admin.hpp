// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The admin queue of a model controller: identify, queue creation and deletion, features, logs,
// doorbell buffers, aborts and asynchronous events.
#pragma once

#include <deque>
#include <map>

#include "nvme/model/io_engine.hpp"
#include "nvme/model/io_service.hpp"

namespace doorbell::nvme {

/// Where the register page lies; created queues get their doorbells in it.
struct RegisterPage {
  u8* base = nullptr;
  u64 bytes = 0;
  [[nodiscard]] u32* at(u64 offset) const { return reinterpret_cast<u32*>(base + offset); }
};

class AdminProcessor {
 public:
  /// `dma` moves the admin queue's own entries and pages, on the thread that calls poll().
  AdminProcessor(ModelShared& shared, RegisterPage registers, model::DmaEngine& dma, IoService& io);

  /// Starts serving the admin queue. False if the queue addresses or sizes cannot be used: the controller
  /// then does not become ready.
  [[nodiscard]] bool enable(u32 aqa, Iova asq, Iova acq);
  /// Removes every queue and resets every setting.
  void disable();
  [[nodiscard]] bool enabled() const { return enabled_; }
  /// Executes the commands that the doorbell announces and reports bad doorbell writes. True if there was
  /// work.
  bool poll();

 private:
  struct Answer {
    u16 status = status::success;
    u32 dw0 = 0;
    bool later = false;  // an asynchronous event request: it completes later
  };
  Answer run(const Sqe& e);
  Answer identify(const Sqe& e);
  Answer create_cq(const Sqe& e);
  Answer create_sq(const Sqe& e);
  Answer delete_sq(const Sqe& e);
  Answer delete_cq(const Sqe& e);
  Answer features(const Sqe& e, bool set);
  Answer get_log(const Sqe& e);
  Answer doorbell_buffers(const Sqe& e);
  Answer abort(const Sqe& e);
  u16 deliver(const Sqe& e, const void* data, u64 bytes);
  [[nodiscard]] u16 check_number(const Sqe& e, bool in_use) const;
  [[nodiscard]] u16 check_memory(const Sqe& e, u64 entry_bytes) const;
  /// True if both doorbells of the queue lie in the one page that each buffer has.
  [[nodiscard]] bool in_shadow_page(u16 qid) const;
  void post(u16 cid, Answer a);
  [[nodiscard]] bool full();
  void raise_event(u8 information);
  void look_for_stray_doorbells();
  [[nodiscard]] u32* sq_register(u32 qid) const;
  [[nodiscard]] u32* cq_register(u32 qid) const;

  ModelShared& shared_;
  RegisterPage registers_;
  model::DmaEngine& dma_;
  IoService& io_;
  bool enabled_ = false;
  SubmissionQueue sq_;
  CompletionQueue cq_;
  std::map<u16, u16> sqs_;  // live I/O submission queues and their completion queues
  std::map<u16, u32> cqs_;  // live I/O completion queues and their entries
  u32 granted_ = 0;
  Iova shadow_ = 0;
  Iova eventidx_ = 0;
  std::deque<u16> event_requests_;
  std::deque<u8> pending_events_;
  u64 bad_values_reported_ = 0;
  std::map<u32, u32> stray_;  // last value seen in a doorbell, by the doorbell's offset in words
  u32 rounds_ = 0;
};

}  // namespace doorbell::nvme
