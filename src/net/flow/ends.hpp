// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The two ends of a run, phase by phase. The receiving end may lie in another process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/flow/receiver.hpp"
#include "net/flow/sender.hpp"
#include "net/flow/threads.hpp"
#include "net/flow/window_work.hpp"
#include "net/stream.hpp"

namespace doorbell::net {

/// How the threads of an end spend the time in which there is nothing to do.
enum class Polling {
  busy,   ///< never give up the core
  block,  ///< sleep in the kernel until there is something
};

/// The results of one phase at the receiving end.
struct ReceivePhase {
  ReceiveCounts counts;  ///< of this phase
  measure::Histogram latency;
  u64 begin_ns = 0;      ///< 0: by the clock of another machine
  double elapsed_s = 0;  ///< from the phase's begin to its last packet
  std::vector<ThreadUse> threads;
  bool timed_out = false;  ///< packets of a reliable stream were still missing when the time was over
  double away_s = 0;  ///< in which a thread did not look at its queue, because it did not run or was busy
};

/// The receiving end's totals when everything is over.
struct ReceiveTotals {
  ReceiveCounts counts;
  u64 lost = 0;    ///< sent, and never arrived whole, by the maps
  u64 beyond = 0;  ///< arrived, and never sent
  Drops drops;
  u64 unmatched = 0;
  nlohmann::ordered_json injected;  ///< by a relay; null without one
  nlohmann::ordered_json windows;   ///< WindowWork's; null without windows
  u64 in_windows = 0;               ///< unique packets that windows took or found too late
  u64 wrong_results = 0;            ///< of workloads
};

class ReceivingEnd {
 public:
  virtual ~ReceivingEnd() = default;
  /// Returns when the receivers are at work.
  virtual void begin() = 0;
  /// Sending is over: `sent` packets of each flow since the run began. Returns what arrived in this phase.
  [[nodiscard]] virtual ReceivePhase end(const std::vector<u64>& sent) = 0;
  /// After the last phase and the senders' finish(): takes what still comes.
  [[nodiscard]] virtual ReceiveTotals finish(const std::vector<u64>& sent) = 0;
  /// Unique packets so far, for the progress display.
  [[nodiscard]] virtual u64 progress() const = 0;
  /// True when a phase's receivers have failed: sending on has no use, and end() throws why. Called often
  /// during a phase: another process learns by it that this one goes on.
  [[nodiscard]] virtual bool gone() = 0;
};

struct ReceivingOptions {
  ReceiverOptions receiver;
  bool reliable = true;
  double timeout_s = 10;   ///< for what a reliable stream still owes
  double settle_s = 0.25;  ///< what has not come after so long a silence is lost
  Polling polling = Polling::block;
  std::vector<int> cores;
  std::shared_ptr<WindowWork> windows;  ///< what becomes of the packets; null: nothing
};

/// The receiving end in this process.
class LocalReceivingEnd final : public ReceivingEnd {
 public:
  LocalReceivingEnd(ReceivingOptions options, std::vector<std::unique_ptr<RxQueue>>& queues);
  ~LocalReceivingEnd() override;
  void begin() override;
  [[nodiscard]] ReceivePhase end(const std::vector<u64>& sent) override;
  [[nodiscard]] ReceiveTotals finish(const std::vector<u64>& sent) override;
  [[nodiscard]] u64 progress() const override;
  [[nodiscard]] bool gone() override { return threads_ && threads_->failed(); }

 private:
  void receive(u32 queue, ThreadUse* use);
  [[nodiscard]] bool complete(const Receiver& receiver, const std::vector<u64>& sent) const;

  ReceivingOptions o_;
  std::vector<std::unique_ptr<Receiver>> receivers_;
  std::vector<ReceiveCounts> before_;
  u64 begin_ns_ = 0;
  std::vector<u64> sent_;          ///< written before `over_`
  std::atomic<bool> over_{false};  ///< sending has ended
  std::atomic<bool> timed_out_{false};
  std::atomic<u64> away_ns_{0};  ///< of the thread that was away longest
  std::atomic<u32> ready_{0};
  std::unique_ptr<Threads> threads_;
};

struct SendingOptions {
  SenderOptions sender;  ///< of flow 0; the others differ in their number
  u32 threads = 1;       ///< flow f is driven by thread f mod threads
  double timeout_s = 10;
  double packets_per_s = 0;  ///< of each flow; 0: as fast as it goes
  Polling polling = Polling::block;
  std::vector<int> cores;
};

struct SendPhase {
  u64 sent = 0;
  u64 begin_ns = 0;      ///< when the first sender began
  double elapsed_s = 0;  ///< from there to the last packet; with a target rate, to where the next one was due
  u64 skipped = 0;       ///< due, and never sent
  measure::Histogram gaps;
  std::vector<ThreadUse> threads;
  ThreadUse master;    ///< the thread that has called run()
  bool stuck = false;  ///< there was no room for a packet in time, whole or in part
  bool broken = false;
};

class SendingEnd {
 public:
  SendingEnd(SendingOptions options, std::vector<std::unique_ptr<TxQueue>>& queues);
  /// Sends for `seconds`, or `count` packets a flow when that is not 0, until `stop`. `watch` is called about
  /// ten times a second.
  [[nodiscard]] SendPhase run(double seconds, u64 count, const std::function<bool()>& stop);
  /// From here on data is made by this seed. False: a queue still has packets, and all goes on as before.
  [[nodiscard]] bool reseed(u64 seed);
  /// Tells every queue that nothing follows. False: one did not get rid of its packets in time.
  [[nodiscard]] bool finish();
  /// Packets of each flow since the run began.
  [[nodiscard]] std::vector<u64> sent() const;
  void packets_per_s(double rate) { o_.packets_per_s = rate; }

 private:
  struct Lanes;
  /// From when to when a thread has sent.
  struct Span {
    u64 begin_ns = 0, end_ns = 0;
  };
  void send(u32 thread, u64 limit_ns, u64 count, Span* span, ThreadUse* use);
  void drain(u32 thread, u64 timeout_ns, Span* span);
  void await_last_gap(u32 thread, u64 until_ns, Span* span);
  SendingOptions o_;
  std::vector<std::unique_ptr<Sender>> senders_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> stuck_{false};
};

}  // namespace doorbell::net
