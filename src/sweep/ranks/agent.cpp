// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/ranks/agent.hpp"

#include <stdlib.h>

#include <doorbell/error.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <system_error>

#include "exchange/fields.hpp"
#include "sweep/process.hpp"
#include "system/clock.hpp"
#include "system/temporary_folder.hpp"

namespace doorbell::sweep {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kProgram = "/proc/self/exe";
constexpr const char* kListening = "listening at ";  // how the first line of --listen begins
constexpr std::size_t kMaxArguments = 1000;
constexpr std::size_t kMaxArgument = 4096;
// An escaped byte takes up to six, and a message has a limit.
constexpr std::size_t kPart = exchange::Exchange::kMaxMessageBytes / 8;

std::vector<std::string> words_of(const Json& message) {
  std::vector<std::string> words;
  for (const Json& word : exchange::list(message, "words", kMaxArguments)) {
    if (!word.is_string() || word.get_ref<const std::string&>().size() > kMaxArgument)
      throw Error(exchange::kOtherEnd, "'words' has an item that is no short text");
    words.push_back(word.get<std::string>());
  }
  if (words.empty()) throw Error(exchange::kOtherEnd, "'words' is empty");
  return words;
}

class Agent {
 public:
  Agent(exchange::Exchange& zero, measure::StopFlag* stop) : zero_(zero), stop_(stop) {}

  void work() {
    for (;;) {
      await_message();
      const auto [type, body] = zero_.receive_any({"listen", "connect", "finish", "stop", "end"});
      // "stop" here comes from a moment at which the run had ended already.
      if (type == "end") return;
      if (type == "listen") listen(words_of(body));
      if (type == "connect") connect(words_of(body), exchange::real(body, "limit_s", 0, kIdle_s));
      if (type == "finish") finish(exchange::real(body, "limit_s", 0, kIdle_s));
    }
  }

 private:
  /// Returns when there is a message. Ctrl-C reaches rank 0, too, which then ends everything.
  void await_message() {
    constexpr double kLook_s = 0.2;
    u64 stopped_ns = 0;
    const u64 begin = wall_ns();
    while (!zero_.pending(kLook_s)) {
      const u64 now = wall_ns();
      if (stop_->requested() && stopped_ns == 0) stopped_ns = now;
      if (stopped_ns != 0 && seconds(now - stopped_ns) > 3 * kDrain_s)
        throw Error("rank 0", "it does not say that the sweep has ended", "", ExitCode::interrupted);
      if (seconds(now - begin) > kIdle_s) throw Error("rank 0", "it has nothing to do for this rank");
    }
  }

  static double seconds(u64 ns) { return static_cast<double>(ns) / 1e9; }

  void listen(const std::vector<std::string>& words) {
    server_.reset();
    try {
      std::vector<std::string> all = {"doorbell"};
      all.insert(all.end(), words.begin(), words.end());
      server_.emplace(all, std::span<const int>{}, kProgram);
    } catch (const std::system_error& e) {
      zero_.send("ended", {{"exit_code", 1}, {"error", e.code().message()}, {"stopped", false}});
      return;
    }
    const u64 begin = wall_ns();
    u32 port = 0;
    while (port == 0 && !server_->wait(0.01) && seconds(wall_ns() - begin) < kStart_s) port = listening_at();
    if (port != 0) zero_.send("listening", {{"port", port}});
    else finish(0);
  }

  /// The port in the server's first line; 0 if it has not printed it yet.
  [[nodiscard]] u32 listening_at() const {
    const std::string text = server_->errors();
    const auto end = text.find('\n'), colon = text.substr(0, end).rfind(':');
    if (end == std::string::npos || colon == std::string::npos || !text.starts_with(kListening)) return 0;
    return static_cast<u32>(std::strtoul(text.c_str() + colon + 1, nullptr, 10));
  }

  /// The end of the listening process, which comes by itself when its client has ended.
  void finish(double limit_s) {
    if (!server_) {
      zero_.send("ended", {{"exit_code", 0}, {"error", ""}, {"stopped", false}});
      return;
    }
    const bool stopped = !server_->wait(limit_s);
    if (stopped) end_child(*server_);
    std::string error = last_of(server_->errors());
    // The text of a server that has succeeded is no error.
    if (server_->exit_code() == 0) error.clear();
    if (error.starts_with(kListening))
      error.erase(0, error.find('\n') == std::string::npos ? error.size() : error.find('\n') + 1);
    zero_.send("ended", {{"exit_code", code_of(*server_)}, {"error", error}, {"stopped", stopped}});
    server_.reset();
  }

  void connect(const std::vector<std::string>& words, double limit_s) {
    const TemporaryFolder place("rank");
    Outcome o;
    try {
      o = run_process(words, place.file("result.json"), limit_s, kProgram,
                      {.stop = [&] { return stop_->requested() || told_to_stop(); }, .tick = {}});
    } catch (const Error& e) {
      o.exit_code = static_cast<int>(ExitCode::usage);
      o.error = e.what();
    }
    const std::string text =
        o.result.is_null() ? "" : o.result.dump(-1, ' ', true, Json::error_handler_t::replace);
    zero_.send("outcome", {{"exit_code", o.exit_code},
                           {"wall_s", o.wall_s},
                           {"ended", o.ended},
                           {"error", o.error},
                           {"parts", (text.size() + kPart - 1) / kPart}});
    // The text is ASCII: a cut never divides a character.
    for (std::size_t at = 0; at < text.size(); at += kPart) zero_.send("part", text.substr(at, kPart));
  }

  bool told_to_stop() {
    if (!zero_.pending()) return false;
    (void)zero_.receive("stop");
    return true;
  }

  exchange::Exchange& zero_;
  measure::StopFlag* stop_;
  std::optional<Child> server_;
};

}  // namespace

void work_for(exchange::Exchange& zero, measure::StopFlag* stop) {
  Agent(zero, stop).work();
}

}  // namespace doorbell::sweep
