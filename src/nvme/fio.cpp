// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// fio as a contender: the same work by its own loop, read back from its JSON.
#include <doorbell/error.hpp>
#include <doorbell/pattern.hpp>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <system_error>

#include "measure/percentiles.hpp"
#include "measure/statistics.hpp"
#include "measure/tally.hpp"
#include "nvme/in_turns.hpp"
#include "nvme/linux/file.hpp"
#include "nvme/settings.hpp"
#include "nvme/written_mark.hpp"
#include "report/layout.hpp"
#include "system/child.hpp"

namespace doorbell::nvme {

namespace {

using Json = nlohmann::ordered_json;

/// fio's name for an engine, and the options that make it the best of its kind.
struct Engine {
  const char* name;
  std::vector<std::string> options;
};
Engine engine_of(const std::string& name, const BenchOptions& b) {
  const FileOptions& f = b.file_options;
  if (name == "psync") return {"psync", {}};
  if (name == "libaio") return {"libaio", {}};
  std::vector<std::string> o;
  if (f.fixed_buffers) o.emplace_back("--fixedbufs=1");
  if (f.fixed_files) o.emplace_back("--registerfiles=1");
  if (f.sqpoll) o.emplace_back("--sqthread_poll=1");
  if (name == "io_uring-poll") o.emplace_back("--hipri=1");
  if (name == "io_uring" || name == "io_uring-poll") return {"io_uring", o};
  throw Error(setting::others + " fio:" + name, "it is not one of psync, libaio, io_uring, io_uring-poll");
}

/// A unit that names doorbell's seed, but no address, as fio takes a pattern: what a run writes that does not
/// verify.
std::string unit_of_nowhere(u64 seed) {
  std::array<u32, pattern::kUnitWords> unit{};
  pattern::make_unit(unit.data(), {seed, pattern::kNoAddress, 0});
  std::string text = "0x";
  for (const u8 byte : std::span(reinterpret_cast<const u8*>(unit.data()), pattern::kUnitBytes))
    text += fmt::format("{:02x}", byte);
  return text;
}

class FioContender final : public Contender {
 public:
  FioContender(const BenchOptions& o, const measure::RunWatch& watch, const std::string& engine, u64 io_bytes)
      : o_(o), watch_(watch), engine_(engine), io_bytes_(io_bytes) {
    const Engine e = engine_of(engine, o);
    const bool write = o.write_io > 0;
    const DataFile file(o.file, o.file_options, write);
    if (write && !file.scratch() && !o.allow_write)
      throw Error(setting::others + " fio", fmt::format("it overwrites {}", o.file),
                  fmt::format("add {} if that may be lost", setting::allow_write));
    // fio writes data of its own: nothing that a mark promises.
    if (write && file.regular()) WrittenMark(o.file).about_to_write({0, file.bytes()});
    const u64 depth = std::max({o.in_flight, o.batch, 1u});
    // psync has one call in progress: as many jobs as there would be I/Os in flight.
    jobs_ = o.num_queues * (engine == "psync" ? depth : 1);
    const u64 base = o.base_lba * file.block_bytes();
    if (base >= file.bytes())
      throw Error(setting::base_lba, fmt::format("{} is past the end of {}", o.base_lba, o.file));
    const u64 share = (file.bytes() - base) / jobs_ / io_bytes * io_bytes;
    if (share == 0)
      throw Error(setting::others + " fio", fmt::format("{} has no space for {} jobs", o.file, jobs_));
    if (const u64 ios = (file.bytes() - base) / io_bytes, rest = ios - jobs_ * (share / io_bytes); rest > 0)
      rest_ = fmt::format("fio's {} jobs have equal parts and leave the last {} of {} I/Os of {} untouched",
                          jobs_, rest, ios, o.file);
    arguments_ = {"fio",
                  "--name=doorbell",
                  "--filename=" + escaped(o.file),
                  fmt::format("--rw={}{}", o.random ? "rand" : "", write ? "write" : "read"),
                  fmt::format("--bs={}", io_bytes),
                  fmt::format("--size={}", share),
                  fmt::format("--offset={}", base),
                  fmt::format("--offset_increment={}", share),
                  fmt::format("--numjobs={}", jobs_),
                  fmt::format("--iodepth={}", engine == "psync" ? 1 : depth),
                  fmt::format("--direct={}", o.file_options.direct ? 1 : 0),
                  fmt::format("--ioengine={}", e.name),
                  "--thread",
                  "--group_reporting",
                  "--norandommap",
                  "--time_based",
                  "--lat_percentiles=1",
                  "--clat_percentiles=0",
                  "--percentile_list=50:90:95:99:99.9:99.99",
                  "--output-format=json"};
    // So that what it writes is known for doorbell's: a later run may write there without a question.
    if (write) arguments_.push_back("--buffer_pattern=" + unit_of_nowhere(o.lfsr_seed));
    if (o.batch > 1 && engine != "psync") {
      arguments_.push_back(fmt::format("--iodepth_batch_submit={}", o.batch));
      arguments_.push_back(fmt::format("--iodepth_batch_complete_max={}", depth));
    }
    if (o.less_timing) arguments_.emplace_back("--gtod_reduce=1");
    arguments_.insert(arguments_.end(), e.options.begin(), e.options.end());
    cell_.path = "nvme";
    cell_.device_kind = "kernel";
    cell_.device_name = fmt::format("fio {} on {}", engine, o.file);
    cell_.cell = {
        {"write_io", o.write_io}, {"read_io", o.read_io}, {"io_bytes", io_bytes},
        {"queues", jobs_},        {"batch", o.batch},     {"in_flight", engine == "psync" ? 1 : depth},
        {"queue_length", 0},      {"memory_mode", 0},     {"pattern", o.random ? "random" : "sequential"}};
    cell_.errors = {{"completion", 0}};
    const std::unique_ptr<Child> version = start({"fio", "--version"});
    (void)version->wait(10);
    std::string text = version->output();
    text.erase(text.find_last_not_of('\n') + 1);
    cell_.extra["fio"] = {{"version", report::printable(text)},
                          {"command", fmt::format("{}", fmt::join(arguments_, " "))}};
  }

