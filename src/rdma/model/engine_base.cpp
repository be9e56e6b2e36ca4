// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/engine_base.hpp"

#include <algorithm>
#include <thread>

namespace doorbell::rdma {

void EngineBase::run_between_rounds(const std::function<void()>& work) {
  if (!shared_.config.own_threads) {  // nobody else would
    work();
    return;
  }
  // The release hands over what the caller prepared; the engine clears the word with release when the
  // work is done, so its effects are visible here.
  request_.store(&work, std::memory_order_release);
  while (request_.load(std::memory_order_acquire) != nullptr) std::this_thread::yield();
}

void EngineBase::serve_set_up() {
  if (const auto* request = request_.load(std::memory_order_acquire); request != nullptr) [[unlikely]] {
    (*request)();
    request_.store(nullptr, std::memory_order_release);
  }
}

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
