// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The program `cxi_gpu_loopback_bw`: from its command line to its table.
#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "cli/output.hpp"
#include "cli/run_options.hpp"
#include "cli/texts.hpp"
#include "cxi/backends.hpp"
#include "cxi/cli/gpu_loopback_bw/options.hpp"
#include "cxi/cli/gpu_loopback_bw/texts.hpp"
#include "cxi/cli/parts.hpp"
#include "cxi/loopback_cell.hpp"
#include "measure/gpu_runner.hpp"
#include "measure/statistics.hpp"
#include "memory/huge_pages.hpp"
#include "report/json.hpp"
#include "report/tool.hpp"
#include "report/verdict.hpp"
#include "system/sysfs.hpp"

namespace doorbell::cli {

namespace {

constexpr int kFailed = 1;

/// Ends the program with these lines on standard error.
struct Refused {
  std::vector<std::string> lines;
};

/// Puts the program's name in front, as in getopt's own messages.
Refused refused(const std::string& message, const std::string& hint = {}) {
  Refused r{{fmt::format("{}: {}", kLoopbackProgram, message)}};
  if (!hint.empty()) r.lines.push_back("hint: " + hint);
  return r;
}

Refused refused(const std::string& message, const Error& e) {
  Refused r{{message}};
  if (message.find(e.what()) == std::string::npos) r.lines.emplace_back(e.what());
  if (!e.hint().empty()) r.lines.push_back("hint: " + e.hint());
  return r;
}

std::optional<u64> value_of(const Options& o, const char* name) {
  return o.has(name) ? std::optional(o.integer(name)) : std::nullopt;
}

// --- huge pages --------------------------------------------------------------------------------------------

struct HugePageChoice {
  Place place = Place::pageable;
  std::string text = "Disabled";  ///< for the header
};

HugePageChoice huge_page_choice(const Options& o) {
  HugePageChoice choice;
  const std::string& size = o.text("use-hp");
  if (size.empty()) return choice;
  const unsigned ends = (o.has("tx-gpu") ? 0 : 1) + (o.has("rx-gpu") ? 0 : 1);
  if (ends == 0) {
    choice.text = "Disabled - Not Applicable";
    return choice;
  }
  const u64 page = size == "2M" ? kHuge2M : kHuge1G;
  const u64 needed = hugepages_needed(o.integer("size"), page, ends);
  const HugePages pool = huge_pages(page);
  if (const std::ifstream file(pool.control_file); !file)
    throw refused(fmt::format("Unable to open {}: {}", pool.control_file, reason(errno)));
  if (pool.free < needed)
    throw refused(fmt::format("Insufficient {} huge pages. Need {} to run", size, needed),
                  fmt::format("echo {} > {}", pool.total - pool.free + needed, pool.control_file));
  choice.place = size == "2M" ? Place::huge_2m : Place::huge_1g;
  choice.text = fmt::format("Enabled ({} - {} pages)", size, needed);
  return choice;
}

// --- GPUs --------------------------------------------------------------------------------------------------

/// The GPUs that -t and -r choose from, and those chosen.
struct LoopbackGpus {
  std::string type;  ///< empty: no GPU is asked for
  std::vector<gpu::Info> found;
  std::shared_ptr<gpu::Gpu> tx, rx;
};

/// The name that -g has for the GPUs of each runtime, and the library whose absence is reported for them.
struct GpuType {
  const char* type;
  gpu::Runtime runtime;
  const char* library;
};
constexpr GpuType kGpuTypes[] = {{"AMD", gpu::Runtime::hip, "libamdhip64.so"},
                                 {"NVIDIA", gpu::Runtime::cuda, "libcudart.so"},
                                 {"INTEL", gpu::Runtime::level_zero, "libze_loader.so"}};

const GpuType& gpu_type_called(const std::string& type) {
  return *std::ranges::find(kGpuTypes, type, &GpuType::type);
}

std::string gpu_type(const Options& o) {
  if (!o.has("tx-gpu") && !o.has("rx-gpu")) return {};
  if (o.has("gpu-type")) return o.text("gpu-type");
  for (const gpu::RuntimeStatus& s : gpu::runtimes())
    if (s.usable) return std::ranges::find(kGpuTypes, s.runtime, &GpuType::runtime)->type;
  throw refused("Invalid GPU type or unable to find GPU libraries",
                "doorbell doctor says what is missing; without -t and -r system memory is used");
}

Refused no_gpus(const GpuType& wanted) {
  Refused r{{"No GPUs found"}};
  for (const gpu::RuntimeStatus& s : gpu::runtimes()) {
    if (s.runtime != wanted.runtime) continue;
    if (s.detail.find(".so") != std::string::npos)
      r.lines = {fmt::format("Unable to open {}", wanted.library)};
    r.lines.push_back(s.detail);
  }
  return r;
}

void open_gpus(LoopbackGpus& gpus, const Options& o, bool model) {
  const GpuType& wanted = gpu_type_called(gpus.type);
  for (gpu::Info& info : gpu::enumerate())
    if (info.runtime == wanted.runtime) gpus.found.push_back(std::move(info));
  if (gpus.found.empty()) throw no_gpus(wanted);
  for (const char* end : {"tx-gpu", "rx-gpu"})
    if (o.has(end) && o.integer(end) >= gpus.found.size())
      throw Refused{{fmt::format("GPU must be in the range: 0 to {}.", gpus.found.size() - 1)}};
  const auto open = [&](const char* end) {
    return o.has(end) ? gpu::open(gpus.found[o.integer(end)].index) : nullptr;
  };
  gpus.tx = open("tx-gpu");
  const bool same = gpus.tx && o.has("rx-gpu") && o.integer("rx-gpu") == o.integer("tx-gpu");
  gpus.rx = same ? gpus.tx : open("rx-gpu");
  // A model reaches GPU memory by a kernel, which must be loaded before the first endless kernel starts.
  for (const auto& gpu : {gpus.tx, gpus.rx})
    if (gpu && model) measure::prepare_kernels(*gpu, {});
}

// --- the device --------------------------------------------------------------------------------------------

bool is_model(const std::string& spec) {
  return spec.starts_with("cxi-model");
}

Refused not_opened(const std::string& spec, const cxi::CallError& e) {
  Refused r = refused(fmt::format("Failed to open CXI device: {}", reason(e.errno_code())), e);
  if (!is_model(spec))
    r.lines.emplace_back(
        "hint: without a Cassini NIC: -d cxi-model0 (or DOORBELL_CXI=model) is one in software");
  return r;
}

std::unique_ptr<cxi::CassiniDevice> open_device(const std::string& spec, const Options& o,
                                                const LoopbackGpus& gpus) {
  cxi::DeviceRequest request{.spec = spec, .use = {.faults = fault_rates(o.list("fault"))}};
  for (const auto& gpu : {gpus.tx, gpus.rx})
    if (gpu && (request.gpus.empty() || request.gpus.front() != gpu)) request.gpus.push_back(gpu);
  try {
    return cxi::open_device(request);
  } catch (const cxi::CallError& e) {
    throw not_opened(spec, e);
  } catch (const Error& e) {
    throw refused(fmt::format("Failed to open CXI device: {}", e.what()), e);
  }
}

/// The name of a refused call in the tool's messages.
Refused call_refused(const cxi::CallError& e, u64 service) {
  const std::string reason = doorbell::reason(e.errno_code());
  switch (e.call()) {
    case cxi::CallError::Call::open:
      return refused(fmt::format("Failed to open CXI device: {}", reason), e);
    case cxi::CallError::Call::service:
      return refused(fmt::format("Failed to get service {}: {}", service, reason), e);
    case cxi::CallError::Call::map:
      return refused(fmt::format("Failed to map CXI buffer: {}", reason), e);
    default:
      return refused(e.what(), e);
  }
}

// --- the program -------------------------------------------------------------------------------------------

class Loopback {
 public:
  Loopback(const Options& o, Context& context)
      : o_(o), context_(context), quiet_(o.text("json") == "-"), service_(o.integer("svc-id")) {}

