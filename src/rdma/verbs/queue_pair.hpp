// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A queue pair to which libibverbs posts, with the interface of QueuePair, so that one measuring loop drives
// both. Nothing here allocates: requests are built in arrays that the queue pair's owner keeps.
//
// Thread rule: one thread owns a VerbsQueuePair. Only one VerbsQueuePair at a time uses a queue.
#pragma once

#include <doorbell/rdma/types.hpp>
#include <doorbell/warp.hpp>

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace doorbell::rdma {

/// Requests and completions between the loop and libibverbs. What one operation touches lies together,
/// because each further page costs an address look-up, and with one operation at a time nothing hides that
/// cost.
struct VerbsBuffers {
  static constexpr u32 kRequests = 1024;  ///< the most requests of one ring()
  static constexpr u32 kPolled = 16;      ///< the most completions taken at once

  /// A request with its scatter entry; an array of them forms the chain to post.
  template <class Wr>
  struct Request {
    Wr wr;
    ibv_sge sge;
  };
  template <class Wr>
  using Chain = Request<Wr>[kRequests];

  VerbsBuffers() {
    link(send);
    link(receive);
  }
  VerbsBuffers(const VerbsBuffers&) = delete;
  VerbsBuffers& operator=(const VerbsBuffers&) = delete;

  ibv_wc sent[kPolled] = {};
  Chain<ibv_send_wr> send = {};
  ibv_wc received[kPolled] = {};
  Chain<ibv_recv_wr> receive = {};

 private:
  template <class Wr>
  static void link(Chain<Wr>& chain) {
    for (u32 i = 0; i < kRequests; ++i) {
      chain[i].wr.next = i + 1 < kRequests ? &chain[i + 1].wr : nullptr;
      chain[i].wr.sg_list = &chain[i].sge;
    }
  }
};

class VerbsQueuePair {
 public:
  /// Counts of one direction, modulo 2^32. A request's serial is its number; the first has 1.
  struct Counts {
    u32 posted = 0;
    u32 rung = 0;        ///< given to libibverbs, including those that it refused
    u32 completed = 0;   ///< serial of the last request known to have finished
    u32 signals = 0;     ///< signalled requests among the posted, modulo 2^31
    u32 signals_in = 0;  ///< signalled requests among the completed
    u32 refused = 0;     ///< the last so many of `rung` were refused and not reported yet
    u32 why = 0;         ///< errno of the refusal
    u32 held = 0;        ///< completions in the buffer, and the number already looked at
    u32 taken = 0;
  };
  /// Plain data; the buffers to which it points belong to the queue pair's owner.
  struct State {
    ibv_qp* qp = nullptr;
    ibv_cq* send_cq = nullptr;
    ibv_cq* recv_cq = nullptr;
    VerbsBuffers* buffers = nullptr;
    u32 sq_requests = 0;
    u32 rq_requests = 0;
    Counts sends;
    Counts receives;
    u32 duplicated = 0;
    u32 skipped = 0;
    u32 protocol = 0;
  };
  struct Polled {
    u32 count = 0;
    Completion mine;
    u32 serial = 0;  ///< requests (receives) finished up to and including this one
  };

  explicit VerbsQueuePair(const State& state) : s_(state) {}
  [[nodiscard]] const State& state() const { return s_; }
  /// Combines the states of two VerbsQueuePairs on one queue pair: one sent and the other received.
  static void take_receives(State& into, const State& from) { into.receives = from.receives; }

  /// Requests that may be posted now.
  [[nodiscard]] u32 room() const { return room_of(s_.sends, s_.sq_requests); }
  /// Builds `n` <= room() requests; the device gets them in ring().
  template <class Warp, class Build>
  void post(const Warp&, u32 n, Build build) {
    static_assert(Warp::size == 1, "libibverbs is called by one CPU thread");
    const u32 first = s_.sends.posted - s_.sends.rung;
    for (u32 i = 0; i < n; ++i) {
      const WorkRequest request = build(i);
      fill(s_.buffers->send[first + i].wr, request, next_id(s_.sends, request.signalled));
    }
  }
  /// Posts the whole chain. poll() reports refused requests as Status::local_qp_op, after the requests that
  /// were accepted before them.
  template <class Warp>
  u32 ring(const Warp&) {
    return hand_over(s_.sends, s_.buffers->send,
                     [&](ibv_send_wr* first, ibv_send_wr** bad) { return ibv_post_send(s_.qp, first, bad); });
  }

  [[nodiscard]] u32 receive_room() const { return room_of(s_.receives, s_.rq_requests); }
  template <class Warp, class Build>
  void post_receives(const Warp&, u32 n, Build build) {
    static_assert(Warp::size == 1, "libibverbs is called by one CPU thread");
    const u32 first = s_.receives.posted - s_.receives.rung;
    for (u32 i = 0; i < n; ++i) {
      const ReceiveRequest request = build(i);
      ibv_recv_wr& wr = s_.buffers->receive[first + i].wr;
      *wr.sg_list = {request.local, request.bytes, request.lkey};
      wr.num_sge = request.bytes != 0 ? 1 : 0;
      wr.wr_id = next_id(s_.receives, true);
    }
  }
  template <class Warp>
  u32 ring_receives(const Warp&) {
    return hand_over(s_.receives, s_.buffers->receive,
                     [&](ibv_recv_wr* first, ibv_recv_wr** bad) { return ibv_post_recv(s_.qp, first, bad); });
  }

  template <class Warp>
  Polled poll(const Warp&, u32 = 1) {
    return take(s_.sends, s_.send_cq, s_.buffers->sent, false);
  }
  template <class Warp>
  Polled poll_receives(const Warp&, u32 = 1) {
    return take(s_.receives, s_.recv_cq, s_.buffers->received, true);
  }

  [[nodiscard]] u32 posted() const { return s_.sends.posted; }
  [[nodiscard]] u32 completed() const { return s_.sends.completed; }
  [[nodiscard]] u32 receives_posted() const { return s_.receives.posted; }
  [[nodiscard]] u32 receives_completed() const { return s_.receives.completed; }
  /// Completions of requests and receives that had completed before.
  [[nodiscard]] u32 duplicated() const { return s_.duplicated; }
  /// Signalled requests and receives whose completion never came although a later one came.
  [[nodiscard]] u32 skipped() const { return s_.skipped; }
  /// Completions without a posted request or receive.
  [[nodiscard]] u32 protocol() const { return s_.protocol; }

 private:
  // wr_id holds the serial, above it the number of signalled requests up to this one, and above that whether
  // this request is signalled.
  static constexpr u32 kSignalMask = 0x7fffffff;
  static constexpr u64 kSignalled = u64{1} << 63;
  static u32 signals_of(u64 id) { return static_cast<u32>(id >> 32) & kSignalMask; }
  static u32 own_signal(u64 id) { return static_cast<u32>(id >> 63); }

  static u32 room_of(const Counts& c, u32 requests) {
    if (c.refused != 0) return 0;
    return std::min(requests - (c.posted - c.completed), VerbsBuffers::kRequests - (c.posted - c.rung));
  }

  static u64 next_id(Counts& c, bool signalled) {
    if (signalled) c.signals = (c.signals + 1) & kSignalMask;
    return ++c.posted | static_cast<u64>(c.signals) << 32 | (signalled ? kSignalled : 0);
  }

  static u32 flag(bool on, ibv_send_flags bit) { return on ? static_cast<u32>(bit) : 0; }

  static void fill(ibv_send_wr& wr, const WorkRequest& r, u64 id) {
    wr.wr_id = id;
    *wr.sg_list = {r.inlined ? reinterpret_cast<u64>(r.payload) : r.local, r.bytes, r.lkey};
    // Some devices take a length of 0 for 2 GiB.
    wr.num_sge = r.bytes != 0 ? 1 : 0;
    wr.opcode = opcode_of(r.op);
    wr.send_flags = flag(r.signalled, IBV_SEND_SIGNALED) | flag(r.fence, IBV_SEND_FENCE) |
                    flag(r.solicited, IBV_SEND_SOLICITED) | flag(r.inlined, IBV_SEND_INLINE);
    wr.imm_data = htonl(r.imm);
    if (is_atomic(r.op)) {
      const bool swap = r.op == Op::compare_swap;
      wr.wr.atomic = {r.remote, swap ? r.compare : r.operand, swap ? r.operand : 0, r.rkey};
    } else {
      wr.wr.rdma = {r.remote, r.rkey};
    }
  }

  static ibv_wr_opcode opcode_of(Op op) {
    switch (op) {
      case Op::write:
        return IBV_WR_RDMA_WRITE;
      case Op::write_imm:
        return IBV_WR_RDMA_WRITE_WITH_IMM;
      case Op::read:
        return IBV_WR_RDMA_READ;
      case Op::send:
        return IBV_WR_SEND;
      case Op::send_imm:
        return IBV_WR_SEND_WITH_IMM;
      case Op::fetch_add:
        return IBV_WR_ATOMIC_FETCH_AND_ADD;
      case Op::compare_swap:
        return IBV_WR_ATOMIC_CMP_AND_SWP;
    }
    return IBV_WR_RDMA_WRITE;
  }

  /// Posts the requests that are built but not posted. Returns the number of calls.
  template <class Wr, class Post>
  static u32 hand_over(Counts& c, VerbsBuffers::Request<Wr>* chain, Post post) {
    const u32 n = c.posted - c.rung;
    if (n == 0) return 0;
    Wr* const after = std::exchange(chain[n - 1].wr.next, nullptr);
    Wr* bad = nullptr;
    const int rc = post(&chain->wr, &bad);
    chain[n - 1].wr.next = after;
    c.rung = c.posted;
    if (rc != 0) note_refusal(c, chain, n, bad, rc);
    return 1;
  }

  /// Counts as refused everything from `bad` on. A provider that returns no `bad` has refused all.
  template <class Wr>
  [[gnu::cold]] static void note_refusal(Counts& c, const VerbsBuffers::Request<Wr>* chain, u32 n,
                                         const Wr* bad, int rc) {
    c.why = static_cast<u32>(rc > 0 ? rc : errno);
    const auto* first = std::find_if(chain, chain + n, [bad](const auto& r) { return &r.wr == bad; });
    if (first == chain + n) first = chain;
    const u64 id = first->wr.wr_id;
    c.refused = n - static_cast<u32>(first - chain);
    c.signals = (signals_of(id) - own_signal(id)) & kSignalMask;
  }

  Polled take(Counts& c, ibv_cq* cq, ibv_wc* buffer, bool receive) {
    if (c.taken == c.held) {
      c.taken = c.held = 0;
      const int n = ibv_poll_cq(cq, static_cast<int>(VerbsBuffers::kPolled), buffer);
      if (n < 0) return broken(c, receive);
      if (n == 0) return c.refused != 0 ? refused(c, receive) : Polled{};
      c.held = static_cast<u32>(n);
    }
    while (c.taken != c.held) {
      const ibv_wc& wc = buffer[c.taken++];
      if (accept(c, wc.wr_id)) return {1, completion_of(wc, receive), c.completed};
    }
    return {};
  }

  /// Counts a completion; false if it belongs to no outstanding request.
  bool accept(Counts& c, u64 id) {
    const u32 serial = static_cast<u32>(id);
    const u32 outstanding = c.rung - c.refused - c.completed;
    if (serial - c.completed - 1 >= outstanding) {
      ++(c.completed - serial <= kSignalMask ? s_.duplicated : s_.protocol);
      return false;
    }
    const u32 before = signals_of(id) - own_signal(id);
    s_.skipped += (before - c.signals_in) & kSignalMask;
    c.signals_in = signals_of(id);
    c.completed = serial;
    return true;
  }

  static Completion completion_of(const ibv_wc& wc, bool receive) {
    Completion done;
    done.status = static_cast<Status>(wc.status);
    done.receive = receive;
    done.mark = static_cast<u32>(wc.wr_id);
    done.vendor_error = wc.vendor_err;
    if (wc.status != IBV_WC_SUCCESS) return done;  // after an error the other fields are not valid
    done.bytes = receive ? wc.byte_len : 0;
    done.with_imm = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
    if (done.with_imm) done.imm = ntohl(wc.imm_data);
    return done;
  }

  /// The next refused request, when no earlier signalled request can still complete.
  static Polled refused(Counts& c, bool receive) {
    if (c.signals != c.signals_in) return {};
    c.completed = c.rung - --c.refused;
    return {1, failure(Status::local_qp_op, c, receive), c.completed};
  }

  /// The queue itself has failed: outstanding requests will not finish.
  static Polled broken(Counts& c, bool receive) {
    if (c.completed == c.rung) return {};
    c.completed = c.rung;
    c.signals_in = c.signals;
    c.refused = 0;
    return {1, failure(Status::fatal, c, receive), c.completed};
  }

  static Completion failure(Status status, const Counts& c, bool receive) {
    Completion done;
    done.status = status;
    done.receive = receive;
    done.mark = c.completed;
    done.vendor_error = c.why;
    return done;
  }

  State s_;
};

}  // namespace doorbell::rdma
