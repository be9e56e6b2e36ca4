// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What `doorbell rdma` measures: for each payload size, single operations one after the other (latency),
// a window of them (rate), messages there and back (ping-pong); every payload checked where it arrives.
#pragma once

#include <doorbell/error.hpp>

#include <string>
#include <vector>

#include "measure/run_options.hpp"
#include "rdma/backends.hpp"
#include "rdma/exchange.hpp"
#include "rdma/session.hpp"
#include "report/result.hpp"

namespace doorbell::rdma {

[[nodiscard]] std::string_view name(Op op);
/// Every name, in order.
[[nodiscard]] const std::vector<std::string>& op_names();
[[nodiscard]] std::string status_name(u16 status);

struct BenchOptions : measure::RunOptions {
  /// Another path whose devices come in the shape of a NIC names itself and opens them here.
  std::string path = "rdma";
  std::unique_ptr<Device> (*open)(const DeviceRequest&) = open_device;
  std::string_view (*op_name)(Op) = name;
  const char* queues_option = "--num-qps";  ///< what asks for `queue_pairs`
  Provider provider = Provider::mlx5;
  std::string device = "model";
  Op op = Op::write;
  std::vector<u32> sizes = {1024};
  bool latency = true;     ///< measure single operations
  bool rate = true;        ///< measure a window of operations
  bool ping_pong = false;  ///< measure messages that the other end answers
  u64 iterations = 0;      ///< operations of a queue pair in each part and repeat; 0: chosen from the size
  Ends ends = Ends::self;
  SocketName other_end;  ///< Ends::remote: where the other process listens
  u32 queue_pairs = 1;
  u32 batch = 0;         ///< requests a doorbell; 0: chosen from the size
  u32 in_flight = 0;     ///< on one queue pair; 0: chosen from batch and size
  u32 signal_every = 0;  ///< 0: one completion a batch
  u32 inline_below = 0;  ///< payloads up to so many bytes travel in the WQE
  Place queue_memory = Place::pageable;
  Place local_memory = Place::pageable;
  Place remote_memory = Place::pageable;
  ConnectionOptions connection;
  u32 threads = 0;  ///< CPU initiator threads; 0: as the cores allow
  bool substeps = false;
  bool one_offset = false;  ///< operations share their bytes instead of each having a slot of its own
};

struct BenchResult {
  std::vector<report::Cell> cells;  ///< one for each size and part
  std::string stop_reason = "done";
  bool failed = false;  ///< data, completion or timeout errors: exit 2
  /// Of the Error that ended the run behind its first cell; its text is the last warning.
  ExitCode code = ExitCode::ok;
  std::vector<std::string> warnings;
};

/// What the options say, checked as far as no device is needed. Throws doorbell::Error.
void check(const BenchOptions& options);

/// Runs it. Throws doorbell::Error for what cannot be set up; what goes wrong when cells have been measured
/// ends the run instead (stop_reason "error"), so that they are kept.
[[nodiscard]] BenchResult run_bench(const BenchOptions& options, const measure::RunWatch& watch);

}  // namespace doorbell::rdma
