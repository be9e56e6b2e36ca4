// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/process.hpp"

#include <algorithm>
#include <csignal>
#include <doorbell/error.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <utility>

#include "measure/stop.hpp"
#include "sweep/json_text.hpp"
#include "sweep/record.hpp"
#include "sweep/text_file.hpp"
#include "system/clock.hpp"

namespace doorbell::sweep {

namespace {

constexpr double kLook_s = 0.2;  // between looks at Ctrl-C
constexpr std::size_t kErrors = 4000;

void remove_file(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

/// Waits for the child's end, its deadline or Ctrl-C, whichever is first; returns Outcome::ended.
std::string await(Child& child, double limit_s, const ProcessWatch& watch) {
  const u64 start = wall_ns();
  const auto elapsed = [&] { return static_cast<double>(wall_ns() - start) / 1e9; };
  std::string ended = "exit";
  while (!child.wait(std::min(kLook_s, limit_s))) {
    if (watch.tick) watch.tick(elapsed());
    if (watch.stop && watch.stop()) ended = "interrupted";
    else if (elapsed() > limit_s) ended = "timeout";
    else continue;
    end_child(child);
    return ended;
  }
  // Another process asked it to stop, or Ctrl-C ended it.
  if (child.exit_code() == kInterrupted) return "interrupted";
  return child.exit_code() >= 128 ? "signal" : ended;
}

/// Reads the Result that a run has written to a file, or, without one, has printed. Null if there is none,
/// with the reason in `why`.
nlohmann::ordered_json result_in(const std::string& path, std::string text, std::string* why) {
  try {
    if (!path.empty()) text = read_text(path);
  } catch (const Error&) {
    return nullptr;  // the run has written no Result; its standard error gives the reason
  }
  if (path.empty() && text.empty()) return nullptr;
  try {
    auto result = parse_json(text, "its result cannot be read");
    if (result.is_object()) return result;
    *why = "its result is no object";
  } catch (const Error& e) {
    *why = e.what();
  }
  return nullptr;
}

std::string error_of(const Outcome& o, double limit_s, const std::string& why, const std::string& printed) {
  std::string text;
  if (o.ended == "timeout") text = fmt::format("it did not end within --cell-timeout {} s", limit_s);
  if (o.ended == "signal") text = fmt::format("ended by signal {}", o.exit_code - 128);
  for (const std::string& more : {why, o.exit_code == 0 ? std::string() : last_of(printed)})
    if (!more.empty()) text += (text.empty() ? "" : "; ") + more;
  return text;
}

}  // namespace

Scratch::Scratch(std::string path) : path_(std::move(path)) {
  remove_file(path_);
}

Scratch::~Scratch() {
  remove_file(path_);
}

void end_child(Child& child) {
  child.stop(SIGINT);
  bool passed_on = false;
  for (const u64 begin = wall_ns(); static_cast<double>(wall_ns() - begin) * 1e-9 < kDrain_s;) {
    if (child.wait(kLook_s)) return;
    if (!passed_on && measure::stop_gave_up()) {
      child.stop(SIGINT);
      passed_on = true;
    }
  }
  child.stop(SIGKILL);
  (void)child.wait(kDrain_s);
}

int code_of(const Child& child) {
  return child.exit_code() < 0 ? 128 + SIGKILL : child.exit_code();
}

std::string last_of(std::string text) {
  if (text.size() > kErrors) text = "..." + text.substr(text.size() - kErrors);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

Outcome run_process(const std::vector<std::string>& words, const std::string& file, double limit_s,
                    const std::string& program, const ProcessWatch& watch) {
  std::vector<std::string> all = {"doorbell"};
  all.insert(all.end(), words.begin(), words.end());
  all.push_back("--json=" + (file.empty() ? "-" : file));
  all.emplace_back("--quiet");
  Outcome o;
  const u64 start = wall_ns();
  std::string why, printed, output;
  try {
    Child child(all, {}, program);
    o.ended = await(child, limit_s, watch);
    o.exit_code = code_of(child);
    printed = child.errors();
    if (file.empty()) output = child.output();
  } catch (const std::system_error& e) {
    throw Error(fmt::format("starting doorbell {}", words.front()), e.code().message());
  }
  o.wall_s = static_cast<double>(wall_ns() - start) / 1e9;
  o.result = result_in(file, std::move(output), &why);
  o.error = error_of(o, limit_s, why, printed);
  return o;
}

}  // namespace doorbell::sweep
