// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <deque>
#include <thread>

#include "errors.hpp"
#include "memory/huge_pages.hpp"
#include "net/local_link.hpp"
#include "net/sockets/mirrored_ring.hpp"
#include "net/sockets/sockets.hpp"
#include "net/sockets/tcp_connection.hpp"
#include "net/sockets/tcp_rx.hpp"
#include "net/sockets/tcp_tx.hpp"
#include "system/clock.hpp"

namespace doorbell::net {
namespace {

using namespace test;
using doorbell::test::error_of;
using doorbell::test::eventually;
using doorbell::test::expect_says;
using sockets::TcpRxQueue;
using sockets::TcpTxQueue;

struct Size {
  u32 bytes;
  u32 packets;
};

class TcpSizes : public ::testing::TestWithParam<Size> {};

TEST_P(TcpSizes, ArriveWhole) {
  const Size size = GetParam();
  LocalLink link;
  StreamRequest r;
  r.payload_bytes = size.bytes;
  const auto stream = tcp_stream().open(r, link);
  ASSERT_EQ(stream->tx.size(), 1u);
  ASSERT_EQ(stream->rx.size(), 1u);
  TxQueue& tx = *stream->tx[0];
  RxQueue& rx = *stream->rx[0];
  const TxSlots slots = tx.slots();
  EXPECT_EQ(slots.count, sockets::slots_of(size.bytes));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slots.base) % 32, 0u);
  EXPECT_EQ(slots.stride % 32, 0u);
  EXPECT_GE(slots.stride, size.bytes);

  Burst burst(r.burst);
  u64 sent = 0, written = 0, got = 0;
  ASSERT_TRUE(eventually([&] {
    // Slots are written as soon as they are free, which a partly accepted record's is not.
    for (; written < size.packets && written < tx.completed() + slots.count; ++written)
      write_packet(slots.payload(written), 0, written, size.bytes);
    sent += tx.send(sent, static_cast<u32>(std::min<u64>(written - sent, 77)), size.bytes);
    rx.receive(burst);
    for (u32 i = 0; i < burst.count; ++i)
      EXPECT_TRUE(holds(burst.data[i], burst.length[i], 0, got + i, size.bytes));
    got += burst.count;
    rx.release(burst);
    if (sent == size.packets && got < sent) static_cast<void>(tx.finish());
    return got == size.packets || HasFailure();
  }));
  EXPECT_TRUE(eventually([&] { return tx.finish(); }));
  EXPECT_EQ(tx.completed(), size.packets);
  EXPECT_TRUE(eventually([&] { return rx.receive(burst) == 0 && rx.ended(); }));
  EXPECT_FALSE(tx.broken());
  EXPECT_EQ(rx.unmatched(), 0u);
  EXPECT_EQ(rx.drops().sum(), 0u);
  const auto facts = stream->facts();
  EXPECT_EQ(facts["receive"]["resets"], 0);
  EXPECT_EQ(facts["receive"]["strangers"], 0);
  EXPECT_GT(facts["send"]["connections"][0]["segment_bytes"], 0);
}

INSTANTIATE_TEST_SUITE_P(Tcp, TcpSizes,
                         ::testing::Values(Size{32, 5000}, Size{33, 5000}, Size{64, 5000}, Size{1000, 5000},
                                           Size{8000, 2500}, Size{1u << 20, 12}));

TEST(Tcp, TwoThreadsAndFourFlows) {
  LocalLink link;
  StreamRequest r;
  r.payload_bytes = 1000;
  r.flows = 4;
  r.rx_queues = 2;
  const auto stream = tcp_stream().open(r, link);
  constexpr u32 kPackets = 1000;
  std::vector<std::thread> threads;
  for (u16 f = 0; f < r.flows; ++f) fill(*stream->tx[f], f, kPackets, r.payload_bytes);
  threads.emplace_back([&] {
    for (u32 n = 0; n < kPackets; n += 50)
      for (u32 f = 0; f < r.flows; ++f) EXPECT_TRUE(send_all(*stream->tx[f], n, 50, r.payload_bytes));
    for (const auto& q : stream->tx) EXPECT_TRUE(eventually([&] { return q->finish(); }));
  });
  for (u16 q = 0; q < r.rx_queues; ++q)
    threads.emplace_back([&, q] {
      RxQueue& rx = *stream->rx[q];
      Burst burst(r.burst);
      u64 next[4] = {};
      EXPECT_TRUE(eventually([&] {
        if (rx.receive(burst) == 0) rx.wait(10'000'000);
        for (u32 i = 0; i < burst.count; ++i) {
          Header h;
          std::memcpy(&h, burst.data[i], sizeof h);
          EXPECT_EQ(h.stream() % 2, q);
          EXPECT_TRUE(holds(burst.data[i], burst.length[i], h.stream(), next[h.stream() & 3]++, 1000));
        }
        rx.release(burst);
        return rx.ended() || HasFailure();
      }));
      EXPECT_EQ(next[q], kPackets);
      EXPECT_EQ(next[q + 2], kPackets);
    });
  for (std::thread& t : threads) t.join();
}

