// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A fake verbs provider: records what is posted and completes what a test asks it to.
#pragma once

#include <deque>
#include <vector>

#include "rdma/verbs/queue_pair.hpp"

namespace doorbell::rdma {

/// Where the calls of libibverbs' data path end up: the only thing a queue pair sees of a provider.
struct MadeUpProvider {
  ibv_context context = {};
  ibv_qp qp = {};
  ibv_cq send_cq = {};
  ibv_cq recv_cq = {};
  VerbsBuffers buffers;

  std::vector<ibv_send_wr> sent;
  std::vector<ibv_sge> sent_sge;
  std::vector<ibv_recv_wr> received;
  std::deque<ibv_wc> done;
  std::deque<ibv_wc> arrived;
  u32 posts = 0;
  u32 polls = 0;
  int refuse_at = -1;   ///< this request of the chain is refused,
  int refuse_with = 0;  ///< with this result
  bool names_bad = true;
  int poll_fails = 0;

  /// The context is its first member.
  static MadeUpProvider& of(ibv_context* c) { return *reinterpret_cast<MadeUpProvider*>(c); }

  MadeUpProvider() {
    context.ops.post_send = [](ibv_qp* q, ibv_send_wr* wr, ibv_send_wr** bad) {
      MadeUpProvider& p = of(q->context);
      ++p.posts;
      for (int i = 0; wr != nullptr; wr = wr->next, ++i) {
        if (i == p.refuse_at) {
          if (p.names_bad) *bad = wr;
          return p.refuse_with;
        }
        p.sent.push_back(*wr);
        p.sent_sge.push_back(*wr->sg_list);
      }
      return 0;
    };
    context.ops.post_recv = [](ibv_qp* q, ibv_recv_wr* wr, ibv_recv_wr** bad) {
      MadeUpProvider& p = of(q->context);
      ++p.posts;
      for (int i = 0; wr != nullptr; wr = wr->next, ++i) {
        if (i == p.refuse_at) {
          *bad = wr;
          return p.refuse_with;
        }
        p.received.push_back(*wr);
      }
      return 0;
    };
    context.ops.poll_cq = [](ibv_cq* cq, int n, ibv_wc* wc) {
      MadeUpProvider& p = of(cq->context);
      ++p.polls;
      if (p.poll_fails != 0) return p.poll_fails;
      std::deque<ibv_wc>& from = cq == &p.send_cq ? p.done : p.arrived;
      int taken = 0;
      for (; taken < n && !from.empty(); ++taken) {
        wc[taken] = from.front();
        from.pop_front();
      }
      return taken;
    };
    qp.context = send_cq.context = recv_cq.context = &context;
  }

  [[nodiscard]] VerbsQueuePair::State state(u32 requests = 64) {
    VerbsQueuePair::State s;
    s.qp = &qp;
    s.send_cq = &send_cq;
    s.recv_cq = &recv_cq;
    s.buffers = &buffers;
    s.sq_requests = s.rq_requests = requests;
    return s;
  }
  void complete(u64 wr_id, ibv_wc_status status = IBV_WC_SUCCESS) {
    done.push_back(completion(wr_id, status));
  }
  /// Receive `n` of those posted, the first is 0.
  void complete_received(std::size_t n, ibv_wc_status status) {
    arrived.push_back(completion(received.at(n).wr_id, status));
  }
  /// Request `n` of those posted, the first is 0.
  void complete_sent(std::size_t n, ibv_wc_status status = IBV_WC_SUCCESS) {
    complete(sent.at(n).wr_id, status);
  }

 private:
  static ibv_wc completion(u64 wr_id, ibv_wc_status status) {
    ibv_wc wc = {};
    wc.wr_id = wr_id;
    wc.status = status;
    return wc;
  }
};

}  // namespace doorbell::rdma
