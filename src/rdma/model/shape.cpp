// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/shape.hpp"

#include <doorbell/error.hpp>
#include <doorbell/memory_order.hpp>
#include <fmt/format.h>

#include "rdma/vendors.hpp"

namespace doorbell::rdma {

namespace {

constexpr u64 kPage = 4096;
// Entries beyond one completion for each request: for flushes and for faults that complete twice.
constexpr u32 kCqMargin = 32;

u64 pages(u64 bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

const FormatShape& shape_of(Provider p) {
  const Vendor* const vendor = vendor_of(p);
  if (vendor == nullptr)
    throw Error(fmt::format("provider {}", name(p)), "the model NIC speaks the queue format of one vendor",
                "give " + vendors_text("or"));
  return vendor->shape();
}

QueueLayout layout_of(const FormatShape& f, const QueuePairShape& shape) {
  QueueLayout l;
  l.sq_units = f.sq_units(shape.sq_requests, shape.max_inline);
  l.rq_entries = f.rq_entries(shape.rq_requests);
  l.cq_entries = f.cq_entries(shape.sq_requests + kCqMargin);
  l.recv_cq_entries = f.cq_entries(shape.rq_requests + kCqMargin);
  constexpr u64 part = sizeof(Word16);
  // The table follows the ring directly, as drivers of that format place it.
  l.table = u64{l.sq_units} * f.unit_parts * part;
  l.rq = pages(l.table + (f.has_table ? u64{power_of_two_from(l.sq_units)} * sizeof(u64) : 0));
  l.cq = pages(l.rq + u64{l.rq_entries} * f.receive_parts * part);
  l.recv_cq = pages(l.cq + u64{l.cq_entries} * f.cqe_parts * part);
  l.bytes = pages(l.recv_cq + u64{l.recv_cq_entries} * f.cqe_parts * part);
  l.track_entries = power_of_two_from((f.mark == Mark::unit ? l.sq_units : shape.sq_requests) + 1);
  return l;
}

}  // namespace doorbell::rdma
