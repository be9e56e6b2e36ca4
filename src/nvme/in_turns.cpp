// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/in_turns.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "nvme/linux/file.hpp"
#include "nvme/settings.hpp"

namespace doorbell::nvme {

namespace {

/// The run's work on a file: I/Os of the same size, through the kernel.
BenchOptions on_file(const BenchOptions& o, const std::string& file, u64 io_bytes) {
  BenchOptions k = o;
  k.file = file;
  k.controller = "file:" + file;
  k.initiator = Initiator::cpu;
  k.memory_mode = 0;
  k.faults = {};
  k.shadow_doorbells = false;
  const u32 block = DataFile(file, k.file_options, false).block_bytes();
  if (io_bytes % block != 0)
    throw Error(setting::others, fmt::format("I/Os of {} bytes are no multiple of the blocks of {}, {}",
                                             io_bytes, file, block));
  if (o.base_lba != 0 && o.io_bytes != 0)
    throw Error(setting::base_lba, "which byte it is depends on the blocks of each way",
                fmt::format("give {} in place of {}", setting::lbas_per_io, setting::io_bytes));
  const u64 base = o.base_lba * (io_bytes / o.lbas_per_io);
  if (base % block != 0)
    throw Error(setting::base_lba,
                fmt::format("byte {} is no multiple of the blocks of {}, {}", base, file, block));
  k.base_lba = base / block;
  k.lbas_per_io = static_cast<u32>(io_bytes / block);
  k.io_bytes = 0;
  return k;
}

/// The same work by `sync` calls has as many threads as there would be I/Os in flight.
BenchOptions with_sync(BenchOptions k) {
  k.file_options.sync = true;
  k.num_queues *= std::max(k.in_flight, k.batch);
  k.in_flight = k.batch = 1;
  if (k.num_queues > 256)
    throw Error(setting::others + " sync", fmt::format("it takes {} threads", k.num_queues),
                "put less in flight");
  return k;
}

std::unique_ptr<Contender> contender(const BenchOptions& o, const measure::RunWatch& watch,
                                     const std::string& item, const std::string& file, u64 io_bytes) {
  BenchOptions b = o;
  if (item == "cpu" || item == "gpu") {
    b.initiator = item == "gpu" ? Initiator::gpu : Initiator::cpu;
    if (item == "cpu") b.memory_mode = 0;
    return bench_contender(b, watch, item, false);
  }
  b = on_file(o, file, io_bytes);
  if (item == "io_uring") {
    b.file_options.sync = false;
    return bench_contender(b, watch, item, false);
  }
  if (item == "sync") return bench_contender(with_sync(b), watch, item, false);
  std::string engine = b.file_options.sync ? "psync" : b.file_options.iopoll ? "io_uring-poll" : "io_uring";
  if (item.starts_with("fio:")) engine = item.substr(4);
  return fio_contender(b, watch, engine, io_bytes);
}

}  // namespace

void check_in_turns(const BenchOptions& o, const std::vector<std::string>& others, const std::string& file) {
  for (const std::string& item : others) {
    const bool by_queues = item == "cpu" || item == "gpu";
    if (!by_queues && item != "io_uring" && item != "sync" && item != "fio" && !item.starts_with("fio:"))
      throw Error(setting::others,
                  fmt::format("'{}' is not one of cpu, gpu, io_uring, sync, fio, fio:ENGINE", item));
    if (by_queues && !o.file.empty())
      throw Error(setting::others + " " + item, fmt::format("{} has no queues of its own", o.controller),
                  fmt::format("give {}", setting::controller));
    if (!by_queues && o.file.empty() && file.empty())
      throw Error(setting::others + " " + item, "it needs a file or block device to work on",
                  fmt::format("give {} PATH", setting::others_file));
  }
  if (o.duration_s <= 0)
    throw Error(setting::others, "the ways differ in how long a count takes",
                fmt::format("give {}", setting::duration));
  if (o.write_io > 0 && o.read_io > 0 && !o.default_counts)
    throw Error(setting::others, "reads and writes are compared one at a time",
                fmt::format("give {} 0 or {} 0", setting::write_io, setting::read_io));
}

std::vector<BenchResult> run_in_turns(const BenchOptions& o, const measure::RunWatch& watch,
                                      const std::vector<std::string>& others, const std::string& given_file) {
  check_in_turns(o, others, given_file);
  BenchOptions first = o;
  if (o.default_counts) first.write_io = 0;
  const std::string file = given_file.empty() ? first.file : given_file;
  std::vector<std::unique_ptr<Contender>> all;
  const std::string label = first.file.empty()        ? (first.initiator == Initiator::gpu ? "gpu" : "cpu")
                            : first.file_options.sync ? "sync"
                                                      : "io_uring";
  all.push_back(bench_contender(first, watch, label, false));
  // The first way chooses the operations in flight and the bytes of an I/O for all ways.
  first.in_flight = all.front()->in_flight();
  for (const std::string& item : others)
    all.push_back(contender(first, watch, item, file, all.front()->io_bytes()));

  std::vector<measure::Contender*> ways;
  for (const auto& c : all) ways.push_back(c.get());
  return measure::run_in_turns(o, watch, ways);
}

}  // namespace doorbell::nvme