/// The receiving end of a connection whose other end a test writes by hand.
struct HandWritten {
  explicit HandWritten(u32 payload_bytes, u32 burst_packets = 64, bool tcp = false) : burst(burst_packets) {
    std::vector<Descriptor> ends;
    if (tcp) {
      const Descriptor listener = other_socket(SOCK_STREAM, 0);
      EXPECT_EQ(::listen(listener.get(), 1), 0);
      peer = other_socket(SOCK_STREAM);
      connect_to(peer.get(), port_of(listener.get()));
      ends.emplace_back(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    } else {
      int pair[2] = {-1, -1};
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
      peer = Descriptor(pair[0]);
      ends.emplace_back(pair[1]);
    }
    rx = std::make_unique<TcpRxQueue>(
        std::move(ends), TcpRxQueue::Config{.payload_bytes = payload_bytes, .burst = burst_packets});
  }
  void write(const u8* bytes, std::size_t n) {
    ASSERT_EQ(::send(peer.get(), bytes, n, MSG_NOSIGNAL), ssize_t(n));
  }
  void write(const std::vector<u8>& bytes) { write(bytes.data(), bytes.size()); }
  [[nodiscard]] const sockets::TcpSource::Counts& counts() const { return rx->sources()[0].counts(); }
  /// Nothing can be received and the queue says that this stays so.
  bool ends() {
    return eventually([&] {
      EXPECT_EQ(rx->receive(burst), 0u);
      return rx->ended();
    });
  }

  Burst burst;
  Descriptor peer;
  std::unique_ptr<TcpRxQueue> rx;
};

TEST(TcpReceiver, AByteAtATime) {
  HandWritten h(100);
  for (u64 n = 0; n < 3; ++n) {
    const std::vector<u8> bytes = packet(5, n, 100 - 20 * static_cast<u32>(n));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_EQ(h.rx->receive(h.burst), 0u) << "byte " << i;
      h.write(&bytes[i], 1);
    }
    ASSERT_EQ(h.rx->receive(h.burst), 1u);
    EXPECT_TRUE(holds(h.burst.data[0], h.burst.length[0], 5, n, static_cast<u32>(bytes.size())));
    h.rx->release(h.burst);
  }
  EXPECT_EQ(h.counts().short_reads, 99u + 79 + 59);
  EXPECT_FALSE(h.rx->ended());
  h.peer.reset();
  EXPECT_TRUE(h.ends());
  EXPECT_EQ(h.rx->unmatched(), 0u);
}