  std::string label() const override { return "fio " + engine_; }
  u64 io_bytes() override { return io_bytes_; }
  u32 in_flight() override { return o_.in_flight; }
  void warm_up() override { (void)run(o_.warmup_s, 0); }
  bool going() const override { return !failed_ && !interrupted(); }

  void repeat(u32 number) override {
    const Json job = run(o_.duration_s, number);
    if (job.is_null()) return;
    const Json& side = job.at(o_.write_io > 0 ? "write" : "read");
    report::Metrics m;
    m.ops = side.at("total_ios").get<u64>();
    m.bytes = side.at("io_bytes").get<u64>();
    m.elapsed_s = side.at("runtime").get<double>() / 1e3;
    m.ops_per_s = side.at("iops").get<double>();
    m.bytes_per_s = side.at("bw_bytes").get<double>();
    const Json& lat = side.at("lat_ns");
    if (lat.at("N").get<u64>() > 0) {
      report::Latency& l = m.latency_ns;
      l.count = lat.at("N").get<u64>();
      l.min = lat.at("min").get<double>();
      l.mean = lat.at("mean").get<double>();
      l.std = lat.at("stddev").get<double>();
      l.max = lat.at("max").get<double>();
      // By doorbell's own rules: none of too few samples, and the middle of a bucket is within what was
      // measured.
      measure::fill_percentiles(l, [&](double p) -> std::optional<double> {
        const std::string key = fmt::format("{:.6f}", p);
        if (!measure::percentile_rank(l.count, p) || !lat.contains("percentile") ||
            !lat.at("percentile").contains(key))
          return {};
        return std::clamp(lat.at("percentile").at(key).get<double>(), *l.min, *l.max);
      });
    }
    // fio gives each job's share of its running time.
    const double per_job = m.elapsed_s * static_cast<double>(jobs_) / 100;
    const u64 errors = job.value("error", 0) != 0 ? 1 : 0;
    failed_ = failed_ || errors > 0;
    cell_.errors["completion"] += errors;
    repeats_.push_back({o_.seed + number,
                        m,
                        errors,
                        {{.name = "",
                          .user_s = job.at("usr_cpu").get<double>() * per_job,
                          .system_s = job.at("sys_cpu").get<double>() * per_job}}});
  }

