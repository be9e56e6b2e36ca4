// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Traces as others read them, and packets as the kernel really sends them.
#include "rdma/roce/trace.hpp"

#include <arpa/inet.h>
#include <doorbell/error.hpp>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "carrier_rig.hpp"
#include "rdma/roce/wire.hpp"

namespace doorbell::roce {
namespace {

/// The output of a shell command, with its errors; `code` is how it ended.
std::string output(const std::string& command, int& code) {
  FILE* const pipe = popen(("{ " + command + "; } 2>&1").c_str(), "r");
  std::string text;
  std::array<char, 4096> some{};
  while (const std::size_t n = std::fread(some.data(), 1, some.size(), pipe)) text.append(some.data(), n);
  code = pclose(pipe);
  return text;
}
bool there_is(const std::string& command) {
  int code = 0;
  output(command, code);
  return code == 0;
}

class RoceTrace : public ::testing::TestWithParam<CarrierKind> {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("roce-trace-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Real RoCEv2 packets each way between two NICs that both write a trace.
  void exchange() {
    CarrierOptions o;
    o.kind = GetParam();
    o.self = a_;
    o.trace = folder_ / "a.pcapng";
    const auto a = make_carrier(o);
    o.self = b_;
    o.trace = folder_ / "b.pcapng";
    const auto b = make_carrier(o);
    test::Received to_a, to_b;
    // Same sizes in a row, which leave as segments of one datagram, and different ones.
    for (const std::size_t payload : {0, 1024, 1024, 1024, 1024, 200, 1, 2, 3, 4093, 4096, 4096, 4096, 16})
      send(*a, b_, payload);
    a->flush();
    ASSERT_TRUE(to_b.wait_for(*b, 14));
    send(*b, a_, 64);
    send(*b, a_, 64);
    b->flush();
    ASSERT_TRUE(to_a.wait_for(*a, 2));
    EXPECT_EQ(a->counters().untraced, 0U);
  }
  void send(Carrier& from, Endpoint to, std::size_t payload) {
    Headers h;
    h.operation = Operation::write_only;
    h.queue_pair = 0x123456;
    h.psn = psn_++;
    h.range = {.address = 0x1000, .key = 7, .length = static_cast<u32>(payload)};
    std::array<u8, kLongestHeaders> headers{};
    const std::size_t size = encode(h, payload, headers.data());
    std::vector<u8> p(headers.begin(), headers.begin() + static_cast<std::ptrdiff_t>(size));
    for (std::size_t i = 0; i < payload; ++i) p.push_back(static_cast<u8>(i * 7));
    p.resize(p.size() + pad_bytes(payload));
    ASSERT_TRUE(test::put(from.path(to), p));
  }

  std::filesystem::path folder_;
  const Endpoint a_ = {.address = test::fresh_endpoint().address, .port = kPort};
  const Endpoint b_ = {.address = a_.address ^ 0x40'0000, .port = kPort};
  u32 psn_ = 0xFF'FFF8;
};

INSTANTIATE_TEST_SUITE_P(All, RoceTrace, ::testing::Values(CarrierKind::ring, CarrierKind::udp),
                         [](const auto& kind) { return std::string(test::name_of(kind.param)); });

TEST_P(RoceTrace, TsharkReadsItWithoutAnError) {
  if (!there_is("tshark --version")) GTEST_SKIP() << "tshark is not installed";
  exchange();
  // Both files are one for a reader: a section behind the other.
  int code = 0;
  const std::string fields = output(
      "cd " + folder_.string() + " && cat a.pcapng b.pcapng >both.pcapng && tshark -r both.pcapng" +
          " -T fields -E separator=, -e frame.packet_flags_direction -e udp.dstport -e infiniband.bth.opcode"
          " -e infiniband.bth.padcnt -e infiniband.reth.dmalen -e ip.checksum.status -e _ws.malformed"
          " -e _ws.expert.severity -o ip.check_checksum:TRUE 2>errors || cat errors",
      code);
  std::istringstream lines(fields);
  int packets = 0, in = 0;
  for (std::string line; std::getline(lines, line); ++packets) {
    // Direction 1 is in, 2 is out; a good checksum of IPv4 has status 1; nothing is malformed or remarkable.
    EXPECT_NE(line.find(",4791,10,"), std::string::npos) << line;
    EXPECT_TRUE(line.ends_with(",1,,")) << line;
    if (line.starts_with("1,") || line.starts_with("0x00000001,")) ++in;
  }
  EXPECT_EQ(packets, 32) << fields;
  EXPECT_EQ(in, 16) << fields;
}

TEST_P(RoceTrace, ScapyFindsEachIcrcRight) {
  if (!there_is("/usr/bin/python3 -c 'import scapy.contrib.roce'"))
    GTEST_SKIP() << "python3-scapy is not installed";
  exchange();
  std::ofstream(folder_ / "check.py") << R"(import sys
from scapy.all import PcapNgReader, IP
from scapy.contrib.roce import BTH
right = 0
for name in sys.argv[1:]:
    for packet in PcapNgReader(name):
        raw = bytes(packet)
        packet = IP(raw)
        assert BTH in packet, raw.hex()
        bth = packet[BTH]
        assert bth.compute_icrc(bytes(bth)[:-4]) == raw[-4:], raw.hex()
        right += 1
print("right", right)
)";
  int code = 0;
  const std::string said = output(
      "cd " + folder_.string() + " && /usr/bin/python3 check.py a.pcapng b.pcapng 2>errors || cat errors",
      code);
  EXPECT_NE(said.find("right 32"), std::string::npos) << said;
}

TEST(RoceTraceFile, RefusesAFileThatCannotBeMade) {
  EXPECT_THROW(Trace("/nonexistent/trace.pcapng", "doorbell0"), Error);
}

// At a program's end other threads may still move packets: a block that is half in the file ends it for every
// reader.
TEST(RoceTraceFile, IsWholeAndStaysSoOnceItIsFinished) {
  const std::string file =
      std::filesystem::temp_directory_path() / ("roce-finished-" + std::to_string(getpid()));
  const Route route{.source = {0x7F00'0001, kPort}, .destination = {0x7F00'0002, kPort}};
  const std::array<u8, 20> packet{};
  Trace trace(file, "doorbell0");
  const auto empty = std::filesystem::file_size(file);
  trace.packet(route, packet, 0, Trace::Direction::out);
  trace.finish();
  const auto whole = std::filesystem::file_size(file);
  EXPECT_GT(whole, empty);
  trace.packet(route, packet, 0, Trace::Direction::out);
  trace.packet(route, packet, u32{0}, 0, Trace::Direction::in);
  trace.flush();
  EXPECT_EQ(std::filesystem::file_size(file), whole);
  std::filesystem::remove(file);
}

TEST(RoceTraceFile, CountsWhatAFullDiskLoses) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  Trace trace("/dev/full", "doorbell0");
  const std::vector<u8> p(100);
  for (int i = 0; i < 5; ++i) trace.packet({}, p, 0, Trace::Direction::out);
  trace.flush();
  EXPECT_EQ(trace.lost(), 5U);
}

/// Packets on the loopback interface as a raw socket sees them: the ICRC is right for the headers that the
/// kernel has really written, in single datagrams and in ones for it to cut up.
TEST(RoceOnTheWire, TheKernelSendsTheHeadersThatTheIcrcCovers) {
  const Descriptor raw(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_IP)));
  if (raw.get() < 0) GTEST_SKIP() << "only root has packet sockets";
  sockaddr_ll on{};
  on.sll_family = AF_PACKET;
  on.sll_protocol = htons(ETH_P_IP);
  on.sll_ifindex = static_cast<int>(if_nametoindex("lo"));
  ASSERT_EQ(bind(raw.get(), reinterpret_cast<const sockaddr*>(&on), sizeof on), 0);
  const auto a = test::carrier(CarrierKind::udp), b = test::carrier(CarrierKind::udp);
  constexpr u64 kSingle = 3, kSegments = 5;
  for (u64 i = 0; i < kSingle; ++i) {
    ASSERT_TRUE(test::put(a->path(b->self()), test::packet(i, 100 + 4 * i)));
    a->flush();
  }
  for (u64 i = 0; i < kSegments; ++i) ASSERT_TRUE(test::put(a->path(b->self()), test::packet(i, 1000)));
  a->flush();
  u64 packets = 0, datagrams = 0;
  EXPECT_TRUE(doorbell::test::eventually([&] {
    std::vector<u8> d(70'000);
    sockaddr_ll from{};
    socklen_t size = sizeof from;
    const ssize_t n = recvfrom(raw.get(), d.data(), d.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (n < 28 || from.sll_pkttype == PACKET_OUTGOING) return false;  // each one is seen twice
    const auto number = [&](std::size_t at, std::size_t bytes) {
      u32 v = 0;
      for (std::size_t i = 0; i < bytes; ++i) v = v << 8 | d[at + i];
      return v;
    };
    const Endpoint to{.address = number(16, 4), .port = static_cast<u16>(number(22, 2))};
    const Endpoint source{.address = number(12, 4), .port = static_cast<u16>(number(20, 2))};
    if (to != b->self() || source != a->self()) return false;
    ++datagrams;
    EXPECT_EQ(number(0, 2), 0x4500U);
    EXPECT_EQ(number(6, 2), 0x4000U);
    EXPECT_EQ(number(8, 2), 0x4011U);
    const std::size_t bytes = static_cast<std::size_t>(n) - kOuterHeaders;
    const std::size_t segment = bytes > 1004 ? 1004 : bytes;
    for (std::size_t k = 0; k * segment < bytes; ++k) {
      const std::span<const u8> p(d.data() + kOuterHeaders + k * segment, segment - kIcrcBytes);
      u32 stored = 0;
      std::memcpy(&stored, p.data() + p.size(), sizeof stored);
      // Whoever cuts it up counts from the identification of the whole.
      EXPECT_EQ(icrc({source, to}, p, static_cast<u16>(number(4, 2) + k)), stored) << packets;
      ++packets;
    }
    return packets == kSingle + kSegments;
  }));
  EXPECT_EQ(packets, kSingle + kSegments);
  EXPECT_LE(datagrams, kSingle + kSegments);
}

/// A foreign NIC, of which the kernel counts the identification: a raw socket sends what it would.
TEST(RoceOnTheWire, TakesPacketsOfASourceThatCounts) {
  const Descriptor raw(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
  if (raw.get() < 0) GTEST_SKIP() << "only root has raw sockets";
  const auto nic = test::carrier(CarrierKind::udp);
  const Endpoint source{.address = test::fresh_endpoint().address ^ 0x20'0000, .port = 49152};
  const Route route{.source = source, .destination = nic->self()};
  const auto send = [&](u16 identification, bool damaged) {
    const std::vector<u8> p = test::packet(identification, 256);
    std::vector<u8> d(kOuterHeaders);
    write_outer_headers(route, p.size() + kIcrcBytes, identification, d.data());
    d.insert(d.end(), p.begin(), p.end());
    const u32 check = icrc(route, p, identification);
    d.insert(d.end(), reinterpret_cast<const u8*>(&check),
             reinterpret_cast<const u8*>(&check) + sizeof check);
    if (damaged) d[100] ^= 1;
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(route.destination.address);
    ASSERT_EQ(sendto(raw.get(), d.data(), d.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(d.size()));
  };
  test::Received got;
  for (const u16 id : std::initializer_list<u16>{5000, 5001, 5003, 9000, 65535, 2}) {
    const u64 bad = nic->counters().bad_icrc;
    send(id, false);
    // One that is too far from those before it is not believed the first time.
    ASSERT_TRUE(
        doorbell::test::eventually([&] { return got.take(*nic) || nic->counters().bad_icrc != bad; }));
    if (nic->counters().bad_icrc == bad) {
      EXPECT_EQ(got.packets.back(), test::packet(id, 256));
      EXPECT_EQ(got.sources.back(), source);
    } else {
      EXPECT_EQ(id, 65535);
      send(65535, false);
      ASSERT_TRUE(got.wait_for(*nic, 5));
    }
  }
  EXPECT_EQ(nic->counters().bad_icrc, 1U);
  send(3, true);
  EXPECT_TRUE(doorbell::test::eventually([&] {
    got.take(*nic);
    return nic->counters().bad_icrc == 2;
  }));
  EXPECT_EQ(got.packets.size(), 6U);
}

}  // namespace
}  // namespace doorbell::roce