  int run() {
    check_before_anything();
    context_.stop.install();
    print(loopback_header(header()));
    open();
    try {
      print_error_lines_of_gpus();
      print(loopback_columns());
      const cxi::LoopbackOptions options = loopback_options();
      const cxi::LoopbackResult result = cxi::run_loopback(*device_, *endpoint_, options, &context_.stop);
      return conclude(options, result);
    } catch (const cxi::CallError& e) {
      throw call_refused(e, service_);
    } catch (const cxi::LoopbackError& e) {
      throw Refused{failure_lines(e.failure(), false)};
    }
  }

 private:
  void print(const std::string& text) const {
    if (quiet_) return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
  static void print_error_lines(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) fmt::print(stderr, "{}\n", line);
  }

  void check_before_anything() {
    check_output("json", o_.text("json"));
    device_spec_ = resolve();
    if (fault_rates(o_.list("fault")).any() && !is_model(device_spec_))
      throw refused(
          fmt::format("--fault: {} is not a model: faults cannot be injected into it", device_spec_),
          "use -d cxi-model0");
    pages_ = huge_page_choice(o_);
    gpus_.type = gpu_type(o_);
  }

  std::string resolve() {
    const LoopbackDevice d = loopback_device(o_.text("device"), std::getenv("DOORBELL_CXI"));
    if (!d.note.empty()) fmt::print(stderr, "{}: {}\n", kLoopbackProgram, d.note);
    return d.spec;
  }

