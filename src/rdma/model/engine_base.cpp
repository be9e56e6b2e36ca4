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
  std::erase(qps_, &q);
  for (Qp* other : qps_)
    if (other->peer == &q) other->peer = nullptr;
  q.peer = nullptr;
}

void EngineBase::link(Qp& q) {
  q.peer = nullptr;
  for (Qp* other : qps_) {
    if (other->qpn == q.remote_qpn) q.peer = other;
    if (other->remote_qpn == q.qpn) other->peer = &q;
  }
}

}  // namespace doorbell::rdma
