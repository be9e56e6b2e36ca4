// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// iperf3 as a contender: a server and a client for each pair, since one process of it works in one thread, on
// the cores and in the namespaces of our own threads; read back from its JSON.
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include "measure/tally.hpp"
#include "net/bench/in_turns.hpp"
#include "net/settings.hpp"
#include "report/layout.hpp"
#include "system/child.hpp"
#include "system/clock.hpp"

namespace doorbell::net {

namespace {

using Json = nlohmann::ordered_json;

constexpr u16 kPort = 18700;
constexpr double kGraceS = 10;
constexpr u64 kLookNs = 20'000'000;

struct Half {
  u64 bytes = 0;
  double seconds = 0;
  u64 packets = 0, lost = 0;
  double user_s = 0, system_s = 0;
};

class Iperf3Contender final : public measure::Contender {
 public:
  Iperf3Contender(const BenchOptions& o, const CellSettings& c, const measure::RunWatch& watch, Link& link)
      : o_(o),
        c_(c),
        watch_(watch),
        link_(link),
        udp_(!kind_of(o).reliable),
        cell_(new_cell(o, c, link, "", 1)) {
    cores_ = map_cores(o, c);
    cell_.device_name.insert(0, "iperf3 over ");
    if (c.target_gbps > 0) cell_.cell["target_gbps"] = c.target_gbps;
    cell_.errors = {{"completion", 0}};
    const auto version = start({"iperf3", "--version"}, End::rx);
    (void)version->wait(10);
    const std::string text = version->output();
    cell_.extra["iperf3"] = {{"version", report::printable(text.substr(0, text.find('\n')))}};
  }

  std::string label() const override { return "iperf3"; }
  void warm_up() override { (void)run(std::max(1.0, std::round(o_.warmup_s))); }
  bool going() const override { return watch_.stop == nullptr || !watch_.stop->requested(); }

  void repeat(u32 number) override {
    const auto halves = run(o_.duration_s);
    if (!halves) return;
    Half sum;
    for (const Half& h : halves->received) {
      sum.bytes += h.bytes;
      sum.packets += h.packets;
      sum.lost += h.lost;
      sum.seconds = std::max(sum.seconds, h.seconds);
    }
    repeats_.push_back({o_.seed + number,
                        measure::metrics_of(sum.bytes / c_.payload, sum.bytes, sum.seconds),
                        0,
                        {{.name = "", .user_s = halves->user_s, .system_s = halves->system_s}}});
    lost_ += sum.lost;
    packets_ += sum.packets;
  }

  measure::BenchResult finish() override {
    measure::BenchResult result;
    result.warnings = measure::add_repeats(cell_, repeats_);
    if (!repeats_.empty()) {
      cell_.extra["net"] = {{"goodput_gbps", cell_.metrics.bytes_per_s * 8e-9}};
      if (udp_) {
        cell_.extra["net"]["sent"] = packets_;
        cell_.extra["net"]["lost"] = lost_;
        cell_.extra["net"]["lost_percent"] =
            packets_ > 0 ? 100 * static_cast<double>(lost_) / static_cast<double>(packets_) : 0;
      }
    }
    result.warnings.emplace_back("iperf3 checks no data: it has less to do");
    result.add(cell_);
    result.stop_reason = going() ? StopReason::done : StopReason::requested;
    return result;
  }

 private:
  struct Halves {
    std::vector<Half> received;
    double user_s = 0, system_s = 0;
  };

  std::unique_ptr<Child> start(const std::vector<std::string>& arguments, End end) {
    try {
      return std::make_unique<Child>(arguments, std::span<const int>(), "", link_.network_namespace(end));
    } catch (const std::system_error& e) {
      throw Error(setting::others + " iperf3",
                  fmt::format("iperf3 cannot be started: {}", e.code().message()),
                  "install it (Debian: iperf3)", ExitCode::absent);
    }
  }

