// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Live figures: the board, the text that Prometheus reads, and the server.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <doorbell/error.hpp>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <regex>
#include <sstream>
#include <thread>

#include "exchange/socket.hpp"
#include "export/metric_text.hpp"
#include "export/metrics_server.hpp"
#include "export/prometheus.hpp"
#include "measure/live.hpp"
#include "system/descriptor.hpp"

namespace doorbell::exporting {
namespace {

measure::LiveFigures sample_figures() {
  measure::LiveFigures f;
  f.operations = 12'345;
  f.bytes = 12'345 * 512;
  f.ops_per_s = 1234.5;
  f.counters.failed = 1;
  f.counters.timed_out = 2;
  f.counters.late = 3;
  f.counters.aborted = 4;
  f.counters.skipped = 5;
  f.counters.protocol = 6;
  f.counters.checked = 100;
  f.counters.corrupt = 7;
  f.counters.misplaced = 8;
  f.counters.stale = 9;
  f.counters.duplicated = 10;
  f.counters.missing = 11;
  for (int i = 0; i < 1000; ++i) f.latency.record(static_cast<u64>(1000 + i));
  f.latency.record(100);
  f.latency.record(30'000'000'000);
  return f;
}

/// The samples of a text that is valid by the format's own grammar, by name and labels.
std::map<std::string, double> samples_of(const std::string& text) {
  static const std::regex head(R"(# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+))");
  static const std::regex sample(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*(\{[a-zA-Z_][a-zA-Z0-9_]*="([^"\\]|\\["\\n])*"(,[a-zA-Z_][a-zA-Z0-9_]*="([^"\\]|\\["\\n])*")*\})?) (\S+))re");
  std::map<std::string, double> found;
  std::string family;
  EXPECT_TRUE(text.ends_with('\n'));
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::smatch m;
    if (std::regex_match(line, m, head)) {
      family = m[2];
      continue;
    }
    if (!std::regex_match(line, m, sample)) {
      ADD_FAILURE() << line;
      continue;
    }
    EXPECT_TRUE(line.starts_with(family)) << line << " is not of " << family;
    EXPECT_TRUE(found.emplace(m[1], std::stod(m[6])).second) << line;
  }
  return found;
}

TEST(PrometheusText, HasEveryFigure) {
  const auto samples = samples_of(prometheus_text(sample_figures(), {"nvme", "1.0", "abc"}));
  EXPECT_EQ(samples.at(R"(doorbell_run_info{command="nvme",version="1.0",git="abc"})"), 1);
  EXPECT_EQ(samples.at("doorbell_operations_total"), 12'345);
  EXPECT_EQ(samples.at("doorbell_bytes_total"), 12'345 * 512);
  EXPECT_EQ(samples.at("doorbell_operations_per_second"), 1234.5);
  EXPECT_EQ(samples.at("doorbell_verified_operations_total"), 100);
  int n = 0;
  for (const char* kind : {"completion", "timeout", "late", "aborted", "skipped", "protocol"})
    EXPECT_EQ(samples.at(std::string("doorbell_errors_total{class=\"") + kind + "\"}"), ++n) << kind;
  for (const char* kind : {"corrupt", "misplaced", "stale", "duplicated", "missing"})
    EXPECT_EQ(samples.at(std::string("doorbell_verify_failures_total{class=\"") + kind + "\"}"), ++n) << kind;
  EXPECT_NEAR(samples.at(R"(doorbell_latency_percentile_seconds{percentile="50"})"), 1.5e-6, 0.05e-6);
  EXPECT_FALSE(samples.contains(R"(doorbell_latency_percentile_seconds{percentile="99.9"})"))
      << "too few above";
}

TEST(MetricText, EachFamilyHasItsHeadAndItsSamplesTheirLabels) {
  MetricText text("p_");
  text.one("a", "gauge", "One.", 1.5);
  text.family("b_total", "counter", "Two.");
  text.sample(2, {{"x", "a\\b"}, {"y", "\"c\"\n"}}, "_sum");
  text.sample(u64{3}, {}, "_count");
  EXPECT_EQ(text.take(), R"(# HELP p_a One.
# TYPE p_a gauge
p_a 1.5
# HELP p_b_total Two.
# TYPE p_b_total counter
p_b_total_sum{x="a\\b",y="\"c\"\n"} 2
p_b_total_count 3
)");
}

/// As doorbell net publishes them.
TEST(PrometheusText, WhatIsNotCountedIsAbsent) {
  measure::LiveFigures f;
  f.operations = 12;
  f.bytes = 12'000;
  const std::string text = prometheus_text(f, {"net", "1.0", "abc"});
  EXPECT_NE(text.find("doorbell_bytes_total 12000"), std::string::npos);
  for (const char* absent : {"errors", "verify", "verified", "latency"})
    EXPECT_EQ(text.find(std::string("doorbell_") + absent), std::string::npos) << text;
}

TEST(PrometheusText, TheHistogramIsCumulativeAndWhole) {
  const std::string text = prometheus_text(sample_figures(), {"nvme", "1.0", "abc"});
  double last = 0;
  std::size_t buckets = 0;
  std::map<std::string, double> samples = samples_of(text);
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("doorbell_latency_seconds_bucket")) continue;
    const double value = std::stod(line.substr(line.rfind(' ')));
    EXPECT_GE(value, last) << line;
    last = value;
    ++buckets;
  }
  EXPECT_EQ(buckets, 29u);
  EXPECT_EQ(samples.at(R"(doorbell_latency_seconds_bucket{le="1.28e-07"})"), 1);
  EXPECT_EQ(samples.at(R"(doorbell_latency_seconds_bucket{le="1.024e-06"})"), 1 + 24);
  EXPECT_EQ(samples.at(R"(doorbell_latency_seconds_bucket{le="2.048e-06"})"), 1001);
  EXPECT_EQ(samples.at(R"(doorbell_latency_seconds_bucket{le="+Inf"})"), 1002);
  EXPECT_EQ(samples.at("doorbell_latency_seconds_count"), 1002);
  EXPECT_NEAR(samples.at("doorbell_latency_seconds_sum"), 30 + 1.4996e-3, 1e-5);
}

TEST(PrometheusText, NothingYetIsValidAndLabelsAreEscaped) {
  const auto samples = samples_of(prometheus_text({}, {"a\"b\\c\nd", "", ""}));
  EXPECT_TRUE(samples.contains(R"(doorbell_run_info{command="a\"b\\c\nd",version="",git=""})"));
  EXPECT_EQ(samples.at("doorbell_errors_total{class=\"late\"}"), 0);
  EXPECT_EQ(samples.at("doorbell_latency_seconds_count"), 0);
}

TEST(LiveBoard, KnowsTheRateOfTheLastSecond) {
  measure::LiveBoard board;
  const auto publish = [&](u64 operations, double at_s) {
    measure::LiveFigures f;
    f.operations = operations;
    board.publish(f, at_s);
    return board.figures().ops_per_s;
  };
  EXPECT_EQ(publish(0, 10), 0);
  EXPECT_EQ(publish(500, 10.5), 0);
  EXPECT_EQ(publish(2000, 11), 2000);
  EXPECT_EQ(publish(2500, 11.5), 2000) << "kept until the next second is over";
  EXPECT_EQ(publish(3000, 12), 1000);
  EXPECT_EQ(publish(10, 12.1), 1000) << "a new cell";
  EXPECT_EQ(publish(110, 13.1), 100);
}

/// The answer of a server; "" without a connection.
std::string ask(u16 port, const std::string& request) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) return "";
  EXPECT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char part[4096];
  for (ssize_t n = 0; (n = ::recv(socket.get(), part, sizeof part, 0)) > 0;)
    answer.append(part, static_cast<std::size_t>(n));
  return answer;
}

class MetricsServerTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      server_ =
          std::make_unique<MetricsServer>(exchange::SocketName{"127.0.0.1", 0}, "--export", "text/x",
                                          [this] { return std::string("page ") + std::to_string(++asked_); });
    } catch (const Error& e) {
      if (e.code() != ExitCode::absent) throw;
      GTEST_SKIP() << e.what();
    }
    const std::string url = server_->url();
    ASSERT_TRUE(url.starts_with("http://127.0.0.1:")) << url;
    ASSERT_TRUE(url.ends_with("/metrics")) << url;
    port_ = static_cast<u16>(std::stoul(url.substr(url.rfind(':') + 1)));
  }

  [[nodiscard]] std::string get(const std::string& verb, const std::string& path) const {
    return ask(port_, verb + " " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }

  std::atomic<int> asked_{0};
  u16 port_ = 0;
  std::unique_ptr<MetricsServer> server_;
};

TEST_F(MetricsServerTest, AnswersWithThePageAndNothingElse) {
  const std::string answer = get("GET", "/metrics");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  EXPECT_NE(answer.find("Content-Type: text/x\r\n"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\npage 1")) << answer;
  EXPECT_TRUE(get("GET", "/metrics").ends_with("page 2"));
  EXPECT_TRUE(get("HEAD", "/metrics").ends_with("\r\n\r\n"));
  EXPECT_TRUE(get("GET", "/").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(get("DELETE", "/metrics").starts_with("HTTP/1.1 405 "));
  EXPECT_EQ(get("nonsense", "\x01").find("page"), std::string::npos);
  EXPECT_TRUE(get("GET", "/metrics").starts_with("HTTP/1.1 200 ")) << "it goes on";
}

TEST_F(MetricsServerTest, ServesSeveralAtATimeAndEndsWithOneConnected) {
  std::vector<std::thread> askers;
  std::atomic<int> good{0};
  for (int i = 0; i < 4; ++i)
    askers.emplace_back([&] {
      for (int n = 0; n < 10; ++n) good += get("GET", "/metrics").starts_with("HTTP/1.1 200 ") ? 1 : 0;
    });
  for (std::thread& t : askers) t.join();
  EXPECT_EQ(good, 40);
  EXPECT_EQ(asked_, 40);
  // A client that asks for nothing does not hold the server up.
  const Descriptor idle(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(port_);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(idle.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  server_.reset();
  EXPECT_EQ(get("GET", "/metrics"), "");
}

TEST_F(MetricsServerTest, APortThatIsTakenIsNamed) {
  try {
    const MetricsServer second({"127.0.0.1", port_}, "--export", "text/x", [] { return std::string(); });
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("--export 127.0.0.1:"), std::string::npos) << e.what();
    EXPECT_EQ(e.code(), ExitCode::usage);
  }
}

}  // namespace
}  // namespace doorbell::exporting
