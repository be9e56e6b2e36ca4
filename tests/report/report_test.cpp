// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "report/csv.hpp"
#include "report/environment.hpp"
#include "report/file.hpp"
#include "report/json.hpp"
#include "report/layout.hpp"
#include "report/text.hpp"
#include "report/tool.hpp"
#include "report/verdict.hpp"
#include "report_sample.hpp"

namespace doorbell::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// An empty directory of its own; removed at the end.
class Directory {
 public:
  Directory() {
    std::string name = (fs::temp_directory_path() / "doorbell-report-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Directory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] auto entries() const {
    return std::distance(fs::directory_iterator(path_), fs::directory_iterator());
  }

 private:
  fs::path path_;
};

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  const auto start = text.rfind('\n', end);
  return text.substr(start + 1, end - start);
}

// ---- JSON

TEST(Json, SurvivesItsOwnText) {
  const Json json = to_json(test::sample_result());
  EXPECT_EQ(Json::parse(to_string(json)), json);
}

TEST(Json, HoldsTheDesignsKeysInTheirOrder) {
  const Json json = to_json(test::sample_result());
  const auto keys = [](const Json& object) {
    std::string out;
    for (const auto& item : object.items()) out += item.key() + " ";
    return out;
  };
  EXPECT_EQ(keys(json), "schema tool argv environment complete stop_reason exit_code warnings cells ");
  Result faulty = test::sample_result();
  faulty.faults = {{.path = "nvme", .fault = "drop", .injected = 3, .found = 2, .found_as = "timeouts"}};
  EXPECT_EQ(to_json(faulty)["faults"].dump(),
            R"([{"path":"nvme","fault":"drop","injected":3,"found":2,"found_as":"timeouts"}])");
  const Json& cell = json["cells"][0];
  EXPECT_EQ(
      keys(cell),
      "path operation cell options initiator device metrics substeps_ns repeats spread verify errors cost nvme power ");
  EXPECT_EQ(keys(cell["metrics"]), "ops bytes elapsed_s ops_per_s bytes_per_s latency_ns ");
  EXPECT_EQ(json["schema"], "doorbell.results/1");
  EXPECT_EQ(json["tool"]["version"], tool().version);
  EXPECT_EQ(cell["initiator"], (Json{{"kind", "gpu"}, {"gpu", 0}}));
  EXPECT_TRUE(json["cells"][1]["initiator"]["gpu"].is_null());
}

TEST(Json, ARunIsCompleteWhereNothingEndedIt) {
  Result r;
  std::string all;
  for (const StopReason why : {StopReason::done, StopReason::requested, StopReason::broken,
                               StopReason::timeout, StopReason::reset, StopReason::removed}) {
    r.stop_reason = why;
    const Json json = to_json(r);
    all += json["stop_reason"].get<std::string>() + (json["complete"].get<bool>() ? ", complete; " : "; ");
  }
  EXPECT_EQ(all, "done, complete; signal; error; timeout; reset; removed; ");
}

TEST(Json, UnknownAndNotFiniteAreNull) {
  Result r = test::sample_result();
  r.environment["nested"] = Json::array({std::numeric_limits<double>::infinity(), 1});
  r.cells[0].metrics.ops_per_s = std::numeric_limits<double>::quiet_NaN();
  const Json json = Json::parse(to_string(to_json(r)));
  const Json& cell = json["cells"][0];
  EXPECT_TRUE(cell["metrics"]["ops_per_s"].is_null());
  EXPECT_TRUE(cell["cost"]["polls_per_completion"].is_null());
  EXPECT_TRUE(cell["cost"]["gpu_sm_percent"].is_null());
  EXPECT_TRUE(cell["substeps_ns"]["enqueue"].is_null());
  EXPECT_TRUE(cell["nvme"]["ratio"].is_null());
  EXPECT_TRUE(cell["repeats"][2]["p99_ns"].is_null());
  EXPECT_EQ(json["environment"]["nested"], Json::array({nullptr, 1}));
}

