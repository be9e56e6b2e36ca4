// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/serve.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "exchange/alive.hpp"
#include "measure/counters.hpp"
#include "rdma/backends.hpp"
#include "rdma/nic_port.hpp"
#include "rdma/remote_server.hpp"
#include "rdma/settings.hpp"
#include "rdma/swap.hpp"
#include "rma/op_payload.hpp"
#include "rma/ping_pong_end.hpp"
#include "system/available_memory.hpp"
#include "system/thread.hpp"

namespace doorbell::rdma {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kLongestPhaseS = 366 * 86400.0;  // of its loops: the client ends a phase, or its silence

/// One cell of a client's run.
class ServedCell {
 public:
  ServedCell(const ServeOptions& o, exchange::Exchange& exchange, NicDevice& nic, const Json& message)
      : exchange_(exchange) {
    read_cell_message(message, &options_, &setup_);
    silent_s_ = exchange::silent_limit_s(o.timeout_s, options_.timeout_s);
    port_.emplace(nic, options_.connection);
    // The client's options decide how much memory this process takes.
    require_memory(memory_needed(setup_.shape, *port_),
                   fmt::format("the client's {}, {}, {}", setting::queues, setting::in_flight, setting::size),
                   fmt::format("{}, {} in flight on each", title(), setup_.window));
    session_.emplace(*port_, nullptr, setup_.shape);
    connect_sessions(exchange, port_->queues(), *session_);
    runner_ = session_->runner(1);
    exchange.barrier("connected");
  }

  void phase(const Json& message, ServeResult* result) {
    const PhaseMessage what = read_phase_message(message);
    OpPhase p = phase_of(what.generation);
    prepare(p, what.count);
    std::vector<OpStats> stats;
    std::vector<u64> done;
    const bool takes_part = takes_receive(p.op) || setup_.shape.ping_pong;
    if (takes_part) {
      stats = take_part(p, &done);
    } else {
      exchange_.send("ready", Json::object());
      done = operations(await_done());
      stats.resize(done.size());
    }
    Json report = Json::array();
    for (std::size_t q = 0; q < stats.size(); ++q) {
      OpStats& s = stats[q];
      if (!takes_part && p.verify) check_left(p, session_->queues()[q], done[q], s);
      // An operation that succeeded for the client and did not arrive here is lost.
      if (takes_part && s.succeeded < done[q]) s.missing += done[q] - s.succeeded;
      result->operations += done[q];
      result->checked += s.checked;
      // Operations that were given up or came late are the client's to count.
      result->errors += measure::errors_of(s) - s.aborted - s.late;
      report.push_back(stats_message(s));
    }
    exchange_.send("report", {{"queues", report}});
  }

  /// For how long the client may say nothing.
  [[nodiscard]] double silent_s() const { return silent_s_; }
  [[nodiscard]] std::string title() const {
    return fmt::format("{} {} bytes, {} queue pairs", name(options_.op), setup_.bytes, setup_.shape.queues);
  }

 private:
  OpPhase phase_of(u64 generation) const {
    OpPhase p;
    p.op = options_.op;
    p.role = Role::responder;
    p.timed = false;  // the client measures how long operations take
    p.verify = options_.verify;
    p.inlined = setup_.inlined;
    p.bytes = setup_.bytes;
    p.signal_every = setup_.signal_every;
    p.batch = setup_.batch;
    p.window = setup_.shape.window;
    p.peer_window = setup_.window;
    p.target_slots = setup_.shape.target_slots;
    p.seed = options_.seed;
    p.generation = generation;
    p.timeout_ticks = runner_->ticks(kLongestPhaseS);
    p.late_ticks = p.timeout_ticks;
    p.check_ticks = runner_->ticks(measure::kCheckIntervalS);
    return p;
  }

  /// Prepares the memory that the client's operations use here.
  void prepare(OpPhase& p, u64 count) {
    const OneLane lane;
    for (OpQueue& q : session_->queues()) {
      q.count = ~u64{0};
      if (setup_.shape.ping_pong) {
        q.count = count;  // of the answers
        const PingPongMemory memory = PingPongMemory::of(q, false);
        incoming(p, memory).clear();
        continue;
      }
      const OpPayload<OneLane> payload(p, q);
      payload.start(lane);
      const auto slot_of = [](u32 i) { return i; };
      if (p.op == Op::read) payload.fill_standing(lane, p.window);
      else if (p.verify && (p.target_slots != 0 || (!takes_receive(p.op) && !is_atomic(p.op))))
        payload.poison(lane, 0, p.window, slot_of);
    }
  }

