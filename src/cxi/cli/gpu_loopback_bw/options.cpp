// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/cli/gpu_loopback_bw/options.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <span>
#include <stdexcept>
#include <strings.h>

#include "cli/offers.hpp"
#include "cli/texts.hpp"
#include "cxi/loopback.hpp"
#include "cxi/model/spec.hpp"

namespace doorbell::cli {

namespace {

constexpr const char* kAdditions = "Additions of doorbell";
constexpr std::string_view kPrefix = "cxi";
constexpr std::string_view kModelPrefix = "cxi-model";

// --- the table ---------------------------------------------------------------------------------------------

void add_documented(OptionTable& t) {
  t.group("Options")
      .add({.name = "device",
            .letter = 'd',
            .metavar = "DEV",
            .default_text = "cxi0",
            .offers = [] { return device_words("cxi", {}); },
            .help = "cxiN, a Cassini NIC, or cxi-modelN[:KEY=VALUE,...], the software one (keys above)"})
      .add({.name = "svc-id",
            .letter = 'v',
            .kind = Kind::integer,
            .metavar = "SVC_ID",
            .default_text = "1",
            .min = 1,
            .max = 2147483647,
            .help = "the NIC's service, whose VNI is used"})
      .add({.name = "tx-gpu",
            .letter = 't',
            .kind = Kind::integer,
            .metavar = "GPU",
            .min = 0,
            .max = 255,
            .help = "put from this GPU's memory (not given: system memory)"})
      .add({.name = "rx-gpu",
            .letter = 'r',
            .kind = Kind::integer,
            .metavar = "GPU",
            .min = 0,
            .max = 255,
            .help = "put into this GPU's memory (not given: system memory)"})
      .add(
          {.name = "gpu-type",
           .letter = 'g',
           .metavar = "TYPE",
           .choices = {"AMD", "NVIDIA", "INTEL"},
           .help =
               "whose GPUs -t and -r count (not given: those of the first runtime with a GPU: CUDA, HIP, Level "
               "Zero)"})
      .add({.name = "duration",
            .letter = 'D',
            .metavar = "DURATION",
            .min = 1,
            .max = 4294967295u,
            .help = "go on for so long, to the end of an iteration; -i has no meaning then",
            .unit = "s",
            .into = {[](u64 seconds) { return seconds * 1'000'000; }, &cxi::LoopbackOptions::duration_us}})
      .add({.name = "iters",
            .letter = 'i',
            .metavar = "ITERS",
            .default_text = "25",
            .min = 1,
            .help = "iterations",
            .into = &cxi::LoopbackOptions::iterations})
      .add({.name = "size",
            .letter = 's',
            .metavar = "SIZE",
            .default_text = "524288",
            .min = 1,
            .max = 4294967295u,
            .help = "bytes of one write",
            .unit = "bytes",
            .into = &cxi::LoopbackOptions::bytes})
      .add({.name = "num-xfers",
            .letter = 'n',
            .metavar = "XFERS",
            .default_text = "8192",
            .min = 1,
            .max = cxi::kMaxLoopbackPuts,
            .help = "writes of an iteration, all started by one doorbell",
            .into = &cxi::LoopbackOptions::puts})
      .add({.name = "use-hp",
            .metavar = "HP_SIZE",
            .choices = {"2M", "1G"},
            .help = "system memory is huge pages of this size, from the kernel's pool"})
      .add({.name = "help", .letter = 'h', .kind = Kind::flag, .help = "print this help", .echoed = false})
      .add({.name = "version",
            .letter = 'V',
            .kind = Kind::flag,
            .help = "print the version",
            .echoed = false});
}

void add_additions(OptionTable& t) {
  t.group(kAdditions)
      .add(
          {.name = "json",
           .kind = Kind::path,
           .help =
               "write the whole result to FILE as JSON (schema doorbell.results/1); with it, the work is done "
               "once more without the pause between iterations"})
      .add({.name = "verify",
            .default_text = "on",
            .choices = {"on", "off"},
            .help = "after the timed part, compare what arrived with what was sent",
            .into = {"on", &cxi::LoopbackOptions::verify}})
      .add({.name = "repeats",
            .default_text = "1",
            .min = 1,
            .max = 1000,
            .help = "measure so many times, a row each",
            .into = &cxi::LoopbackOptions::repeats})
      .add({.name = "warmup",
            .metavar = "ITERS",
            .default_text = "1",
            .min = 0,
            .max = 1000000,
            .help = "iterations before the first that is timed",
            .into = &cxi::LoopbackOptions::warmup})
      .add({.name = "timeout",
            .kind = Kind::seconds,
            .default_text = "10",
            .min = 0.001,
            .max = 86400,
            .help = "give up, and say what is missing, when nothing has happened for this long",
            .into = &cxi::LoopbackOptions::timeout_s})
      .add(fault_option("make a model go wrong: fault KIND happens to each write with probability P",
                        kAdditions));
}

bool is_addition(const Option& o) {
  return o.group == kAdditions;
}

// --- values ------------------------------------------------------------------------------------------------

/// Reads a number like strtoull, but rejects a sign, an empty text, and values that do not fit.
std::optional<u64> number(const std::string& text, int base) {
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  const auto digit = std::find_if_not(text.begin(), text.end(), is_space);
  if (digit == text.end() || *digit < '0' || *digit > '9') return std::nullopt;
  errno = 0;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text.c_str(), &end, base);
  if (errno != 0 || *end != '\0') return std::nullopt;
  return value;
}

struct Number {
  std::string_view option;
  int base;  ///< 0: decimal, 0x.. or 0..
  const char* refusal;
};
constexpr auto kNumbers = std::to_array<Number>({
    {"svc-id", 10, "Invalid svc_id"},
    {"tx-gpu", 0, "Invalid src gpu device"},
    {"rx-gpu", 0, "Invalid dest gpu device"},
    {"duration", 0, "Invalid duration"},
    {"iters", 0, "Invalid iteration count"},
    {"size", 0, "Invalid transfer size"},
    {"num-xfers", 0, "Invalid list size"},
});

/// The reason why a value was refused; empty if it was taken.
struct Refusal {
  std::string message;
  std::string hint = {};
};
using Taken = std::optional<Refusal>;

Taken take_number(Options& into, const Option& o, const Number& n, const std::string& text) {
  const std::optional<u64> value = number(text, n.base);
  const bool above = value && o.max.set() && *value > o.max.whole();
  if (!value || above || *value < o.min.whole()) return Refusal{fmt::format("{}: {}", n.refusal, text)};
  into.set(o.name, std::to_string(*value));
  return {};
}

Taken take_device(Options& into, const std::string& text) {
  if (text.size() < kPrefix.size() + 1 || !text.starts_with(kPrefix))
    return Refusal{fmt::format("Device name must include cxi prefix (ex: cxi0): {}", text)};
  if (cxi::is_model(text)) {
    try {
      (void)cxi::parse_model_spec(text, kDeviceOption);
    } catch (const Error& e) {
      return Refusal{e.what(), e.hint()};
    }
    into.set("device", text);
    return {};
  }
  const std::string rest = text.substr(kPrefix.size());
  u32 index = 0;
  const auto [end, wrong] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
  if (wrong != std::errc() || end != rest.data() + rest.size())
    return Refusal{fmt::format("Invalid device name: {}", rest)};
  into.set("device", fmt::format("{}{}", kPrefix, index));
  return {};
}

Taken take_word(Options& into, const Option& o, const std::string& text, const std::string& refusal) {
  const auto same = [&](const std::string& choice) { return strcasecmp(choice.c_str(), text.c_str()) == 0; };
  const auto choice = std::ranges::find_if(o.choices, same);
  if (choice == o.choices.end()) return Refusal{refusal};
  into.set(o.name, *choice);
  return {};
}

Taken take(Options& into, const Option& o, const std::string& text) {
  if (o.name == "device") return take_device(into, text);
  if (o.name == "gpu-type")
    return take_word(into, o, text, fmt::format("Invalid gpu type: {}. Must be AMD or NVIDIA", text));
  if (o.name == "use-hp")
    return take_word(into, o, text, fmt::format("Invalid hugepage type: {}. Must be 2M or 1G", text));
  const auto n = std::ranges::find(kNumbers, o.name, &Number::option);
  if (n != kNumbers.end()) return take_number(into, o, *n, text);
  try {
    into.set(o.name, text);
  } catch (const std::invalid_argument& e) {
    return Refusal{fmt::format("--{}: {}", o.name, e.what())};
  }
  return {};
}

// --- getopt ------------------------------------------------------------------------------------------------

/// The table in the form that getopt needs. For long options, getopt returns kFirstLong plus their index in
/// the table.
class GetoptTable {
 public:
  explicit GetoptTable(const OptionTable& table) : all_(table.all()) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      add(all_[i].name, i);
      if (all_[i].letter == '\0') continue;
      letters_ += all_[i].letter;
      if (all_[i].kind != Kind::flag) letters_ += ':';
    }
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (!is_addition(all_[i])) keep_abbreviations(i);
    longs_.push_back({});
  }
  [[nodiscard]] const char* letters() const { return letters_.c_str(); }
  [[nodiscard]] const option* longs() const { return longs_.data(); }
  /// The option for a value that getopt_long() returned; null for its '?'.
  [[nodiscard]] const Option* find(int result) const {
    if (result >= kFirstLong) return &all_[static_cast<std::size_t>(result - kFirstLong)];
    const auto o = std::ranges::find(all_, result, [](const Option& one) { return int{one.letter}; });
    return o != all_.end() ? &*o : nullptr;
  }

 private:
  static constexpr int kFirstLong = 256;

  void add(const std::string& name, std::size_t i) {
    names_.push_back(name);
    longs_.push_back({names_.back().c_str(), all_[i].kind == Kind::flag ? no_argument : required_argument,
                      nullptr, kFirstLong + static_cast<int>(i)});
  }
  /// getopt refuses an abbreviation that two options share. An added option would take abbreviations away
  /// from a documented one, so each of these becomes a name of its own.
  void keep_abbreviations(std::size_t i) {
    const std::string& name = all_[i].name;
    for (std::size_t n = 1; n < name.size(); ++n) {
      const std::string_view begin = std::string_view(name).substr(0, n);
      const auto shares = [&](const Option& o) { return o.name != name && o.name.starts_with(begin); };
      const auto with = [&](bool addition) {
        return std::ranges::any_of(all_,
                                   [&](const Option& o) { return shares(o) && is_addition(o) == addition; });
      };
      if (with(true) && !with(false)) add(std::string(begin), i);
    }
  }

  const std::vector<Option>& all_;
  std::deque<std::string> names_;  // a deque, because its elements do not move
  std::vector<option> longs_;
  std::string letters_;
};

}  // namespace

