// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The meaning of the options for one cell, for both ends. A process that listens makes its part from the
// client's message.
#pragma once

#include "net/bench/bench.hpp"

namespace doorbell::net {

/// A cell with all that both ends must agree about.
struct CellSetup {
  CellSettings cell;
  u16 run_tag = 0;

  [[nodiscard]] u32 flows() const { return cell.flows(); }
};

/// Senders first, then receivers, where every thread of this process can have a core; else none. Receivers
/// alone have the last cores, unless the options name some.
struct CoreMap {
  std::vector<int> tx, rx;
};
[[nodiscard]] CoreMap map_cores(const BenchOptions& options, const CellSettings& cell);
[[nodiscard]] StreamRequest stream_request(const BenchOptions& options, const CellSetup& setup);
[[nodiscard]] Polling polling_of(const BenchOptions& options, const CellSettings& cell,
                                 const StreamKind& kind);
[[nodiscard]] ReceivingOptions receiving_options(const BenchOptions& options, const CellSetup& setup,
                                                 const Stream& stream);
[[nodiscard]] SendingOptions sending_options(const BenchOptions& options, const CellSetup& setup);
/// This process's ends of the cell's stream, with a relay behind every receive queue where the options ask
/// for faults. Throws Error, also when the link cannot carry such a payload in one packet.
[[nodiscard]] std::unique_ptr<Stream> open_stream(const BenchOptions& options, const CellSetup& setup,
                                                  Link& link);
/// A cell that is still to be measured, by doorbell or another program. `engine`: of raw frames.
[[nodiscard]] report::Cell new_cell(const BenchOptions& options, const CellSettings& cell, const Link& link,
                                    const std::string& engine, u32 batch);
/// Bytes in front of the payload on the wire.
[[nodiscard]] u32 overhead_bytes(const BenchOptions& options, const StreamKind& kind);
/// Packets of each flow a second for a target of all together; 0: as fast as it goes.
[[nodiscard]] double packets_per_s(const CellSettings& cell);

}  // namespace doorbell::net
