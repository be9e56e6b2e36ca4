// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The output of cxi_gpu_loopback_bw, byte for byte, and the figures in it.
#include <gtest/gtest.h>

#include <cmath>

#include "cxi/cli/gpu_loopback_bw/texts.hpp"

namespace doorbell::cli {
namespace {

using Kind = cxi::LoopbackFailure::Kind;

TEST(CxiLoopbackTexts, HeaderOfIterations) {
  EXPECT_EQ(loopback_header({.device = "cxi0", .iterations = 25, .bytes = 524288, .puts = 8192}),
            "---------------------------------------------------\n"
            "    CXI Loopback Bandwidth Test\n"
            "Device           : cxi0\n"
            "Service ID       : 1\n"
            "TX Mem           : System\n"
            "RX Mem           : System\n"
            "Test Type        : Iteration\n"
            "Iterations       : 25\n"
            "Write Size (B)   : 524288\n"
            "Cmds per iter    : 8192\n"
            "Hugepages        : Disabled\n");
}

TEST(CxiLoopbackTexts, HeaderOfADurationBetweenGpus) {
  EXPECT_EQ(loopback_header({.device = "cxi0",
                             .service = 5,
                             .tx_gpu = 0,
                             .rx_gpu = 2,
                             .gpu_type = "NVIDIA",
                             .duration_s = 10,
                             .iterations = 25,
                             .bytes = 131072,
                             .puts = 8192,
                             .hugepages = "Disabled - Not Applicable"}),
            "---------------------------------------------------\n"
            "    CXI Loopback Bandwidth Test\n"
            "Device           : cxi0\n"
            "Service ID       : 5\n"
            "TX Mem           : GPU 0\n"
            "RX Mem           : GPU 2\n"
            "GPU Type         : NVIDIA\n"
            "Test Type        : Duration\n"
            "Duration         : 10 seconds\n"
            "Write Size (B)   : 131072\n"
            "Cmds per iter    : 8192\n"
            "Hugepages        : Disabled - Not Applicable\n");
}

TEST(CxiLoopbackTexts, OneEndOnAGpu) {
  const std::string tx = loopback_header({.device = "cxi1", .tx_gpu = 2, .gpu_type = "AMD"});
  EXPECT_NE(tx.find("TX Mem           : GPU 2\nRX Mem           : System\nGPU Type         : AMD\n"),
            std::string::npos);
  const std::string rx = loopback_header({.device = "cxi1", .rx_gpu = 0, .gpu_type = "AMD"});
  EXPECT_NE(rx.find("TX Mem           : System\nRX Mem           : GPU 0\nGPU Type         : AMD\n"),
            std::string::npos);
}

TEST(CxiLoopbackTexts, Table) {
  EXPECT_EQ(loopback_columns(),
            "---------------------------------------------------\n"
            "RDMA Size[B]      Writes  BW[Gb/s]  PktRate[Mpkt/s]\n");
  EXPECT_EQ(loopback_separator(), "---------------------------------------------------\n");
  // A figure that is longer than its column is not cut.
  EXPECT_EQ(loopback_row(4294967295, 123456789012, 4e9),
            "  4294967295  123456789012  1060485742.30  64726912.997523\n");
}

/// The man page's examples 2 and 3: the time that each figure implies is the same, and gives the printed row.
TEST(CxiLoopbackTexts, PublishedRows) {
  EXPECT_EQ(loopback_row(131072, 1105920, 10007233), "      131072     1105920    115.88         7.072772\n");
  EXPECT_EQ(loopback_row(1048576, 229376, 10343600), "     1048576      229376    186.02        11.353930\n");
}

TEST(CxiLoopbackTexts, Figures) {
  const LoopbackFigures f = loopback_figures(1048576, 229376, 10343585.6);
  EXPECT_NEAR(f.gbit_per_s, 186.02, 0.005);
  EXPECT_NEAR(f.mpacket_per_s, 11.35393, 0.00005);
  // A packet carries 2048 bytes.
  for (const auto& [bytes, packets] : {std::pair<u64, double>{1, 1},
                                       {2047, 1},
                                       {2048, 1},
                                       {2049, 2},
                                       {4096, 2},
                                       {4097, 3},
                                       {4294967295, 2097152}}) {
    EXPECT_DOUBLE_EQ(loopback_figures(bytes, 10, 5).mpacket_per_s, packets * 2) << bytes;
    EXPECT_DOUBLE_EQ(loopback_figures(bytes, 10, 5).gbit_per_s, static_cast<double>(bytes) * 16 / 1000)
        << bytes;
  }
  // More than 64 bits of bytes, and longer than 2^32 us.
  EXPECT_NEAR(loopback_figures(4294967295, u64{1} << 40, 5e9).gbit_per_s, 7555786370.83, 0.01);
  EXPECT_EQ(loopback_figures(4096, 0, 0).gbit_per_s, 0);
  EXPECT_EQ(loopback_row(4096, 0, 0), "        4096           0      0.00         0.000000\n");
}

TEST(CxiLoopbackTexts, HugePages) {
  EXPECT_EQ(hugepages_needed(524288, 2 << 20, 2), 2u);
  EXPECT_EQ(hugepages_needed(2 << 20, 2 << 20, 1), 1u);
  EXPECT_EQ(hugepages_needed((2 << 20) + 1, 2 << 20, 2), 4u);
  EXPECT_EQ(hugepages_needed(4294967295, 1 << 30, 2), 8u);
}

cxi::LoopbackFailure failure(Kind kind) {
  cxi::LoopbackFailure f;
  f.kind = kind;
  f.counts.valid = true;
  f.counts.success = 63;
  f.threshold = 64;
  f.queue.return_code = cxi::ReturnCode::ok;
  return f;
}

TEST(CxiLoopbackTexts, ALostAcknowledgementNamesCounterAndThreshold) {
  EXPECT_EQ(failure_lines(failure(Kind::timeout), true),
            (std::vector<std::string>{
                "Timed out waiting for TRIGGERED_OP event",
                "Failed to get initiator ACK TRIGGERED_OP event: Connection timed out",
                "Iteration failed: Connection timed out",
                "counter: 63 acknowledged, 0 failed, threshold 64",
            }));
  cxi::LoopbackFailure f = failure(Kind::timeout);
  f.counts.valid = false;
  EXPECT_EQ(failure_lines(f, true).back(), "counter: unknown, threshold 64");
  f = failure(Kind::timeout);
  f.events_dropped = true;
  EXPECT_EQ(failure_lines(f, true).back(),
            "counter: 63 acknowledged, 0 failed, threshold 64; the event queue dropped events");
}

TEST(CxiLoopbackTexts, OtherFailures) {
  cxi::LoopbackFailure f = failure(Kind::timeout);
  f.expected = cxi::EventType::state_change;
  EXPECT_EQ(failure_lines(f, false), std::vector<std::string>{"Timed out waiting for STATE_CHANGE event"});
  f = failure(Kind::unexpected_event);
  f.got = cxi::EventType::ack;
  f.code = cxi::ReturnCode::undeliverable;
  const std::vector<std::string> lines = failure_lines(f, true);
  EXPECT_EQ(lines[0], "Unexpected event type: ACK (9) Expected TRIGGERED_OP");
  EXPECT_EQ(lines[1], "event RC != RC_OK: UNDELIVERABLE");
  EXPECT_EQ(lines[2], "Failed to get initiator ACK TRIGGERED_OP event: Input/output error");
  EXPECT_EQ(lines[3], "Iteration failed: Input/output error");
  f = failure(Kind::bad_return_code);
  f.expected = cxi::EventType::link;
  f.code = cxi::ReturnCode::no_space;
  EXPECT_EQ(failure_lines(f, false), std::vector<std::string>{"event RC != RC_OK: NO_SPACE"});
  f = failure(Kind::queue_full);
  f.queue.return_code = cxi::ReturnCode::cmd_invalid_arg;
  f.queue.rd_ptr = 17;
  f.queue.fail_command = 0x81;
  EXPECT_EQ(failure_lines(f, true),
            (std::vector<std::string>{
                "Failed to issue DMA command: No space left on device",
                "Iteration failed: No space left on device",
                "counter: 63 acknowledged, 0 failed, threshold 64",
                "command queue: stopped with CMD_INVALID_ARG at slot 17, command 0x81",
            }));
  EXPECT_EQ(failure_lines(failure(Kind::removed), true)[0], "The device went away");
}

TEST(CxiLoopbackTexts, Mismatches) {
  report::Verify v;
  EXPECT_TRUE(mismatch_lines(v).empty());
  v.checked = 129;
  v.corrupt = 2;
  v.missing = 1;
  v.first = {{"corrupt", 1024, 1}, {"missing", 0, 3}};
  EXPECT_EQ(mismatch_lines(v),
            (std::vector<std::string>{
                "Data mismatch: 3 of 129 checked writes: 2 corrupt, 0 misplaced, 0 stale, 1 missing",
                "corrupt at byte 1024 of the destination",
                "missing at byte 0 of the destination",
            }));
  v = {};
  v.duplicated = 4;
  EXPECT_EQ(mismatch_lines(v), std::vector<std::string>{"4 acknowledgements more than writes"});
}

}  // namespace
}  // namespace doorbell::cli
