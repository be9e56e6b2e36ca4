// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/shape.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "rdma/model/engine.hpp"

namespace doorbell::rdma {

namespace {

constexpr u64 kPage = 4096;
// Beyond one completion a request: flushes, faults that complete twice.
constexpr u32 kCqMargin = 32;

u32 hole(Counts c) {
  return c == Counts::slots ? 1 : 0;
}

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
          .sq_units = [](u32 requests, u32 max_inline) { return F::sq_units(requests, max_inline); },
          .rq_entries = [](u32 receives) { return F::rq_entries(receives); },
          .cq_entries = [](u32 completions) { return F::cq_entries(completions); },
          .cqe_initial = [](u32 part) { return F::cqe_initial(part); },
          .engine = [](ModelShared& shared, const SoftwareAddressSpace& space, model::DmaAgent* agent,
                       u32 index) -> std::unique_ptr<EngineBase> {
            return std::make_unique<Engine<F>>(shared, space, agent, index);
          }};
}

u64 pages(u64 bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

const FormatShape& shape_of(Provider p) {
  static const FormatShape mlx5 = describe<Mlx5>(), bnxt = describe<Bnxt>(), ionic = describe<Ionic>(),
                           ernic = describe<Ernic>();
  switch (p) {
    case Provider::mlx5:
      return mlx5;
    case Provider::bnxt:
      return bnxt;
    case Provider::ionic:
      return ionic;
    case Provider::ernic:
      return ernic;
    case Provider::verbs:
    case Provider::cxi:
      break;
  }
  throw Error("--provider", "the model NIC speaks the queue format of one vendor",
              "give one of mlx5, bnxt, ionic, ernic");
}

QueueLayout layout_of(const FormatShape& f, const QueuePairShape& shape) {
  QueueLayout l;
  l.sq_units = f.sq_units(shape.sq_requests, shape.max_inline);
  l.rq_entries = f.rq_entries(shape.rq_requests);
  l.cq_entries = f.cq_entries(shape.sq_requests + kCqMargin);
  l.recv_cq_entries = f.cq_entries(shape.rq_requests + kCqMargin);
  constexpr u64 part = sizeof(Word16);
  // The table follows the ring at once, where drivers of that format have it too.
  l.table = u64{l.sq_units} * f.unit_parts * part;
  l.rq = pages(l.table + (f.has_table ? u64{power_of_two_from(l.sq_units)} * sizeof(u64) : 0));
  l.cq = pages(l.rq + u64{l.rq_entries} * f.receive_parts * part);
  l.recv_cq = pages(l.cq + u64{l.cq_entries} * f.cqe_parts * part);
  l.bytes = pages(l.recv_cq + u64{l.recv_cq_entries} * f.cqe_parts * part);
  l.track_entries = power_of_two_from((f.mark == Mark::unit ? l.sq_units : shape.sq_requests) + 1);
  return l;
}

}  // namespace doorbell::rdma
