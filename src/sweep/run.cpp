// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/run.hpp"

#include <csignal>
#include <doorbell/error.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>

#include "sweep/text_file.hpp"
#include "system/child.hpp"
#include "system/clock.hpp"

namespace doorbell::sweep {

namespace {

constexpr double kLook_s = 0.2;  // between looks at Ctrl-C
constexpr double kDrain_s = 15;  // time for a run to stop and report
constexpr std::size_t kErrors = 4000;

/// Removes a run's own file at the end, also after an exception.
class Scratch {
 public:
  explicit Scratch(std::string path) : path_(std::move(path)) { remove(); }
  ~Scratch() { remove(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void remove() const {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::string path_;
};

/// Waits for the child's end, its deadline or Ctrl-C, whichever is first; returns Record::ended.
std::string await(Child& child, double limit_s, const RunWatch& watch,
                  const std::function<void(double)>& tick) {
  const u64 start = wall_ns();
  const auto elapsed = [&] { return static_cast<double>(wall_ns() - start) / 1e9; };
  std::string ended = "exit";
  while (!child.wait(std::min(kLook_s, limit_s))) {
    tick(elapsed());
    if (watch.stop != nullptr && watch.stop->requested()) ended = "interrupted";
    else if (elapsed() > limit_s) ended = "timeout";
    else continue;
    child.stop(SIGINT);
    if (!child.wait(kDrain_s)) {
      child.stop(SIGKILL);
      (void)child.wait(kDrain_s);
    }
    return ended;
  }
  // Another process asked it to stop, or Ctrl-C ended it.
  if (child.exit_code() == kInterrupted) return "interrupted";
  return child.exit_code() >= 128 ? "signal" : ended;
}

/// Reads the Result that a run has written. Null if there is none, with the reason in `why`.
nlohmann::ordered_json result_in(const std::string& path, std::string* why) {
  try {
    const std::string text = read_text(path);
    auto result = nlohmann::ordered_json::parse(text);
    if (result.is_object()) return result;
    *why = "its result is no object";
  } catch (const Error&) {
    // The run has written no Result; its standard error gives the reason.
  } catch (const nlohmann::ordered_json::exception& e) {
    *why = fmt::format("its result cannot be read: {}", e.what());
  }
  return nullptr;
}

std::string trimmed(std::string text) {
  if (text.size() > kErrors) text = "..." + text.substr(text.size() - kErrors);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string error_of(const Record& r, double limit_s, const std::string& why, const std::string& printed) {
  std::string text;
  if (r.ended == "timeout") text = fmt::format("it did not end within --cell-timeout {} s", limit_s);
  if (r.ended == "signal") text = fmt::format("ended by signal {}", r.exit_code - 128);
  for (const std::string& more : {why, r.exit_code == 0 ? std::string() : trimmed(printed)})
    if (!more.empty()) text += (text.empty() ? "" : "; ") + more;
  return text;
}

nlohmann::ordered_json options_of(const Cell& cell) {
  auto options = nlohmann::ordered_json::object();
  for (const Setting& s : cell.settings) {
    if (s.flag) options[s.name] = s.text == "true";
    else options[s.name] = s.text;
  }
  return options;
}

Record run_one(const Plan& plan, const Cell& cell, const Turn& turn, const Folder& folder,
               const RunLimits& limits, const RunWatch& watch, const std::function<void(double)>& tick) {
  const Scratch file(folder.file(kWritten[2]));
  std::vector<std::string> words = {"doorbell", plan.subject->name};
  words.insert(words.end(), cell.arguments.begin(), cell.arguments.end());
  words.push_back("--json=" + file.path());
  words.emplace_back("--quiet");
  Record r;
  r.cell = turn.cell;
  r.round = turn.round;
  r.options = options_of(cell);
  const u64 start = wall_ns();
  std::string why, printed;
  try {
    Child child(words, {}, limits.program);
    r.ended = await(child, limits.cell_timeout_s, watch, tick);
    // A child that SIGKILL does not end is blocked in the kernel.
    r.exit_code = child.ended() ? child.exit_code() : 128 + SIGKILL;
    printed = child.errors();
  } catch (const std::system_error& e) {
    throw Error(fmt::format("starting doorbell {}", plan.subject->name), e.code().message());
  }
  r.wall_s = static_cast<double>(wall_ns() - start) / 1e9;
  r.result = result_in(file.path(), &why);
  r.error = error_of(r, limits.cell_timeout_s, why, printed);
  return r;
}

}  // namespace

void run(const Plan& plan, const std::vector<Cell>& cells, const std::vector<Turn>& todo, Folder& folder,
         const RunLimits& limits, const RunWatch& watch, std::vector<Record>* done) {
  const auto stopped = [&] { return watch.stop != nullptr && watch.stop->requested(); };
  std::size_t count = 0;
  for (const Turn& turn : todo) {
    if (stopped()) break;
    const auto tick = [&](double elapsed_s) {
      if (watch.progress) watch.progress(count, turn, elapsed_s);
    };
    tick(0);
    Record record = run_one(plan, cells[turn.cell], turn, folder, limits, watch, tick);
    // A run that was stopped before it could measure anything does not count.
    if (stopped() && record.result.is_null() && record.exit_code == kInterrupted) break;
    done->push_back(std::move(record));
    ++count;
    folder.append(done->back());
  }
}

}  // namespace doorbell::sweep