  BenchResult finish() override {
    BenchResult result;
    result.warnings = measure::add_repeats(cell_, repeats_);
    if (!repeats_.empty()) cell_.parts = {{o_.write_io > 0 ? "write" : "read", cell_.metrics}};
    if (!rest_.empty()) result.warnings.push_back(rest_);
    if (o_.verify) result.warnings.emplace_back("fio does not check the data: it has less to do");
    result.add(cell_);
    result.stop_reason = failed_         ? StopReason::broken
                         : interrupted() ? StopReason::requested
                                         : StopReason::done;
    return result;
  }

 private:
  [[nodiscard]] bool interrupted() const { return watch_.stop != nullptr && watch_.stop->requested(); }

  /// One run of fio: its only job. Null when it was interrupted.
  Json run(double seconds, u32 number) {
    std::vector<std::string> a = arguments_;
    a.push_back(fmt::format("--runtime={}ms", std::lround(seconds * 1e3)));
    a.push_back(fmt::format("--randseed={}", o_.seed + number));
    // Held while fio works, so that the device cannot be mounted meanwhile.
    const DataFile claim(o_.file, o_.file_options, o_.write_io > 0);
    const std::unique_ptr<Child> fio = start(a);
    constexpr double kGraceS = 20;
    for (double waited = 0; !fio->wait(0.02); waited += 0.02) {
      if (watch_.progress) watch_.progress(std::min(waited / seconds, 1.0), label());
      if (!interrupted() && waited <= seconds + kGraceS) continue;
      fio->stop(SIGKILL);
      (void)fio->wait(5);
      if (interrupted()) return nullptr;
      throw Error("fio", fmt::format("it did not end within {:.0f} s", seconds + kGraceS), {},
                  ExitCode::data);
    }
    // Messages of an error come before the JSON.
    const std::string said = fio->output();
    const std::size_t brace = said.starts_with('{') ? 0 : said.find("\n{");
    const Json all = brace == std::string::npos ? Json() : Json::parse(said.substr(brace), nullptr, false);
    if (!all.is_object() || !all.contains("jobs") || all["jobs"].empty())
      throw Error("fio", report::printable(first_line(fio->errors() + said)),
                  fmt::format("it was started as: {}", fmt::join(a, " ")));
    return all["jobs"][0];
  }
  [[nodiscard]] std::unique_ptr<Child> start(const std::vector<std::string>& a) const {
    try {
      return std::make_unique<Child>(a);
    } catch (const std::system_error& e) {
      throw Error(setting::others + " fio", fmt::format("fio cannot be started: {}", e.code().message()),
                  "install it (Debian: fio)", ExitCode::absent);
    }
  }
  /// fio takes ':' for the end of a name.
  static std::string escaped(const std::string& path) {
    std::string out;
    for (const char c : path) {
      if (c == ':' || c == '\\') out += '\\';
      out += c;
    }
    return out;
  }
  static std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

  BenchOptions o_;
  const measure::RunWatch& watch_;
  std::string engine_;
  u64 io_bytes_;
  u64 jobs_ = 1;
  std::string rest_;  ///< of the range, if jobs do not divide it
  std::vector<std::string> arguments_;
  report::Cell cell_;
  std::vector<measure::RepeatFigures> repeats_;
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<Contender> fio_contender(const BenchOptions& options, const measure::RunWatch& watch,
                                         const std::string& engine, u64 io_bytes) {
  return std::make_unique<FioContender>(options, watch, engine, io_bytes);
}

}  // namespace doorbell::nvme
