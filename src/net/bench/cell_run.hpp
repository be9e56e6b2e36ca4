// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One cell: opens link and stream, runs warm-up and repeats, and turns what both ends counted into a cell of
// the Result.
#pragma once

#include <doorbell/error.hpp>

#include <array>
#include <memory>
#include <optional>

#include "gpu/nvml.hpp"
#include "net/bench/cell_setup.hpp"

namespace doorbell::net {

class RemoteReceiver;

struct RepeatCounts {
  u64 seed = 0;  ///< of the data
  SendPhase sent;
  ReceivePhase received;
  std::optional<gpu::UtilisationMeter::Mean> gpu;  ///< null without a GPU, or where none is reported
};

/// Of the phase's own packets.
[[nodiscard]] double goodput_gbps(const ReceivePhase& p);

class CellRun {
 public:
  /// `remote`: the process that receives; null: this one does both. `link`: one that others use too; null:
  /// its own.
  CellRun(const BenchOptions& options, const CellSettings& cell, const measure::RunWatch& watch,
          RemoteReceiver* remote = nullptr, std::shared_ptr<Link> link = nullptr);
  ~CellRun();

  /// One phase; `seconds` and `count` as for SendingEnd::run().
  [[nodiscard]] RepeatCounts phase(double seconds, u64 count, const std::string& what);
  void warm_up();
  void repeat(u32 number);
  /// Accounts for every packet, and adds the cell to `result`.
  void conclude(measure::BenchResult& result);
  /// All of these. An Error behind the first repeat ends the run with what has been measured.
  void run(measure::BenchResult& result);
  /// After the last phase: accounts for every packet.
  void finish();
  [[nodiscard]] u64 lost() const { return totals_.lost; }
  [[nodiscard]] const std::vector<RepeatCounts>& repeats() const { return repeats_; }
  /// An end has failed or did not keep to its time. After finish().
  [[nodiscard]] bool failed() const { return broken_ || stuck_ || timed_out_ || !ended_; }
  [[nodiscard]] bool stopped() const;

 private:
  void publish();
  /// After an Error: without the receivers' totals, by what the repeats have counted.
  void conclude_early(const Error& why, measure::BenchResult& result);
  void describe(measure::BenchResult& result);
  /// Where the rate that was asked for is not the one that was reached.
  void warn_of_target(const RepeatCounts& median, measure::BenchResult& result) const;
  [[nodiscard]] double sent_gbps(const RepeatCounts& r) const;
  /// Of the ends that lie here, since they were made. Of a link that is gone: what was known before.
  struct LinkDrops {
    std::array<u64, 2> interfaces = {};  ///< of the sending and the receiving end
    u32 queue = 0;
  };
  [[nodiscard]] LinkDrops link_drops();
  void add_link_drops();
  [[nodiscard]] nlohmann::ordered_json net_json(const RepeatCounts& median) const;
  [[nodiscard]] nlohmann::ordered_json repeats_json() const;
  [[nodiscard]] nlohmann::ordered_json threads_json(const RepeatCounts& median) const;
  [[nodiscard]] nlohmann::ordered_json gpu_json(const RepeatCounts& median) const;

  const BenchOptions& o_;
  CellSetup setup_;
  const CellSettings& c_;
  const measure::RunWatch& watch_;
  const StreamKind& kind_;
  std::shared_ptr<Link> link_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<SendingEnd> sender_;
  std::unique_ptr<ReceivingEnd> receiver_;
  std::unique_ptr<gpu::UtilisationMeter> gpu_;  ///< null: no GPU takes part in this process
  Polling polling_ = Polling::block;
  std::vector<RepeatCounts> repeats_;
  LinkDrops before_;            ///< the run
  bool counted_twice_ = false;  ///< a frame may be in the counters of both interfaces
  u64 sent_again_ = 0;          ///< dropped by the interfaces, and not missing
  std::string link_gone_;       ///< why nothing can be learnt of the link any more; empty: it can
  ReceiveTotals totals_;
  u64 seed_ = 0;  ///< of the data that is sent now
  u64 sent_total_ = 0;
  bool accounted_ = true;  ///< the receivers have said what became of every packet
  bool ended_ = true;      ///< the queues got rid of all packets
  bool stuck_ = false, broken_ = false, timed_out_ = false;
};

}  // namespace doorbell::net