  /// Runs all pairs at the same time. Nothing when it was interrupted.
  std::optional<Halves> run(double seconds) {
    std::vector<std::unique_ptr<Child>> servers, clients;
    const auto bound = [](std::vector<std::string> a, const std::vector<int>& cores, u32 i) {
      if (i < cores.size()) a.insert(a.end(), {"-A", std::to_string(cores[i])});
      return a;
    };
    for (u32 i = 0; i < c_.tx_queues; ++i)
      servers.push_back(start(bound({"iperf3", "-s", "-1", "-J", "--forceflush", "-B", link_.ip(End::rx),
                                     "-p", std::to_string(kPort + i)},
                                    cores_.rx, i),
                              End::rx));
    for (u32 i = 0; i < c_.tx_queues; ++i) await_listening(*servers[i], static_cast<u16>(kPort + i));
    for (u32 i = 0; i < c_.tx_queues; ++i) {
      std::vector<std::string> a = {"iperf3",
                                    "-c",
                                    link_.ip(End::rx),
                                    "-p",
                                    std::to_string(kPort + i),
                                    "-J",
                                    "-t",
                                    std::to_string(std::max(1l, std::lround(seconds))),
                                    "-l",
                                    std::to_string(c_.payload)};
      const double bps = c_.target_gbps * 1e9 / c_.tx_queues;
      if (udp_) a.insert(a.end(), {"-u", "-b", std::to_string(static_cast<u64>(bps))});
      else if (bps > 0) a.insert(a.end(), {"-b", std::to_string(static_cast<u64>(bps))});
      clients.push_back(start(bound(a, cores_.tx, i), End::tx));
    }
    const u64 begin = wall_ns();
    const auto ended = [&] {
      return std::ranges::all_of(servers, [](const auto& c) { return c->ended(); }) &&
             std::ranges::all_of(clients, [](const auto& c) { return c->ended(); });
    };
    while (!ended()) {
      (void)servers.front()->wait(static_cast<double>(kLookNs) * 1e-9);
      const double waited = static_cast<double>(wall_ns() - begin) * 1e-9;
      if (watch_.progress) watch_.progress(std::min(waited / seconds, 1.0), label());
      if (servers.front()->ended() && !ended())
        std::ranges::for_each(clients, [](const auto& c) { (void)c->wait(0.02); });
      // The others of a pair that has failed may wait for it for long.
      const Child* const broken = first_broken(clients, servers);
      if (going() && broken == nullptr && waited <= seconds + kGraceS) continue;
      for (const auto* both : {&servers, &clients})
        for (const auto& c : *both) c->stop(SIGKILL), (void)c->wait(5);
      if (!going()) return std::nullopt;
      if (broken != nullptr) fail(*broken);
      throw Error("iperf3", fmt::format("it did not end within {:.0f} s", seconds + kGraceS), {},
                  ExitCode::data);
    }
    Halves all;
    for (u32 i = 0; i < c_.tx_queues; ++i) {
      const Half server = read(*servers[i], true), client = read(*clients[i], false);
      all.received.push_back(server);
      all.user_s += server.user_s + client.user_s;
      all.system_s += server.system_s + client.system_s;
    }
    return all;
  }

  using Children = std::vector<std::unique_ptr<Child>>;
  /// One that has ended with an error; a client's tells more than its server's.
  static const Child* first_broken(const Children& clients, const Children& servers) {
    for (const Children* all : {&clients, &servers})
      for (const auto& c : *all)
        if (c->ended() && c->exit_code() != 0) return c.get();
    return nullptr;
  }

  /// Throws Error with the program's own words.
  [[noreturn]] static void fail(const Child& child) {
    const std::string said = child.output();
    const Json j = Json::parse(said, nullptr, false);
    const bool told = j.is_object() && j.contains("error");
    throw Error("iperf3", report::printable(told ? j["error"].dump() : child.errors() + said.substr(0, 200)),
                {}, ExitCode::data);
  }

  /// A server that listens has its socket in the namespace's table.
  void await_listening(Child& server, u16 port) {
    const std::string wanted = fmt::format(":{:04X} 00000000:0000 0A", port);
    const u64 limit = wall_ns() + 10'000'000'000;
    for (bool found = false; !found;) {
      link_.in(End::rx, [&] {
        std::ifstream in("/proc/thread-self/net/tcp");
        const std::string text((std::istreambuf_iterator<char>(in)), {});
        found = text.find(wanted) != std::string::npos;
      });
      if (found) return;
      if (server.ended() || wall_ns() > limit)
        throw Error("iperf3",
                    "its server does not listen: " + report::printable(server.errors() + server.output()), {},
                    ExitCode::data);
      (void)server.wait(0.01);
    }
  }

  /// The report of one process. Anything that is not as expected is an Error, and never 0.
  Half read(Child& child, bool server) const {
    const std::string said = child.output();
    const Json j = Json::parse(said, nullptr, false);
    if (!j.is_object() || j.contains("error") || child.exit_code() != 0) fail(child);
    try {
      Half h;
      const Json& end = j.at("end");
      const Json& sum = udp_ && end.contains("sum") ? end.at("sum") : end.at("sum_received");
      const double cpu = end.at("cpu_utilization_percent").at("host_user").get<double>() / 100;
      const double system = end.at("cpu_utilization_percent").at("host_system").get<double>() / 100;
      h.seconds = sum.at("seconds").get<double>();
      h.user_s = cpu * h.seconds;
      h.system_s = system * h.seconds;
      if (!server) return h;
      if (udp_) {
        h.packets = sum.at("packets").get<u64>();
        h.lost = sum.at("lost_packets").get<u64>();
        h.bytes = (h.packets - std::min(h.lost, h.packets)) * c_.payload;
      } else {
        h.bytes = sum.at("bytes").get<u64>();
      }
      return h;
    } catch (const Json::exception& e) {
      throw Error("iperf3", fmt::format("its JSON is not as expected: {}", e.what()), {}, ExitCode::data);
    }
  }

  BenchOptions o_;
  CellSettings c_;
  const measure::RunWatch& watch_;
  Link& link_;
  bool udp_;
  CoreMap cores_;
  report::Cell cell_;
  std::vector<measure::RepeatFigures> repeats_;
  u64 lost_ = 0, packets_ = 0;
};

}  // namespace

std::unique_ptr<measure::Contender> iperf3_contender(const BenchOptions& o, const CellSettings& c,
                                                     const measure::RunWatch& watch, Link& link) {
  return std::make_unique<Iperf3Contender>(o, c, watch, link);
}

}  // namespace doorbell::net
