// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The option table: what it accepts, what it refuses and with which text, and the texts made from the table.
#include <gtest/gtest.h>

#include <doorbell/error.hpp>
#include <stdexcept>

#include "cli/command.hpp"
#include "cli/offers.hpp"
#include "cli/parse.hpp"
#include "cli/run_options.hpp"
#include "cli/texts.hpp"
#include "options/suggest.hpp"
#include "sample_table.hpp"

namespace doorbell::cli {
namespace {

struct Refused {
  Words words;
  std::string message;
};

TEST(CliParse, DefaultsAreTypedAndNotGiven) {
  const Options o = parsed({});
  EXPECT_EQ(o.integer("batch-size"), 1u);
  EXPECT_EQ(o.bytes("block"), 4096u);
  EXPECT_EQ(o.seconds("timeout"), 10.0);
  EXPECT_EQ(o.text("controller"), "model");
  EXPECT_EQ(o.text("verify"), "on");
  EXPECT_FALSE(o.flag("infinite"));
  EXPECT_FALSE(o.has("duration"));
  EXPECT_EQ(o.text("json"), "");
  EXPECT_TRUE(o.list("fault").empty());
  EXPECT_FALSE(o.given("batch-size"));
  EXPECT_TRUE(o.given_names().empty());
}

TEST(CliParse, EverySpellingOfAnOption) {
  EXPECT_EQ(parsed({"--batch-size", "16"}).integer("batch-size"), 16u);
  EXPECT_EQ(parsed({"--batch-size=16"}).integer("batch-size"), 16u);
  EXPECT_EQ(parsed({"-b", "16"}).integer("batch-size"), 16u);
  EXPECT_EQ(parsed({"-b16"}).integer("batch-size"), 16u);
  EXPECT_EQ(parsed({"-b=16"}).integer("batch-size"), 16u);
  EXPECT_EQ(parsed({"--how-many", "7"}).integer("count"), 7u);
  EXPECT_TRUE(parsed({"-i"}).flag("infinite"));
  EXPECT_EQ(parsed({"--controller=--odd"}).text("controller"), "--odd");
  EXPECT_EQ(parsed({"--controller=a=b"}).text("controller"), "a=b");
  EXPECT_EQ(parsed({"--json", "-"}).text("json"), "-");
  EXPECT_EQ(parsed({"--count=3", "--infinite"}).given_names(), (Words{"count", "infinite"}));
}

TEST(CliParse, WholeNumbersKeep64Bits) {
  EXPECT_EQ(parsed({"--count", "18446744073709551615"}).integer("count"), 18446744073709551615u);
  EXPECT_EQ(parsed({"--count", "4294967297"}).integer("count"), 4294967297u);
  EXPECT_EQ(parsed({"--count", "10k"}).integer("count"), 10'000u);
  EXPECT_EQ(parsed({"--count", "3M"}).integer("count"), 3'000'000u);
  EXPECT_EQ(parsed({"--count", "2G"}).integer("count"), 2'000'000'000u);
  EXPECT_EQ(parsed({"--count", "0"}).integer("count"), 0u);
  EXPECT_EQ(parsed({"--count", "007"}).integer("count"), 7u);
}

TEST(CliParse, Sizes) {
  // Without a B powers of 1024, with it powers of 1000, with an i always powers of 1024; in any letters.
  const std::pair<const char*, u64> cases[] = {{"4096", 4096},
                                               {"4k", 4096},
                                               {"64K", 65536},
                                               {"4Ki", 4096},
                                               {"4KiB", 4096},
                                               {"4kib", 4096},
                                               {"4kB", 4000},
                                               {"64KB", 64000},
                                               {"64kb", 64000},
                                               {"512B", 512},
                                               {"0", 0},
                                               {"1m", 1048576},
                                               {"1M", 1048576},
                                               {"1MB", 1000000},
                                               {"1Mi", 1048576},
                                               {"2Gi", 2147483648},
                                               {"3TB", 3000000000000},
                                               {"3T", 3298534883328},
                                               {"16777215Ti", 18446742974197923840u}};
  for (const auto& [text, bytes] : cases)
    EXPECT_EQ(parsed({"--any-size", text}).bytes("any-size"), bytes) << text;
}

TEST(CliParse, Seconds) {
  const std::pair<const char*, double> cases[] = {{"0.05", 0.05}, {"5", 5},          {"5s", 5},
                                                  {"20ms", 0.02}, {"3us", 0.000003}, {"2m", 120},
                                                  {"1h", 3600},   {".5", 0.5},       {"1.5ms", 0.0015}};
  for (const auto& [text, s] : cases)
    EXPECT_EQ(parsed({"--late-after", text}).seconds("late-after"), s) << text;
  EXPECT_EQ(parsed({"--warmup", "0"}).seconds("warmup"), 0.0);
  EXPECT_EQ(parsed({"--warmup", "40ns"}).seconds("warmup"), 40e-9);
}

TEST(CliParse, ChoicesAndLists) {
  const Options o = parsed({"--verify", "sample=0.25", "--fault", "drop=0.01,delay=1", "--pattern=random"});
  EXPECT_EQ(o.text("verify"), "sample=0.25");
  EXPECT_EQ(o.choice_number("verify"), 0.25);
  EXPECT_EQ(parsed({"--verify=off"}).choice_number("verify"), std::nullopt);
  ASSERT_EQ(o.list("fault").size(), 2u);
  EXPECT_EQ(o.list("fault")[0].kind, "drop");
  EXPECT_EQ(o.list("fault")[0].value, 0.01);
  EXPECT_EQ(o.list("fault")[1].kind, "delay");
  EXPECT_EQ(o.text("pattern"), "random");
  EXPECT_EQ(parsed({"--pause", "1e-3"}).real("pause"), 1e-3);
  EXPECT_EQ(parsed({"--pause", "-4"}).real("pause"), -4);
}

TEST(CliParse, RefusesInWords) {
  const std::string whole = "is not a whole number; write it as 10000, 10k or 1M";
  const std::string size = "is not a size; write it as 4096, 64K or 64KiB (65536), or 64KB (64000)";
  const std::string time = "is not a time; write it as 5, 0.05, 20ms, 3us or 2m (seconds without a suffix)";
  const Refused cases[] = {
      {{"--batch-size", "0"}, "--batch-size: 0 is not in 1..1024"},
      {{"--batch-size", "1025"}, "--batch-size: 1025 is not in 1..1024"},
      {{"--batch-size", "4294967297"}, "--batch-size: 4294967297 is not in 1..1024"},
      {{"--batch-size", "18446744073709551617"}, "--batch-size: 18446744073709551617 is not in 1..1024"},
      {{"--batch-size", "18014398509481985k"}, "--batch-size: 18014398509481985k is not in 1..1024"},
      {{"--batch-size", "-1"}, "--batch-size: -1 is not in 1..1024"},
      {{"-b", "0"}, "-b: 0 is not in 1..1024"},
      {{"--count", "18446744073709551616"},
       "--count: 18446744073709551616 is not in 0..18446744073709551615"},
      {{"--count", "-1"}, "--count: -1 is not in 0..18446744073709551615"},
      {{"--at-least", "4"}, "--at-least: 4 is not at least 5"},
      {{"--batch-size", "1e3"}, "--batch-size: '1e3' " + whole},
      {{"--batch-size", "1.5"}, "--batch-size: '1.5' " + whole},
      {{"--batch-size", "0x10"}, "--batch-size: '0x10' " + whole},
      {{"--batch-size", "+1"}, "--batch-size: '+1' " + whole},
      {{"--batch-size", " 1"}, "--batch-size: ' 1' " + whole},
      {{"--batch-size", "1 "}, "--batch-size: '1 ' " + whole},
      {{"--batch-size", "1Ki"}, "--batch-size: '1Ki' " + whole},
      {{"--batch-size", "k"}, "--batch-size: 'k' " + whole},
      {{"--batch-size="}, "--batch-size: the value is empty"},
      {{"--batch-size", ""}, "--batch-size: the value is empty"},
      {{"--block", "511"}, "--block: 511 is not in 512..1Mi"},
      {{"--block", "4Kib "}, "--block: '4Kib ' " + size},
      {{"--block", "4KK"}, "--block: '4KK' " + size},
      {{"--block", "4i"}, "--block: '4i' " + size},
      {{"--block", "4P"}, "--block: '4P' " + size},
      {{"--any-size", "16777216Ti"}, "--any-size: 16777216Ti is not in 0..18446744073709551615"},
      {{"--timeout", "0"}, "--timeout: 0 is not in 0.001..86400"},
      {{"--timeout", "-5"}, "--timeout: -5 is not in 0.001..86400"},
      {{"--timeout", "1e9"}, "--timeout: '1e9' " + time},
      {{"--timeout", "nan"}, "--timeout: 'nan' " + time},
      {{"--timeout", "inf"}, "--timeout: 'inf' " + time},
      {{"--timeout", "5 s"}, "--timeout: '5 s' " + time},
      {{"--timeout", "5min"}, "--timeout: '5min' " + time},
      {{"--timeout", "1.2.3"}, "--timeout: '1.2.3' " + time},
      {{"--timeout", "."}, "--timeout: '.' " + time},
      {{"--pause", "2.6"}, "--pause: 2.6 is not at most 2.5"},
      {{"--pause", "nan"}, "--pause: 'nan' is not a number"},
      {{"--pause", "1e999"}, "--pause: '1e999' is not a number"},
      {{"--pattern", "sequental"},
       "--pattern: 'sequental' is not one of sequential, random; did you mean 'sequential'?"},
      {{"--pattern", "zzz"}, "--pattern: 'zzz' is not one of sequential, random"},
      {{"--pattern", "random=1"}, "--pattern: 'random' takes no '='"},
      {{"--verify", "sample"}, "--verify: 'sample' needs a number; write sample=P, P in 0.000001..1"},
      {{"--verify", "sample=2"}, "--verify: 2 is not in 0.000001..1"},
      {{"--verify", "sample="}, "--verify: '' is not a number"},
      {{"--verify", "on=1"}, "--verify: 'on' takes no '='"},
      {{"--fault", "drop"}, "--fault: 'drop' has no value; write drop=0.01"},
      {{"--fault", "drop=1.1"}, "--fault: 1.1 is not in 0..1"},
      {{"--fault", "drop=0.1,drop=0.2"}, "--fault: 'drop' is given twice"},
      {{"--fault", "drop=0.1,"}, "--fault: 'drop=0.1,' has an empty item"},
      {{"--initiator"}, "--initiator: needs a value (cpu|gpu)"},
      {{"--timeout", "--quiet"}, "--timeout: needs a value (S), but '--quiet' follows"},
      {{"--quiet=yes"}, "--quiet: takes no value, but 'yes' is given"},
      {{"--count", "1", "--number", "2"}, "--number: it is another name of --count, which is given, too"},
      {{"--infinite", "-i"}, "-i: it is another name of --infinite, which is given, too"},
      {{"now"}, "unexpected argument 'now'"},
      {{"batch-size"}, "unexpected argument 'batch-size'; did you mean '--batch-size'?"},
      {{"--", "--quiet"}, "unexpected argument '--quiet'; did you mean '--quiet'?"},
      {{"-"}, "unexpected argument '-'"},
      {{""}, "unexpected argument ''"},
      {{"--bach-size", "3"}, "unknown option '--bach-size'; did you mean '--batch-size'?"},
      {{"--batchsize=3"}, "unknown option '--batchsize'; did you mean '--batch-size'?"},
      {{"-batch-size"}, "-b: 'atch-size' " + whole},
      {{"--late"}, "unknown option '--late'; did you mean '--late-after'?"},
      {{"--Number", "3"}, "unknown option '--Number'; did you mean '--number'?"},
      {{"--frobnicate"}, "unknown option '--frobnicate'"},
      {{"--=3"}, "unknown option '--'"},
      {{"-z"}, "unknown option '-z'"},
      {{"-qi"}, "unknown option '-qi'"},
  };
  for (const Refused& c : cases) EXPECT_EQ(refusal(c.words), "doorbell nvme: " + c.message);
}

TEST(CliParse, OperandsAndRequiredOptions) {
  OptionTable table;
  table
      .add({.name = "from",
            .kind = Kind::path,
            .metavar = "A",
            .help = "a",
            .operand = true,
            .required = true})
      .add({.name = "to", .kind = Kind::path, .metavar = "B", .help = "b", .operand = true})
      .add({.name = "how", .help = "how", .required = true});
  const Words good = {"x", "--how", "fast", "--", "-y"};
  const Options o = parse("doorbell t", table, good);
  EXPECT_EQ(o.text("from"), "x");
  EXPECT_EQ(o.text("to"), "-y");
  EXPECT_EQ(refusal({"--how=fast"}, table), "doorbell nvme: A is missing");
  EXPECT_EQ(refusal({"x"}, table), "doorbell nvme: --how is missing");
  EXPECT_EQ(refusal({"x", "--how=1", "y", "z"}, table), "doorbell nvme: unexpected argument 'z'");
  EXPECT_EQ(refusal({"x", "--from", "y"}, table), "doorbell nvme: unknown option '--from'");
}

TEST(CliParse, HelpIsSeenBeforeErrors) {
  const Words help = {"--batch-size", "0", "--help"}, letter = {"-h"}, no = {"--", "--help"};
  EXPECT_EQ(wanted_help(help), Help::brief);
  EXPECT_EQ(wanted_help(letter), Help::brief);
  EXPECT_EQ(wanted_help(no), Help::none);
  EXPECT_EQ(wanted_help(std::vector<std::string>{"--count", "3", "--help", "all"}), Help::all);
  EXPECT_EQ(wanted_help(std::vector<std::string>{"--help=all"}), Help::all);
}

TEST(CliOptions, WrongUseIsAProgrammingError) {
  const Options o = parsed({});
  EXPECT_THROW(static_cast<void>(o.integer("nope")), std::logic_error);
  EXPECT_THROW(static_cast<void>(o.integer("timeout")), std::logic_error);
  EXPECT_THROW(static_cast<void>(o.seconds("duration")), std::logic_error);
  EXPECT_THROW(static_cast<void>(o.has("nope")), std::logic_error);
  OptionTable t = sample_table();
  EXPECT_THROW(t.add({.name = "block", .help = "again"}), std::logic_error);
  EXPECT_THROW(t.add({.name = "new", .aliases = {"number"}}), std::logic_error);
  EXPECT_THROW(t.add({.name = "new", .letter = 'b'}), std::logic_error);
  EXPECT_THROW(t.add({.name = "new", .kind = Kind::choice}), std::logic_error);
  EXPECT_THROW(t.add({.name = "new", .kind = Kind::flag, .offers = [] { return Words(); }}),
               std::logic_error);
  EXPECT_THROW(t.add({.name = "new", .kind = Kind::integer, .min = 0.5}), std::logic_error);
  EXPECT_THROW(t.add({.name = "out", .kind = Kind::integer, .default_text = "9", .max = 8}),
               std::logic_error);
  EXPECT_THROW(t.set_default("batch-size", "0"), std::logic_error);
  EXPECT_THROW(t.set_default("nope", "0"), std::logic_error);
}

enum class Colour { red, green };

struct Base {
  double share = 1;
  std::optional<u32> limit;
};

struct Bound : Base {
  u32 count = 3;
  u64 bytes = 0;
  bool on = true, fast = false;
  Colour colour = Colour::red;
  std::string name = "unset", copy;
  std::vector<ListItem> items;
};

OptionTable bound_table() {
  OptionTable t;
  t.group("First")
      .add({.name = "count", .default_text = "7", .max = 9, .into = &Bound::count})
      .add({.name = "bytes", .kind = Kind::size, .into = &Bound::bytes})
      .add({.name = "fast", .into = &Bound::fast})
      .add({.name = "gro", .choices = {"on", "off"}, .into = {"on", &Bound::on}})
      .group("Second")
      .add({.name = "colour", .choices = {"red", "green"}, .into = &Bound::colour, .only_if = {"fast"}})
      .add({.name = "name", .into = {&Bound::name, &Bound::copy}, .only_if = {"colour", {"green"}}})
      .add({.name = "items", .group = "Third", .into = &Bound::items})
      .add({.name = "percent", .into = {[](double percent) { return percent / 100; }, &Bound::share}})
      .add({.name = "limit", .max = 9, .into = &Bound::limit});
  return t;
}

TEST(CliOptions, ValuesGoIntoTheMembersThatTheyAreBoundTo) {
  Bound b;
  Options o(bound_table());
  o.read_into(b);
  o.read_into<Base>(b);
  EXPECT_EQ(b.count, 7u) << "a default is a value";
  EXPECT_EQ(b.name, "unset");
  EXPECT_TRUE(b.on);
  EXPECT_EQ(b.share, 1);
  EXPECT_FALSE(b.limit);
  for (const auto& [name, text] : std::vector<std::pair<const char*, const char*>>{{"bytes", "4Ki"},
                                                                                   {"fast", ""},
                                                                                   {"gro", "off"},
                                                                                   {"colour", "green"},
                                                                                   {"name", "x"},
                                                                                   {"items", "a=1,b=2"},
                                                                                   {"percent", "25"},
                                                                                   {"limit", "4"}})
    o.set(name, text);
  o.read_into(b);
  EXPECT_EQ(b.bytes, 4096u);
  EXPECT_TRUE(b.fast);
  EXPECT_FALSE(b.on);
  EXPECT_EQ(b.colour, Colour::green);
  EXPECT_EQ(b.name + b.copy, "xx");
  EXPECT_EQ(b.items.size(), 2u);
  EXPECT_EQ(b.share, 1) << "a base is read by itself";
  o.read_into<Base>(b);
  EXPECT_EQ(b.share, 0.25);
  EXPECT_EQ(b.limit, 4u);
  o.check_conditions();
}

TEST(CliOptions, KindAndHeadingFollowFromTheTable) {
  const OptionTable t = bound_table();
  const auto kind = [&](const char* name) { return t.find(name)->kind; };
  EXPECT_EQ(kind("count"), Kind::integer);
  EXPECT_EQ(kind("bytes"), Kind::size);
  EXPECT_EQ(kind("fast"), Kind::flag);
  EXPECT_EQ(kind("gro"), Kind::choice);
  EXPECT_EQ(kind("colour"), Kind::choice);
  EXPECT_EQ(kind("name"), Kind::text);
  EXPECT_EQ(kind("items"), Kind::list);
  EXPECT_EQ(kind("percent"), Kind::real);
  EXPECT_EQ(kind("limit"), Kind::integer);
  EXPECT_EQ(t.groups(), (Words{"First", "Second", "Third"}));
  EXPECT_EQ(t.find("limit")->group, "Second");
}

TEST(CliOptions, AMemberThatCannotTakeTheValueIsAProgrammingError) {
  OptionTable t;
  EXPECT_THROW(t.add({.name = "a", .kind = Kind::seconds, .into = &Bound::count}), std::logic_error);
  EXPECT_THROW(t.add({.name = "a", .into = &Bound::count}), std::logic_error) << "no limit of 32 bits";
  EXPECT_THROW(t.add({.name = "a", .max = u64{1} << 32, .into = &Bound::count}), std::logic_error);
  EXPECT_THROW(t.add({.name = "a", .into = &Bound::colour}), std::logic_error) << "no choices";
  t.add({.name = "a", .max = 4294967295u, .into = &Bound::count, .only_if = {"nope"}});
  EXPECT_THROW(Options{t}, std::logic_error);
}

TEST(CliOptions, AnOptionOutOfPlaceNamesWhatItNeeds) {
  const auto message = [](const std::vector<std::pair<const char*, const char*>>& given) {
    Options o(bound_table());
    for (const auto& [name, text] : given) o.set(name, text);
    try {
      o.check_conditions();
    } catch (const Error& e) {
      return std::string(e.what()) + "; " + e.hint();
    }
    return std::string();
  };
  EXPECT_EQ(message({{"colour", "green"}, {"fast", ""}, {"name", "x"}}), "");
  EXPECT_EQ(message({{"colour", "red"}}), "--colour: it has no meaning without --fast; add --fast");
  EXPECT_EQ(message({{"name", "x"}}), "--name: it has no meaning without --colour; add --colour green");
  EXPECT_EQ(message({{"fast", ""}, {"colour", "red"}, {"name", "x"}}),
            "--name: it has no meaning with --colour red; it goes with --colour green");
}

TEST(CliOptions, EchoHasTypedValuesAndUnits) {
  const auto json = parsed({"--fault=drop=0.5", "--pause=2", "--duration=20ms"}).echo();
  EXPECT_EQ(json.at("batch_size"), 1);
  EXPECT_TRUE(json.at("batch_size").is_number_unsigned());
  EXPECT_EQ(json.at("block_bytes"), 4096);
  EXPECT_EQ(json.at("timeout_s"), 10.0);
  EXPECT_EQ(json.at("duration_s"), 0.02);
  EXPECT_EQ(json.at("pause_ns"), 2.0);
  EXPECT_TRUE(json.at("warmup_s").is_null());
  EXPECT_TRUE(json.at("json").is_null());
  EXPECT_EQ(json.at("fault"), (nlohmann::ordered_json{{"drop", 0.5}}));
  EXPECT_EQ(json.at("verify"), "on");
  EXPECT_EQ(json.at("infinite"), false);
  EXPECT_EQ(json.size(), sample_table().all().size());
}

RunOptions run_options_of(const std::vector<std::pair<const char*, const char*>>& given) {
  OptionTable table;
  add_common_options(table);
  Options options(table);
  for (const auto& [name, text] : given) options.set(name, text);
  return run_options(options);
}

TEST(CliRunOptions, OnlyARunByTimeIsWarmedUpAndRepeatedUnasked) {
  const RunOptions by_count = run_options_of({});
  EXPECT_EQ(by_count.repeats, 1u);
  EXPECT_EQ(by_count.warmup_s, 0);
  EXPECT_EQ(by_count.duration_s, 0);
  const RunOptions by_time = run_options_of({{"duration", "2"}});
  EXPECT_EQ(by_time.repeats, 7u);
  EXPECT_DOUBLE_EQ(by_time.warmup_s, 0.2);
  EXPECT_DOUBLE_EQ(run_options_of({{"duration", "60"}}).warmup_s, 1);
  const RunOptions asked = run_options_of({{"duration", "2"}, {"warmup", "0"}, {"repeats", "3"}});
  EXPECT_EQ(asked.repeats, 3u);
  EXPECT_EQ(asked.warmup_s, 0);
}

TEST(CliRunOptions, TakesWhatAllPathsShare) {
  const RunOptions plain = run_options_of({});
  EXPECT_TRUE(plain.verify);
  EXPECT_EQ(plain.verify_sample, 1);
  EXPECT_EQ(plain.initiator, Initiator::cpu);
  EXPECT_FALSE(plain.faults.any());
  EXPECT_FALSE(run_options_of({{"verify", "off"}}).verify);
  const RunOptions r = run_options_of({{"verify", "sample=0.25"},
                                       {"fault", "drop=0.5,corrupt=0.125"},
                                       {"initiator", "gpu"},
                                       {"gpu", "2"},
                                       {"seed", "9"},
                                       {"timeout", "3"},
                                       {"late-after", "20ms"}});
  EXPECT_TRUE(r.verify);
  EXPECT_DOUBLE_EQ(r.verify_sample, 0.25);
  EXPECT_DOUBLE_EQ(r.faults.of(model::Fault::drop), 0.5);
  EXPECT_DOUBLE_EQ(r.faults.of(model::Fault::corrupt), 0.125);
  EXPECT_EQ(r.faults.of(model::Fault::stale), 0);
  EXPECT_EQ(r.initiator, Initiator::gpu);
  EXPECT_EQ(r.gpu, 2);
  EXPECT_EQ(r.seed, 9u);
  EXPECT_DOUBLE_EQ(r.timeout_s, 3);
  EXPECT_DOUBLE_EQ(r.late_after_s, 0.02);
}

TEST(CliRunOptions, SplitKeepsEmptyItems) {
  EXPECT_EQ(split("a,b,c"), (Words{"a", "b", "c"}));
  EXPECT_EQ(split("a,,b,"), (Words{"a", "", "b", ""}));
  EXPECT_EQ(split(""), (Words{""}));
}

TEST(CliSuggest, DistanceCountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
  EXPECT_EQ(edit_distance("abc", "acb"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("sequental", "sequential"), 1u);
}

TEST(CliSuggest, NearestIsNearOrNothing) {
  const Words names = {"read-io", "write-io", "batch-size", "base-lba", "gpu"};
  EXPECT_EQ(nearest("raed-io", names), "read-io");
  EXPECT_EQ(nearest("batch", names), "batch-size");
  EXPECT_EQ(nearest("ba", names), "");
  EXPECT_EQ(nearest("gup", names), "gpu");
  EXPECT_EQ(nearest("x", names), "");
  EXPECT_EQ(nearest("", names), "");
}

Command sample_command() {
  Command c;
  c.name = "nvme";
  c.summary = "drive NVMe queues";
  c.description = {".leading dot, a 'quote', a back\\slash, a \"quoted\" word, ~ and ^ and `"};
  c.options = sample_table();
  c.examples = {{"doorbell nvme --count 3", "Count to three."}};
  return c;
}

TEST(CliTexts, EveryOptionIsInEveryText) {
  const Command command = sample_command();
  const std::string help = command_help(command);
  const std::string man = command_man(command);
  const std::string bash = bash_completion({command}), zsh = zsh_completion({command});
  const std::string fish = fish_completion({command});
  for (const Option& o : command.options.all()) {
    EXPECT_NE(help.find("--" + o.name), std::string::npos) << o.name;
    EXPECT_NE(bash.find("--" + o.name), std::string::npos) << o.name;
    EXPECT_NE(zsh.find("--" + o.name), std::string::npos) << o.name;
    EXPECT_NE(fish.find("-l " + o.name), std::string::npos) << o.name;
    std::string escaped = "\\fB\\-\\-";
    for (const char ch : o.name) escaped += ch == '-' ? std::string("\\-") : std::string(1, ch);
    EXPECT_NE(man.find(escaped + "\\fR"), std::string::npos) << escaped;
    for (const std::string& alias : o.aliases) EXPECT_NE(help.find("--" + alias), std::string::npos) << alias;
    for (const std::string& choice : o.choices) EXPECT_NE(help.find(choice), std::string::npos) << choice;
  }
  EXPECT_GT(help.find("Examples:"), help.find("Output:"));
}

TEST(CliTexts, CompletionTakesAnyTextOfATable) {
  Command command = sample_command();
  command.options.add({.name = "odd", .choices = {"a$b", "it's"}, .help = "it's [odd]: a \\ and $(so) on"});
  EXPECT_NE(bash_completion({command}).find(R"(_doorbell_offer 'a$b' 'it'\''s')"), std::string::npos);
  EXPECT_NE(zsh_completion({command}).find(R"(--odd=[it'\''s \[odd\]\: a \\ and $(so) on])"),
            std::string::npos);
  EXPECT_NE(fish_completion({command}).find(R"(-d 'it\'s [odd]: a \\ and $(so) on')"), std::string::npos);
}

TEST(CliTexts, WordsOfABackendsSyntax) {
  EXPECT_EQ(syntax_words("lo"), Words({"lo"}));
  EXPECT_EQ(syntax_words("model[:KEY=VALUE,...]"), Words({"model", "model:"}));
  EXPECT_EQ(syntax_words("daemon[:PATH]"), Words({"daemon", "daemon:*"}));
  EXPECT_EQ(syntax_words("server:PATH"), Words({"server:*"}));
  EXPECT_EQ(syntax_words("kernel:/dev/slash_qdma_ctlN"), Words({"kernel:*"}));
  EXPECT_EQ(syntax_words("cxi-modelN[:KEY=VALUE,...]"), Words());
  EXPECT_EQ(syntax_words("a PCI address, /dev/nvmeN or vfio:ADDRESS"), Words());
}

TEST(CliTexts, HelpFitsItsWidth) {
  const std::string help = command_help(sample_command()) + program_help({sample_command()});
  std::size_t begin = 0;
  while (begin < help.size()) {
    const std::size_t end = help.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    const std::string line = help.substr(begin, end - begin);
    EXPECT_LE(line.size(), kHelpWidth) << line;
    EXPECT_FALSE(line.ends_with(' ')) << '"' << line << '"';
    for (const char c : line) EXPECT_TRUE(c >= ' ' && c <= '~') << line;
    begin = end + 1;
  }
}

TEST(CliTexts, FactsOfAnOption) {
  const OptionTable t = sample_table();
  EXPECT_EQ(option_facts(*t.find("batch-size")), "default 1; 1..1024");
  EXPECT_EQ(option_facts(*t.find("block")), "default 4Ki; 512..1Mi bytes");
  EXPECT_EQ(option_facts(*t.find("timeout")), "default 10 s; 0.001..86400 s");
  EXPECT_EQ(option_facts(*t.find("pause")), "at most 2.5 ns");
  EXPECT_EQ(option_facts(*t.find("count")), "");
  EXPECT_EQ(option_facts(*t.find("infinite")), "");
}

TEST(CliTexts, WrapBreaksAtSpacesOnly) {
  EXPECT_EQ(wrap("aa bb cc", 5, 2), "aa bb\n  cc");
  EXPECT_EQ(wrap("a-very-long-word b", 4, 1), "a-very-long-word\n b");
  EXPECT_EQ(wrap("", 4, 1), "");
}

TEST(CliTexts, RoffNeverStartsALineWithARequestByAccident) {
  const std::string man = command_man(sample_command());
  EXPECT_NE(man.find("\n\\&.leading dot, a \\(aqquote\\(aq, a back\\eslash, a \\(dqquoted\\(dq word, \\(ti "
                     "and \\(ha and \\(ga\n"),
            std::string::npos);
}

}  // namespace
}  // namespace doorbell::cli
