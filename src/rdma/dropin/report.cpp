// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/dropin/report.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <mutex>
#include <unordered_set>
#include <vector>

#include "rdma/dropin/devices.hpp"
#include "rdma/roce/names.hpp"

namespace doorbell::dropin {

namespace {

struct Line {
  std::string device;
  u32 number = 0;
  const char* service = "";
  roce::Endpoint peer;
  u32 peer_queue_pair = 0;
  roce::Counters counters;
};

struct Live {
  Qp* queue_pair;
  Adapter* adapter;
};

/// Never destroyed: queue pairs may outlive the program's end.
struct State {
  std::mutex mutex;
  std::string to;
  std::vector<Live> live;
  std::vector<Line> ended;
};
State& state() {
  static State& one = *new State;
  return one;
}

constexpr const char* kOpcodes[roce::kWrOpcodes] = {
    "write",     "write_imm", "send",    "send_imm",    "read", "compare_swap",
    "fetch_add", "local_inv", "bind_mw", "send_inv",    "",     "",
    "",          "",          "",        "atomic_write"};
constexpr const char* kNaks[] = {"sequence", "invalid_request", "remote_access", "remote_operation",
                                 "invalid_rd"};

Line line_of(const Qp& queue_pair, const Adapter& adapter) {
  static constexpr const char* kServices[] = {"RC", "UC", "", "UD", "", "XRC"};
  const roce::QueuePairAttributes attributes = queue_pair.queue->attributes();
  return {.device = "doorbell" + std::to_string(adapter.device()),
          .number = queue_pair.queue->number(),
          .service = kServices[static_cast<int>(queue_pair.service)],
          .peer = attributes.peer,
          .peer_queue_pair = attributes.destination,
          .counters = queue_pair.queue->counters()};
}

u64 sum(const u64 (&counts)[5]) {
  u64 all = 0;
  for (const u64 count : counts) all += count;
  return all;
}

std::string text_of(const Line& line) {
  const roce::Counters& c = line.counters;
  std::string text =
      "doorbell verbs: " + line.device + " " + line.service + " queue pair " + std::to_string(line.number);
  if (line.peer.address != 0)
    text += " to " + std::to_string(line.peer_queue_pair) + " of " + roce::dotted(line.peer.address);
  text += ": " + std::to_string(c.packets_sent) + " packets sent, " + std::to_string(c.packets_received) +
          " received; " + std::to_string(c.retransmitted_packets) + " sent again, " +
          std::to_string(c.timeouts) + " time-outs, " + std::to_string(c.probes) + " probes; NAKs " +
          std::to_string(sum(c.naks_sent)) + " sent, " + std::to_string(sum(c.naks_received)) +
          " received; RNR NAKs " + std::to_string(c.rnr_sent) + " sent, " + std::to_string(c.rnr_received) +
          " received; " + std::to_string(c.duplicates) + " duplicates, " + std::to_string(c.out_of_order) +
          " out of order";
  if (c.dropped + c.dropped_no_receive + c.dropped_queue_key != 0)
    text += "; dropped " + std::to_string(c.dropped) + ", without a receive " +
            std::to_string(c.dropped_no_receive) + ", of another Q_Key " +
            std::to_string(c.dropped_queue_key);
  if (c.error_completions != 0) text += "; " + std::to_string(c.error_completions) + " completions in error";
  for (std::size_t i = 0; i < roce::kCompletionFaults; ++i)
    if (c.injected[i] != 0)
      text += "; injected " + std::string(roce::kCompletionFaultNames[i]) + " completions " +
              std::to_string(c.injected[i]);
  for (std::size_t i = 0; i < std::size(kOpcodes); ++i)
    if (c.messages_sent[i] != 0)
      text += "; " + std::string(kOpcodes[i]) + " " + std::to_string(c.messages_sent[i]) + " (" +
              std::to_string(c.bytes_sent[i]) + " bytes)";
  return text + "\n";
}

/// Pairs of a name and a number, of which none needs an escape.
class Object {
 public:
  Object& add(const char* name, const std::string& raw) {
    text_ += text_.empty() ? "{\"" : ",\"";
    text_ += name;
    text_ += "\":" + raw;
    return *this;
  }
  Object& add(const char* name, u64 number) { return add(name, std::to_string(number)); }
  Object& quoted(const char* name, const std::string& text) { return add(name, "\"" + text + "\""); }
  [[nodiscard]] std::string text() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

template <std::size_t N>
std::string named(const char* const (&names)[N], const u64 (&counts)[N]) {
  Object object;
  for (std::size_t i = 0; i < N; ++i)
    if (counts[i] != 0) object.add(names[i], counts[i]);
  return object.text();
}

std::string injected(const roce::Counters& c) {
  Object object;
  for (std::size_t i = 0; i < roce::kCompletionFaults; ++i)
    object.add(std::string(roce::kCompletionFaultNames[i]).c_str(), c.injected[i]);
  return object.text();
}

std::string json_of(const Line& line) {
  const roce::Counters& c = line.counters;
  Object object;
  object.quoted("device", line.device).add("queue_pair", line.number).quoted("service", line.service);
  if (line.peer.address != 0)
    object.quoted("peer", roce::dotted(line.peer.address)).add("peer_queue_pair", line.peer_queue_pair);
  object.add("packets_sent", c.packets_sent)
      .add("packets_received", c.packets_received)
      .add("retransmitted_packets", c.retransmitted_packets)
      .add("timeouts", c.timeouts)
      .add("probes", c.probes)
      .add("naks_sent", named(kNaks, c.naks_sent))
      .add("naks_received", named(kNaks, c.naks_received))
      .add("rnr_sent", c.rnr_sent)
      .add("rnr_received", c.rnr_received)
      .add("duplicates", c.duplicates)
      .add("out_of_order", c.out_of_order)
      .add("replayed_atomics", c.replayed_atomics)
      .add("dropped", c.dropped)
      .add("dropped_no_receive", c.dropped_no_receive)
      .add("dropped_queue_key", c.dropped_queue_key)
      .add("completions", c.completions)
      .add("error_completions", c.error_completions)
      .add("overruns", c.overruns)
      .add("injected", injected(c))
      .add("messages_sent", named(kOpcodes, c.messages_sent))
      .add("bytes_sent", named(kOpcodes, c.bytes_sent))
      .add("bytes_received", c.bytes_received);
  return object.text();
}

void write_all(int file, const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t wrote = ::write(file, text.data() + at, text.size() - at);
    if (wrote <= 0) return;
    at += static_cast<std::size_t>(wrote);
  }
}

}  // namespace

bool reporting() {
  return !state().to.empty();
}

void report_at_exit(const std::string& to) {
  state().to = to == kReportToStderr ? to : named_file(to);
}

void watch(Qp& queue_pair, Context& context) {
  if (!reporting()) return;
  const std::lock_guard lock(state().mutex);
  state().live.push_back({&queue_pair, context.adapter.get()});
}

void unwatch(const Qp& queue_pair) {
  if (!reporting()) return;
  const std::lock_guard lock(state().mutex);
  std::erase_if(state().live, [&](const Live& one) { return one.queue_pair == &queue_pair; });
}

void remember(Qp& queue_pair, const Adapter& adapter) {
  if (!reporting() || queue_pair.queue == nullptr) return;
  const std::lock_guard lock(state().mutex);
  std::erase_if(state().live, [&](const Live& one) { return one.queue_pair == &queue_pair; });
  state().ended.push_back(line_of(queue_pair, adapter));
}

void forget_parent() {
  // The lock may be another thread's of the parent.
  new (&state().mutex) std::mutex;
  state().live.clear();
  state().ended.clear();
}

void write_report() {
  if (!reporting()) return;
  const std::lock_guard lock(state().mutex);
  std::vector<Line> lines = std::move(state().ended);
  // One line for all handles of a queue pair.
  std::unordered_set<const roce::QueuePair*> seen;
  for (const Live& one : state().live)
    if (one.queue_pair->queue != nullptr && seen.insert(one.queue_pair->queue.get()).second)
      lines.push_back(line_of(*one.queue_pair, *one.adapter));
  state().live.clear();
  state().ended.clear();
  if (state().to == kReportToStderr) {
    for (const Line& line : lines) write_all(STDERR_FILENO, text_of(line));
    return;
  }
  std::string pairs;
  for (const Line& line : lines) pairs += (pairs.empty() ? "" : ",") + json_of(line);
  Object object;
  object.add("process", static_cast<u64>(::getpid())).add("queue_pairs", "[" + pairs + "]");
  // One write of one line: several processes may add to one file.
  const int file = ::open(state().to.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) {
    complain("the report cannot be written to " + state().to);
    return;
  }
  write_all(file, object.text() + "\n");
  ::close(file);
}

}  // namespace doorbell::dropin
