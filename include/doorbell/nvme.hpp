// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// NVMe from a program of your own: a controller by its name, memory that it reaches, queue pairs for a CPU
// thread or a kernel (GpuWarp in the place of OneLane), the names of statuses, a test pattern.
//
//   const auto controller = nvme::Controller::open("model");  // named as on the command line
//   const auto pair = controller->create_queue_pair(/*qid*/ 1, /*entries*/ 64, Place::pinned, Place::pinned);
//   const Mapped data = controller->allocate(Place::pinned, 4096);
//   nvme::QueuePair<OneLane> queue(pair.memory(Initiator::cpu));
//   queue.post(OneLane{}, 1, [&](u32) {
//     return nvme::io_command(nvme::IoOpcode::read, /*cid*/ 0, /*nsid*/ 1, /*lba*/ 0, 1, data.iova(), 0);
//   });
//   queue.ring(OneLane{});
//   auto done = queue.poll(OneLane{});
//   while (done.count == 0) done = queue.poll(OneLane{});  // a program of yours has a deadline here
//   const auto status = nvme::status_of(done.mine);        // status_name() says it in words
//
// examples/gpu_read is a whole program.
#pragma once

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <doorbell/nvme/block_device.hpp>
#include <doorbell/nvme/controller.hpp>
#include <doorbell/nvme/queue_pair.hpp>
#include <doorbell/nvme/wire.hpp>
#include <doorbell/pattern.hpp>
