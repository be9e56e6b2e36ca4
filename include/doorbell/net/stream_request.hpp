// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The request for a stream of packets: sizes, queues, memory, and what each kind of stream has of its own.
#pragma once

#include <doorbell/net/queue.hpp>
#include <doorbell/region.hpp>

#include <memory>
#include <string>

namespace doorbell::net {

/// The headers around the payload of a raw frame.
enum class Encapsulation : u8 {
  udp4,  ///< UDP over IPv4; a flow has its ports
  udp6,  ///< UDP over IPv6, with the checksum that is mandatory there; likewise
  bare,  ///< nothing but Ethernet, EtherType 0x88b5; a flow is known by its number in the payload's header
};

/// How the receive queue of a flow is chosen.
enum class Steering : u8 {
  rule,  ///< by a rule for each flow
  rss,   ///< by the Toeplitz hash over its packets' headers (toeplitz.hpp) and an indirection table
};
/// The fields of a packet's headers that the RSS hash is over.
enum class RssFields : u8 {
  addresses,            ///< both IP addresses: all flows of two hosts have one hash
  addresses_and_ports,  ///< and both UDP ports
};

/// The parameters with which a stream is opened.
struct StreamRequest {
  u32 payload_bytes = 8000;  ///< of every packet, message or record, at least kHeaderBytes
  u32 burst = 64;            ///< packets that one receive() may return
  u32 flows = 1;             ///< each is one TxQueue with a sequence of its own
  u32 rx_queues = 1;         ///< each may be another thread's
  /// By a rule flow f arrives at receive queue f mod rx_queues; by RSS its hash decides.
  Steering steering = Steering::rule;
  RssFields rss_fields = RssFields::addresses_and_ports;  ///< with Steering::rss
  Place place = Place::pageable;                          ///< of receive buffers
  std::shared_ptr<gpu::Gpu> gpu = {};  ///< for Place::gpu, and for host memory that it reaches
  bool split = false;                  ///< header-data split: headers in host memory, data in `place`
  bool segmentation = true;            ///< UDP GSO and GRO
  u32 busy_poll_us = 0;                ///< SO_BUSY_POLL
  u64 socket_bytes = 64u << 20;        ///< asked for as a socket's buffer; facts() say what was given
  u32 block_timeout_ms = 1;  ///< AF_PACKET: a block that is not full goes to the receiver after so long
  u16 port = 18600;          ///< flow f uses UDP or TCP port `port` + f
  std::string engine = {};  ///< of raw streams: "af_packet", "af_xdp", "dpdk"; empty: what the link does best
  Encapsulation encapsulation = Encapsulation::udp4;  ///< of raw frames
  std::string device = "model";   ///< of RoCE, as the next ones: the NIC, "model" or "mlx5_0"
  std::string provider = "mlx5";  ///< whose queues are driven
  u32 tx_depth = 128;             ///< requests of a flow's send queue
  u32 rx_depth = 0;       ///< receives posted ahead; 0: 512, fewer where they would take more than 256 MiB
  u32 window = 0;         ///< messages of a flow in flight, at most 63; 0: half of rx_depth, at most 32
  u32 signal_every = 0;   ///< one message in so many asks for a completion; 0: four a window
  double timeout_s = 10;  ///< a connection counts as broken when an acknowledgement is due for so long
  /// @name Which ends lie in this process: both, or only one, whose other is reached at the link's address
  /// @{
  bool has_tx = true, has_rx = true;
  /// @}
  /// @name Where only one end does: the other one's host, and for raw frames its Ethernet address
  /// "02:00:00:00:00:01"; a receiving end needs neither.
  /// @{
  std::string other_end = {}, other_mac = {};
  /// @}
};

}  // namespace doorbell::net
