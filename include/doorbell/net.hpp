// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Streams of packets in a program of your own: a stream over a link by their names, its queues in bursts, and
// windows of contiguous data in host or GPU memory. Host code only.
//
//   const auto stream = net::StreamQueues::open("raw", "ring");  // named as on the command line
//   net::DiscardWindows consumer;  // one of yours takes each window, and gives it back
//   net::WindowReceiver receiver(*stream, {.run_tag = 7}, consumer);
//   for (u32 bursts = 0; bursts < 1000; ++bursts) (void)receiver.step();
//   receiver.finish();
//   const u64 good = receiver.counts().unique;
//
// examples/net_receive is a whole program.
#pragma once

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <doorbell/net/packet.hpp>
#include <doorbell/net/stream_queues.hpp>
#include <doorbell/net/window_receiver.hpp>
