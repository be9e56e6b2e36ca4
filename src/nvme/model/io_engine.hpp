// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The part of a model controller that serves I/O queues. Each device thread has one engine. Only the engine
// uses its queues, so the hot path has no lock.
#pragma once

#include <doorbell/nvme/wire.hpp>

#include <deque>
#include <vector>

#include "model/between_rounds.hpp"
#include "model/count.hpp"
#include "model/dma.hpp"
#include "model/due_heap.hpp"
#include "model/shared.hpp"
#include "nvme/model/cids.hpp"
#include "nvme/model/error_log.hpp"
#include "nvme/model/interrupts.hpp"
#include "nvme/model/io_service.hpp"
#include "nvme/model/media.hpp"
#include "nvme/model/transfer.hpp"

namespace doorbell::nvme {

/// State that all engines of one controller share.
struct ModelShared : model::Shared<ModelConfig> {
  Media media;
  NamespaceShape shape;
  std::atomic<bool> fatal{false};               ///< an engine cannot reach its queues: CSTS.CFS until a reset
  std::atomic<u64> invalid_doorbell_values{0};  ///< values outside what the queue allows
  std::atomic<u64> unknown_doorbells{0};        ///< writes to doorbells of queues that do not exist
  std::atomic<bool> write_through{false};       ///< the host has turned the volatile write cache off
  bool foreign_memory = false;  ///< others write to queues meanwhile; as it was before the first engine
  Interrupts interrupts;
  ErrorLog errors;
  /// Completions can come later than their commands end, so cids are tracked.
  [[nodiscard]] bool tracks() const { return link.limited() || faults.active(); }
  explicit ModelShared(const ModelConfig& c)
      : Shared(c), media(c), shape{media.capacity() / c.lba_bytes, c.lba_bytes, c.mdts} {}
};

/// Counters of one engine.
struct EngineCounters {
  model::Count reads, writes, others, read_bytes, written_bytes, errors, cq_full;
};

struct CompletionQueue : CqRing {
  CompletionQueue() : CqRing{} { phase = 1; }
  u16 qid = 0;
  bool fresh = false;  ///< entries were written for which no interrupt was raised yet
  int vector = -1;     ///< of its interrupts; -1: it is polled
  Iova iova = 0;
  Iova head_shadow = 0;  ///< the word of a shadow doorbell buffer, 0: none
  const u32* head_register = nullptr;
  std::deque<Cqe> waiting;  ///< completions held while the queue is full
};

struct SubmissionQueue : SqRing {
  SubmissionQueue() : SqRing{} {}
  u16 cqid = 0;
  u32 cq_index = 0;  ///< of cqid among the engine's completion queues
  Iova iova = 0;
  const Sqe* host = nullptr;  ///< null where it does not lie in one piece of host memory
  bool pages = false;         ///< each page is a mapping of its own
  Iova shadow = 0;            ///< the words of shadow doorbell buffers, 0: none
  Iova event = 0;
  const u32* tail_register = nullptr;
  const u32* tail_shadow = nullptr;
  u32* eventidx = nullptr;
  u32 last_register = 0;  ///< last value of the register where there is a shadow doorbell
  u32 idle_polls = 0;
  bool needs_register = false;   ///< eventidx asks the host to write the register too
  std::vector<u64> outstanding;  ///< a bit for each cid, for commands that complete later
};

class IoEngine {
 public:
  IoEngine(ModelShared& shared, const SoftwareAddressSpace& space, model::DmaAgent* agent, u32 index);

  /// Does one round over all queues; true if there was work. Called by the engine's thread only. Does nothing
  /// after the device has gone or while its status is fatal.
  bool poll();

  /// Runs `work` on the engine's thread between two rounds and waits for it. Call it from any other thread;
  /// the engine's own thread calls `work` directly.
  /// `meanwhile` is called again and again until then.
  void run_between_rounds(const std::function<void()>& work, const std::function<void()>& meanwhile) {
    set_up_.run(work, meanwhile);
  }
  /// Runs `work`, which maps and unmaps, on the engine's thread between two rounds, or while that one waits
  /// for what it does not do itself: an answer of another process, or another engine. It finds its queues
  /// anew afterwards (find_queues()). One caller at a time.
  void change_memory(const std::function<void()>& work) { changes_.run(work); }
  /// On the engine's thread, where it holds no address of memory that is mapped.
  void serve_changes() { changes_.serve(); }