Command cxi_gpu_loopback_bw_command() {
  Command c;
  c.name = kLoopbackProgram;
  c.standalone = true;
  c.summary = "bandwidth of a Cassini NIC's puts to itself, between system and GPU memory";
  c.description = {
      "Each iteration writes the source buffer to the destination buffer through the NIC, as often as "
      "--num-xfers says, and ends with one event for all acknowledgements. The row says the writes of all timed "
      "iterations, their bandwidth (10^9 bits of payload a second) and their packet rate (packets of at most 2048 "
      "bytes of payload).",
      "Options, output and error texts are those of the tool of this name in HPE's Slingshot host software, version "
      "1.5.1. After the timed part the data that arrived is compared with what was sent; a mismatch ends with exit "
      "status 1. Numbers of -t, -r, -D, -i, -s and -n may be decimal, hexadecimal (0x10) or octal (010).",
      "Without a Cassini NIC, name the software model: -d cxi-model0. With DOORBELL_CXI=model in the environment, "
      "cxiN means cxi-modelN, and a line on standard error says so.",
      key_text("The model's keys:", cxi::model_keys()),
  };
  add_documented(c.options);
  add_additions(c.options);
  c.exits = {
      {0, "success"},
      {1, "everything else: a bad option, no device, a missing acknowledgement, a data mismatch"},
      {2, "interrupted with bad data"},
      {130, "interrupted with good data, or impatiently: the same signal again, a second later or more"}};
  c.examples = {
      {.command = "cxi_gpu_loopback_bw",
       .text = "System memory to system memory: 25 iterations of 8192 writes of 512 KiB.",
       .needs = Needs::device},
      {.command = "cxi_gpu_loopback_bw -d cxi-model0 -i 5 -n 512",
       .text = "The same on the software model, less of it. (Here on 2 cores of a shared machine.)",
       .output = "---------------------------------------------------\n"
                 "    CXI Loopback Bandwidth Test\n"
                 "Device           : cxi-model0\n"
                 "Service ID       : 1\n"
                 "TX Mem           : System\n"
                 "RX Mem           : System\n"
                 "Test Type        : Iteration\n"
                 "Iterations       : 5\n"
                 "Write Size (B)   : 524288\n"
                 "Cmds per iter    : 512\n"
                 "Hugepages        : Disabled\n"
                 "---------------------------------------------------\n"
                 "RDMA Size[B]      Writes  BW[Gb/s]  PktRate[Mpkt/s]\n"
                 "      524288        2560    184.69        11.272607\n"
                 "---------------------------------------------------"},
      {.command = "cxi_gpu_loopback_bw --tx-gpu 0 --rx-gpu 2 --duration 10 --size 131072",
       .text = "From one GPU's memory to another's for ten seconds.",
       .needs = Needs::device},
      {.command = "cxi_gpu_loopback_bw -d cxi1 -t 2 -D 10 -s 1048576 --json out.json",
       .text = "From a GPU's memory to system memory, with the whole result in a file.",
       .needs = Needs::device},
      {.command = "cxi_gpu_loopback_bw -d cxi-model0:bandwidth=25Gi,overhead=64 -s 4096",
       .text = "A model with a link of that rate."},
      {.command = "cxi_gpu_loopback_bw -d cxi-model0 -i 50 -n 100 -s 64 --fault drop=0.002 --timeout 1",
       .text = "Lose acknowledgements: the error says the counter's value and its threshold.",
       .output = "...\n"
                 "Timed out waiting for TRIGGERED_OP event\n"
                 "Failed to get initiator ACK TRIGGERED_OP event: Connection timed out\n"
                 "Iteration failed: Connection timed out\n"
                 "counter: 2698 acknowledged, 0 failed, threshold 2700",
       .code = 1},
  };
  return c;
}

