// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/ranks/run_pair.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "exchange/fields.hpp"
#include "report/layout.hpp"
#include "sweep/json_text.hpp"
#include "sweep/ranks/agent.hpp"
#include "system/clock.hpp"

namespace doorbell::sweep {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kPollForEnd_s = 0.1;
constexpr std::size_t kMaxErrorText = 8192;
constexpr u32 kMaxParts = 4096;

std::string name_of(const RankName& rank) {
  return fmt::format("rank {} ({})", rank.rank, report::printable(rank.host));
}

Outcome failed(std::string error, int code = static_cast<int>(ExitCode::usage)) {
  Outcome o;
  o.exit_code = code;
  o.error = std::move(error);
  return o;
}

/// One end of the pair. An Error on its connection means that it has gone.
class End {
 public:
  End(Team& team, const RankName& name) : member_(team.member(name.rank)), name_(name_of(name)) {}

  template <class Talk>
  auto talk(const Talk& with) {
    try {
      return with(*member_.control);
    } catch (const Error& e) {
      member_.gone = e.what();
      // Late answers must not be taken for those of a later cell.
      member_.control.reset();
      throw;
    }
  }
  [[nodiscard]] bool there() const { return member_.gone.empty(); }
  [[nodiscard]] std::string loss() const { return fmt::format("{} has gone: {}", name_, member_.gone); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& address() const { return member_.address; }

 private:
  Member& member_;
  std::string name_;
};

struct Served {
  int exit_code = 0;
  std::string error;
  bool stopped = false;  ///< it did not end by itself
};

Served served(const Json& body) {
  return {static_cast<int>(exchange::small(body, "exit_code", 0, 255)),
          exchange::text(body, "error", kMaxErrorText), exchange::flag(body, "stopped")};
}

class PairRun {
 public:
  PairRun(Team& team, const Pair& pair, const PairWords& words, double limit_s,
          const std::function<bool()>& stop)
      : words_(words), limit_s_(limit_s), stop_(stop), from_(team, pair.from), to_(team, pair.to) {}

  Outcome run() {
    for (const End* end : {&from_, &to_})
      if (!end->there()) return failed(end->loss());
    u32 port = 0;
    Served refused;
    try {
      port = to_.talk([&](exchange::Exchange& x) { return listen(x, &refused); });
    } catch (const Error&) {
      return failed(to_.loss());
    }
    if (port == 0)
      return failed(fmt::format("{} does not listen: {}", to_.name(), refused.error), refused.exit_code);
    Outcome o;
    try {
      o = from_.talk([&](exchange::Exchange& x) { return connect(x, port); });
    } catch (const Error&) {
      o = failed(from_.loss());
    }
    if (o.exit_code != 0 && from_.there()) o.error = fmt::format("{}: {}", from_.name(), o.error);
    try {
      // The server ends with its client; after a failure there may be nothing to wait for.
      const double limit_s = o.exit_code == 0 ? kDrain_s : 1;
      add(to_.talk([&](exchange::Exchange& x) { return finish(x, limit_s); }), &o);
    } catch (const Error&) {
      // The client of a good run has the other end's findings already.
      if (o.exit_code != 0) o.error += (o.error.empty() ? "" : "; ") + to_.loss();
    }
    return o;
  }

 private:
  u32 listen(exchange::Exchange& x, Served* refused) const {
    std::vector<std::string> words = words_.server;
    words.push_back("--listen=" + exchange::SocketName{to_.address(), 0}.text());
    words.push_back(fmt::format("--listen-wait={:g}", kStart_s));
    x.send("listen", {{"words", words}});
    const auto [type, body] = x.receive_any({"listening", "ended"}, kStart_s + 3 * kDrain_s);
    if (type == "listening") return exchange::small(body, "port", 1, 0xffff);
    *refused = served(body);
    if (refused->exit_code == 0) *refused = {1, "it has ended", false};
    return 0;
  }

  Outcome connect(exchange::Exchange& x, u32 port) const {
    std::vector<std::string> words = words_.client;
    words.push_back("--connect=" + exchange::SocketName{to_.address(), static_cast<u16>(port)}.text());
    x.send("connect", {{"words", words}, {"limit_s", limit_s_}});
    const u64 begin = wall_ns();
    bool stop_sent = false;
    while (!x.pending(kPollForEnd_s)) {
      if (!stop_sent && stop_()) {
        x.send("stop", Json::object());
        stop_sent = true;
      }
      if (static_cast<double>(wall_ns() - begin) / 1e9 > limit_s_ + kStart_s + 2 * kDrain_s)
        throw Error(exchange::kOtherEnd, fmt::format("it has not ended its run {:g} s after --cell-timeout",
                                                     kStart_s + 2 * kDrain_s));
    }
    const Json body = x.receive("outcome");
    Outcome o = failed(exchange::text(body, "error", kMaxErrorText),
                       static_cast<int>(exchange::small(body, "exit_code", 0, 255)));
    o.wall_s = exchange::real(body, "wall_s", 0, kIdle_s);
    o.ended = report::printable(exchange::text(body, "ended", kMaxErrorText));
    std::string text;
    for (u32 part = exchange::small(body, "parts", 0, kMaxParts); part > 0; --part) {
      const Json piece = x.receive("part");
      if (!piece.is_string()) throw Error(exchange::kOtherEnd, "a part of its result is no text");
      text += piece.get_ref<const std::string&>();
    }
    if (!text.empty())
      o.result = parse_json(text, fmt::format("{}: its result cannot be read", exchange::kOtherEnd));
    return o;
  }

  static Served finish(exchange::Exchange& x, double limit_s) {
    x.send("finish", {{"limit_s", limit_s}});
    return served(x.receive("ended", limit_s + 3 * kDrain_s));
  }

  void add(const Served& s, Outcome* o) const {
    // A server that was asked to stop, because its client has ended without it, has no reason of its own.
    if (s.exit_code == 0 || (s.stopped && o->exit_code != 0)) return;
    if (!s.error.empty())
      o->error += fmt::format("{}{}: {}", o->error.empty() ? "" : "; ", to_.name(), s.error);
    if (o->exit_code == 0) o->exit_code = s.exit_code;
  }

  const PairWords& words_;
  double limit_s_;
  const std::function<bool()>& stop_;
  End from_;
  End to_;
};

}  // namespace

Outcome run_pair(Team& team, const Pair& pair, const PairWords& words, double limit_s,
                 const std::function<bool()>& stop) {
  const u64 begin = wall_ns();
  Outcome o = PairRun(team, pair, words, limit_s, stop).run();
  if (o.wall_s == 0) o.wall_s = static_cast<double>(wall_ns() - begin) / 1e9;
  if (o.result.is_object() && o.result.contains("cells") && o.result["cells"].is_array())
    for (Json& cell : o.result["cells"])
      if (cell.is_object() && cell.contains("cell") && cell["cell"].is_object())
        add_pair(&cell["cell"], pair, '_');
  return o;
}

}  // namespace doorbell::sweep