  [[nodiscard]] LoopbackHeader header() const {
    return {.device = device_spec_,
            .service = service_,
            .tx_gpu = value_of(o_, "tx-gpu"),
            .rx_gpu = value_of(o_, "rx-gpu"),
            .gpu_type = gpus_.type,
            .duration_s = value_of(o_, "duration"),
            .iterations = o_.integer("iters"),
            .bytes = o_.integer("size"),
            .puts = o_.integer("num-xfers"),
            .hugepages = pages_.text};
  }

  /// The tool opens the NIC before it asks for GPUs, so errors of the NIC come first.
  void open() {
    std::optional<Refused> no_gpu;
    if (!gpus_.type.empty()) {
      try {
        open_gpus(gpus_, o_, is_model(device_spec_));
      } catch (const Refused& r) {
        no_gpu = r;
      } catch (const Error& e) {
        no_gpu = refused(e.what(), e);
      }
    }
    device_ = open_device(device_spec_, o_, no_gpu ? LoopbackGpus{} : gpus_);
    try {
      endpoint_ = device_->open(static_cast<u32>(service_));
    } catch (const cxi::CallError& e) {
      throw call_refused(e, service_);
    }
    if (!no_gpu) return;
    print_error_lines_of_gpus();
    throw Refused(*no_gpu);
  }

  void print_error_lines_of_gpus() const {
    if (!gpus_.found.empty()) print(fmt::format("Found {} GPU(s)\n", gpus_.found.size()));
  }

  [[nodiscard]] cxi::LoopbackOptions loopback_options() const {
    cxi::LoopbackOptions l;
    const auto buffer = [&](const char* end, const std::shared_ptr<gpu::Gpu>& gpu) {
      return o_.has(end) ? cxi::LoopbackBuffer{Place::gpu, gpu} : cxi::LoopbackBuffer{pages_.place};
    };
    l.source = buffer("tx-gpu", gpus_.tx);
    l.destination = buffer("rx-gpu", gpus_.rx);
    o_.read_into(l);
    l.steady = !o_.text("json").empty();
    return l;
  }

