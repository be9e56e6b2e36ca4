// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Cassini NIC (HPE Slingshot) from a program of your own: a NIC by its name, an endpoint, mapped memory,
// portals entries, and puts and gets by a CPU thread or a kernel (GpuWarp in the place of OneLane). Below
// PutQueue are command queue, event queue and counter, which a program may drive itself.
//
//   const auto nic = cxi::open_cassini({.device = "cxi-model0"});  // named as on the command line
//   const auto endpoint = nic->open();
//   const Region from = nic->allocate(Place::pageable, 4096), to = nic->allocate(Place::pageable, 4096);
//   const auto here = endpoint->map(from, Access::read), there = endpoint->map(to, Access::write);
//   cxi::PortalsTable table(*endpoint);
//   const auto exposed = table.expose(*there);
//   cxi::PutQueueObject object(*endpoint, {.requests = 8});
//   cxi::PutQueue<OneLane> queue(object.start(Initiator::cpu, endpoint->address()));  // to itself
//   const rma::WorkRequest put{
//       .bytes = 4096, .local = here->iova(), .lkey = here->lac(), .rkey = exposed->offset()};
//   queue.post(OneLane{}, 1, [&](u32) { return put; });
//   (void)queue.ring(OneLane{});
//   auto done = queue.poll(OneLane{});
//   while (done.count == 0) done = queue.poll(OneLane{});  // a program of yours has a deadline here
//   const rma::Status status = done.mine.status;           // ok, or one above kStatusOfCode
//
// examples/cxi_put is a whole program.
#pragma once

#include <doorbell/cxi/cassini.hpp>
#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <doorbell/pattern.hpp>
