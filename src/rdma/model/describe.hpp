// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A format's FormatShape, with the model's engine for it.
#pragma once

#include "rdma/model/engine_thread.hpp"
#include "rdma/model/served_engine.hpp"
#include "rdma/model/shape.hpp"

namespace doorbell::rdma {

constexpr u32 hole(Counts c) {
  return c == Counts::slots ? 1 : 0;
}

/// A thread that runs the code of a kernel's block, with one lane.
template <class F>
class ServedThread {
  using Served = ServedEngine<F, OneLane, HostClock>;

 public:
  ServedThread(const ServerJob& job, u32 server)
      : memory_(std::make_unique<typename Served::Memory>()), engine_(lane_, job, server, *memory_, 0) {}
  bool poll() { return engine_.round() == Served::Round::worked; }

 private:
  OneLane lane_;
  std::unique_ptr<typename Served::Memory> memory_;
  Served engine_;
};

template <class F>
FormatShape describe() {
  using Index = Indices<F>;
  return {.name = F::kName,
          .unit_parts = F::kUnitParts,
          .receive_parts = F::kReceiveParts,
          .cqe_parts = F::kCqeParts,
          .max_inline = F::kMaxInline,
          .has_table = F::kHasTable,
          .max_sq_units = F::kMaxSqUnits,
          .sq_hole = hole(Index::kSend),
          .rq_hole = hole(Index::kReceive),
          .cq_hole = hole(Index::kConsumer),
          .mark = F::kMark,
          .mark_modulo = [](const QueuePairMemory& m) { return F::mark_modulo(m); },
          .sq_units = [](u32 requests, u32 max_inline) { return F::sq_units(requests, max_inline); },
          .rq_entries = [](u32 receives) { return F::rq_entries(receives); },
          .cq_entries = [](u32 completions) { return F::cq_entries(completions); },
          .cqe_initial = [](u32 part) { return F::cqe_initial(part); },
          .engine = [](ModelShared& shared, const SoftwareAddressSpace& space, model::DmaAgent* agent,
                       u32 index) -> std::unique_ptr<PolledEngine> {
            return std::make_unique<EngineThread<F>>(shared, space, agent, index);
          },
          .served_bytes = sizeof(ServedMemory<F, HostClock>),
          .serve = [](const ServerJob& job, u32 server) -> std::function<bool()> {
            return [s = std::make_shared<ServedThread<F>>(job, server)] { return s->poll(); };
          }};
}

template <class F>
const FormatShape& format_shape() {
  static const FormatShape shape = describe<F>();
  return shape;
}

}  // namespace doorbell::rdma
