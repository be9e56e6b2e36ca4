// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The NIC's data path for one queue format: the same for a thread of the CPU (engine_thread.hpp) and for a
// kernel (served_engine.hpp). An engine owns its queue pairs, and connected queue pairs share an engine, so
// there is no lock.
#pragma once

#include "rdma/model/engine_counters.hpp"
#include "rdma/model/engine_rule.hpp"
#include "rdma/model/transport.hpp"

namespace doorbell::rdma {

/// `Parts` is what the engine is built of, where it runs:
///   qps(), qp(i)        its queue pairs; a peer is named by its place among them
///   rule, faults, counters, transport
///   dma.fetch(), dma.deliver()  for rings that it cannot reach itself
///   gone(), remove_device()     whether the device is there; Fault::removal
///   finish_time(now, bytes), wall_ns()
///   kHeld               entries that may wait for their data
///   kInARow             requests of one queue pair that serve() executes in a round
template <class F, class Parts>
class Engine {
 public:
  DOORBELL_HD explicit Engine(Parts& parts) : parts_(parts), careful_(parts.rule.careful()) {}

  /// Does one round over all queue pairs; true if there was work.
  DOORBELL_HD bool poll();

  // The same in parts, for an engine of several lanes. Lane 0 calls all but burst().
  DOORBELL_INLINE void begin_round() { now_ = 0; }
  /// Takes the value of the doorbell of queue pair `i`.
  DOORBELL_HD void look(u32 i) { poll_send_doorbell(parts_.qp(i)); }
  /// `stage`: kStage parts, which this call alone uses; for an initiator's inlined bytes until the next call.
  static constexpr u32 kStage = 512;
  template <class Warp>
  [[nodiscard]] DOORBELL_HD u32 burst(const Warp& warp, Qp& q, Word16* stage);
  // `but`: a bit for each of the first 64 queue pairs whose requests several lanes go on with.
  /// True if serve_all() has something to do.
  [[nodiscard]] DOORBELL_HD bool busy(u64 but);
  DOORBELL_GPU_NOINLINE bool serve_all(u64 but = 0);

 private:
  using Index = Indices<F>;
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

  /// The copy that a plain request makes.
  struct Plain {
    u8* to = nullptr;
    u8* from = nullptr;
    u32 bytes = 0;
    bool to_gpu = false;  ///< nothing but this GPU looks at the destination
  };

  // engine_queues.hpp: rings and doorbells
  DOORBELL_GPU_NOINLINE void poll_send_doorbell(Qp& q);
  DOORBELL_GPU_NOINLINE void poll_receive_doorbell(Qp& q);
  DOORBELL_HD void note(WorkRing::Update update);
  [[nodiscard]] DOORBELL_HD bool read_doorbell(u64* word, DoorbellValue& v);
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool stage(Qp& q);
  [[nodiscard]] DOORBELL_HD bool next_wqe(Qp& q, u32 staged_done, PartReader& out) const;
  [[nodiscard]] DOORBELL_HD bool table_agrees(const Qp& q, const WorkRequest& wr,
                                              const RingPosition& at) const;
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool next_receive(Qp& q, Receive& out);
  DOORBELL_HD void take_receive(Qp& q);
  DOORBELL_GPU_NOINLINE bool serve(Qp& q);
  DOORBELL_GPU_NOINLINE void flush(Qp& q);
  DOORBELL_GPU_NOINLINE void flush_receives(Qp& q);

  // engine_requests.hpp: the life of one request
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool run(Qp& q, const DecodedWqe& d, const PartReader& reader);
  [[nodiscard]] DOORBELL_HD bool may_start(Qp& q, const WorkRequest& wr);
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool apply_fault(Qp& q, Work& w);
  [[nodiscard]] DOORBELL_GPU_NOINLINE Verdict execute(Qp& q, Qp& p, Work& w);
  [[nodiscard]] DOORBELL_GPU_NOINLINE Verdict transfer(Qp& q, Qp& p, Work& w);
  [[nodiscard]] DOORBELL_GPU_NOINLINE Verdict send(Qp& q, Qp& p, Work& w, const Receive& r);
  [[nodiscard]] DOORBELL_GPU_NOINLINE Verdict exchange(Qp& q, Work& w);
  [[nodiscard]] DOORBELL_HD Verdict refuse(Qp& p, Status requester);
  DOORBELL_GPU_NOINLINE void received(Qp& p, const Work& w, const Receive& r, Status status);
  DOORBELL_GPU_NOINLINE void inlined(const DecodedWqe& d, const PartReader& reader, SegmentList& out) const;
  DOORBELL_HD void order(Qp& q, bool gpu);
  [[nodiscard]] DOORBELL_HD bool lost(Qp& q);
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool packets_arrive(Qp& q, u32 packets, bool& resend_requested);
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool not_ready(Qp& q, const DecodedWqe& d);
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool try_again(Qp& q, bool at_once);
  DOORBELL_GPU_NOINLINE bool fail(Qp& q, const DecodedWqe& d, Status status);
  DOORBELL_GPU_NOINLINE void finish(Qp& q, const Work& w);

