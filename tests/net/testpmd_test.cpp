// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// dpdk-testpmd beside us: what it prints is read strictly, and it runs over the same devices.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "errors.hpp"
#include "net/dpdk/engine.hpp"
#include "net/dpdk/testpmd.hpp"
#include "net/links/namespaces.hpp"

namespace doorbell::net::dpdk {
namespace {

using test::error_of;
using test::expect_says;

/// As DPDK 22.11 prints it, the control characters that clear a screen included.
constexpr const char* kDisplay = R"(
Port statistics ====================================
  ######################## NIC statistics for port 0  ########################
  RX-packets: 17074816   RX-missed: 3          RX-bytes:  17791969734
  RX-errors: 2
  RX-nombuf:  5
  TX-packets: 36750848   TX-errors: 1          TX-bytes:  38294403414

  Throughput (since last show)
  Rx-pps:      8536589          Rx-bps:  71161054304
  Tx-pps:     18373013          Tx-bps: 153157522152
  ############################################################################
)";
constexpr const char* kTotals = R"(Telling cores to stop...
Waiting for lcores to finish...

  ---------------------- Forward statistics for port 0  ----------------------
  RX-packets: 70230176       RX-dropped: 4             RX-total: 70230180
  TX-packets: 10             TX-dropped: 59136128      TX-total: 59136138
  ----------------------------------------------------------------------------

  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++
  RX-packets: 70230176       RX-dropped: 4             RX-total: 70230180
  TX-packets: 10             TX-dropped: 59136128      TX-total: 59136138
  ++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++

Done.
)";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.rfind(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(TestpmdText, DisplaysAreRead) {
  EXPECT_TRUE(testpmd_displays("EAL: Detected CPU lcores: 2\n").empty());
  const auto all = testpmd_displays(std::string("noise\n\033[2J\033[1;1H") + kDisplay + "\033[2J" + kDisplay);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].rx_packets, 17074816u);
  EXPECT_EQ(all[1].rx_missed, 3u);
  EXPECT_EQ(all[1].rx_errors, 2u);
  EXPECT_EQ(all[1].rx_no_buffer, 5u);
  EXPECT_EQ(all[1].tx_packets, 36750848u);
  EXPECT_EQ(all[1].tx_errors, 1u);
  EXPECT_EQ(all[1].rx_per_s, 8536589u);
  EXPECT_EQ(all[1].tx_per_s, 18373013u);
}

TEST(TestpmdText, ADisplayThatIsStillBeingPrintedIsLeftOut) {
  const std::string two = std::string(kDisplay) + kDisplay;
  for (std::size_t n = std::string(kDisplay).size(); n < two.size() - 1; ++n)
    EXPECT_EQ(testpmd_displays(two.substr(0, n)).size(), 1u) << n;
  EXPECT_EQ(testpmd_displays(two).size(), 2u);
}

TEST(TestpmdText, ADisplayOfAnotherFormIsAnError) {
  const auto said = [](const std::string& what, const std::string& by) {
    return error_of([&] { (void)testpmd_displays(replaced(kDisplay, what, by)); }, ExitCode::data);
  };
  expect_says(said("RX-missed:", "RX-lost:"), "'RX-lost:' stands where 'RX-missed:' belongs");
  expect_says(said("18373013", "18.4M"), "Tx-pps: '18.4M' is no number");
  expect_says(said("18373013", ""), "is no number");
  expect_says(said("36750848", "-1"), "'-1' is no number");
  expect_says(said("  Rx-pps:      8536589", ""), "'Rx-bps:' stands where 'Rx-pps:' belongs");
  expect_says(said("port 0", "port 1"), "'1' stands where '0' belongs");
}

TEST(TestpmdText, TotalsAreReadAndMustAgree) {
  const TestpmdTotals t = testpmd_totals(std::string(kDisplay) + kTotals);
  EXPECT_EQ(t.rx_packets, 70230176u);
  EXPECT_EQ(t.rx_dropped, 4u);
  EXPECT_EQ(t.tx_packets, 10u);
  EXPECT_EQ(t.tx_refused, 59136128u);
  const auto said = [](const std::string& text) {
    return error_of([&] { (void)testpmd_totals(text); }, ExitCode::data);
  };
  expect_says(said(kDisplay), "no accumulated statistics");
  expect_says(said(std::string(kTotals) + kTotals), "two accumulated statistics");
  expect_says(said(replaced(kTotals, "70230180", "70230181")), "not the sums of their parts");
  expect_says(said(replaced(kTotals, "TX-dropped:", "TX-lost:")), "'TX-lost:' stands");
  expect_says(said(replaced(kTotals, "\n  +++", "\n  Done +++")), "'Done' stands where the statistics end");
  const std::string whole = kTotals;
  expect_says(said(whole.substr(0, whole.rfind("TX-total"))), "belongs");
}

class Testpmd : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const BackendStatus& s : {testpmd_status(), dpdk_engine().status()})
      if (!s.usable) GTEST_SKIP() << s.detail;
  }
  static TestpmdRun run(const std::string& spec) {
    const auto link = open_link({.spec = spec});
    return run_testpmd({.payload_bytes = 1000}, *link, {.seconds = 1});
  }
};

TEST_F(Testpmd, TwoProcessesOverMemif) {
  const std::filesystem::path socket =
      std::filesystem::temp_directory_path() / ("doorbell-testpmd-" + std::to_string(getpid()));
  const TestpmdRun r = run("memif:socket=" + socket.string());
  EXPECT_FALSE(std::filesystem::exists(socket.string() + ".testpmd"));
  EXPECT_EQ(r.mode, "txonly to rxonly");
  EXPECT_EQ(r.commands.size(), 2u);
  for (const std::string& command : r.commands) expect_says(command, socket.string() + ".testpmd,");
  EXPECT_GT(r.sent, 0u);
  EXPECT_GT(r.sent_per_s, 0);
  EXPECT_GT(r.received_per_s.value(), 0);
  EXPECT_FALSE(r.received.has_value());
}

TEST_F(Testpmd, ABurstRoundTheRing) {
  const TestpmdRun r = run("ring");
  EXPECT_EQ(r.mode, "io");
  EXPECT_GT(r.sent_per_s, 0);
  EXPECT_GT(r.received_per_s.value(), 0);
  // A packet that goes round is received once more than it is sent, or once less.
  EXPECT_NEAR(static_cast<double>(r.sent), static_cast<double>(r.received.value()), 100);
  EXPECT_EQ(r.refused, 0u);
}

TEST_F(Testpmd, TwoProcessesOverVeth) {
  for (const LinkKind& kind : link_kinds())
    if (kind.name == "veth" && !kind.status().usable) GTEST_SKIP() << kind.status().detail;
  try {
    enter_user_namespace_if_needed();
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  const TestpmdRun r = run("veth");
  EXPECT_GT(r.sent_per_s, 0);
  EXPECT_GT(r.received_per_s.value(), 0);
  EXPECT_GT(r.received.value(), 0u);
  EXPECT_LE(r.received.value(), r.sent + 1000);
}

TEST_F(Testpmd, AnInterruptedRunEnds) {
  const auto link = open_link({.spec = "null"});
  int asked = 0;
  const TestpmdRun r = run_testpmd({.payload_bytes = 64}, *link,
                                   {.seconds = 1000, .interrupted = [&] { return ++asked > 3; }});
  EXPECT_EQ(r.seconds, 0u);
  EXPECT_EQ(r.sent_per_s, 0);
}

}  // namespace
}  // namespace doorbell::net::dpdk
