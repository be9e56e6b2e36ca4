// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The carriers of the RoCE NIC without a NIC. First what a packet costs: one thread sends 60 and takes them,
// by its processor time, so that a busy machine does not count; the rate of two processes follows from the
// slower of the two sides. Then the rate between two processes that poll, as the median and the best of
// windows of 65,536 packets, and the time of a packet there and back.
//
// Usage: roce_carriers [ring|udp|udp-single] [BYTES] [PACKETS]
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "rdma/roce/carriers.hpp"
#include "system/clock.hpp"

namespace {

using namespace doorbell;
using namespace doorbell::roce;

constexpr int kWindow = 60;  // packets of a flush, as many as four datagrams of the largest MTU hold

CarrierOptions options_of(const std::string& kind, u8 last) {
  CarrierOptions o;
  o.self = {.address = 0x7F4D'C800U + last, .port = static_cast<u16>(10000 + getpgrp() % 50000)};
  o.kind = kind == "ring" ? CarrierKind::ring : CarrierKind::udp;
  o.segmentation = kind != "udp-single";
  return o;
}

double cpu_seconds() {
  rusage r{};
  getrusage(RUSAGE_SELF, &r);
  const auto s = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return s(r.ru_utime) + s(r.ru_stime);
}

bool put(Path& path, std::size_t bytes) {
  u8* const room = path.room(bytes);
  if (room == nullptr) return false;
  std::memset(room, 0x5A, bytes);
  path.sent(bytes);
  return true;
}

/// The sender: goes on until it is stopped, `window` packets ahead of the receiver's acknowledgements at
/// most.
[[noreturn]] void send_for_ever(const std::string& kind, std::size_t bytes) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto carrier = make_carrier(options_of(kind, 1));
  Path& path = carrier->path(options_of(kind, 2).self);
  const u64 ahead = 1024;
  u64 sent = 0, acknowledged = 0;
  u64 last = wall_ns();
  for (;;) {
    for (const Arrival& a : carrier->receive()) {
      std::memcpy(&acknowledged, a.bytes.data(), sizeof acknowledged);
      last = wall_ns();
    }
    // Lost packets are never acknowledged.
    if (wall_ns() - last > 5'000'000) acknowledged = sent;
    for (int i = 0; i < kWindow && sent - acknowledged < ahead && put(path, bytes); ++i) ++sent;
    carrier->flush();
  }
}

[[noreturn]] void echo_for_ever(const std::string& kind) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto carrier = make_carrier(options_of(kind, 1));
  Path& path = carrier->path(options_of(kind, 2).self);
  for (;;) {
    for (const Arrival& a : carrier->receive()) put(path, a.bytes.size());
    carrier->flush();
  }
}

void rate(const std::string& kind, std::size_t bytes, u64 packets) {
  const auto carrier = make_carrier(options_of(kind, 2));
  Path& back = carrier->path(options_of(kind, 1).self);
  const pid_t child = fork();
  if (child == 0) send_for_ever(kind, bytes);
  constexpr u64 kWindowPackets = 65536;
  u64 got = 0, begun = 0, told = 0, sum = 0;
  double cpu = 0;
  std::vector<double> windows;
  while (got < packets) {
    for (const Arrival& a : carrier->receive()) {
      if (got == 0) cpu = cpu_seconds();
      if (got++ % kWindowPackets == 0) {
        const u64 now = wall_ns();
        if (got != 1) windows.push_back(1e-9 * static_cast<double>(now - begun));
        begun = now;
      }
      for (std::size_t i = 0; i + 64 <= a.bytes.size(); i += 64) sum += a.bytes[i];  // as a copy reads it
    }
    if (got - told >= 32 || (got != told && got == packets)) {
      if (u8* const room = back.room(16); room != nullptr) {
        std::memcpy(room, &got, sizeof got);
        std::memset(room + 8, 0, 8);
        back.sent(16);
        told = got;
      }
      carrier->flush();
    }
  }
  const double c = cpu_seconds() - cpu;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  std::ranges::sort(windows);
  const double n = static_cast<double>(kWindowPackets), gb = n * static_cast<double>(bytes) * 1e-9;
  const double median = windows[windows.size() / 2], best = windows[0];
  std::printf(
      "%-10s %5zu B: median %6.2f GB/s (%6.0f packets/ms), best %6.2f GB/s (%6.0f packets/ms); receiver's CPU %5.0f ns a packet%s\n",
      kind.c_str(), bytes, gb / median, n / median * 1e-3, gb / best, n / best * 1e-3,
      c / static_cast<double>(packets) * 1e9, sum == 1 ? "." : "");
}

