// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// `doorbell net`: streams of packets from one end of a link to the other, every packet accounted for.
#pragma once

#include <doorbell/net/packet.hpp>
#include <doorbell/region.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "exchange/socket.hpp"
#include "measure/bench_run.hpp"
#include "net/flow/ends.hpp"
#include "net/flow/window_work.hpp"
#include "net/kernel_bench/bench.hpp"

namespace doorbell::net {

inline constexpr u32 kMaxQueues = 32;
inline constexpr u32 kMaxFlows = 64;

enum class Mode {
  cells,        ///< every payload of the list
  smoke,        ///< the stream's native cell
  sweep,        ///< the published grid of the stream
  drop_curve,   ///< the cell at several target rates
  multi_queue,  ///< one and two queues on each side
  no_drop,      ///< the highest rate without loss
  kernels,      ///< what a GPU makes of packets, without a network
};
[[nodiscard]] const std::vector<std::string>& mode_names();

/// Which ends lie in this process.
enum class Role { both, sender, receiver };

struct BenchOptions : measure::RunOptions {
  Role role = Role::both;
  exchange::SocketName other_end;  ///< of a sender: where the receiver listens
  std::string stream = "raw";      ///< "tcp", "udp", "raw", "roce"
  std::string link = "ring";
  std::string engine;            ///< of raw frames; empty: what the link does best
  std::string device = "model";  ///< of RoCE
  std::string provider = "mlx5";
  Mode mode = Mode::cells;
  std::vector<u64> payloads = {8000};
  u32 batch = 0;                     ///< 0: 64, of large TCP records fewer
  u32 tx_queues = 1, rx_queues = 1;  ///< for sockets and RoCE both are the number of pairs
  u32 flows = 0;                     ///< of raw frames; 0: as many as there are queues on the larger side
  Encapsulation encapsulation = Encapsulation::udp4;
  Steering steering = Steering::rule;
  RssFields rss_fields = RssFields::addresses_and_ports;
  double target_gbps = 0;
  u64 count = 0;  ///< packets of each flow; 0: by duration
  Fill fill = Fill::bytes;
  bool segmentation = true;
  u32 busy_poll_us = 0;
  u32 block_timeout_ms = 1;
  u64 socket_bytes = 64u << 20;
  Place place = Place::pageable;
  bool split = false;
  double max_loss = 1;  ///< the share of packets that may be lost without being an error
  /// The share that may be lost between two machines, in layers whose counters neither end can read.
  double max_way_loss = 0;
  u64 first_sequence = 0;
  double settle_s = 0.25;
  double relay_delay_s = 0.02;  ///< how long a relay's fault `delay` holds a packet
  bool one_clock = true;        ///< times of sender and receiver compare; false: nothing is found late
  std::string polling = "auto";
  WindowOptions windows;
  std::vector<int> cores;  ///< senders first, then receivers; empty: by what this process may use
};

/// In the order of the values.
[[nodiscard]] const std::vector<std::string>& encapsulation_names();
[[nodiscard]] inline const std::string& name(Encapsulation e) {
  return encapsulation_names()[static_cast<u32>(e)];
}

/// One cell of a run.
struct CellSettings {
  u64 payload = 0;
  u32 batch = 64;
  u32 tx_queues = 1, rx_queues = 1;
  double target_gbps = 0;
  u32 given_flows = 0;  ///< 0: not given

  [[nodiscard]] u32 flows() const { return std::max({tx_queues, rx_queues, given_flows}); }
};

/// The cells of a run, in their order.
[[nodiscard]] std::vector<CellSettings> cells_of(const BenchOptions& options);
/// The longest that the steps of a search for the highest rate without loss take.
[[nodiscard]] double search_s(const BenchOptions& options);
/// The options of Mode::kernels.
[[nodiscard]] KernelBenchOptions kernel_options(const BenchOptions& options);
/// Throws Error for options that contradict each other or what the stream can do. Opens nothing.
void check(const BenchOptions& options);
[[nodiscard]] measure::BenchResult run_bench(const BenchOptions& options, const measure::RunWatch& watch);

/// The stream, or the engine of raw frames, that these options mean. Throws Error.
[[nodiscard]] const StreamKind& kind_of(const BenchOptions& options);

}  // namespace doorbell::net
