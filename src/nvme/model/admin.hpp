// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The admin queue of a model controller: queue creation and deletion, doorbell buffers, aborts, formatting
// (admin.cpp), Identify (admin_identify.cpp), log pages (admin_logs.cpp), features and asynchronous events.
#pragma once

#include <map>

#include "nvme/model/async_events.hpp"
#include "nvme/model/features.hpp"
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
  /// CC.IOSQES and CC.IOCQES: I/O queues are only created with entries of the size that they have.
  void entry_sizes(u32 sq_log2, u32 cq_log2) {
    usable_entries_ = (1u << sq_log2) == kSqeBytes && (1u << cq_log2) == kCqeBytes;
  }
  /// Executes the commands that the doorbell announces and reports bad doorbell writes. True if there was
  /// work.
  bool poll();
  /// Finds the memory of the admin queue anew, after a change of what is mapped. On the thread of poll(), or
  /// while that one waits.
  void find_queue();

 private:
  struct Answer {
    u16 status = status::success;
    u32 dw0 = 0;
    bool later = false;  // an asynchronous event request: it completes later
  };
  /// Of the last Sanitize.
  struct Sanitized {
    u16 status = 0;  // 0: there was none
    u32 cdw10 = 0;
  };
  bool take_command();
  Answer run(const Sqe& e);
  Answer identify(const Sqe& e);
  u16 fill_identify(const Sqe& e, AdminPage& page) const;
  void fill_controller(AdminPage& page) const;
  void fill_name_space(AdminPage& page) const;
  void fill_descriptors(AdminPage& page) const;
  Answer create_cq(const Sqe& e);
  Answer create_sq(const Sqe& e);
  Answer delete_sq(const Sqe& e);
  Answer delete_cq(const Sqe& e);
  Answer get_features(const Sqe& e);
  Answer set_features(const Sqe& e);
  Answer set_queues(const Sqe& e);
  Answer get_log(const Sqe& e);
  /// The bytes of a log page; 0: there is none of this number.
  u32 fill_log(u8 id, AdminPage& page);
  void fill_smart(AdminPage& page);
  void fill_effects(AdminPage& page) const;
  Answer doorbell_buffers(const Sqe& e);
  Answer abort(const Sqe& e);
  Answer format(const Sqe& e);
  Answer sanitize(const Sqe& e);
  /// Makes all blocks zeros while no command runs, and gives the namespace this format.
  u16 erase(u32 format);
  u16 deliver(const Sqe& e, const void* data, u64 bytes);
  u16 collect(const Sqe& e, void* data, u64 bytes);
  template <class Chunk>
  u16 walk(const Sqe& e, u64 bytes, Chunk chunk);

  [[nodiscard]] u16 check_number(const Sqe& e, bool in_use) const;
  [[nodiscard]] u16 check_memory(const Sqe& e, u64 entry_bytes) const;
  /// True if both doorbells of the queue lie in the one page that each buffer has.
  [[nodiscard]] bool in_shadow_page(u16 qid) const;
  /// The request with all that is known of the doorbell. With `cqid` it is a submission queue.
  [[nodiscard]] QueueRequest with_doorbell(u16 qid, u16 cqid) const;
  void start_doorbell(u32* word);
  void stop_doorbell(u32* word);
  [[nodiscard]] u32& last_seen(const u32* word) { return stray_[static_cast<u32>(word - registers_.at(0))]; }
  [[nodiscard]] u32 offers_format() const { return shared_.config.format ? 1 : 0; }
  /// Bytes of a block of LBA format `format`.
  [[nodiscard]] u32 block_bytes(u32 format) const;
  [[nodiscard]] u32 queues_granted() const { return (granted_ - 1) << 16 | (granted_ - 1); }
  /// Commands that CPU threads execute and a kernel does not.
  [[nodiscard]] bool has_more() const { return shared_.config.engine == ModelConfig::Engine::cpu; }
  [[nodiscard]] std::string serial() const;

  void post(u16 cid, Answer a);
  void write(const Cqe& c);
  void lose_queue();
  [[nodiscard]] bool full();
  void take_head();
  void report_events();
  void raise_interrupt();
  void look_around();
  void look_for_stray_doorbells();
  /// SMART's critical warning.
  [[nodiscard]] u8 warnings() const;
  void look_for_warnings();
  [[nodiscard]] u32* sq_register(u32 qid) const;
  [[nodiscard]] u32* cq_register(u32 qid) const;

  ModelShared& shared_;
  RegisterPage registers_;
  model::DmaEngine& dma_;
  IoService& io_;
  bool enabled_ = false;
  bool unreachable_ = false;  // the memory of the admin queue has gone: nothing more until a reset
  bool usable_entries_ = true;
  SubmissionQueue sq_;
  CompletionQueue cq_;
  std::map<u16, u16> sqs_;  // live I/O submission queues and their completion queues
  std::map<u16, u32> cqs_;  // live I/O completion queues and their entries
  u32 granted_ = 0;
  u32 format_;  // of the namespace
  Iova shadow_ = 0;
  Iova eventidx_ = 0;
  Features features_;
  AsyncEvents events_;
  Sanitized sanitized_;
  u64 bad_values_reported_ = 0;
  u8 told_warnings_ = 0;      // of which the host has had an event
  std::map<u32, u32> stray_;  // last value seen in a doorbell, by the doorbell's offset in words
  u32 rounds_ = 0;
  u64 looked_ns_ = 0;  // when what nothing waits for was last looked at
  u32 again_seen_ = 0;
  u64 started_ns_;
};

}  // namespace doorbell::nvme
