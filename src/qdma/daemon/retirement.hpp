// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "qdma/daemon/service.hpp"

namespace doorbell::qdma::daemon {

/// Queue pairs on their way out: stopped, then, when no worker has a transfer of theirs in hand any more,
/// deleted. A driver gives a deleted id to the next client at once, so a call that comes late would reach the
/// wrong queue.
struct Service::Retirement {
  service::Caller client;
  std::vector<CardQueue> queues;
  std::vector<std::shared_ptr<Handout>> handouts;
  std::shared_ptr<MemoryLease> lease;
  Accounts::Charge charge;
  Outcome then;  ///< gets 0, or the negative errno of a queue pair that could not be deleted
};

}  // namespace doorbell::qdma::daemon
