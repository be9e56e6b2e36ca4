// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// dpdk-testpmd as a contender: packets as long as ours over the same devices and on the same cores,
// unchecked.
#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/tally.hpp"
#include "net/bench/in_turns.hpp"
#include "net/dpdk/testpmd.hpp"
#include "net/settings.hpp"

namespace doorbell::net {

namespace {

class TestpmdContender final : public measure::Contender {
 public:
  TestpmdContender(const BenchOptions& o, const CellSettings& c, const measure::RunWatch& watch, Link& link)
      : o_(o), c_(c), watch_(watch), link_(link), request_(stream_request(o, {c, 0})) {
    const std::string subject = setting::others + " testpmd";
    if (const BackendStatus s = dpdk::testpmd_status(); !s.usable)
      throw Error(subject, s.detail, "install it (Debian: dpdk-dev)", ExitCode::absent);
    if (c.tx_queues != 1 || c.rx_queues != 1)
      throw Error(subject, "it is compared with one queue on each side",
                  fmt::format("use {} 1x1", setting::queues));
    if (c.target_gbps > 0)
      throw Error(subject, "it sends as fast as it can", fmt::format("leave {} out", setting::target_gbps));
    const CoreMap cores = map_cores(o, c);
    cores_.assign(cores.tx.begin(), cores.tx.end());
    cores_.insert(cores_.end(), cores.rx.begin(), cores.rx.end());
    dpdk::check_testpmd(request_, link, options());
    cell_ = new_cell(o, c, link, "testpmd", std::min(c.batch, dpdk::kTestpmdBurst));
    cell_.device_name.insert(0, "dpdk-testpmd over ");
    cell_.errors = {{"completion", 0}};
  }

  std::string label() const override { return "testpmd"; }
  void warm_up() override {}  // it warms itself up before each run
  bool going() const override { return watch_.stop == nullptr || !watch_.stop->requested(); }

  void repeat(u32 number) override {
    const dpdk::TestpmdRun run = dpdk::run_testpmd(request_, link_, options());
    if (!going()) return;
    cell_.extra["testpmd"] = {{"version", run.version}, {"mode", run.mode}};
    report::Metrics m;
    m.ops_per_s = run.received_per_s.value_or(run.sent_per_s);
    m.elapsed_s = run.seconds;
    m.ops = static_cast<u64>(m.ops_per_s * m.elapsed_s);
    m.bytes = m.ops * c_.payload;
    m.bytes_per_s = m.ops_per_s * static_cast<double>(c_.payload);
    repeats_.push_back({o_.seed + number, m});
  }

  measure::BenchResult finish() override {
    measure::BenchResult result;
    result.warnings = measure::add_repeats(cell_, repeats_);
    if (!repeats_.empty())
      cell_.extra["net"] = {{"goodput_gbps", cell_.metrics.bytes_per_s * 8e-9},
                            {"mpps", cell_.metrics.ops_per_s * 1e-6}};
    result.warnings.emplace_back("testpmd looks at no packet that arrives: it has less to do");
    result.add(cell_);
    result.stop_reason = going() ? StopReason::done : StopReason::requested;
    return result;
  }

 private:
  dpdk::TestpmdOptions options() {
    return {.seconds = static_cast<u32>(std::max(1.0, std::round(o_.duration_s))),
            .cores = cores_,
            .interrupted =
                [this] {
                  if (watch_.progress) watch_.progress(0.5, label());
                  return !going();
                },
            .title = setting::others + " testpmd"};
  }

  BenchOptions o_;
  CellSettings c_;
  const measure::RunWatch& watch_;
  Link& link_;
  StreamRequest request_;
  std::vector<u32> cores_;
  report::Cell cell_;
  std::vector<measure::RepeatFigures> repeats_;
};

}  // namespace

std::unique_ptr<measure::Contender> testpmd_contender(const BenchOptions& o, const CellSettings& c,
                                                      const measure::RunWatch& watch, Link& link) {
  return std::make_unique<TestpmdContender>(o, c, watch, link);
}

}  // namespace doorbell::net