TEST(Json, PartsAndExtrasShareThePathsObject) {
  const Json cell = to_json(test::sample_result())["cells"][0];
  EXPECT_EQ(cell["nvme"]["queues"], 4);
  EXPECT_EQ(cell["nvme"]["write"]["ops"], 20'000);
  EXPECT_EQ(cell["nvme"]["read"]["latency_ns"]["count"], 30'000);
  EXPECT_EQ(cell["power"]["idle_w"], 71.5);
}

TEST(Json, ErrorClassesAreThereWithZero) {
  const Json json = to_json(test::sample_result());
  EXPECT_EQ(json["cells"][0]["errors"]["timeout"], 1);
  EXPECT_EQ(json["cells"][1]["errors"], (Json{{"completion", 0}, {"timeout", 0}}));
}

TEST(Json, RefusesExtrasThatHideASharedKey) {
  Result r = test::sample_result();
  r.cells[0].extra["metrics"] = Json::object();
  EXPECT_THROW(static_cast<void>(to_json(r)), Error);
  r = test::sample_result();
  r.cells[0].extra["power"] = 5;
  EXPECT_THROW(static_cast<void>(to_json(r)), Error);
  r = test::sample_result();
  r.cells[0].extra["nvme"]["read"] = 5;
  EXPECT_THROW(static_cast<void>(to_json(r)), Error);
}

TEST(Json, AnArgumentNeedNotBeUtf8) {
  Result r = test::sample_result();
  r.argv = {"doorbell", "\xff\xfe", "tab\there", "gr\xc3\xbc\xc3\x9f"};
  const std::string text = to_string(to_json(r));
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
  const Json json = Json::parse(text);
  EXPECT_EQ(json["argv"][2], "tab\there");
  EXPECT_EQ(json["argv"][3], "gr\xc3\xbc\xc3\x9f");
}

// jq, JavaScript and data frames read every number as a double.
TEST(Json, IntegersThatADoubleRoundsAreText) {
  constexpr u64 kExact = (u64{1} << 53) - 1;
  Result r = test::sample_result();
  Cell& in = r.cells[0];
  in.repeats[0].seed = ~u64{0};
  in.repeats[1].seed = kExact;
  in.options["seed"] = kExact + 1;
  in.verify.first[0].sequence = kExact + 2;
  in.extra["nvme"]["deep"] = Json::array({Json{{"id", kExact + 3}}, -5});
  const Json cell = Json::parse(to_string(to_json(r)))["cells"][0];
  EXPECT_EQ(cell["repeats"][0]["seed"], "18446744073709551615");
  EXPECT_EQ(cell["repeats"][1]["seed"], kExact);
  EXPECT_EQ(cell["options"]["seed"], "9007199254740992");
  EXPECT_EQ(cell["verify"]["first"][0]["sequence"], "9007199254740993");
  EXPECT_EQ(cell["nvme"]["deep"], Json::array({Json{{"id", "9007199254740994"}}, -5}));
  EXPECT_NE(csv_rows(cell, 0).find("18446744073709551615"), std::string::npos) << "a row is made from either";
  EXPECT_EQ(csv_rows(cell, 0), csv_rows(in, 0));
}

TEST(Json, TextPutsBinsOnOneLine) {
  EXPECT_EQ(to_string(Json{{"a", {{"b", Json::array({Json::array({1, 2}), Json::array({3, 4})})}}},
                           {"c", Json::object()}}),
            "{\n  \"a\": {\n    \"b\": [[1,2],[3,4]]\n  },\n  \"c\": {}\n}\n");
  EXPECT_EQ(to_string(Json::array({Json{{"x", 1}}, 2})), "[\n  {\n    \"x\": 1\n  },\n  2\n]\n");
}

TEST(Json, ALineIsTheSameDocument) {
  const Json json = to_json(test::sample_result());
  const std::string line = to_line(json);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(Json::parse(line), json);
}

// The files that validate-result.py and the Python tests read.
TEST(Json, WritesTheSamples) {
  const char* directory = ::getenv("DOORBELL_TEST_OUT");
  if (directory == nullptr) GTEST_SKIP() << "DOORBELL_TEST_OUT is not set";
  fs::create_directories(directory);
  const std::string base = std::string(directory) + "/";
  write_json(test::sample_result(), base + "sample.json");

  Result here;
  here.argv = {"doorbell", "demo"};
  here.environment = collect_environment();
  here.warnings = environment_warnings(here.environment);
  here.stop_reason = StopReason::requested;
  write_json(here, base + "empty.json");
}

// ---- CSV

TEST(Csv, Golden) {
  const std::string nvme =
      "gpu,0,model,\"model:blocks=1M,latency=10us\",rw=randrw;block_bytes=4096;depth=64,full,";
  EXPECT_EQ(
      to_csv(test::sample_result()),
      "path,cell_index,repeat,initiator,gpu,device_kind,device_name,parameters,verify_mode,seed,ops_per_s,"
      "bytes_per_s,p50_ns,p99_ns,p99_9_ns,errors,warnings\n"
      "nvme,0,0," +
          nvme +
          "7,1000000,4096000000,9000,17000,,0,the machine is busy\n"
          "nvme,0,1," +
          nvme +
          "8,1010000,4136960000,9001,17000,,0,the machine is busy\n"
          "nvme,0,2," +
          nvme +
          "9,990000,4055040000,9002,,,0,the machine is busy\n"
          "nvme,0,3," +
          nvme +
          "10,1005000,4116480000,9003,17000,,3,the machine is busy\n"
          "nvme,0,4," +
          nvme +
          "11,995000,4075520000,9004,17000,,0,the machine is busy\n"
          "nvme,0,5," +
          nvme +
          "12,1002000,4104192000,9005,17000,,0,the machine is busy\n"
          "nvme,0,6," +
          nvme +
          "13,1200000,4915200000,9006,17000,,0,the machine is busy\n"
          "net,1,,cpu,,emulated,\"veth \"\"pair\"\", "
          "kernel\x1b[31m\",frame_bytes=64;note=a\\=b\\;c,none,,24,1536,,,,0,the machine is busy\n");
}

TEST(Csv, ParametersKeepNestedValuesAndEscapeSeparators) {
  EXPECT_EQ(parameters_of({{"a;b", "c=d\\e"}, {"list", {1, 2}}, {"none", nullptr}, {"f", 0.5}, {"on", true}}),
            "a\\;b=c\\=d\\\\e;list=[1,2];none=null;f=0.5;on=true");
  EXPECT_EQ(parameters_of(Json::object()), "");
  EXPECT_EQ(parameters_of(nullptr), "");
}

TEST(Csv, AHeaderWithoutCells) {
  EXPECT_EQ(to_csv(Result{}), csv_header());
}

// ---- text

TEST(Text, Golden) {
  EXPECT_EQ(to_text(test::sample_result()),
            R"(nvme  model:blocks=1M,latency=10us (software model)  initiator gpu 0
  rw=randrw  block_bytes=4096  depth=64
           ops  MIOPS   GB/s  elapsed s  min us  mean us  std us  p50 us  p99 us  p99.9 us  max us
  write  20000  0.400  1.638     0.0500   8.000    13.02   3.164   12.99   17.79     47.87   56.78
  read   30000  0.600  2.458     0.0500   6.000    11.02   3.161   10.94   15.94     45.82   55.24
  all    50000  1.000  4.096     0.0500   7.000    12.02   3.158   11.97   16.77     46.85   56.24
  steps     build 71.00, SQ doorbell 596.0, total 9120 (ns per operation)
  nvme      queues 4
  power     idle_w 71.50
  verify    verified 100000 I/Os (51.20 MB): 3 corrupt, 0 misplaced, 0 stale, 0 duplicated, 0 missing
            corrupt at byte 0x1000, sequence 41 was due
  errors    1 timeout
  cost      31.25 CPU ns/op, 0.0312 doorbells/op, CPU 0.250 s user, 0.0625 s system
  7 runs    median 1.002 MIOPS [0.990 to 1.200, 98.4 % confidence], outliers: repeat 7, NOISY
            median p50 9.003 us [9.000 to 9.006, 98.4 % confidence]

net  veth "pair", kernel?[31m (emulated)  initiator cpu
  frame_bytes=64  note=a\=b\;c
       ops   IOPS      GB/s  elapsed s  min us  mean us  std us  p50 us  p99 us  p99.9 us  max us
  all   12  24.00  1.54e-06      0.500       -        -       -       -       -         -       -
  verify    NOT verified: checking is off, the data may be anything
  errors    none
  cost      CPU 0 s user, 0 s system

warning: the machine is busy
FAILED: 3 corrupt, 1 timeout
)");
}

TEST(Text, ColourOnlyWhenAsked) {
  const Result r = test::sample_result();
  EXPECT_EQ(to_text(r).find('\x1b'), std::string::npos);
  EXPECT_NE(to_text(r, true).find("\x1b[1;31mFAILED"), std::string::npos);
  // The name of a device carries an escape sequence of its own, which must not get through.
  EXPECT_EQ(to_text(r, true).find("\x1b[31m"), std::string::npos);
}

TEST(Text, UnverifiedDataIsSaidLoudly) {
  Cell c = test::sample_net_cell();
  EXPECT_NE(to_text(c).find("NOT verified: checking is off"), std::string::npos);
  c.verify.mode = "sample=0.1";
  EXPECT_NE(to_text(c).find("NOT verified: mode sample=0.1, but nothing was read back that could be checked"),
            std::string::npos);
  c.verify.checked = 10;
  c.verify.checked_bytes = 640;
  EXPECT_NE(to_text(c).find("verified 10 I/Os (640 B, sample=0.1): 0 corrupt"), std::string::npos);
}

TEST(Printable, LeavesTextAndNothingThatATerminalObeys) {
  for (const char* kept : {"", "plain ~ text", "caf\xc3\xa9", "\xc2\xa0", "\xe2\x82\xac", "\xf0\x9f\x94\x94",
                           "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(printable(kept), kept);
  const std::pair<const char*, const char*> cases[] = {
      {"\x1b[2J", "?[2J"},
      {"a\r\n\tb\x7f", "a???b?"},
      {"\xc2\x9b"
       "2J",
       "??2J"},                      // CSI, as UTF-8
      {"\xc2\x80\xc2\x9f", "????"},  // the first and the last of C1
      {"\x9b"
       "2J",
       "?2J"},        // CSI, as a byte
      {"\xc3", "?"},  // ends too early
      {"\xe2\x82", "??"},
      {"\xe2\x82z", "??z"},
      {"\xc3\xc3\xa9", "?\xc3\xa9"},
      {"\x80", "?"},       // begins nothing
      {"\xc0\x9b", "??"},  // ESC, written too long
      {"\xe0\x80\x9b", "???"},
      {"\xe0\x82\x9b", "???"},  // CSI, written too long
      {"\xf0\x80\x80\x9b", "????"},
      {"\xed\xa0\x80", "???"},       // half of a surrogate pair
      {"\xf4\x90\x80\x80", "????"},  // past the last character
      {"\xf8\x88\x80\x80\x80", "?????"},
      {"\xff", "?"},
  };
  for (const auto& [said, shown] : cases) EXPECT_EQ(printable(said), shown);
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a?b");
}

TEST(Text, ColumnsLineUp) {
  std::istringstream lines(to_text(test::sample_nvme_cell()));
  std::vector<std::size_t> widths;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("p99.9 us") != std::string::npos || line.starts_with("  write ") ||
        line.starts_with("  read ") || line.starts_with("  all ")) {
      widths.push_back(line.size());
    }
  }
  ASSERT_EQ(widths.size(), 4u);
  EXPECT_EQ(widths, std::vector<std::size_t>(4, widths[0]));
}

// ---- verdict

Result with(Verify verify, Counts errors, int exit_code = 0) {
  Result r;
  Cell c = test::sample_net_cell();
  c.verify = std::move(verify);
  c.errors = std::move(errors);
  r.cells.push_back(c);
  r.exit_code = exit_code;
  return r;
}

Verify checked(u64 count) {
  Verify v;
  v.mode = "full";
  v.checked = count;
  return v;
}

TEST(Verdict, SaysWhatHappened) {
  EXPECT_EQ(last_line(to_text(with(checked(5), {{"timeout", 0}}))), "OK");
  EXPECT_EQ(last_line(to_text(with(Verify{}, {}))), "OK, but the data was NOT verified");

  Result two = with(checked(5), {});
  two.cells.push_back(test::sample_net_cell());
  EXPECT_EQ(verdict_for(two).text, "OK, but the data of 1 of 2 cells was NOT verified");

  Verify bad = checked(9);
  bad.corrupt = 3;
  bad.missing = 1;
  EXPECT_EQ(verdict_for(with(bad, {{"timeout", 2}, {"completion", 1}})).text,
            "FAILED: 3 corrupt, 1 missing, 1 completion errors, 2 timeout");

  Result stopped = with(checked(5), {});
  stopped.stop_reason = StopReason::requested;
  EXPECT_EQ(verdict_for(stopped).text, "INTERRUPTED (partial)");
  stopped.cells[0].verify.stale = 1;
  EXPECT_EQ(verdict_for(stopped).text, "FAILED: 1 stale (partial, stopped by signal)");

  EXPECT_EQ(verdict_for(with(checked(5), {}, 77)).text, "SKIPPED: the hardware asked for is absent");
  EXPECT_EQ(verdict_for(with(checked(5), {}, 2)).text, "FAILED: stopped by done, exit code 2");
}

TEST(Verdict, NothingMeasuredIsNoSuccess) {
  Result r = with(checked(5), {});
  r.cells[0].repeats.resize(1);
  r.cells.push_back(r.cells[0]);
  EXPECT_EQ(exit_code_for(r), 0);
  r.cells[1].metrics.ops = 0;
  EXPECT_EQ(exit_code_for(r), 2);
  EXPECT_EQ(verdict_for(r).text, "FAILED: 1 cells in which nothing was measured");
  // Whoever ends a run early has not asked for figures.
  r.stop_reason = StopReason::requested;
  EXPECT_EQ(exit_code_for(r), 130);
  // A row that was not to be measured has no repeats.
  r.stop_reason = StopReason::done;
  r.cells[1].repeats.clear();
  EXPECT_EQ(exit_code_for(r), 0);
}

TEST(Verdict, FailuresAreNeverASuccess) {
  Verify bad = checked(9);
  bad.duplicated = 1;
  EXPECT_EQ(exit_code_for(with(checked(9), {})), 0);
  EXPECT_EQ(exit_code_for(with(bad, {})), 2);
  EXPECT_EQ(exit_code_for(with(bad, {}, 1)), 2);
  EXPECT_EQ(exit_code_for(with(bad, {}, 77)), 2);
  EXPECT_EQ(exit_code_for(with(checked(9), {{"timeout", 1}})), 2);
  EXPECT_EQ(exit_code_for(with(checked(9), {}, 1)), 1);
  EXPECT_EQ(exit_code_for(with(checked(9), {}, 77)), 77);
}

// ---- files

TEST(File, ReplacesAndLeavesNothingElse) {
  const Directory d;
  write_file(d / "r.json", "old");
  write_file(d / "r.json", "new");
  EXPECT_EQ(contents(d / "r.json"), "new");
  EXPECT_EQ(d.entries(), 1);
}

TEST(File, IsReadableToWhomTheUmaskAllows) {
  const Directory d;
  const mode_t before = ::umask(027);
  write_file(d / "r.json", "x");
  ::umask(before);
  EXPECT_EQ(fs::status(d / "r.json").permissions(), fs::perms(0640));
}

TEST(File, AFailureKeepsTheOldContents) {
  const Directory d;
  write_file(d / "r.json", "old");
  // A name at the limit of the file system leaves no room for the temporary one's suffix.
  const std::string longest = d / std::string(255, 'x');
  EXPECT_THROW(write_file(longest, "new"), Error);
  EXPECT_THROW(write_file(d / "absent/r.json", "new"), Error);
  EXPECT_THROW(write_file(d / "", "new"), Error);
  EXPECT_THROW(write_file("", "new"), Error);
  EXPECT_EQ(contents(d / "r.json"), "old");
  EXPECT_EQ(d.entries(), 1);
}

TEST(File, ALinkStaysALink) {
  const Directory d;
  write_file(d / "target.json", "old");
  fs::create_symlink("target.json", d / "link.json");
  write_file(d / "link.json", "new");
  EXPECT_TRUE(fs::is_symlink(d / "link.json"));
  EXPECT_EQ(contents(d / "target.json"), "new");
}

TEST(File, APipeIsWrittenInPlace) {
  const Directory d;
  const std::string name = d / "pipe";
  ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
  const int reader = ::open(name.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_file(name, "through");
  char buffer[16] = {};
  EXPECT_EQ(::read(reader, buffer, sizeof buffer), 7);
  ::close(reader);
  EXPECT_STREQ(buffer, "through");
  EXPECT_TRUE(fs::is_fifo(name));
}

// A reader that looks at any moment sees one of the two documents, whole.
TEST(File, AReaderNeverSeesHalfOfIt) {
  const Directory d;
  const std::string name = d / "r.txt";
  const std::string a(200'000, 'a');
  const std::string b(200'000, 'b');
  write_file(name, a);
  const pid_t writer = ::fork();
  ASSERT_GE(writer, 0);
  if (writer == 0) {
    for (int i = 0; i < 40; ++i) write_file(name, i % 2 == 0 ? b : a);
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(writer, &status, WNOHANG) == 0) {
    const std::string seen = contents(name);
    ASSERT_TRUE(seen == a || seen == b) << seen.size();
  }
  EXPECT_EQ(status, 0);
}

TEST(File, DashIsStandardOutput) {
  testing::internal::CaptureStdout();
  write_csv(Result{}, "-");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), csv_header());
}

}  // namespace
}  // namespace doorbell::report