  /// Takes what arrives, and answers it in a ping-pong, until the client reports the end of the phase.
  std::vector<OpStats> take_part(const OpPhase& p, std::vector<u64>* done) {
    std::atomic<bool> over{false};
    std::string failure;
    enum class Listen : u32 { not_yet, now, no };
    std::atomic<Listen> listen{Listen::not_yet};
    const auto tell = [&](Listen what) {
      listen.store(what, std::memory_order_release);
      listen.notify_all();
    };
    JoinedThreads listener;
    listener.add("listener", [&] {
      listen.wait(Listen::not_yet, std::memory_order_acquire);
      if (listen.load(std::memory_order_acquire) == Listen::no) return;
      try {
        *done = operations(await_done());
      } catch (const Error& e) {
        failure = e.what();
      }
      over.store(true, std::memory_order_release);
    });
    measure::PhaseOutcome out;
    try {
      out = runner_->run(p, session_->queues(), false, [&](u64) {
        if (listen.load(std::memory_order_relaxed) == Listen::not_yet) {
          // The first receives are posted now: the client may begin.
          exchange_.send("ready", Json::object());
          tell(Listen::now);
        }
        return over.load(std::memory_order_acquire) ? Asked::stop : Asked::nothing;
      });
    } catch (...) {
      if (listen.load(std::memory_order_relaxed) == Listen::not_yet) tell(Listen::no);
      throw;
    }
    listener.join();
    if (!failure.empty()) throw Error("the client", failure);
    return out.queues;
  }

  Json await_done() { return exchange::next_of_client(exchange_, {"done"}, silent_s_).body; }

  [[nodiscard]] std::vector<u64> operations(const Json& message) const {
    const auto it = message.find("operations");
    std::vector<u64> n;
    if (it != message.end() && it->is_array())
      for (const Json& v : *it)
        if (v.is_number_unsigned()) n.push_back(v.get<u64>());
    if (n.size() != setup_.shape.queues)
      throw Error("the client", "it does not say how many operations each queue pair did");
    return n;
  }

  /// Checks what the last operations must have left in the buffers.
  static void check_left(const OpPhase& p, const OpQueue& q, u64 done, OpStats& s) {
    const OneLane lane;
    const OpPayload<OneLane> payload(p, q);
    if (done == 0 || p.op == Op::read) return;
    if (is_atomic(p.op)) {
      ++s.checked;
      if (!payload.ended_right(done)) ++s.corrupt;
      return;
    }
    const u64 first = done > p.window ? done - p.window : 0;
    for (u64 index = first; index < done; ++index) {
      ++s.checked;
      payload.check(
          lane, index, 1, 1, done - 1, [&](u32) { return static_cast<u32>(index % p.window); },
          [&](u32, pattern::Verdict v, u64 address) {
            count_verdict(s, s, v, address, p.generation + index);
          });
    }
  }

  exchange::Exchange& exchange_;
  double silent_s_ = 0;
  BenchOptions options_;
  CellSetup setup_;
  std::optional<NicPort> port_;
  std::optional<Session> session_;
  std::unique_ptr<OpRunner> runner_;
};

}  // namespace

ServeResult serve(const ServeOptions& o, const measure::RunWatch& watch) {
  const auto device = open_device({.spec = o.device, .provider = o.provider});
  auto [exchange, next] = exchange::wait_for_client(kRunKind, o.at, setting::listen, {"cell", "end"},
                                                    o.wait_s, o.timeout_s, watch);
  ServeResult result;
  try {
    std::unique_ptr<ServedCell> cell;
    const auto silent_s = [&] { return cell ? cell->silent_s() : exchange::silent_limit_s(o.timeout_s, 0); };
    for (;; next = exchange::next_of_client(exchange, {"cell", "phase", "end"}, silent_s())) {
      const auto& [type, message] = next;
      if (type == "end") return result;
      if (type == "cell") {
        cell.reset();  // its memory is freed before the next cell's is allocated
        cell = std::make_unique<ServedCell>(o, exchange, *device, message);
        ++result.cells;
        if (watch.progress) watch.progress(0, cell->title());
      } else if (cell) {
        cell->phase(message, &result);
      } else {
        throw Error("the client", "it begins a phase before a cell");
      }
    }
  } catch (const Error& e) {
    exchange.fail(e.what());
    throw;
  }
}

}  // namespace doorbell::rdma