  // engine_completions.hpp
  [[nodiscard]] DOORBELL_HD CqeFields request_fields(const Qp& q, const DecodedWqe& d, Status status) const;
  DOORBELL_GPU_NOINLINE void complete(Qp& q, const LateCompletion& c);
  DOORBELL_GPU_NOINLINE void complete_receive(Qp& q, const CqeFields& f, u64 due_ns);
  DOORBELL_GPU_NOINLINE void write_cqe(Qp& q, CompletionRing& cq, const CqeFields& f);
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool room(Qp& q, CompletionRing& cq);
  DOORBELL_GPU_NOINLINE bool release_late(Qp& q);
  [[nodiscard]] DOORBELL_HD bool settle();
  DOORBELL_GPU_NOINLINE void take_consumer(CompletionRing& cq);
  DOORBELL_HD void hold(const Held& h);
  DOORBELL_HD void publish(CompletionRing& cq);
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool release_held();
  [[nodiscard]] DOORBELL_HD bool end_round();

  // engine_burst.hpp
  [[nodiscard]] DOORBELL_HD bool is_plain(const Qp& q, const Qp& p, const DecodedWqe& d,
                                          const RingPosition& at, const PartReader& reader, Plain& out);
  template <class Warp>
  [[nodiscard]] DOORBELL_HD u32 with_room(const Warp& warp, Qp& q, bool signalled, u32 n);
  template <class Warp>
  DOORBELL_HD void count(const Warp& warp, const DecodedWqe& d, u32 n, u32 packets);

  [[nodiscard]] DOORBELL_INLINE static u32 smaller(u32 a, u32 b) { return a < b ? a : b; }
  [[nodiscard]] DOORBELL_INLINE static bool among(u64 set, u32 i) { return i < 64 && (set >> i & 1) != 0; }
  /// The connected queue pair; null if this engine does not serve it.
  [[nodiscard]] DOORBELL_INLINE Qp* peer(const Qp& q) {
    return q.peer == Qp::kNoPeer ? nullptr : &parts_.qp(q.peer);
  }
  [[nodiscard]] DOORBELL_INLINE bool peer_has_room(const Qp& q) {
    return q.peer == Qp::kNoPeer || parts_.qp(q.peer).has_room();
  }
  [[nodiscard]] DOORBELL_INLINE u64 now() {
    if (now_ == 0) now_ = Parts::wall_ns();
    return now_;
  }

  Parts& parts_;
  const bool careful_;
  u64 now_ = 0;  // this round's time, from its first use on
  u32 held_count_ = 0;
  bool any_unpublished_ = false;
  Held held_[Parts::kHeld];
};

template <class F, class Parts>
DOORBELL_HD bool Engine<F, Parts>::poll() {
  if (parts_.gone()) return false;
  begin_round();
  for (u32 i = 0; i < parts_.qps(); ++i) {
    Qp& q = parts_.qp(i);
    poll_send_doorbell(q);
    if (q.sq.memory.host == nullptr && q.sq.announced > 0 && !stage(q)) return false;
  }
  if (!settle()) return false;
  return serve_all();
}

template <class F, class Parts>
DOORBELL_HD bool Engine<F, Parts>::busy(u64 but) {
  for (u32 i = 0; i < parts_.qps(); ++i) {
    const Qp& q = parts_.qp(i);
    if ((q.sq.announced > 0 && !among(but, i)) || q.state == QpState::error || !q.late.empty() ||
        !q.late_receives.empty())
      return true;
  }
  return false;
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE bool Engine<F, Parts>::serve_all(u64 but) {
  bool work = false;
  for (u32 i = 0; i < parts_.qps(); ++i) {
    Qp& q = parts_.qp(i);
    if (!among(but, i)) work = serve(q) || work;
    if (parts_.gone()) return true;
    if (!q.late.empty() || !q.late_receives.empty()) work = release_late(q) || work;
  }
  return end_round() && work;
}

}  // namespace doorbell::rdma

#include "rdma/model/engine_completions.hpp"
#include "rdma/model/engine_queues.hpp"
#include "rdma/model/engine_requests.hpp"
