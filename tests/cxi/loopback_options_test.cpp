// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The command line of cxi_gpu_loopback_bw: each option's good and bad values with both neighbours of each
// limit, the texts of refusals, and the spellings that GNU getopt allows.
#include <gtest/gtest.h>

#include <doorbell/error.hpp>

#include <vector>

#include "cli/texts.hpp"
#include "cxi/cli/gpu_loopback_bw/options.hpp"

namespace doorbell::cli {
namespace {

using Action = LoopbackLine::Action;

LoopbackLine parse(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {kLoopbackProgram};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return parse_loopback(cxi_gpu_loopback_bw_command().options, words);
}

std::string shown(const std::vector<std::string>& arguments) {
  std::string text;
  for (const std::string& a : arguments) text += "[" + a + "]";
  return text;
}

void expect_number(const std::string& option, const std::vector<std::string>& arguments, u64 value) {
  const LoopbackLine line = parse(arguments);
  ASSERT_EQ(line.action, Action::run) << shown(arguments) << ": " << line.message;
  EXPECT_EQ(line.options.integer(option), value) << shown(arguments);
}

void expect_refused(const std::vector<std::string>& arguments, const std::string& message) {
  const LoopbackLine line = parse(arguments);
  EXPECT_EQ(line.action, Action::refused) << shown(arguments);
  EXPECT_EQ(line.message, message) << shown(arguments);
}

/// getopt's own refusal: what it says, and that the usage follows.
void expect_usage(const std::vector<std::string>& arguments, const std::string& said) {
  testing::internal::CaptureStderr();
  const LoopbackLine line = parse(arguments);
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.action, Action::usage) << shown(arguments);
  EXPECT_EQ(err.substr(0, err.find('\n')), std::string(kLoopbackProgram) + ": " + said) << shown(arguments);
}

TEST(CxiLoopbackOptions, Defaults) {
  const LoopbackLine line = parse({});
  ASSERT_EQ(line.action, Action::run);
  const Options& o = line.options;
  EXPECT_EQ(o.text("device"), "cxi0");
  EXPECT_EQ(o.integer("svc-id"), 1u);
  EXPECT_EQ(o.integer("iters"), 25u);
  EXPECT_EQ(o.integer("size"), 524288u);
  EXPECT_EQ(o.integer("num-xfers"), 8192u);
  for (const char* off : {"tx-gpu", "rx-gpu", "gpu-type", "duration", "use-hp", "json", "fault"})
    EXPECT_FALSE(o.has(off)) << off;
  EXPECT_EQ(o.text("verify"), "on");
  EXPECT_EQ(o.integer("repeats"), 1u);
  EXPECT_EQ(o.integer("warmup"), 1u);
  EXPECT_EQ(o.seconds("timeout"), 10);
}

struct NumberCase {
  const char* option;
  const char* letter;
  bool base_0;
  u64 min, max;
  const char* refusal;
};
constexpr NumberCase kNumberCases[] = {
    {"svc-id", "-v", false, 1, 2147483647, "Invalid svc_id"},
    {"tx-gpu", "-t", true, 0, 255, "Invalid src gpu device"},
    {"rx-gpu", "-r", true, 0, 255, "Invalid dest gpu device"},
    {"duration", "-D", true, 1, 4294967295, "Invalid duration"},
    {"iters", "-i", true, 1, ~u64{0}, "Invalid iteration count"},
    {"size", "-s", true, 1, 4294967295, "Invalid transfer size"},
    {"num-xfers", "-n", true, 1, 16382, "Invalid list size"},
};

TEST(CxiLoopbackOptions, NumbersAtBothEndsOfTheirRange) {
  for (const NumberCase& c : kNumberCases) {
    for (const u64 good : {c.min, c.min + 1, c.max - 1, c.max})
      expect_number(c.option, {c.letter, std::to_string(good)}, good);
    std::vector<std::string> bad;
    if (c.min > 0) bad.push_back(std::to_string(c.min - 1));
    if (c.max < ~u64{0}) bad.push_back(std::to_string(c.max + 1));
    for (const std::string& text : bad)
      expect_refused({c.letter, text}, std::string(c.refusal) + ": " + text);
  }
}

TEST(CxiLoopbackOptions, WhatIsNoNumber) {
  for (const NumberCase& c : kNumberCases)
    // Signs, nothing, words, rests, and numbers that truncation would make good ones: 2^16 + 1, 2^32 + 1,
    // 2^64 + 1.
    for (const char* text : {"", " ", "-1", "+1", " -1", "-65535", "x", "5x", "5 ", "1.5", "1e3", "0x", "1:2",
                             "1k", "18446744073709551616", "18446744073709551617", "99999999999999999999999"})
      expect_refused({c.letter, text}, std::string(c.refusal) + ": " + text);
  expect_refused({"-n", "65537"}, "Invalid list size: 65537");
  expect_refused({"-n", "4294967297"}, "Invalid list size: 4294967297");
  expect_refused({"-t", "256"}, "Invalid src gpu device: 256");
  expect_refused({"-s", "4294967297"}, "Invalid transfer size: 4294967297");
  expect_refused({"-D", "4294967297"}, "Invalid duration: 4294967297");
  expect_refused({"-v", "4294967297"}, "Invalid svc_id: 4294967297");
  expect_refused({"-n", "08"}, "Invalid list size: 08");
}

TEST(CxiLoopbackOptions, BasesOfNumbers) {
  for (const NumberCase& c : kNumberCases) {
    if (c.base_0) {
      expect_number(c.option, {c.letter, "0x10"}, 16);
      expect_number(c.option, {c.letter, "0X1f"}, 31);
      expect_number(c.option, {c.letter, "010"}, 8);
    } else {
      expect_number(c.option, {c.letter, "010"}, 10);
      expect_refused({c.letter, "0x10"}, std::string(c.refusal) + ": 0x10");
    }
    expect_number(c.option, {c.letter, " 7"}, 7);
  }
}

TEST(CxiLoopbackOptions, Devices) {
  const std::pair<const char*, const char*> good[] = {
      {"cxi0", "cxi0"},
      {"cxi1", "cxi1"},
      {"cxi4294967295", "cxi4294967295"},
      {"cxi007", "cxi7"},
      {"cxi-model0", "cxi-model0"},
      {"cxi-model12:rate=1Gi,latency=2us", "cxi-model12:rate=1Gi,latency=2us"},
  };
  for (const auto& [text, device] : good) {
    const LoopbackLine line = parse({"-d", text});
    ASSERT_EQ(line.action, Action::run) << text << ": " << line.message;
    EXPECT_EQ(line.options.text("device"), device);
  }
  for (const char* text : {"", "c", "cxi", "hsn0", "CXI0", "model", "0", "/dev/cxi0"})
    expect_refused({"-d", text}, std::string("Device name must include cxi prefix (ex: cxi0): ") + text);
  for (const char* rest : {"x", "-1", "+1", " 1", "1x", "0x1", "4294967296", "18446744073709551616", "-model",
                           "-modelx", "-model-1", "0:rate=1"})
    expect_refused({"-d", std::string("cxi") + rest}, std::string("Invalid device name: ") + rest);
  const LoopbackLine line = parse({"-d", "cxi-model0:raet=1Gi"});
  EXPECT_EQ(line.action, Action::refused);
  EXPECT_EQ(line.message, "--device cxi-model0: unknown key 'raet'");
  EXPECT_NE(line.hint.find("bandwidth"), std::string::npos) << line.hint;
}

TEST(CxiLoopbackOptions, Words) {
  for (const char* text : {"AMD", "amd", "NVIDIA", "Nvidia", "nvidia", "INTEL", "intel"})
    EXPECT_EQ(parse({"-g", text}).action, Action::run) << text;
  EXPECT_EQ(parse({"-g", "nVidia"}).options.text("gpu-type"), "NVIDIA");
  for (const char* text : {"", "AM", "AMDs", "cuda", "1"})
    expect_refused({"-g", text}, std::string("Invalid gpu type: ") + text + ". Must be AMD or NVIDIA");
  EXPECT_EQ(parse({"--use-hp=2m"}).options.text("use-hp"), "2M");
  EXPECT_EQ(parse({"--use-hp", "1G"}).options.text("use-hp"), "1G");
  for (const char* text : {"", "2", "2MB", "1GiB", "4K"})
    expect_refused({"--use-hp", text}, std::string("Invalid hugepage type: ") + text + ". Must be 2M or 1G");
}

TEST(CxiLoopbackOptions, Spellings) {
  expect_number("size", {"-s4096"}, 4096);
  expect_number("size", {"-s", "4096"}, 4096);
  expect_number("size", {"--size=4096"}, 4096);
  expect_number("size", {"--size", "4096"}, 4096);
  expect_number("size", {"--si", "4096"}, 4096);
  expect_number("num-xfers", {"--num=7"}, 7);
  expect_number("num-xfers", {"--n", "7"}, 7);
  expect_number("iters", {"-i", "3", "-i", "4"}, 4);
  expect_number("iters",
                {
                    "--",
                },
                25);
  // A short option's argument is everything behind it, an '=' too.
  expect_refused({"-s=4096"}, "Invalid transfer size: =4096");
  expect_refused({"--size="}, "Invalid transfer size: ");
  // A word that looks like an option is an argument where one is due.
  expect_refused({"-s", "-n"}, "Invalid transfer size: -n");
}

TEST(CxiLoopbackOptions, EachDocumentedOptionInEachForm) {
  const OptionTable table = cxi_gpu_loopback_bw_command().options;
  for (const Option& o : table.all()) {
    if (o.group != "Options" || o.kind == Kind::flag) continue;
    const std::string value = o.name == "device" ? "cxi3" : o.kind == Kind::choice ? o.choices[1] : "3";
    std::vector<std::vector<std::string>> forms = {{"--" + o.name, value}, {"--" + o.name + "=" + value}};
    if (o.letter != '\0') {
      forms.push_back({std::string("-") + o.letter, value});
      forms.push_back({std::string("-") + o.letter + value});
    }
    for (const auto& form : forms) {
      const LoopbackLine line = parse(form);
      EXPECT_EQ(line.action, Action::run) << shown(form) << line.message;
      EXPECT_TRUE(line.options.given(o.name)) << shown(form);
    }
  }
}

/// A shortened name means what it meant before doorbell added options.
TEST(CxiLoopbackOptions, AdditionsTakeNoAbbreviation) {
  for (const char* version : {"--v", "--ve", "--ver", "--vers", "--version", "-V"})
    EXPECT_EQ(parse({version}).action, Action::version) << version;
  for (const char* help : {"--h", "--he", "--help", "-h"})
    EXPECT_EQ(parse({help}).action, Action::help) << help;
  expect_number("rx-gpu", {"--r", "1"}, 1);
  expect_number("tx-gpu", {"--t", "1"}, 1);
  expect_number("tx-gpu", {"--tx=1"}, 1);
  expect_number("iters", {"--it", "1"}, 1);
  EXPECT_EQ(parse({"--u", "2M"}).options.text("use-hp"), "2M");
  EXPECT_EQ(parse({"--g", "AMD"}).options.text("gpu-type"), "AMD");
  expect_number("repeats", {"--rep", "2"}, 2);
  EXPECT_EQ(parse({"--verif", "off"}).options.text("verify"), "off");
  expect_usage({"--d", "1"}, "option '--d' is ambiguous; possibilities: '--device' '--duration'");
  expect_usage({"--s", "1"}, "option '--s' is ambiguous; possibilities: '--svc-id' '--size'");
}

TEST(CxiLoopbackOptions, WhatGetoptRefuses) {
  expect_usage({"--no-such"}, "unrecognized option '--no-such'");
  expect_usage({"-x"}, "invalid option -- 'x'");
  expect_usage({"-s"}, "option requires an argument -- 's'");
  expect_usage({"--size"}, "option '--size' requires an argument");
  expect_usage({"--help=1"}, "option '--help' doesn't allow an argument");
}

TEST(CxiLoopbackOptions, TheFirstBadOptionIsTold) {
  expect_refused({"-s", "0", "-n", "0"}, "Invalid transfer size: 0");
  expect_refused({"-n", "0", "-s", "0"}, "Invalid list size: 0");
  expect_refused({"-i", "x", "--help"}, "Invalid iteration count: x");
  EXPECT_EQ(parse({"--help", "-i", "x"}).action, Action::help);
  EXPECT_EQ(parse({"-V", "-s", "0"}).action, Action::version);
  expect_refused({"stray", "-s", "0"}, "Invalid transfer size: 0");
}

TEST(CxiLoopbackOptions, StrayArguments) {
  expect_refused({"stray"}, "Unexpected argument: stray");
  expect_refused({"8192", "-s", "16"}, "Unexpected argument: 8192");
  expect_refused({"-s", "16", "--", "-n"}, "Unexpected argument: -n");
  expect_refused({"a", "b"}, "Unexpected argument: a");
  expect_refused({""}, "Unexpected argument: ");
  const LoopbackLine line = parse({"-n", "4", "-s", "16"});
  EXPECT_EQ(line.action, Action::run);
}

TEST(CxiLoopbackOptions, Additions) {
  for (const auto& bad : std::vector<std::vector<std::string>>{{"--verify", "maybe"},
                                                               {"--repeats", "0"},
                                                               {"--repeats", "1001"},
                                                               {"--warmup", "-1"},
                                                               {"--timeout", "0"},
                                                               {"--timeout", "86401"},
                                                               {"--json", ""},
                                                               {"--fault", "corupt=0.1"},
                                                               {"--fault", "corrupt=1.5"}}) {
    const LoopbackLine line = parse(bad);
    EXPECT_EQ(line.action, Action::refused) << shown(bad);
    EXPECT_TRUE(line.message.starts_with(bad[0] + ": ")) << line.message;
  }
  const Options& o = parse({"--warmup", "0", "--timeout=500ms", "--fault", "corrupt=0.5,drop=1"}).options;
  EXPECT_EQ(o.integer("warmup"), 0u);
  EXPECT_EQ(o.seconds("timeout"), 0.5);
  EXPECT_EQ(o.list("fault").size(), 2u);
}

TEST(CxiLoopbackOptions, TheEnvironmentChoosesTheModel) {
  for (const char* hardware : {static_cast<const char*>(nullptr), "", "hardware"}) {
    EXPECT_EQ(loopback_device("cxi2", hardware).spec, "cxi2");
    EXPECT_EQ(loopback_device("cxi2", hardware).note, "");
  }
  EXPECT_EQ(loopback_device("cxi2", "model").spec, "cxi-model2");
  EXPECT_EQ(loopback_device("cxi2", "model").note,
            "DOORBELL_CXI=model: cxi2 is cxi-model2, the software model");
  EXPECT_EQ(loopback_device("cxi-model1:rate=1", "model").spec, "cxi-model1:rate=1");
  EXPECT_EQ(loopback_device("cxi-model1:rate=1", "model").note, "");
  EXPECT_THROW((void)loopback_device("cxi0", "modle"), Error);
}

TEST(CxiLoopbackOptions, TheTableMakesTheTexts) {
  const Command c = cxi_gpu_loopback_bw_command();
  const std::string help = command_help(c);
  const std::string man = command_man(c);
  const std::string bash = bash_completion({}, {c});
  EXPECT_TRUE(help.starts_with("cxi_gpu_loopback_bw - ")) << help;
  EXPECT_NE(help.find("\nUsage: cxi_gpu_loopback_bw [OPTION]..."), std::string::npos) << help;
  EXPECT_NE(man.find(".TH CXI_GPU_LOOPBACK_BW 1 "), std::string::npos);
  EXPECT_NE(bash.find("complete -F _doorbell doorbell cxi_gpu_loopback_bw"), std::string::npos);
  for (const Option& o : c.options.all()) {
    EXPECT_NE(help.find("--" + o.name), std::string::npos) << o.name;
    std::string escaped = "\\-\\-";
    for (const char ch : o.name) escaped += ch == '-' ? std::string("\\-") : std::string(1, ch);
    EXPECT_NE(man.find(escaped), std::string::npos) << o.name;
    EXPECT_NE(bash.find("--" + o.name), std::string::npos) << o.name;
  }
  EXPECT_NE(help.find("1..4294967295"), std::string::npos);
  EXPECT_NE(help.find("1..16382"), std::string::npos);
  for (const char* wrong : {"doorbell cxi_gpu", "4294697295", "doorbell-cxi_gpu"}) {
    EXPECT_EQ(help.find(wrong), std::string::npos) << wrong;
    EXPECT_EQ(man.find(wrong), std::string::npos) << wrong;
  }
}

}  // namespace
}  // namespace doorbell::cli
