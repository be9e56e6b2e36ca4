// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/run.hpp"

#include <chrono>
#include <future>
#include <span>
#include <utility>

#include "sweep/process.hpp"
#include "sweep/ranks/run_pair.hpp"
#include "system/clock.hpp"

namespace doorbell::sweep {

namespace {

constexpr int kTick_ms = 200;

nlohmann::ordered_json options_of(const Cell& cell) {
  auto options = nlohmann::ordered_json::object();
  for (const Setting& s : cell.settings) {
    if (s.flag) options[s.name] = s.text == "true";
    else options[s.name] = s.text;
  }
  if (cell.pair) add_pair(&options, *cell.pair, '-');
  return options;
}

Record record_of(const Cell& cell, const Turn& turn, Outcome outcome) {
  Record r;
  r.cell = turn.cell;
  r.round = turn.round;
  r.options = options_of(cell);
  r.exit_code = outcome.exit_code;
  r.wall_s = outcome.wall_s;
  r.ended = std::move(outcome.ended);
  r.error = std::move(outcome.error);
  r.result = std::move(outcome.result);
  return r;
}

/// Data that all turns of a sweep share.
struct Sweep {
  const Plan& plan;
  const std::vector<Cell>& cells;
  const Folder& folder;
  const RunLimits& limits;
  std::function<bool()> stopped;
};

std::vector<std::string> command_words(const Plan& plan, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {plan.subject->name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

Record run_one(const Sweep& s, const Turn& turn, const std::function<void(double)>& tick) {
  const Cell& cell = s.cells[turn.cell];
  const Scratch file(s.folder.new_result());
  return record_of(cell, turn,
                   run_process(command_words(s.plan, cell.arguments), file.path(), s.limits.cell_timeout_s,
                               s.limits.program, {.stop = s.stopped, .tick = tick}));
}

/// Runs turns that share no rank at the same time.
std::vector<Record> run_together(const Sweep& s, std::span<const Turn> turns,
                                 const std::function<void(double)>& tick) {
  std::vector<std::future<Record>> running;
  for (const Turn& turn : turns)
    running.push_back(std::async(std::launch::async, [&s, turn] {
      const Cell& cell = s.cells[turn.cell];
      const PairWords words = {command_words(s.plan, cell.arguments),
                               command_words(s.plan, listening_arguments(s.plan, cell))};
      return record_of(cell, turn,
                       run_pair(*s.limits.team, *cell.pair, words, s.limits.cell_timeout_s, s.stopped));
    }));
  const u64 begin = wall_ns();
  std::vector<Record> records;
  for (std::future<Record>& r : running) {
    while (r.wait_for(std::chrono::milliseconds(kTick_ms)) != std::future_status::ready)
      tick(static_cast<double>(wall_ns() - begin) / 1e9);
    records.push_back(r.get());
  }
  return records;
}

}  // namespace

void run(const Plan& plan, const std::vector<Cell>& cells, const std::vector<Turn>& todo, Folder& folder,
         const RunLimits& limits, const RunWatch& watch, std::vector<Record>* done) {
  const Sweep s = {plan, cells, folder, limits,
                   [&] { return watch.stop != nullptr && watch.stop->requested(); }};
  for (std::size_t count = 0; count < todo.size() && !s.stopped();) {
    const Turn& turn = todo[count];
    const auto tick = [&](double elapsed_s) {
      if (watch.progress) watch.progress(count, turn, elapsed_s);
    };
    tick(0);
    std::vector<Record> records;
    if (cells[turn.cell].pair) {
      const std::size_t together = plan.pairs->disjoint ? group_at(cells, todo, count) : 1;
      records = run_together(s, std::span(todo).subspan(count, together), tick);
    } else {
      records.push_back(run_one(s, turn, tick));
    }
    count += records.size();
    for (Record& record : records) {
      // A run that was stopped before it could measure anything does not count.
      if (s.stopped() && record.result.is_null() && record.exit_code == kInterrupted) continue;
      done->push_back(std::move(record));
      folder.append(done->back());
    }
  }
}

}  // namespace doorbell::sweep