LoopbackLine parse_loopback(const OptionTable& table, const std::vector<std::string>& words) {
  LoopbackLine line{.options = Options(table)};
  const GetoptTable shape(table);
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  argv.reserve(copies.size() + 1);
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int argc = static_cast<int>(copies.size());
  optind = 0;  // start again
  for (int c = 0; (c = getopt_long(argc, argv.data(), shape.letters(), shape.longs(), nullptr)) != -1;) {
    const Option* const o = shape.find(c);
    if (o == nullptr) return line.action = LoopbackLine::Action::usage, line;
    if (o->name == "help") return line.action = LoopbackLine::Action::help, line;
    if (o->name == "version") return line.action = LoopbackLine::Action::version, line;
    if (const Taken refusal = take(line.options, *o, optarg)) {
      line.action = LoopbackLine::Action::refused;
      line.message = refusal->message;
      line.hint = refusal->hint;
      return line;
    }
  }
  if (optind < argc) {
    line.action = LoopbackLine::Action::refused;
    line.message = fmt::format("Unexpected argument: {}", argv[static_cast<std::size_t>(optind)]);
  }
  return line;
}

LoopbackDevice loopback_device(const std::string& name, const char* environment) {
  const std::string_view wanted = environment != nullptr ? environment : "";
  if (!wanted.empty() && wanted != "model" && wanted != "hardware")
    throw Error(fmt::format("DOORBELL_CXI={}", wanted), "it is neither model nor hardware",
                "unset it, or set it to model");
  if (wanted != "model" || cxi::is_model(name)) return {name};
  const std::string spec = fmt::format("{}{}", kModelPrefix, name.substr(kPrefix.size()));
  return {spec, fmt::format("DOORBELL_CXI=model: {} is {}, the software model", name, spec)};
}

}  // namespace doorbell::cli