TEST(TcpReceiver, RecordsPassTheRingsEnd) {
  // A ring of 1 MiB, through which 4 MB go in records of a length that does not divide it, while up to eight
  // bursts are held.
  HandWritten h(700, 16);
  ASSERT_EQ(h.rx->sources()[0].ring_bytes(), u64{1} << 20);
  std::deque<std::pair<Burst, u64>> held;
  u64 sent = 0, got = 0;
  std::vector<u8> bytes;
  while (got < 6000) {
    bytes.clear();
    for (u32 i = 0; i < 16; ++i) {
      const std::vector<u8> one = packet(1, sent, 500 + static_cast<u32>(sent % 199));
      ++sent;
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    h.write(bytes);
    held.emplace_back(Burst(16), got);
    ASSERT_EQ(h.rx->receive(held.back().first), 16u);
    got += 16;
    if (held.size() < 8) continue;
    auto& [burst, first] = held.front();
    for (u32 i = 0; i < burst.count; ++i)
      ASSERT_TRUE(
          holds(burst.data[i], burst.length[i], 1, first + i, 500 + static_cast<u32>((first + i) % 199)));
    h.rx->release(burst);
    held.pop_front();
  }
  EXPECT_EQ(h.rx->unmatched(), 0u);
}

TEST(TcpReceiver, AFullRingKeepsTheRest) {
  HandWritten h(8000, 8);
  const u64 ring = h.rx->sources()[0].ring_bytes();
  std::vector<Burst> held;
  std::thread writer([&] {
    for (u64 n = 0; n < 300; ++n) h.write(packet(0, n, 8000));
  });
  u64 got = 0;
  // Nothing is released until the ring is full; what it had no room for is still there afterwards.
  EXPECT_TRUE(eventually([&] {
    held.emplace_back(8);
    got += h.rx->receive(held.back());
    if (held.back().count == 0) held.pop_back();
    return got * 8000 + 8000 > ring;
  }));
  EXPECT_EQ(h.rx->receive(h.burst), 0u);
  u64 checked = 0;
  for (Burst& b : held) {
    for (u32 i = 0; i < b.count; ++i, ++checked) EXPECT_TRUE(holds(b.data[i], b.length[i], 0, checked, 8000));
    h.rx->release(b);
  }
  EXPECT_EQ(checked, got);
  EXPECT_TRUE(receive_all(*h.rx, h.burst, 0, got, static_cast<u32>(300 - got), 8000));
  writer.join();
}

TEST(TcpReceiver, TheLongestRecord) {
  constexpr u32 kLongest = 64u << 20;
  EXPECT_EQ(tcp_stream().max_payload(LocalLink()), kLongest);
  HandWritten h(kLongest, 1, true);
  std::vector<u8> bytes(kLongest);
  Header header;
  header.data_bytes = kLongest - kHeaderBytes;
  header.header_crc32c = crc32c(&header, offsetof(Header, header_crc32c));
  std::memcpy(bytes.data(), &header, sizeof header);
  for (u32 i = kHeaderBytes; i < kLongest; i += 4093) bytes[i] = static_cast<u8>(i >> 8);
  std::thread writer([&] { h.write(bytes); });
  EXPECT_TRUE(eventually([&] {
    if (h.rx->receive(h.burst) == 1) return true;
    h.rx->wait(10'000'000);
    return false;
  }));
  writer.join();
  ASSERT_EQ(h.burst.count, 1u);
  ASSERT_EQ(h.burst.length[0], kLongest);
  EXPECT_EQ(std::memcmp(h.burst.data[0], bytes.data(), kLongest), 0);
  h.rx->release(h.burst);
}

TEST(TcpReceiver, ThePeerClosesInsideARecord) {
  for (const u32 part : {1u, 31u, 32u, 99u}) {
    HandWritten h(100, 64, true);
    h.write(packet(0, 0, 100));
    h.write(packet(0, 1, 100).data(), part);
    h.peer.reset();
    EXPECT_TRUE(receive_all(*h.rx, h.burst, 0, 0, 1, 100));
    EXPECT_TRUE(h.ends());
    EXPECT_EQ(h.rx->unmatched(), 1u);
    EXPECT_EQ(h.counts().resets, 0u);
    expect_says(h.counts().why, "inside a record");
  }
}

TEST(TcpReceiver, ThePeerResets) {
  HandWritten h(100, 64, true);
  h.write(packet(0, 0, 100));
  h.write(packet(0, 1, 100).data(), 50);
  EXPECT_TRUE(receive_all(*h.rx, h.burst, 0, 0, 1, 100));
  const linger at_once{1, 0};
  ASSERT_EQ(::setsockopt(h.peer.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  h.peer.reset();
  EXPECT_TRUE(h.ends());
  EXPECT_EQ(h.counts().resets, 1u);
  EXPECT_EQ(h.rx->unmatched(), 1u);
}

TEST(TcpReceiver, EndsOnlyWhenAllHasBeenTaken) {
  HandWritten h(64, 3);
  for (u64 n = 0; n < 7; ++n) h.write(packet(0, n, 64));
  h.peer.reset();
  for (const u32 count : {3u, 3u, 1u}) {
    EXPECT_FALSE(h.rx->ended());
    EXPECT_EQ(h.rx->receive(h.burst), count);
    h.rx->release(h.burst);
  }
  EXPECT_TRUE(h.ends());
  h.rx->wait(1'000'000);
}

TEST(TcpReceiver, GarbageEndsTheStream) {
  HandWritten h(100, 64, true);
  h.write(packet(0, 0, 100));
  h.write(std::vector<u8>(1000, 0x5a));
  h.write(packet(0, 1, 100));
  EXPECT_TRUE(receive_all(*h.rx, h.burst, 0, 0, 1, 100));
  EXPECT_TRUE(h.ends());
  EXPECT_EQ(h.rx->unmatched(), 1u);
  expect_says(h.counts().why, "magic");
  // The other end learns of it, in place of filling the connection and waiting.
  const std::vector<u8> more(1000);
  EXPECT_TRUE(eventually([&] { return ::send(h.peer.get(), more.data(), more.size(), MSG_NOSIGNAL) < 0; }));
}

/// The sending end of a connection that a test reads by hand.
struct HandRead {
  HandRead(u32 payload_bytes, u64 send_buffer) {
    const Descriptor listener = other_socket(SOCK_STREAM, 0);
    const int small = 4096;
    EXPECT_EQ(::setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    Descriptor s = sockets::connect_tcp("127.0.0.1", local(port_of(listener.get())), send_buffer, false,
                                        wall_ns() + sockets::kSetupNs);
    peer = Descriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const timeval limit{static_cast<time_t>(doorbell::test::kWaitLimitS), 0};
    EXPECT_EQ(::setsockopt(peer.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    const u64 stride = (payload_bytes + 31) / 32 * 32;
    tx = std::make_unique<TcpTxQueue>(std::move(s), Region(Place::pageable, stride * kTemplates),
                                      payload_bytes);
  }
  /// Reads exactly n bytes.
  [[nodiscard]] std::vector<u8> read(std::size_t n) const {
    std::vector<u8> bytes(n);
    EXPECT_EQ(::recv(peer.get(), bytes.data(), n, MSG_WAITALL), ssize_t(n));
    return bytes;
  }

  Descriptor peer;
  std::unique_ptr<TcpTxQueue> tx;
};

TEST(TcpSender, APartOfARecord) {
  constexpr u32 kBytes = 30011;
  HandRead h(kBytes, 8192);
  TcpTxQueue& tx = *h.tx;
  fill(tx, 0, 600, kBytes);
  u64 sent = 0;
  // Until the connection is full and stays so, which is inside a record at most lengths.
  EXPECT_TRUE(eventually([&] {
    const u32 n = tx.send(sent, 10, kBytes);
    sent += n;
    return n == 0 && tx.partial_sends() > 0;
  }));
  ASSERT_EQ(tx.completed(), sent - 1);
  // The slot of the packet that is half gone is not free, all before it are.
  for (u64 n = 0; n + 1 < sent; ++n) std::memset(tx.slots().payload(n), 0xee, kBytes);
  // The connection ends behind whole records, and with exactly those that were accepted.
  std::thread reader([&] {
    for (u64 n = 0; n < sent; ++n) {
      const std::vector<u8> bytes = h.read(kBytes);
      EXPECT_TRUE(holds(bytes.data(), kBytes, 0, n, kBytes));
    }
    u8 more = 0;
    EXPECT_EQ(::recv(h.peer.get(), &more, 1, 0), 0);
  });
  EXPECT_TRUE(eventually([&] { return tx.finish(); }));
  reader.join();
  EXPECT_EQ(tx.completed(), sent);
  EXPECT_FALSE(tx.broken());
  EXPECT_EQ(tx.send(sent, 1, kBytes), 0u);
}

TEST(TcpSender, FinishesWhenAllIsAcknowledged) {
  HandRead h(8000, 1u << 20);
  TcpTxQueue& tx = *h.tx;
  fill(tx, 0, kTemplates, 8000);
  u32 sent = 0;
  while (const u32 n = tx.send(sent, 10, 8000)) sent += n;
  // The reader's window is far smaller than what was accepted.
  EXPECT_FALSE(tx.finish());
  EXPECT_FALSE(tx.finish());
  std::thread reader([&] {
    for (u32 n = 0; n < sent; ++n) {
      const std::vector<u8> bytes = h.read(8000);
      EXPECT_TRUE(holds(bytes.data(), 8000, 0, n, 8000));
    }
  });
  EXPECT_TRUE(eventually([&] { return tx.finish(); }));
  reader.join();
  EXPECT_FALSE(tx.broken());
}

TEST(TcpSender, ThePeerGoes) {
  HandRead h(8000, 1u << 16);
  TcpTxQueue& tx = *h.tx;
  fill(tx, 0, kTemplates, 8000);
  u64 sent = 0;
  while (const u32 n = tx.send(sent, 10, 8000)) sent += n;
  EXPECT_FALSE(tx.broken());
  h.peer.reset();  // with unread bytes, which resets the connection
  EXPECT_TRUE(eventually([&] {
    tx.wait(1'000'000);
    sent += tx.send(sent, 10, 8000);
    return tx.broken();
  }));
  EXPECT_EQ(tx.send(sent, 10, 8000), 0u);
  EXPECT_TRUE(tx.finish());
}

TEST(TcpConnection, OthersAreTurnedAway) {
  const Descriptor listener = other_socket(SOCK_STREAM, 0);
  ASSERT_EQ(::listen(listener.get(), 4), 0);
  ASSERT_EQ(::fcntl(listener.get(), F_SETFL, O_NONBLOCK), 0);
  const u16 port = port_of(listener.get());
  const Descriptor stranger = other_socket(SOCK_STREAM);
  connect_to(stranger.get(), port);
  const u64 until = wall_ns() + sockets::kSetupNs;
  const Descriptor ours = sockets::connect_tcp("127.0.0.1", local(port), 0, false, until);
  const sockaddr_in from = sockets::local_address(ours.get());
  u64 strangers = 0;
  const Descriptor accepted = sockets::accept_tcp(listener.get(), &from, until, strangers);
  EXPECT_GE(accepted.get(), 0);
  EXPECT_EQ(strangers, 1u);
  expect_says(
      error_of([&] {
        static_cast<void>(sockets::accept_tcp(listener.get(), &from, wall_ns() + 1'000'000, strangers));
      }),
      "no sender has connected in time");
}

TEST(TcpConnection, Refused) {
  const Descriptor bound = other_socket(SOCK_STREAM, 0);  // and does not listen
  const sockaddr_in to = local(port_of(bound.get()));
  const auto connect = [&](bool retry, u64 limit_ns) {
    return error_of(
        [&] { static_cast<void>(sockets::connect_tcp("127.0.0.1", to, 0, retry, wall_ns() + limit_ns)); });
  };
  expect_says(connect(false, sockets::kSetupNs), "refused");
  expect_says(connect(true, 50'000'000), "start the receiving end first");
}

/// A port that was free a moment ago.
u16 free_port() {
  return port_of(other_socket(SOCK_STREAM, 0).get());
}

TEST(TcpConnection, TheEndsInTwoProcesses) {
  LocalLink link;
  std::unique_ptr<Stream> sending, receiving;
  ASSERT_TRUE(eventually([&] {
    StreamRequest r;
    r.payload_bytes = 500;
    r.flows = 2;
    r.port = static_cast<u16>(std::min<u32>(free_port(), 65000));
    try {
      // The sender comes first, and finds nobody yet.
      std::exception_ptr failed;
      std::thread sender([&] {
        StreamRequest mine = r;
        mine.has_rx = false;
        try {
          sending = tcp_stream().open(mine, link);
        } catch (const Error&) {
          failed = std::current_exception();
        }
      });
      StreamRequest mine = r;
      mine.has_tx = false;
      try {
        receiving = tcp_stream().open(mine, link);
      } catch (const Error&) {
        failed = std::current_exception();
      }
      sender.join();
      if (failed) std::rethrow_exception(failed);
    } catch (const Error& e) {  // another test has a port by now
      std::printf("%s\n", e.what());
      return false;
    }
    return true;
  }));
  EXPECT_TRUE(sending->rx.empty());
  EXPECT_TRUE(receiving->tx.empty());
  for (u16 f = 0; f < 2; ++f) {
    fill(*sending->tx[f], f, 10, 500);
    ASSERT_TRUE(send_all(*sending->tx[f], 0, 10, 500));
    Burst burst(4);
    u32 got = 0;
    EXPECT_TRUE(eventually([&] {
      receiving->rx[0]->receive(burst);
      for (u32 i = 0; i < burst.count; ++i)
        EXPECT_TRUE(holds(burst.data[i], burst.length[i], f, got + i, 500));
      got += burst.count;
      receiving->rx[0]->release(burst);
      return got == 10;
    }));
  }
}

TEST(TcpConnection, TakenPorts) {
  LocalLink link;
  const Descriptor taken = other_socket(SOCK_STREAM, 0);
  ASSERT_EQ(::listen(taken.get(), 1), 0);
  StreamRequest r;
  r.payload_bytes = 64;
  r.port = port_of(taken.get());
  if (r.port > 65000) GTEST_SKIP() << "the kernel has given a port next to the last";
  const auto stream = tcp_stream().open(r, link);
  EXPECT_GT(stream->facts()["ports"][0], r.port);
  r.has_tx = false;
  expect_says(error_of([&] { tcp_stream().open(r, link); }), std::to_string(r.port));
}

/// Whoever reaches the port first, and whatever it says or does not say.
TEST(TcpConnection, TheSendersGreetingIsKnownAmongStrangers) {
  const u64 token = 0x0123456789abcdef;
  const sockets::Bound at =
      sockets::open_bound(SOCK_STREAM, "127.0.0.1", free_port(), /*next_free=*/true, [](int) {});
  const u64 until = wall_ns() + 60'000'000'000;
  const auto connect = [&] { return sockets::connect_tcp("127.0.0.1", local(at.port), 0, false, until); };
  const Descriptor silent = connect(), wrong = connect(), half = connect();
  sockets::greet(wrong.get(), token + 1);
  const u8 first = token >> 56;
  ASSERT_EQ(::send(half.get(), &first, 1, 0), 1);
  connect();  // and goes again
  const Descriptor sender = connect();
  sockets::greet(sender.get(), token);
  ASSERT_EQ(::send(sender.get(), "data", 4, 0), 4);
  u64 strangers = 0;
  const Descriptor mine = sockets::accept_greeting(at.socket.get(), token, until, strangers);
  EXPECT_EQ(strangers, 4u);
  char behind[5] = {};
  EXPECT_TRUE(eventually([&] { return ::recv(mine.get(), behind, 4, MSG_DONTWAIT) == 4; }));
  EXPECT_STREQ(behind, "data");

  const Descriptor late = connect();
  expect_says(error_of([&] { (void)sockets::accept_greeting(at.socket.get(), token, wall_ns(), strangers); }),
              "no sender has connected in time");
}

TEST(TcpConnection, TooMuchMemoryIsRefused) {
  LocalLink link;
  StreamRequest r;
  r.payload_bytes = 64u << 20;
  r.flows = 1000;
  r.port = 20000;
  expect_says(error_of([&] { tcp_stream().open(r, link); }), "1000 flows");
  r.payload_bytes = (64u << 20) + 1;
  expect_says(error_of([&] { tcp_stream().open(r, link); }), "32 .. 67108864");
}

TEST(MirroredRing, BothHalvesAreTheSame) {
  for (const Place place : {Place::pageable, Place::pinned, Place::huge_2m}) {
    if (place == Place::huge_2m && huge_pages(kHuge2M).free == 0) continue;
    const sockets::MirroredRing ring(place, 5000);
    const u64 n = ring.bytes();
    ASSERT_GE(n, 5000u);
    for (u64 i = 0; i < n; ++i) ring.base()[i] = static_cast<u8>(i * 13);
    for (u64 i = 0; i < n; ++i) ASSERT_EQ(ring.base()[n + i], static_cast<u8>(i * 13));
    ring.base()[2 * n - 1] = 1;
    EXPECT_EQ(ring.base()[n - 1], 1);
  }
  if (huge_pages(kHuge1G).free == 0)
    expect_says(error_of([] { sockets::MirroredRing(Place::huge_1g, 1); }), "1 GiB huge pages");
}

}  // namespace
}  // namespace doorbell::net
