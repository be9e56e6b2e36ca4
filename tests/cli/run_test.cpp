// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// doorbell::run(), as programs that link the library alone use it.
#include <doorbell/error.hpp>
#include <doorbell/run.hpp>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace doorbell {
namespace {

std::string error_of(const std::string& path, const OptionValues& options) {
  try {
    (void)run(path, options);
  } catch (const Error& e) {
    return e.what();
  }
  return "none";
}

TEST(Run, MeasuresAndVerifies) {
  const RunResult r =
      run("nvme", {{"controller", "model"}, {"write_io", "200"}, {"read-io", "100"}, {"in_flight", "4"}});
  EXPECT_EQ(r.exit_code, 0) << r.verdict;
  EXPECT_EQ(r.verdict, "OK");
  EXPECT_TRUE(r.complete);
  EXPECT_EQ(r.stop_reason, "done");
  ASSERT_EQ(r.cells.size(), 1U);
  const RunCell& c = r.cells[0];
  EXPECT_EQ(c.path, "nvme");
  EXPECT_EQ(c.parameters.at("in_flight"), "4");
  EXPECT_EQ(c.device_kind, "model");
  EXPECT_EQ(c.figures.operations, 300U);
  EXPECT_EQ(c.figures.bytes, 300U * 512);
  EXPECT_GT(c.figures.operations_per_s, 0);
  EXPECT_TRUE(c.figures.p50_ns.has_value());
  ASSERT_EQ(c.parts.size(), 2U);
  EXPECT_EQ(c.parts[0].first, "write");
  EXPECT_EQ(c.parts[1].second.operations, 100U);
  EXPECT_EQ(c.checks.checked, 100U);
  EXPECT_EQ(c.checks.failed(), 0U);
  EXPECT_EQ(c.errors.at("timeout"), 0U);
  const auto json = nlohmann::ordered_json::parse(r.json);
  EXPECT_EQ(json["cells"][0]["cell"]["in_flight"], 4);
  EXPECT_EQ(json["argv"], (nlohmann::ordered_json{"doorbell", "nvme", "--controller=model", "--write-io=200",
                                                  "--read-io=100", "--in-flight=4"}));
}

TEST(Run, EveryPath) {
  for (const auto& [path, options] : std::vector<std::pair<std::string, OptionValues>>{
           {"rdma", {{"count", "50"}, {"size", "64"}}},
           {"cxi", {{"count", "50"}}},
           {"qdma", {{"count", "10"}}},
           {"net", {{"stream", "tcp"}, {"count", "50"}}},
           {"qdma tune", {{"largest", "16K"}, {"duration", "0.01"}, {"repeats", "1"}}}}) {
    const RunResult r = run(path, options);
    EXPECT_EQ(r.exit_code, 0) << path << ": " << r.verdict;
    EXPECT_FALSE(r.cells.empty()) << path;
  }
}

TEST(Run, WrongDataIsAResult) {
  const RunResult r = run("nvme", {{"write-io", "400"}, {"read-io", "400"}, {"fault", "corrupt=0.5"}});
  EXPECT_EQ(r.exit_code, static_cast<int>(ExitCode::data));
  EXPECT_TRUE(r.verdict.starts_with("FAILED: ")) << r.verdict;
  EXPECT_GT(r.cells.at(0).checks.corrupt, 0U);
}

TEST(Run, RefusesAsTheCommandLineDoes) {
  EXPECT_EQ(error_of("nvm", {}),
            "run: 'nvm' is not one of nvme, rdma, cxi, qdma, qdma-validate, qdma-tune, net");
  EXPECT_NE(error_of("nvme", {{"batch_siz", "4"}})
                .find("unknown option '--batch-siz'; did you mean '--batch-size'?"),
            std::string::npos);
  EXPECT_NE(error_of("nvme", {{"queue-length", "1"}}).find("--queue-length: 1 is not in 2"),
            std::string::npos);
  EXPECT_NE(error_of("nvme", {{"allow-write", "maybe"}}).find("neither true nor false"), std::string::npos);
  EXPECT_NE(error_of("nvme", {{"json", "-"}}).find("--json -"), std::string::npos);
  EXPECT_NE(error_of("nvme", {{"versus", "--batch-size 4"}}).find("--versus"), std::string::npos);
  try {
    (void)run("nvme", {{"controller", "0000:ff:1f.7"}});
    FAIL() << "no such function";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::absent) << e.what();
  }
}

TEST(Run, FlagsAreTrueOrFalse) {
  EXPECT_EQ(
      run("nvme", {{"write-io", "10"}, {"read-io", "10"}, {"details", "false"}, {"allow_write", "true"}})
          .exit_code,
      0);
}

TEST(Run, ShowsProgressInTheCallersThreadAndStops) {
  const auto source = std::make_shared<std::stop_source>();
  const auto caller = std::this_thread::get_id();
  int calls = 0;
  const RunHooks hooks = {.progress =
                              [&](double, const std::string& phase, u64 operations) {
                                ++calls;
                                EXPECT_EQ(std::this_thread::get_id(), caller);
                                EXPECT_FALSE(phase.empty());
                                if (operations > 0) source->request_stop();
                              },
                          .stop = source->get_token()};
  // A day, unless it stops.
  const RunResult r =
      run("nvme", {{"duration", "86400"}, {"op", "write"}, {"repeats", "1"}, {"warmup", "0"}}, hooks);
  EXPECT_GT(calls, 0);
  EXPECT_FALSE(r.complete);
  EXPECT_EQ(r.stop_reason, "signal");
  EXPECT_EQ(r.exit_code, static_cast<int>(ExitCode::interrupted));
  ASSERT_EQ(r.cells.size(), 1U);
  EXPECT_GT(r.cells[0].figures.operations, 0U);
}

TEST(Run, OneAtATime) {
  const auto source = std::make_shared<std::stop_source>();
  std::string second;
  const RunHooks hooks = {.progress =
                              [&](double, const std::string&, u64) {
                                if (second.empty())
                                  std::thread([&] { second = error_of("nvme", {}); }).join();
                                source->request_stop();
                              },
                          .stop = source->get_token()};
  (void)run("nvme", {{"duration", "86400"}, {"op", "write"}, {"repeats", "1"}}, hooks);
  EXPECT_EQ(second, "run: another run is under way in this process");
  EXPECT_EQ(run("nvme", {{"write-io", "10"}, {"read-io", "10"}}).exit_code, 0);
}

TEST(Run, FilesThatCannotBeWrittenAreWarnings) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "run_test";
  std::filesystem::create_directories(folder);
  const std::string json = folder / "r.json";
  EXPECT_EQ(run("nvme", {{"write-io", "10"}, {"read-io", "10"}, {"json", json}}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(json));
  const RunResult full = run("nvme", {{"write-io", "10"}, {"read-io", "10"}, {"json", "/dev/full"}});
  EXPECT_EQ(full.exit_code, 1);
  ASSERT_FALSE(full.warnings.empty());
  EXPECT_NE(full.warnings.back().find("/dev/full"), std::string::npos) << full.warnings.back();
  testing::internal::CaptureStderr();
  const RunResult junit = run("nvme", {{"write-io", "10"}, {"read-io", "10"}, {"junit", "/dev/full"}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(junit.exit_code, 1);
  ASSERT_FALSE(junit.warnings.empty());
  EXPECT_NE(junit.warnings.back().find("/dev/full"), std::string::npos) << junit.warnings.back();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace doorbell
