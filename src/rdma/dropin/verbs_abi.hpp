// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// verbs.h as the library that implements it needs it: without the macros that rename its functions, and with
// the layout asserted that unmodified programs were compiled for.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>

#include "rdma/roce/requests.hpp"

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/// A function of libibverbs.so.1; exports.map gives it its version.
#define DOORBELL_VERBS extern "C" __attribute__((visibility("default")))

namespace doorbell::dropin {

static_assert(sizeof(ibv_device) == 664 && sizeof(ibv_context) == 328);
static_assert(sizeof(verbs_context) == 648 && offsetof(verbs_context, context) == 320 &&
              offsetof(verbs_context, sz) == 312 && offsetof(verbs_context, query_device_ex) == 216);
static_assert(sizeof(ibv_cq) == 128 && sizeof(ibv_cq_ex) == 288 && offsetof(ibv_cq_ex, start_poll) == 144);
static_assert(sizeof(ibv_qp) == 160 && sizeof(ibv_qp_ex) == 352 && offsetof(ibv_qp_ex, wr_start) == 320);
static_assert(sizeof(ibv_srq) == 128 && sizeof(ibv_mr) == 48 && sizeof(ibv_pd) == 16 && sizeof(ibv_ah) == 24);
static_assert(sizeof(ibv_send_wr) == 128 && sizeof(ibv_recv_wr) == 32 && sizeof(ibv_wc) == 48);
static_assert(sizeof(ibv_sge) == sizeof(roce::Sge) &&
              offsetof(ibv_sge, length) == offsetof(roce::Sge, length) &&
              offsetof(ibv_sge, lkey) == offsetof(roce::Sge, key));

// requests.hpp has the numbers of verbs.h.
static_assert(int(roce::WrOpcode::write) == IBV_WR_RDMA_WRITE &&
              int(roce::WrOpcode::send_invalidate) == IBV_WR_SEND_WITH_INV &&
              int(roce::WrOpcode::bind_window) == IBV_WR_BIND_MW);
static_assert(int(roce::WrOpcode::atomic_write) == IBV_WR_ATOMIC_WRITE &&
              int(roce::WcOpcode::atomic_write) == IBV_WC_ATOMIC_WRITE);
static_assert(int(roce::Status::local_protection) == IBV_WC_LOC_PROT_ERR &&
              int(roce::Status::flushed) == IBV_WC_WR_FLUSH_ERR &&
              int(roce::Status::retry_exceeded) == IBV_WC_RETRY_EXC_ERR &&
              int(roce::Status::general) == IBV_WC_GENERAL_ERR);
static_assert(int(roce::WcOpcode::local_invalidate) == IBV_WC_LOCAL_INV &&
              int(roce::WcOpcode::receive) == IBV_WC_RECV &&
              int(roce::WcOpcode::receive_write_immediate) == IBV_WC_RECV_RDMA_WITH_IMM);
static_assert(int(roce::State::error) == IBV_QPS_ERR && int(roce::State::sqd) == IBV_QPS_SQD);
static_assert(int(roce::Event::last_wqe_reached) == IBV_EVENT_QP_LAST_WQE_REACHED &&
              int(roce::Event::srq_limit) == IBV_EVENT_SRQ_LIMIT_REACHED);
static_assert(int(roce::kHasGrh) == IBV_WC_GRH && int(roce::kHasImmediate) == IBV_WC_WITH_IMM &&
              int(roce::kHasInvalidated) == IBV_WC_WITH_INV);
static_assert(int(roce::kInline) == IBV_SEND_INLINE && int(roce::kFence) == IBV_SEND_FENCE);
static_assert(int(roce::kRemoteAtomic) == IBV_ACCESS_REMOTE_ATOMIC &&
              int(roce::kZeroBased) == IBV_ACCESS_ZERO_BASED);

/// How a call that returns a pointer refuses.
inline decltype(nullptr) refused(int error) {
  errno = error;
  return nullptr;
}

}  // namespace doorbell::dropin
