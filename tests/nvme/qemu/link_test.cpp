// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The messages to a QEMU process and the memory that it shares, without one: the test plays the other side.

#include "nvme/qemu/link.hpp"

#include <doorbell/error.hpp>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "nvme/qemu/memory.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {
namespace {

constexpr u32 kSync = 0, kReply = 1, kConfigWrite = 2, kConfigRead = 3, kBarWrite = 4, kBarRead = 5;
constexpr double kLinkTimeoutS = 30;  // a busy machine is not a silent peer

template <class T>
T at(std::span<const u8> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

struct Message {
  u32 command = 0;
  std::vector<u8> payload;
  int fd = -1;
};

std::array<u8, 24> reply_of(u64 value) {
  std::array<u8, 24> r{};
  const u32 command = kReply;
  const u64 size = 8;
  std::memcpy(r.data(), &command, sizeof command);
  std::memcpy(r.data() + 8, &size, sizeof size);
  std::memcpy(r.data() + 16, &value, sizeof value);
  return r;
}

/// The other end of a link.
class Peer {
 public:
  explicit Peer(int socket) : socket_(socket) {}
  ~Peer() { close(socket_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void hang_up() { shutdown(socket_, SHUT_RDWR); }

  /// The next message; nothing once the link has hung up.
  std::optional<Message> next() {
    std::array<u8, 16> header{};
    Message m;
    if (!take(header.data(), header.size(), &m.fd)) return {};
    m.command = at<u32>(header, 0);
    EXPECT_EQ(at<u32>(header, 4), 0u) << "padding";
    m.payload.resize(at<u64>(header, 8));
    if (!take(m.payload.data(), m.payload.size(), nullptr)) return {};
    return m;
  }
  void answer(u64 value) { say(reply_of(value)); }
  void say(std::span<const u8> bytes) {
    EXPECT_EQ(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
  }
  [[nodiscard]] int socket() const { return socket_; }

 private:
  bool take(u8* to, std::size_t n, int* fd) {
    while (n > 0) {
      iovec part = {to, n};
      alignas(cmsghdr) std::array<u8, CMSG_SPACE(sizeof(int))> control{};
      msghdr m{};
      m.msg_iov = &part;
      m.msg_iovlen = 1;
      m.msg_control = control.data();
      m.msg_controllen = control.size();
      const ssize_t got = recvmsg(socket_, &m, 0);
      if (got <= 0) return false;
      if (const cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr && fd != nullptr)
        std::memcpy(fd, CMSG_DATA(c), sizeof *fd);
      to += got;
      n -= static_cast<std::size_t>(got);
    }
    return true;
  }

  int socket_;
};

struct Pair {
  explicit Pair(double timeout_s = kLinkTimeoutS, int send_buffer = 0) {
    std::array<int, 2> s{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s.data()) != 0)
      throw std::runtime_error("socketpair");
    if (send_buffer != 0) setsockopt(s[1], SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
    peer = std::make_unique<Peer>(s[0]);
    link = std::make_unique<QemuLink>(s[1], timeout_s);
  }
  std::unique_ptr<Peer> peer;
  std::unique_ptr<QemuLink> link;
};

/// Plays the other side in a thread, until `script` returns false, the link hangs up, or at the end of its
/// life: what was sent until then it still takes.
class Server {
 public:
  Server(Peer& peer, std::function<bool(const Message&)> script)
      : peer_(peer), thread_([this, script = std::move(script)] {
          while (const auto m = peer_.next())
            if (!script(*m)) return;
        }) {}
  ~Server() {
    shutdown(peer_.socket(), SHUT_RD);
    thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  Peer& peer_;
  std::thread thread_;
};

double seconds_since(u64 begin) {
  return static_cast<double>(wall_ns() - begin) * 1e-9;
}

// --- messages, byte by byte -------------------------------------------------------------------------

TEST(Link, SharesMemory) {
  Pair p;
  const int fd = memfd_create("test", MFD_CLOEXEC);
  p.link->share_memory(fd, 0x1122'3344'5566'7788, 0x99aa'bbcc'ddee'ff00);
  const auto m = p.peer->next();
  ASSERT_TRUE(m);
  EXPECT_EQ(m->command, kSync);
  ASSERT_EQ(m->payload.size(), 192u);  // three arrays of eight: addresses, sizes, offsets
  EXPECT_EQ(at<u64>(m->payload, 0), 0x1122'3344'5566'7788u);
  EXPECT_EQ(at<u64>(m->payload, 64), 0x99aa'bbcc'ddee'ff00u);
  for (std::size_t i = 0; i < 192; ++i)
    if (i / 8 != 0 && i / 8 != 8) {
      EXPECT_EQ(m->payload[i], 0) << i;
    }
  struct stat sent {
  }, received{};
  ASSERT_GE(m->fd, 0);
  ASSERT_EQ(fstat(fd, &sent), 0);
  ASSERT_EQ(fstat(m->fd, &received), 0);
  EXPECT_EQ(sent.st_ino, received.st_ino);
  close(m->fd);
  close(fd);
}

TEST(Link, Registers) {
  Pair p;
  std::vector<Message> seen;
  {
    const Server server(*p.peer, [&](const Message& m) {
      seen.push_back(m);
      p.peer->answer(m.command == kBarRead ? 0x0123'4567'89ab'cdef : 0);
      return seen.size() < 3;
    });
    EXPECT_EQ(p.link->read(0xe0'0000'0000, 8), 0x0123'4567'89ab'cdefu);
    EXPECT_EQ(p.link->read(0xe0'0000'001c, 4), 0x0123'4567'89ab'cdefu) << "the caller narrows it";
    p.link->write(0xe0'0000'0014, 0x0046'0001);
  }
  ASSERT_EQ(seen.size(), 3u);
  const auto expect = [](const Message& m, u32 command, u64 address, u64 value, u32 bytes) {
    EXPECT_EQ(m.command, command);
    ASSERT_EQ(m.payload.size(), 24u);
    EXPECT_EQ(at<u64>(m.payload, 0), address);
    EXPECT_EQ(at<u64>(m.payload, 8), value);
    EXPECT_EQ(at<u32>(m.payload, 16), bytes);
    EXPECT_EQ(m.payload[20], 1) << "memory, not ports";
    EXPECT_EQ(m.fd, -1);
  };
  expect(seen[0], kBarRead, 0xe0'0000'0000, 0, 8);
  expect(seen[1], kBarRead, 0xe0'0000'001c, 0, 4);
  expect(seen[2], kBarWrite, 0xe0'0000'0014, 0x0046'0001, 4);
  EXPECT_EQ(p.link->messages(), 3u);
}

TEST(Link, Configuration) {
  Pair p;
  std::vector<Message> seen;
  {
    const Server server(*p.peer, [&](const Message& m) {
      seen.push_back(m);
      p.peer->answer(0xffff'ffff'0010'1b36);
      return seen.size() < 2;
    });
    p.link->write_config(4, 6, 2);
    EXPECT_EQ(p.link->read_config(0, 4), 0x0010'1b36u);
  }
  ASSERT_EQ(seen.size(), 2u);
  for (const Message& m : seen) ASSERT_EQ(m.payload.size(), 12u);
  EXPECT_EQ(seen[0].command, kConfigWrite);
  EXPECT_EQ(at<u32>(seen[0].payload, 0), 4u);
  EXPECT_EQ(at<u32>(seen[0].payload, 4), 6u);
  EXPECT_EQ(at<u32>(seen[0].payload, 8), 2u);
  EXPECT_EQ(seen[1].command, kConfigRead);
  EXPECT_EQ(at<u32>(seen[1].payload, 0), 0u);
  EXPECT_EQ(at<u32>(seen[1].payload, 8), 4u);
}

// --- replies ----------------------------------------------------------------------------------------

TEST(Link, AReadTakesItsOwnReply) {
  Pair p;
  const Server server(*p.peer, [&](const Message& m) {
    p.peer->answer(m.command == kBarWrite ? ~u64{0} : at<u64>(m.payload, 0));
    return true;
  });
  for (u32 i = 0; i < 500; ++i) {
    for (u32 w = 0; w < i % 5; ++w) p.link->post_write(0x1000, w);
    ASSERT_EQ(p.link->read(i, 4), i) << "replies of posted writes lie before it";
  }
}

TEST(Link, TornReplies) {
  Pair p;
  u32 n = 0;
  const Server server(*p.peer, [&](const Message& m) {
    const auto whole = reply_of(at<u64>(m.payload, 0) * 3);
    const std::size_t cut = 1 + n++ % 23;
    p.peer->say(std::span(whole).first(cut));
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // so that both parts are seen
    p.peer->say(std::span(whole).subspan(cut));
    return true;
  });
  for (u64 i = 0; i < 100; ++i) ASSERT_EQ(p.link->read(i << 40 | i, 8), (i << 40 | i) * 3);
}

TEST(Link, RepliesInOnePiece) {
  Pair p;
  u32 n = 0;
  std::vector<u8> held;
  const Server server(*p.peer, [&](const Message& m) {
    const auto r = reply_of(at<u64>(m.payload, 0));
    held.insert(held.end(), r.begin(), r.end());
    if (++n == 101) p.peer->say(held);  // 100 writes and the read
    return n < 101;
  });
  for (u32 i = 0; i < 100; ++i) p.link->post_write(i, i);
  EXPECT_EQ(p.link->read(777, 4), 777u);
}

TEST(Link, APostedReadIsHandedOver) {
  Pair p;
  std::vector<u32> values;
  const Server server(*p.peer, [&](const Message& m) {
    p.peer->answer(m.command == kBarRead ? 40 + at<u64>(m.payload, 0) : 0);
    return true;
  });
  const auto keep = [&](u32 v) { values.push_back(v); };
  p.link->post_write(8, 1);
  p.link->post_read(1, keep);
  p.link->post_read(2, [](u32) { ADD_FAILURE() << "one at a time"; });
  p.link->post_write(8, 2);
  EXPECT_EQ(p.link->read(3, 4), 43u);
  EXPECT_EQ(values, std::vector<u32>{41});
  p.link->post_read(5, keep);
  for (const u64 begin = wall_ns(); values.size() < 2 && seconds_since(begin) < kLinkTimeoutS;)
    p.link->take_replies();
  EXPECT_EQ(values, (std::vector<u32>{41, 45}));
}

/// QEMU stops answering when its replies are not taken: 5000 of them do not fit into the socket.
TEST(Link, PostedWritesTakeRepliesInTime) {
  Pair p;
  constexpr u32 kWrites = 5000;
  u32 next = 0;
  {
    const Server server(*p.peer, [&](const Message& m) {
      EXPECT_EQ(at<u64>(m.payload, 8), next) << "out of order";
      p.peer->answer(0);
      return ++next < kWrites;
    });
    for (u32 i = 0; i < kWrites; ++i) p.link->post_write(0x1000, i);
  }
  EXPECT_EQ(next, kWrites);
  EXPECT_FALSE(p.link->gone());
  EXPECT_EQ(p.link->messages(), kWrites);
}

/// A peer that is slow to answer: writes go ahead of the replies up to 256, then wait.
TEST(Link, PostedWritesWaitForASlowPeer) {
  Pair p;
  for (u32 i = 0; i < 256; ++i) p.link->post_write(0x1000, i);  // there is no answer: none of these may wait
  EXPECT_EQ(p.link->messages(), 256u);
  std::atomic<bool> through = false;
  std::jthread writer([&] {
    p.link->post_write(0x1000, 256);
    through = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(through) << "the 257th does not wait for replies";
  for (u32 i = 0; i < 257; ++i) {
    const auto m = p.peer->next();
    ASSERT_TRUE(m);
    EXPECT_EQ(at<u64>(m->payload, 8), i);
    p.peer->answer(0);
  }
  writer.join();
  EXPECT_TRUE(through);
  EXPECT_FALSE(p.link->gone());
}

TEST(Link, ManyThreads) {
  Pair p;
  std::array<u64, 4> last{};
  const Server server(*p.peer, [&](const Message& m) {
    const u64 address = at<u64>(m.payload, 0);
    if (m.command == kBarWrite) {
      EXPECT_GT(at<u64>(m.payload, 8), last[address]) << "one thread's writes changed places";
      last[address] = at<u64>(m.payload, 8);
    }
    p.peer->answer(m.command == kBarRead ? address : ~u64{0});
    return true;
  });
  {
    std::vector<std::jthread> threads;
    for (u32 t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (u32 i = 1; i <= 1000; ++i) {
          p.link->post_write(t, i);
          if (i % 16 == 0) {
            EXPECT_EQ(p.link->read(100 + t, 4), 100 + t);
          }
          if (i % 16 == 8) p.link->take_replies();
          if (i % 16 == 4) p.link->post_read(200, [](u32 v) { EXPECT_EQ(v, 200u); });
        }
      });
  }
  EXPECT_EQ(p.link->read(7, 4), 7u);
}

// --- a peer that goes or hangs ------------------------------------------------------------------------

TEST(Link, APeerThatIsGone) {
  Pair p;
  p.peer->hang_up();
  EXPECT_EQ(p.link->read(0, 8), ~u64{0});
  EXPECT_TRUE(p.link->gone());
  EXPECT_EQ(p.link->read_config(0, 4), ~0u);
  p.link->write(0, 1);
  for (u32 i = 0; i < 1000; ++i) p.link->post_write(0, i);
  p.link->post_read(0, [](u32) { ADD_FAILURE(); });
  p.link->take_replies();
  p.link->share_memory(0, 0, 0);
  EXPECT_EQ(p.link->messages(), 0u);
}

TEST(Link, APeerThatGoesInTheMiddleOfAReply) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{23}}) {
    Pair p;
    const Server server(*p.peer, [&](const Message&) {
      const auto whole = reply_of(5);
      p.peer->say(std::span(whole).first(bytes));
      p.peer->hang_up();
      return false;
    });
    const u64 begin = wall_ns();
    EXPECT_EQ(p.link->read(0, 8), ~u64{0}) << bytes;
    EXPECT_TRUE(p.link->gone());
    EXPECT_LT(seconds_since(begin), kLinkTimeoutS / 2) << "it waited for somebody who has left";
  }
}

/// Replies that a peer sent before it left still count.
TEST(Link, RepliesBeforeTheEnd) {
  Pair p;
  std::vector<u32> values;
  p.link->post_write(1, 1);
  p.link->post_read(2, [&](u32 v) { values.push_back(v); });
  p.peer->answer(0);
  p.peer->answer(66);
  ASSERT_TRUE(p.peer->next() && p.peer->next());
  p.peer->hang_up();
  while (!p.link->gone()) p.link->take_replies();
  EXPECT_EQ(values, std::vector<u32>{66});
}

TEST(Link, APeerThatNeverAnswersIsGivenUp) {
  constexpr double kShortTimeoutS = 1;  // longer than a busy machine's pauses
  Pair p(kShortTimeoutS);
  const u64 begin = wall_ns();
  EXPECT_EQ(p.link->read(0, 4), ~u64{0});
  EXPECT_GE(seconds_since(begin), kShortTimeoutS);
  EXPECT_TRUE(p.link->gone());
  const u64 again = wall_ns();
  for (u32 i = 0; i < 100; ++i) EXPECT_EQ(p.link->read(0, 4), ~u64{0});
  EXPECT_LT(seconds_since(again), kShortTimeoutS) << "it was waited for again";
}

TEST(Link, PostedWritesToAPeerThatNeverAnswers) {
  Pair p(0.2);
  const Server server(*p.peer, [](const Message&) { return true; });  // takes everything, says nothing
  for (u32 i = 0; i < 1000 && !p.link->gone(); ++i) p.link->post_write(0, i);
  EXPECT_TRUE(p.link->gone());
}

/// It does not even take what is sent: the socket fills up.
TEST(Link, APeerThatTakesNothing) {
  Pair p(0.2, 4096);
  for (u32 i = 0; i < 250 && !p.link->gone(); ++i) p.link->post_write(0, i);
  EXPECT_TRUE(p.link->gone()) << "the socket holds them all: this tests nothing";
}

// --- memory -----------------------------------------------------------------------------------------

TEST(QemuMemory, RegionsArePiecesOfOneFile) {
  QemuMemory m;
  Region a = m.allocate(Place::pageable, 1, nullptr), b = m.allocate(Place::pinned, 3 * 4096 + 1, nullptr);
  EXPECT_EQ(a.bytes(), 4096u);
  EXPECT_EQ(b.bytes(), 4 * 4096u);
  EXPECT_EQ(a.place(), Place::pageable);
  EXPECT_EQ(b.place(), Place::pinned);
  for (Region* r : {&a, &b}) {
    EXPECT_TRUE(m.holds(reinterpret_cast<Iova>(r->host()), r->bytes()));
    EXPECT_EQ(m.map(*r, Access::read_write), reinterpret_cast<Iova>(r->host()));
    // Bytes that this side stores are in the file that QEMU maps, at the address's offset.
    std::memset(r->host(), 0x5a, r->bytes());
    u8 byte = 0;
    EXPECT_EQ(pread(m.fd(), &byte, 1, r->host() + r->bytes() - 1 - m.base()), 1);
    EXPECT_EQ(byte, 0x5a);
  }
  EXPECT_TRUE(a.host() + a.bytes() <= b.host() || b.host() + b.bytes() <= a.host());
}

TEST(QemuMemory, ReuseIsZeroed) {
  QemuMemory m;
  const u8* where = nullptr;
  for (u32 round = 0; round < 3; ++round) {
    const Region r = m.allocate(Place::pageable, 64 * 1024, nullptr);
    if (where != nullptr) {
      EXPECT_EQ(r.host(), where) << "not the same pages: this tests nothing";
    }
    where = r.host();
    for (u64 i = 0; i < r.bytes(); ++i) ASSERT_EQ(r.host()[i], 0) << "round " << round << " byte " << i;
    std::memset(r.host(), 0xee, r.bytes());
  }
}

TEST(QemuMemory, FreedNeighboursJoin) {
  QemuMemory m;
  const u64 third = m.bytes() / 4096 / 3 * 4096;
  for (const std::array<u32, 3>& order : {std::array<u32, 3>{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    std::array<Region, 3> r;
    for (Region& one : r) one = m.allocate(Place::pageable, third, nullptr);
    for (const u32 i : order) r[i] = Region();
    EXPECT_NO_THROW((void)m.allocate(Place::pageable, m.bytes(), nullptr)) << "in pieces";
  }
}

TEST(QemuMemory, Exhaustion) {
  QemuMemory m;
  const auto refused = [&](u64 bytes) {
    try {
      (void)m.allocate(Place::pageable, bytes, nullptr);
      ADD_FAILURE() << bytes << " bytes were given";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::usage);
    }
  };
  refused(0);
  refused(m.bytes() + 1);
  refused(~u64{0});
  Region most = m.allocate(Place::pageable, m.bytes() - 4096, nullptr);
  refused(4097);
  const Region last = m.allocate(Place::pageable, 4096, nullptr);
  refused(1);
  most = Region();
  EXPECT_NO_THROW((void)m.allocate(Place::pageable, 1 << 20, nullptr));
}

TEST(QemuMemory, RefusesOtherPlacesAndOthersMemory) {
  QemuMemory m, other;
  for (const Place place : {Place::gpu, Place::huge_2m, Place::huge_1g})
    EXPECT_THROW((void)m.allocate(place, 4096, nullptr), Error) << name(place);
  const Region heap(Place::pageable, 4096);
  EXPECT_THROW((void)m.map(heap, Access::read), Error);
  EXPECT_THROW((void)m.map(other.allocate(Place::pageable, 4096, nullptr), Access::read), Error);
  const Iova begin = reinterpret_cast<Iova>(m.base());
  EXPECT_TRUE(m.holds(begin, m.bytes()));
  EXPECT_FALSE(m.holds(begin - 1, 1));
  EXPECT_FALSE(m.holds(begin, m.bytes() + 1));
  EXPECT_FALSE(m.holds(begin + m.bytes(), 1));
  EXPECT_FALSE(m.holds(begin + 4096, ~u64{0}));
}

TEST(QemuMemory, RegionsOutliveTheSpace) {
  std::optional<QemuMemory> m(std::in_place);
  Region r = m->allocate(Place::pageable, 4096, nullptr);
  m.reset();
  std::memset(r.host(), 1, r.bytes());  // a fault here is the failure
  EXPECT_EQ(r.host()[4095], 1);
}

TEST(QemuMemory, ManyThreads) {
  QemuMemory m;
  {
    std::vector<std::jthread> threads;
    for (u32 t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::array<Region, 8> held;
        for (u32 i = 0; i < 400; ++i) {
          Region r = m.allocate(Place::pageable, 4096 * (1 + (i * 7 + t) % 5), nullptr);
          ASSERT_EQ(r.host()[r.bytes() - 1], 0) << "somebody else's";
          std::memset(r.host(), static_cast<int>(t + 1), r.bytes());
          held[i % held.size()] = std::move(r);
          for (const Region& h : held)
            if (h.bytes() > 0) {
              ASSERT_EQ(h.host()[h.bytes() - 1], t + 1) << "shared between two owners";
            }
        }
      });
  }
  EXPECT_NO_THROW((void)m.allocate(Place::pageable, m.bytes(), nullptr)) << "something was lost";
}

}  // namespace
}  // namespace doorbell::nvme
