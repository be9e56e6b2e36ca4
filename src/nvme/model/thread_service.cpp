// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/model/thread_service.hpp"

namespace doorbell::nvme {

ThreadService::ThreadService(ModelShared& shared, const SoftwareAddressSpace& space, model::DmaAgent* agent,
                             u8* registers)
    : registers_(registers) {
  for (u32 i = 0; i < shared.config.threads; ++i)
    engines_.push_back(std::make_unique<IoEngine>(shared, space, agent, i));
}

void ThreadService::on_engine(IoEngine& engine, const std::function<void()>& work) {
  if (&engine == engines_.front().get()) work();
  else engine.run_between_rounds(work, [this] { engines_.front()->serve_changes(); });
}

void ThreadService::add_cq(const QueueRequest& r) {
  IoEngine& engine = engine_of_cq(r.qid);
  on_engine(engine, [&] {
    CompletionQueue q;
    q.qid = r.qid;
    q.entries = r.entries;
    q.vector = r.vector;
    q.iova = r.iova;
    q.head_shadow = r.shadow;
    q.head_register = reinterpret_cast<const u32*>(registers_ + r.doorbell);
    engine.find_memory(q);
    engine.add(std::move(q));
  });
}

void ThreadService::add_sq(const QueueRequest& r) {
  IoEngine& engine = engine_of_cq(r.cqid);
  on_engine(engine, [&] {
    SubmissionQueue q;
    q.qid = r.qid;
    q.cqid = r.cqid;
    q.entries = r.entries;
    q.iova = r.iova;
    q.shadow = r.shadow;
    q.event = r.eventidx;
    q.tail_register = reinterpret_cast<const u32*>(registers_ + r.doorbell);
    engine.find_memory(q);
    engine.add(std::move(q));
  });
}

void ThreadService::delete_sq(u16 qid, u16 cqid) {
  IoEngine& engine = engine_of_cq(cqid);
  on_engine(engine, [&] { engine.delete_sq(qid); });
}

void ThreadService::delete_cq(u16 qid) {
  IoEngine& engine = engine_of_cq(qid);
  on_engine(engine, [&] { engine.delete_cq(qid); });
}

void ThreadService::ring_in_memory(const QueueRequest& r) {
  IoEngine& engine = engine_of_cq(r.cqid != 0 ? r.cqid : r.qid);
  on_engine(engine, [&] { engine.ring_in_memory(r); });
}

/// Each engine's thread waits for the next one's, the last one does the work.
void ThreadService::with_held(std::size_t next, const std::function<void()>& work) {
  if (next == engines_.size()) {
    work();
    for (const auto& engine : engines_) engine->find_queues();
    return;
  }
  engines_[next]->run_between_rounds([&] { with_held(next + 1, work); },
                                     [this, next] { engines_[next - 1]->serve_changes(); });
}

/// The same, of threads that may be in the middle of a command.
void ThreadService::with_memory_held(std::size_t next, const std::function<void()>& work) {
  if (next == engines_.size()) {
    work();
    for (const auto& engine : engines_) engine->find_queues();
    return;
  }
  engines_[next]->change_memory([&] { with_memory_held(next + 1, work); });
}

bool ThreadService::change_memory(const std::function<void()>& change) {
  with_memory_held(0, change);
  return true;
}

bool ThreadService::pause(const std::function<void()>& work) {
  with_held(1, work);  // the first engine's thread is the caller
  return true;
}

void ThreadService::track() {
  for (const auto& engine : engines_) on_engine(*engine, [&] { engine->track(); });
}

bool ThreadService::abort(u16 sqid, u16 cqid, u16 cid) {
  IoEngine& engine = engine_of_cq(cqid);
  bool aborted = false;
  on_engine(engine, [&] { aborted = engine.abort(sqid, cid); });
  return aborted;
}

void ThreadService::drop_all() {
  for (const auto& engine : engines_) on_engine(*engine, [&] { engine->drop_all(); });
}

IoTotals ThreadService::totals() {
  IoTotals t;
  for (const auto& e : engines_) {
    t += e->totals();
  }
  return t;
}

}  // namespace doorbell::nvme