  // Call the following functions only inside run_between_rounds, or on the engine's thread.
  void add(CompletionQueue q);
  void add(SubmissionQueue q);
  [[nodiscard]] SubmissionQueue* find_sq(u16 qid);
  [[nodiscard]] CompletionQueue* find_cq(u16 qid);
  /// Ends the queue's commands with "aborted: SQ deletion", then forgets the queue.
  void delete_sq(u16 qid);
  void delete_cq(u16 qid);
  /// From now on the queue's doorbell lies in shadow doorbell buffers.
  void ring_in_memory(const QueueRequest& r);
  /// Finds a queue's memory and doorbells in what is mapped now.
  void find_memory(CompletionQueue& q);
  void find_memory(SubmissionQueue& q);
  /// The same for every queue that was added.
  void find_queues();
  /// True if the command was still outstanding and has been completed as aborted.
  bool abort(u16 sqid, u16 cid);
  /// Controller reset: drops everything outstanding without a completion.
  void drop_all();
  /// From now on completions can come later than their commands end: faults have been switched on.
  void track();

  [[nodiscard]] IoTotals totals() const {
    const EngineCounters& c = counters_;
    return {c.reads.value(),         c.writes.value(), c.others.value(),  c.read_bytes.value(),
            c.written_bytes.value(), c.errors.value(), c.cq_full.value(), dma_.faults()};
  }
  [[nodiscard]] model::DmaEngine& dma() { return dma_; }

 private:
  struct Data;
  struct Later {
    u16 sqid = 0;
    Cqe cqe;
  };
  struct Fetched {
    u32 sq = 0;     // index in sqs_
    u32 first = 0;  // slot
    u32 count = 0;
  };

  [[nodiscard]] u32 read_tail(SubmissionQueue& q);
  [[nodiscard]] u32 new_entries(SubmissionQueue& q);
  void execute(SubmissionQueue& q, const Sqe& e);
  [[nodiscard]] bool fetch_entries(const SubmissionQueue& q, u32 n, Sqe* to);
  /// The rest of a command that has failed, or whose media have a cache.
  Outcome settle(const SubmissionQueue& q, const Sqe& e, Outcome o);
  /// Dataset Management and Verify, which a kernel does not have.
  void run_more(Data& data, const Sqe& e, Outcome& o);
  u16 verify(Data& data, const Sqe& e);
  u16 deallocate(Data& data, const Sqe& e);
  /// Puts what a command has written on the media, if the host wants that before the completion.
  void write_through(const Sqe& e, Outcome& o);
  void raise_interrupts();
  bool read_list(Iova list, u32 qwords, u64* out);
  void complete(SubmissionQueue& q, const Cqe& e, u64 due_ns);
  void post(CompletionQueue& q, const Cqe& e);
  bool post_held(CompletionQueue& q);
  void write_entry(CompletionQueue& q, const Cqe& e);
  [[nodiscard]] bool full(CompletionQueue& q);
  void take_head(CompletionQueue& q);
  /// Sets CSTS.CFS, for errors that no completion can report. Returns false, as poll()'s result.
  bool fail();
  bool post_due();

  ModelShared& shared_;
  model::DmaEngine dma_;
  model::FaultInjector& faults_;
  bool tracks_;
  u16 settle_all_;          ///< not 0: media keep writes in a volatile cache
  Interrupts* interrupts_;  ///< null: nobody takes any
  u32 again_seen_ = 0;
  std::vector<SubmissionQueue> sqs_;
  std::vector<CompletionQueue> cqs_;
  u32 rounds_ = 0;
  model::DueHeap<Later> later_;
  std::vector<Fetched> fetched_;
  std::vector<std::vector<Sqe>> staging_;  // entries fetched from GPU memory, one vector for each queue
  struct Done {
    u32 cq;
    Cqe cqe;
  };
  std::vector<Done> done_;
  std::vector<u8> scratch_, stored_;
  RecentWrites recent_writes_{};
  EngineCounters counters_;
  model::BetweenRounds set_up_{true}, changes_{true};
};

}  // namespace doorbell::nvme