  int conclude(const cxi::LoopbackOptions& options, const cxi::LoopbackResult& result) {
    if (!result.failure) {
      print_rows(options, result);
      print(loopback_separator());
    }
    print_spread(options, result);
    if (result.failure) print_error_lines(failure_lines(*result.failure, true));
    print_error_lines(mismatch_lines(result.verify));
    // The tool's exit codes are success and failure only. An interrupted run also shows whether its data were
    // good.
    const ExitCode partial = result.failed() ? ExitCode::data : ExitCode::interrupted;
    const int code = result.interrupted ? static_cast<int>(partial) : result.failed() ? kFailed : 0;
    try {
      write_json(options, result, code);
    } catch (const Error& e) {
      return report::worse_of(code, cli::print_error(std::string(kLoopbackProgram) + ": ", e));
    }
    return code;
  }

  void print_rows(const cxi::LoopbackOptions& options, const cxi::LoopbackResult& result) const {
    for (const cxi::LoopbackPart& part : result.repeats) print_row(options, part);
    if (result.repeats.empty()) print_row(options, {});  // stopped before the first repeat
  }
  void print_row(const cxi::LoopbackOptions& options, const cxi::LoopbackPart& part) const {
    print(loopback_row(options.bytes, part.iterations * options.puts,
                       static_cast<double>(part.elapsed_ns) / 1000));
  }

  void print_spread(const cxi::LoopbackOptions& options, const cxi::LoopbackResult& result) const {
    if (options.repeats == 1 || result.failure || result.repeats.size() < 2) return;
    std::vector<double> rates;
    for (const cxi::LoopbackPart& p : result.repeats)
      rates.push_back(loopback_figures(options.bytes, p.iterations * options.puts,
                                       static_cast<double>(p.elapsed_ns) / 1000)
                          .gbit_per_s);
    const report::Spread s = measure::spread_of(rates);
    print(fmt::format("Median of {}: {:.2f} Gb/s ({:.2f} to {:.2f} with {:.1f} %)\n", rates.size(), s.median,
                      s.ci_low, s.ci_high, s.ci_level * 100));
  }

  void write_json(const cxi::LoopbackOptions& options, const cxi::LoopbackResult& result, int code) const {
    if (o_.text("json").empty()) return;
    report::Result r = new_result(context_);
    report::Cell cell = cxi::loopback_cell(options, static_cast<u32>(service_), result, *device_, r.warnings);
    cell.options = o_.echo();
    r.cells.push_back(std::move(cell));
    r.stop_reason = cxi::stop_reason(result);
    r.exit_code = code;
    report::write_json(r, o_.text("json"));
  }

  const Options& o_;
  Context& context_;
  const bool quiet_;  ///< --json uses standard output
  const u64 service_;
  std::string device_spec_;
  HugePageChoice pages_;
  LoopbackGpus gpus_;
  std::unique_ptr<cxi::CassiniDevice> device_;
  std::unique_ptr<cxi::Endpoint> endpoint_;
};

int run(const Options& options, Context& context) {
  try {
    return Loopback(options, context).run();
  } catch (const Error& e) {
    throw refused(e.what(), e.hint());
  }
}

int run_program(Context& context) {
  const Command command = cxi_gpu_loopback_bw_command();
  const LoopbackLine line = parse_loopback(command.options, context.argv);
  try {
    switch (line.action) {
      case LoopbackLine::Action::help:
        std::fputs(command_help(command).c_str(), stdout);
        return 0;
      case LoopbackLine::Action::usage:
        std::fputs(command_help(command).c_str(), stdout);
        return kFailed;
      case LoopbackLine::Action::version:
        fmt::print("{} version: {}\n", kLoopbackProgram, report::tool().version);
        return 0;
      case LoopbackLine::Action::refused:
        throw refused(line.message, line.hint);
      case LoopbackLine::Action::run:
        break;
    }
    return run(line.options, context);
  } catch (const Refused& r) {
    std::fflush(stdout);
    for (const std::string& text : r.lines) fmt::print(stderr, "{}\n", text);
    return kFailed;
  }
}

}  // namespace

Program cxi_gpu_loopback_bw() {
  return {cxi_gpu_loopback_bw_command(), run_program};
}

}  // namespace doorbell::cli
