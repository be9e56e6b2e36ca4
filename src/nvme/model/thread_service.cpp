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
  else engine.run_between_rounds(work);
}

void ThreadService::add_cq(const QueueRequest& r) {
  IoEngine& engine = engine_of_cq(r.qid);
  on_engine(engine, [&] {
    model::DmaEngine& dma = engine.dma();
    CompletionQueue q;
    q.qid = r.qid;
    q.entries = r.entries;
    q.iova = r.iova;
    q.ring = reinterpret_cast<Word16*>(dma.host(r.iova, u64{r.entries} * kCqeBytes, Access::write));
    u8* const shadow = r.shadow != 0 ? dma.host(r.shadow, 4, Access::read) : nullptr;
    q.bar = shadow == nullptr ? 1 : 0;
    q.head_word = reinterpret_cast<const u32*>(shadow != nullptr ? shadow : registers_ + r.doorbell);
    engine.add(std::move(q));
  });
}

void ThreadService::add_sq(const QueueRequest& r) {
  IoEngine& engine = engine_of_cq(r.cqid);
  on_engine(engine, [&] {
    model::DmaEngine& dma = engine.dma();
    SubmissionQueue q;
    q.qid = r.qid;
    q.cqid = r.cqid;
    q.entries = r.entries;
    q.iova = r.iova;
    q.host = reinterpret_cast<const Sqe*>(dma.host(r.iova, u64{r.entries} * kSqeBytes, Access::read));
    q.tail_register = reinterpret_cast<const u32*>(registers_ + r.doorbell);
    if (r.shadow != 0) {
      q.tail_shadow = reinterpret_cast<const u32*>(dma.host(r.shadow, 4, Access::read));
      q.eventidx = reinterpret_cast<u32*>(dma.host(r.eventidx, 4, Access::write));
    }
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
