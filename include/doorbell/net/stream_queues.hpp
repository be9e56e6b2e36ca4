// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The queues of a stream of packets over a link, for programs with receive loops of their own: TCP records,
// UDP datagrams, RoCE messages, or raw Ethernet frames through a ring in memory, packet sockets, AF_XDP or
// DPDK, all with one burst interface (queue.hpp). Host code only.
//
//   const auto s = net::StreamQueues::open("raw", "eth0", {.has_tx = false});
//   net::Burst burst(64);
//   while (s->rx(0).receive(burst) > 0) {
//     for (u32 i = 0; i < burst.count; ++i) use(burst.data[i], burst.length[i]);
//     s->rx(0).release(burst);
//   }
#pragma once

#include <doorbell/net/stream_request.hpp>

#include <memory>
#include <string>
#include <vector>

namespace doorbell::net {

/// A stream's queues, open. The head of stream_queues.hpp has an example.
class StreamQueues {
 public:
  /// Opens a stream over a link. `stream`: "tcp", "udp", "roce" or "raw". `link`, as `doorbell net --link`
  /// takes it: "ring", "lo", "veth", two interfaces "eth0,eth1"; with one end in this process (has_tx or
  /// has_rx is false) the interface of that end, or "" for whichever the route takes. A veth pair without
  /// root needs a process of one thread. Blocks until both ends are there, at most some seconds. Throws
  /// Error: an unknown name, a number out of range, no permission, a link that is down; with
  /// ExitCode::absent, something that is not on this machine.
  [[nodiscard]] static std::unique_ptr<StreamQueues> open(const std::string& stream, const std::string& link,
                                                          const StreamRequest& request = {});
  /// Closes the queues, then the link. After every thread that uses a queue has ended.
  ~StreamQueues();
  StreamQueues(const StreamQueues&) = delete;
  StreamQueues& operator=(const StreamQueues&) = delete;

  /// Receive queue 0 .. rx_queues() - 1. Throws Error beyond. It stays this object's.
  [[nodiscard]] RxQueue& rx(u32 queue);
  /// The send queue of flow 0 .. tx_flows() - 1, likewise.
  [[nodiscard]] TxQueue& tx(u32 flow);
  /// Receive queues of this process: 0 where that end is in another one.
  [[nodiscard]] u32 rx_queues() const;
  /// Send queues of this process, likewise.
  [[nodiscard]] u32 tx_flows() const;
  /// The receive queue that a flow's packets arrive at, one entry a flow.
  [[nodiscard]] std::vector<u16> queue_of_flow() const;

  /// As open() got it; facts() has what became of it.
  [[nodiscard]] const StreamRequest& request() const;
  /// The carrier of the packets: "tcp", "udp", "roce", "ring", "af_packet", "af_xdp" or "dpdk".
  [[nodiscard]] std::string carrier() const;
  /// Every packet accepted arrives, or the connection breaks.
  [[nodiscard]] bool reliable() const;
  /// Packets that this process's receive queues and interfaces have dropped since the stream was opened, by
  /// layer. System calls; not for each burst. While no other thread uses a queue.
  [[nodiscard]] Drops drops();
  /// Frames that are none of the stream's. Likewise.
  [[nodiscard]] u64 unmatched();
  /// The set-up (sizes of buffers, offloads, interfaces), as a JSON object. Likewise.
  [[nodiscard]] std::string facts();

 private:
  struct Parts;
  explicit StreamQueues(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// A stream or an engine, as StreamQueues::open() and StreamRequest::engine name it, and whether this machine
/// can use it.
struct StreamSupport {
  std::string name;         ///< "tcp", "af_xdp"
  bool raw_engine = false;  ///< a value of StreamRequest::engine, for raw frames
  bool usable = false;      ///< on this machine, by this user
  std::string detail;       ///< with what, or why not
};
/// All streams and engines, usable or not. Never throws.
[[nodiscard]] std::vector<StreamSupport> stream_support();

}  // namespace doorbell::net
