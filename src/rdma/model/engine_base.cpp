// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/engine_base.hpp"

#include <algorithm>

namespace doorbell::rdma {

void EngineBase::add(Qp& q) {
  qps_.push_back(&q);
  link(q);
}

void EngineBase::remove(Qp& q) {
  const auto at = std::ranges::find(qps_, &q);
  if (at == qps_.end()) return;
  const auto place = static_cast<u32>(at - qps_.begin());
  qps_.erase(at);
  q.peer = Qp::kNoPeer;
  for (Qp* other : qps_) {
    if (other->peer == Qp::kNoPeer || other->peer < place) continue;
    other->peer = other->peer == place ? Qp::kNoPeer : other->peer - 1;
  }
}

void EngineBase::link(Qp& q) {
  const auto here = static_cast<u32>(std::ranges::find(qps_, &q) - qps_.begin());
  q.peer = Qp::kNoPeer;
  for (u32 i = 0; i < qps_.size(); ++i) {
    if (qps_[i]->qpn == q.remote_qpn) q.peer = i;
    if (qps_[i]->remote_qpn == q.qpn) qps_[i]->peer = here;
  }
}

}  // namespace doorbell::rdma