void costs(const std::string& kind, std::size_t bytes) {
  CarrierOptions o = options_of(kind, 1);
  const auto from = make_carrier(o);
  o = options_of(kind, 2);
  const auto to = make_carrier(o);
  Path& path = from->path(to->self());
  std::vector<double> sending, taking;
  u64 sum = 0;
  for (int round = 0; round < 300; ++round) {
    u64 send_ns = 0, take_ns = 0, packets = 0;
    for (int batch = 0; batch < 10; ++batch) {
      const u64 begun = thread_cpu_ns();
      u64 sent = 0;
      while (sent < kWindow && put(path, bytes)) ++sent;
      from->flush();
      const u64 middle = thread_cpu_ns();
      // Lost datagrams do not come.
      for (u64 got = 0, idle = 0; got < sent && idle < 100'000; ++idle)
        for (const Arrival& a : to->receive()) {
          for (std::size_t i = 0; i + 64 <= a.bytes.size(); i += 64) sum += a.bytes[i];
          ++got;
          idle = 0;
        }
      take_ns += thread_cpu_ns() - middle;
      send_ns += middle - begun;
      packets += sent;
    }
    sending.push_back(static_cast<double>(send_ns) / static_cast<double>(packets));
    taking.push_back(static_cast<double>(take_ns) / static_cast<double>(packets));
  }
  std::ranges::sort(sending);
  std::ranges::sort(taking);
  const double s = sending[150], t = taking[150];
  std::printf(
      "%-10s %5zu B: to send %5.0f ns a packet, to take %5.0f ns (medians of processor time): %5.2f GB/s%s\n",
      kind.c_str(), bytes, s, t, static_cast<double>(bytes) / std::max(s, t), sum == 1 ? "." : "");
}

void there_and_back(const std::string& kind, std::size_t bytes) {
  const auto carrier = make_carrier(options_of(kind, 2));
  Path& path = carrier->path(options_of(kind, 1).self);
  const pid_t child = fork();
  if (child == 0) echo_for_ever(kind);
  std::vector<u64> times;
  while (times.size() < 20000) {
    put(path, bytes);
    const u64 begun = wall_ns();
    carrier->flush();
    u64 now = begun;
    while (carrier->receive().empty() && now - begun < 20'000'000) now = wall_ns();
    times.push_back(wall_ns() - begun);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  std::ranges::sort(times);
  std::printf("%-10s %5zu B there and back: least %.2f us, median %.2f us, 99 %% %.2f us\n", kind.c_str(),
              bytes, 1e-3 * static_cast<double>(times[0]),
              1e-3 * static_cast<double>(times[times.size() / 2]),
              1e-3 * static_cast<double>(times[times.size() * 99 / 100]));
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::vector<std::string> kinds{"ring", "udp", "udp-single"};
  if (argc > 1) kinds = {argv[1]};
  std::vector<std::size_t> sizes{16, 1040, 4112};
  if (argc > 2) sizes = {static_cast<std::size_t>(std::strtoull(argv[2], nullptr, 0))};
  for (const std::string& kind : kinds)
    for (const std::size_t bytes : sizes) costs(kind, bytes);
  for (const std::string& kind : kinds) {
    for (const std::size_t bytes : sizes)
      rate(kind, bytes, argc > 3 ? std::strtoull(argv[3], nullptr, 0) : 1'000'000);
    there_and_back(kind, 32);
  }
  return 0;
}
