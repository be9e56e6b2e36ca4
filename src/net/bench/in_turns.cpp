// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/bench/in_turns.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "net/bench/cell_run.hpp"
#include "net/settings.hpp"
#include "options/enumeration.hpp"

namespace doorbell::net {

namespace {

class CellContender final : public measure::Contender {
 public:
  CellContender(const BenchOptions& o, const CellSettings& cell, const measure::RunWatch& watch,
                std::shared_ptr<Link> link)
      : label_("doorbell " + kind_of(o).name), run_(o, cell, watch, nullptr, std::move(link)) {}
  std::string label() const override { return label_; }
  void warm_up() override { run_.warm_up(); }
  void repeat(u32 number) override { run_.repeat(number); }
  bool going() const override { return !run_.stopped(); }
  measure::BenchResult finish() override {
    measure::BenchResult result;
    run_.conclude(result);
    return result;
  }

 private:
  std::string label_;
  CellRun run_;
};

struct Program {
  const char* name;
  std::vector<std::string> streams;
  std::unique_ptr<measure::Contender> (*open)(const BenchOptions&, const CellSettings&,
                                              const measure::RunWatch&, Link&);
};
const std::vector<Program>& programs() {
  static const std::vector<Program> all = {{"iperf3", {"tcp", "udp"}, iperf3_contender},
                                           {"testpmd", {"raw"}, testpmd_contender}};
  return all;
}

const Program& program(const BenchOptions& o, const std::string& name) {
  const auto at = std::ranges::find_if(programs(), [&](const Program& p) { return name == p.name; });
  if (at == programs().end())
    throw Error(setting::others,
                fmt::format("'{}' is not {}", name, options::enumeration(other_programs(), "or")));
  if (std::ranges::find(at->streams, o.stream) == at->streams.end())
    throw Error(fmt::format("{} {}", setting::others, name),
                fmt::format("it does {}, not {}", options::enumeration(at->streams, "and"), o.stream));
  return *at;
}

}  // namespace

std::vector<std::string> other_programs() {
  std::vector<std::string> names;
  for (const Program& p : programs()) names.emplace_back(p.name);
  return names;
}

void check_others(const BenchOptions& o, const std::vector<std::string>& others) {
  for (const std::string& name : others) (void)program(o, name);
  if (o.role != Role::both)
    throw Error(setting::others, "both ends must be of this machine",
                fmt::format("leave {} out", setting::connect));
  if (o.duration_s <= 0)
    throw Error(setting::others, "programs differ in how long a count takes",
                fmt::format("give {}", setting::duration));
  if (o.mode == Mode::no_drop)
    throw Error(setting::others, "others do not search a rate", fmt::format("use another {}", setting::mode));
  if (o.faults.any())
    throw Error(setting::others, "others have no relay", fmt::format("leave {} out", setting::fault));
}

measure::BenchResult run_in_turns(const BenchOptions& o, const measure::RunWatch& watch,
                                  const std::vector<std::string>& others) {
  check(o);
  check_others(o, others);
  measure::BenchResult all;
  for (const CellSettings& c : cells_of(o)) {
    if (watch.stop != nullptr && watch.stop->requested()) {
      all.stopped(StopReason::requested);
      break;
    }
    const std::shared_ptr<Link> link = open_link({.spec = o.link, .queues = c.flows()});
    std::vector<std::unique_ptr<measure::Contender>> own;
    own.push_back(std::make_unique<CellContender>(o, c, watch, link));
    for (const std::string& name : others) own.push_back(program(o, name).open(o, c, watch, *link));
    std::vector<measure::Contender*> ways;
    for (const auto& w : own) ways.push_back(w.get());
    for (measure::BenchResult& r : measure::run_in_turns(o, watch, ways)) all.append(std::move(r));
  }
  return all;
}

}  // namespace doorbell::net
