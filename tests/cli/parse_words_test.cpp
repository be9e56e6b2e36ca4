// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Words that stand for other options, bare words, and words that are only understood.
#include "sample_table.hpp"

namespace doorbell::cli {
namespace {

OptionTable table_of_words() {
  OptionTable table;
  table.add({.name = "device", .default_text = "model", .help = "what is opened", .bare = true})
      .add({.name = "order", .choices = {"sequential", "random"}, .help = "order"})
      .add({.name = "op", .means = {"mode"}, .choices = {"read", "write"}, .help = "what"})
      .add(
          {.name = "in-flight", .aliases = {"tx-depth"}, .kind = Kind::integer, .max = 9, .help = "how many"})
      .add({.name = "batch-size", .means = {"block"}, .kind = Kind::integer, .help = "batch"})
      .add({.name = "speed", .kind = Kind::rate, .help = "rate"})
      .add({.name = "rw",
            .letter = 'r',
            .choices = {"randread", "write"},
            .help = "for --op and --order",
            .stands_for = [](const std::string& rw) {
              if (rw == "write") return std::vector<options::Assignment>{{"op", "write"}};
              return std::vector<options::Assignment>{{"op", "read"}, {"order", "random"}};
            }});
  return table;
}

TEST(CliParse, ABareWordIsTheValueOfOneOption) {
  const OptionTable table = table_of_words();
  const auto device = [&](const Words& words) { return parse("doorbell nvme", table, words).text("device"); };
  EXPECT_EQ(device({"/dev/nvme0n1"}), "/dev/nvme0n1");
  EXPECT_EQ(device({"--in-flight", "3", "file"}), "file");
  EXPECT_EQ(refusal({"a", "b"}, table), "doorbell nvme: unexpected argument 'b'");
  EXPECT_EQ(refusal({"a", "--device=b"}, table), "doorbell nvme: --device: given twice");
  EXPECT_EQ(refusal({"--device=b", "a"}, table), "doorbell nvme: unexpected argument 'a'");
  // Somebody has forgotten the dashes.
  EXPECT_EQ(refusal({"in-flight", "3"}, table),
            "doorbell nvme: unexpected argument 'in-flight'; did you mean '--in-flight'?");
}

TEST(CliParse, AWordOfAnotherProgramStandsForOptions) {
  const OptionTable table = table_of_words();
  const Options o = parse("", table, Words{"--rw", "RandRead", "--tx_depth=4"});
  EXPECT_EQ(o.text("op"), "read");
  EXPECT_EQ(o.text("order"), "random");
  EXPECT_EQ(o.integer("in-flight"), 4u);
  EXPECT_TRUE(o.given("op"));
  EXPECT_FALSE(o.echo().contains("rw"));
  EXPECT_EQ(parse("", table, Words{"-r", "write"}).text("op"), "write");
  EXPECT_EQ(refusal({"--op=read", "--rw=write"}, table),
            "doorbell nvme: --rw: it stands for --op, which is given, too");
  EXPECT_EQ(refusal({"--rw=write", "--op=read"}, table), "doorbell nvme: --op: given twice");
  EXPECT_EQ(refusal({"--rw=trim"}, table), "doorbell nvme: --rw: 'trim' is not one of randread, write");
}

TEST(CliParse, ASuggestionIsByMeaningBeforeSpelling) {
  const OptionTable table = table_of_words();
  EXPECT_EQ(refusal({"--block", "4K"}, table),
            "doorbell nvme: unknown option '--block'; did you mean '--batch-size'?");
  EXPECT_EQ(refusal({"--mode"}, table), "doorbell nvme: unknown option '--mode'; did you mean '--op'?");
  EXPECT_EQ(refusal({"--orde"}, table), "doorbell nvme: unknown option '--orde'; did you mean '--order'?");
}

TEST(CliParse, ARateIsDecimalUnlessItSaysOtherwise) {
  const OptionTable table = table_of_words();
  const std::pair<const char*, u64> cases[] = {
      {"12G", 12'000'000'000}, {"12GB", 12'000'000'000}, {"1Ki", 1024}, {"5m", 5'000'000}, {"7", 7}};
  for (const auto& [text, rate] : cases)
    EXPECT_EQ(parse("", table, Words{"--speed", text}).integer("speed"), rate) << text;
  EXPECT_EQ(
      refusal({"--speed", "fast"}, table),
      "doorbell nvme: --speed: 'fast' is not a number of bytes a second; write it as 500M or 12G (powers "
      "of 1000)");
}

TEST(CliParse, ChoicesAreTakenInAnyLetters) {
  const Options o = parsed({"--pattern", "RANDOM", "--verify", "Sample=0.5"});
  EXPECT_EQ(o.text("pattern"), "random");
  EXPECT_EQ(o.text("verify"), "sample=0.5");
  EXPECT_EQ(o.choice_number("verify"), 0.5);
}

}  // namespace
}  // namespace doorbell::cli
