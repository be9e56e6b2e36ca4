// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The NIC's data path for one queue format. Each device thread has one engine. An engine owns its queue
// pairs, and connected queue pairs share an engine, so there is no lock.
#pragma once

#include "rdma/model/engine_base.hpp"
#include "system/clock.hpp"

namespace doorbell::rdma {

template <class F>
class Engine final : public EngineBase {
 public:
  Engine(ModelShared& shared, const SoftwareAddressSpace& space, model::DmaAgent* agent, u32 index)
      : EngineBase(shared, space, agent, index),
        careful_(faults_.active() || shared.link.limited() || shared.config.loss > 0 ||
                 shared.config.rnr_tries > 0) {}

  bool poll() override;

 private:
  using Index = Indices<F>;
  static constexpr u32 kBurst = 64;  // requests of one queue pair in a round
  static constexpr u32 kPrefetch = 8;
  static constexpr u32 kStageParts = 4096 / sizeof(Word16);  // fetched at once from GPU memory
  static constexpr u32 kStageReceives = 64;
  static constexpr u64 kForEver = ~u64{0};
  static_assert(kStageParts >= 256, "the longest WQE of any format must fit");

  /// A receive that waits for a message.
  struct Receive {
    DecodedWqe wqe;
    u32 position = 0;
  };
  /// The responder's answer to a request.
  struct Verdict {
    Status status = Status::ok;
    bool not_ready = false;
  };
  /// A request that is being executed.
  struct Work {
    const DecodedWqe* wqe = nullptr;
    SegmentList local;
    Segment remote{};
    model::InjectedFault injected;
    u64 due_ns = 0;
  };
  /// A CQE whose last part is written after the data that it announces has reached GPU memory.
  struct Held {
    Word16* host = nullptr;
    u32 pass = 0;
    CqeFields fields = {};
    Iova owner_part = 0;
    Word16 owner = {};
  };

  // engine_queues.hpp: rings and doorbells
  void poll_send_doorbell(Qp& q);
  void poll_receive_doorbell(Qp& q);
  void note(WorkRing::Update update);
  [[nodiscard]] bool read_doorbell(u64* word, DoorbellValue& v);
  [[nodiscard]] bool stage(Qp& q);
  [[nodiscard]] bool next_wqe(Qp& q, u32 staged_done, PartReader& out) const;
  [[nodiscard]] bool table_agrees(const Qp& q, const WorkRequest& wr) const;
  [[nodiscard]] bool next_receive(Qp& q, Receive& out);
  void take_receive(Qp& q);
  bool serve(Qp& q);
  void flush(Qp& q);
  void flush_receives(Qp& q);

  // engine_requests.hpp: the life of one request
  [[nodiscard]] bool run(Qp& q, const DecodedWqe& d, const PartReader& reader);
  [[nodiscard]] bool may_start(Qp& q, const WorkRequest& wr);
  [[nodiscard]] bool apply_fault(Qp& q, Work& w);
  [[nodiscard]] Verdict execute(Qp& q, Qp& p, Work& w);
  [[nodiscard]] Verdict transfer(Qp& q, Qp& p, Work& w);
  [[nodiscard]] Verdict send(Qp& q, Qp& p, Work& w, const Receive& r);
  [[nodiscard]] Verdict exchange(Qp& q, Work& w);
  [[nodiscard]] Verdict refuse(Qp& p, Status requester);
  void received(Qp& p, const Work& w, const Receive& r, Status status);
  void inlined(const DecodedWqe& d, const PartReader& reader, SegmentList& out) const;
  void order(Qp& q, bool gpu);
  [[nodiscard]] bool lost(Qp& q);
  [[nodiscard]] bool packets_arrive(Qp& q, u32 packets, bool& resend_requested);
  [[nodiscard]] bool not_ready(Qp& q, const DecodedWqe& d);
  [[nodiscard]] bool try_again(Qp& q, bool at_once);
  bool fail(Qp& q, const DecodedWqe& d, Status status);
  void finish(Qp& q, const Work& w);

  // engine_completions.hpp
  [[nodiscard]] CqeFields request_fields(const Qp& q, const DecodedWqe& d, Status status) const;
  void complete(Qp& q, const LateCompletion& c);
  void complete_receive(Qp& q, const CqeFields& f, u64 due_ns);
  void write_cqe(Qp& q, CompletionRing& cq, const CqeFields& f);
  [[nodiscard]] bool room(Qp& q, CompletionRing& cq);
  bool release_late(Qp& q);
  [[nodiscard]] bool settle();
  [[nodiscard]] bool end_round();

  [[nodiscard]] u64 now() {
    if (now_ == 0) now_ = wall_ns();
    return now_;
  }

  const bool careful_;  // faults, loss or other special behaviour was asked for
  u64 now_ = 0;         // this round's time, from its first use on
  std::vector<Held> held_;
  std::vector<CompletionRing*> unpublished_;
};

template <class F>
bool Engine<F>::poll() {
  serve_set_up();
  if (shared_.presence.gone()) return false;
  now_ = 0;
  for (Qp* q : qps_) {
    poll_send_doorbell(*q);
    if (q->sq.memory.host == nullptr && q->sq.announced > 0 && !stage(*q)) return false;
  }
  if (!settle()) return false;
  bool work = false;
  for (Qp* q : qps_) {
    work = serve(*q) || work;
    if (shared_.presence.gone()) return true;
    if (!q->late.empty() || !q->late_receives.empty()) work = release_late(*q) || work;
  }
  return end_round() && work;
}

}  // namespace doorbell::rdma

#include "rdma/model/engine_completions.hpp"
#include "rdma/model/engine_queues.hpp"
#include "rdma/model/engine_requests.hpp"
