// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/cli/gpu_loopback_bw/texts.hpp"

#include <cerrno>
#include <fmt/format.h>

#include "cxi/names.hpp"
#include "system/sysfs.hpp"

namespace doorbell::cli {

namespace {

constexpr std::size_t kWidth = 51;

std::string line(const char* label, const std::string& value) {
  return fmt::format("{:<17}: {}\n", label, value);
}

std::string memory(const std::optional<u64>& gpu) {
  return gpu ? fmt::format("GPU {}", *gpu) : "System";
}

/// The error number that the tool's own call would have returned.
int error_of(const cxi::LoopbackFailure& f) {
  switch (f.kind) {
    case cxi::LoopbackFailure::Kind::timeout:
      return ETIMEDOUT;
    case cxi::LoopbackFailure::Kind::queue_full:
      return ENOSPC;
    case cxi::LoopbackFailure::Kind::removed:
      return ENODEV;
    default:
      return EIO;
  }
}

/// How many acknowledgements came, by the counter's value.
std::string counter_line(const cxi::LoopbackFailure& f) {
  if (!f.counts.valid) return fmt::format("counter: unknown, threshold {}", f.threshold);
  std::string text = fmt::format("counter: {} acknowledged, {} failed, threshold {}", f.counts.success,
                                 f.counts.failure, f.threshold);
  if (f.events_dropped) text += "; the event queue dropped events";
  return text;
}

}  // namespace

std::string loopback_separator() {
  return fmt::format("{:-<{}}\n", "", kWidth);
}

std::string loopback_header(const LoopbackHeader& h) {
  std::string text = loopback_separator() + "    CXI Loopback Bandwidth Test\n";
  text += line("Device", h.device);
  text += line("Service ID", std::to_string(h.service));
  text += line("TX Mem", memory(h.tx_gpu));
  text += line("RX Mem", memory(h.rx_gpu));
  if (h.tx_gpu || h.rx_gpu) text += line("GPU Type", h.gpu_type);
  text += line("Test Type", h.duration_s ? "Duration" : "Iteration");
  text += h.duration_s ? line("Duration", fmt::format("{} seconds", *h.duration_s))
                       : line("Iterations", std::to_string(h.iterations));
  text += line("Write Size (B)", std::to_string(h.bytes));
  text += line("Cmds per iter", std::to_string(h.puts));
  text += line("Hugepages", h.hugepages);
  return text;
}

std::string loopback_columns() {
  return loopback_separator() + fmt::format("{:>12}  {:>10}  {:>8}  {:>15}\n", "RDMA Size[B]", "Writes",
                                            "BW[Gb/s]", "PktRate[Mpkt/s]");
}

LoopbackFigures loopback_figures(u64 bytes, u64 writes, double elapsed_us) {
  if (elapsed_us <= 0 || bytes == 0) return {};
  const auto w = static_cast<double>(writes);
  const u64 packets = (bytes - 1) / cxi::kMtu + 1;
  return {static_cast<double>(bytes) * w * 8 / elapsed_us / 1000,
          w * static_cast<double>(packets) / elapsed_us};
}

std::string loopback_row(u64 bytes, u64 writes, double elapsed_us) {
  const LoopbackFigures f = loopback_figures(bytes, writes, elapsed_us);
  return fmt::format("{:>12}  {:>10}  {:>8.2f}  {:>15.6f}\n", bytes, writes, f.gbit_per_s, f.mpacket_per_s);
}

u64 hugepages_needed(u64 bytes, u64 page_bytes, unsigned ends) {
  return (bytes + page_bytes - 1) / page_bytes * ends;
}

std::vector<std::string> failure_lines(const cxi::LoopbackFailure& f, bool running) {
  using Kind = cxi::LoopbackFailure::Kind;
  std::vector<std::string> lines;
  const std::string expected = cxi::name(f.expected);
  if (f.kind == Kind::timeout) lines.push_back(fmt::format("Timed out waiting for {} event", expected));
  if (f.kind == Kind::unexpected_event)
    lines.push_back(fmt::format("Unexpected event type: {} ({}) Expected {}", cxi::name(f.got),
                                static_cast<u32>(f.got), expected));
  if (f.kind != Kind::timeout && f.code != cxi::ReturnCode::ok)
    lines.push_back(fmt::format("event RC != RC_OK: {}", cxi::name(f.code)));
  if (f.kind == Kind::removed) lines.emplace_back("The device went away");
  if (running) {
    const std::string reason = doorbell::reason(error_of(f));
    lines.push_back(fmt::format("{}: {}",
                                f.kind == Kind::queue_full ? "Failed to issue DMA command"
                                                           : "Failed to get initiator ACK TRIGGERED_OP event",
                                reason));
    lines.push_back(fmt::format("Iteration failed: {}", reason));
    lines.push_back(counter_line(f));
  }
  if (f.queue.return_code != cxi::ReturnCode::ok && f.queue.return_code != cxi::ReturnCode::none)
    lines.push_back(fmt::format("command queue: stopped with {} at slot {}, command 0x{:02x}",
                                cxi::name(f.queue.return_code), f.queue.rd_ptr, f.queue.fail_command));
  return lines;
}

std::vector<std::string> mismatch_lines(const report::Verify& v) {
  if (v.failed() == 0) return {};
  std::vector<std::string> lines;
  if (v.failed() > v.duplicated)
    lines.push_back(
        fmt::format("Data mismatch: {} of {} checked writes: {} corrupt, {} misplaced, {} stale, {} missing",
                    v.failed() - v.duplicated, v.checked, v.corrupt, v.misplaced, v.stale, v.missing));
  for (const report::Verify::Occurrence& o : v.first)
    lines.push_back(fmt::format("{} at byte {} of the destination", o.kind, o.address));
  if (v.duplicated > 0) lines.push_back(fmt::format("{} acknowledgements more than writes", v.duplicated));
  return lines;
}

}  // namespace doorbell::cli
