// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/completion_faults.hpp"

#include "rdma/roce/random_bits.hpp"

namespace doorbell::roce {

CompletionFault CompletionFaultDraws::draw() {
  double left = fraction(mixed(mixed(faults_.seed) ^ place_++));
  for (std::size_t i = 0; i < kCompletionFaults; ++i) {
    if (left < faults_.probability[i]) return static_cast<CompletionFault>(i);
    left -= faults_.probability[i];
  }
  return CompletionFault::none;
}

void CompletionFaultDraws::carried_out(CompletionFault fault, u32 queue_pair, u64 request_id) const {
  if (!log_.on()) return;
  log_.line(std::string(kCompletionFaultNames[static_cast<std::size_t>(fault)]) + " completion of request " +
            std::to_string(request_id) + " of queue pair " + std::to_string(queue_pair));
}

}  // namespace doorbell::roce
