// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The packets of one receive queue become windows: an assembler or a gatherer for each of its flows.
#pragma once

#include <memory>
#include <vector>

#include "net/assembly/assembler.hpp"
#include "net/assembly/gather.hpp"
#include "net/flow/receiver.hpp"

namespace doorbell::net {

struct AssemblyRequest {
  u32 queue = 0;             ///< this queue's number,
  Spreading spreading = {};  ///< of so many
  bool ordered = false;      ///< packets come in their order: gather them as they arrive
  u64 window_bytes = 0;      ///< of an ordered stream; 0: as many packets as `windows` says
  AssemblerRequest windows;
  /// The GPU reaches received packets where they lie, at the CPU's addresses.
  bool gpu_reads_packets = false;
};

/// Thread rule: the queue's thread, and before and after it the one that owns the queue.
class AssemblySink final : public PacketSink {
 public:
  /// The consumer serves this sink alone, and outlives it. Throws Error.
  AssemblySink(const AssemblyRequest& request, WindowConsumer& consumer);

  /// Only a kernel that gathers uses packets of the burst behind this.
  [[nodiscard]] u64 take(const Burst& burst, std::span<const u32> packet, std::span<const u16> flow,
                         std::span<const u64> number) override;
  void await(u64 mark) override;
  void idle(u64 now_ns) override;
  /// After the last packet: delivers what is open. `sent[f]`, where it is known, is the number of packets of
  /// flow f.
  void finish(std::span<const u64> sent = {});

  /// Of all flows.
  [[nodiscard]] WindowCounts counts() const;
  /// Packets that were not as long as a slot.
  [[nodiscard]] u64 wrong_length() const;
  [[nodiscard]] u64 window_bytes() const;

 private:
  /// Waits until the consumer has given back the messages that it was lent.
  void await_lent();

  AssemblyRequest request_;
  QueueFlows flows_;
  WindowConsumer& consumer_;
  // By a flow's place in the queue; one of the two is in use.
  std::vector<std::unique_ptr<Assembler>> assemblers_;
  std::vector<std::unique_ptr<Gather>> gathers_;
};

}  // namespace doorbell::net
