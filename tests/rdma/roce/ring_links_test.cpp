// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Rings between carriers, and clients of a NIC's local socket that are none.
#include "rdma/roce/ring_links.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <functional>

#include "carrier_rig.hpp"
#include "system/passed_files.hpp"

namespace doorbell::roce {
namespace {

using doorbell::test::eventually;
using test::Received;

/// A client by hand.
struct Client {
  Descriptor socket;

  explicit Client(Endpoint to, int kind = SOCK_SEQPACKET)
      : socket(::socket(AF_UNIX, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    const std::string name = "doorbell-roce/" + roce::name_of(to);
    std::memcpy(a.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    connected = connect(socket.get(), reinterpret_cast<const sockaddr*>(&a), size) == 0;
  }
  bool send(const void* bytes, std::size_t size, const std::vector<int>& files) {
    iovec piece{const_cast<void*>(bytes), size};
    msghdr m{};
    m.msg_iov = &piece;
    m.msg_iovlen = 1;
    alignas(cmsghdr) std::array<u8, CMSG_SPACE(64 * sizeof(int))> room{};
    pass_files(m, files, room);
    return sendmsg(socket.get(), &m, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
  }
  [[nodiscard]] bool closed_by_other() const {
    pollfd p{socket.get(), POLLIN | POLLRDHUP, 0};
    return ::poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLRDHUP)) != 0;
  }
  bool connected = false;
};

Descriptor ring_file(u64 bytes, RingMemory& memory) {
  Descriptor file;
  EXPECT_TRUE(memory.make(bytes, file));
  return file;
}

/// An eventfd that all clients share.
int wakes() {
  static const Descriptor fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  return fd.get();
}

RingHello hello_to(Endpoint to) {
  return {.ring_bytes = RingMemory::kLeastBytes,
          .source_address = 0x7F00'0001,
          .destination_address = to.address,
          .source_port = 1,
          .destination_port = to.port};
}

class RoceRingLinks : public ::testing::Test {
 protected:
  const std::unique_ptr<Carrier> nic_ = test::carrier(CarrierKind::ring);

  /// That a right client is still served.
  void expect_it_serves() {
    const auto other = test::carrier(CarrierKind::ring);
    ASSERT_TRUE(test::put(other->path(nic_->self()), test::packet(1)));
    other->flush();
    Received got;
    ASSERT_TRUE(got.wait_for(*nic_, 1));
    EXPECT_EQ(got.packets.back(), test::packet(1));
    EXPECT_EQ(got.sources.back(), other->self());
  }
  void receive_nothing() {
    Received got;
    for (int i = 0; i < 200; ++i) got.take(*nic_);
    EXPECT_TRUE(got.packets.empty());
  }
};

TEST_F(RoceRingLinks, RefusesHellosThatAreNone) {
  RingMemory memory, small;
  const Descriptor file = ring_file(RingMemory::kLeastBytes, memory);
  const Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  Descriptor unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), static_cast<off_t>(RingMemory::kLeastBytes + 4096)), 0);
  const RingHello good = hello_to(nic_->self());
  struct Wrong {
    const char* what;
    std::function<void(RingHello&)> change;
    std::vector<int> files;
    std::size_t size = sizeof(RingHello);
  };
  const std::vector<int> right{file.get(), wakes()};
  const std::vector<Wrong> all = {
      {"no file", [](RingHello&) {}, {}},
      {"one file", [](RingHello&) {}, {file.get()}},
      {"no eventfd", [](RingHello&) {}, {file.get(), file.get()}},
      {"the wrong order", [](RingHello&) {}, {wakes(), file.get()}},
      {"three files", [](RingHello&) {}, {file.get(), wakes(), wakes()}},
      {"sixty files", [](RingHello&) {}, std::vector<int>(60, file.get())},
      {"a device", [](RingHello&) {}, {null.get(), wakes()}},
      {"memory that can shrink", [](RingHello&) {}, {unsealed.get(), wakes()}},
      {"a short message", [](RingHello&) {}, right, sizeof(RingHello) - 1},
      {"one byte", [](RingHello&) {}, right, 1},
      {"magic", [](RingHello& h) { ++h.magic; }, right},
      {"version", [](RingHello& h) { ++h.version; }, right},
      {"size", [](RingHello& h) { h.ring_bytes *= 2; }, right},
      {"size 0", [](RingHello& h) { h.ring_bytes = 0; }, right},
      {"a size that wraps", [](RingHello& h) { h.ring_bytes = u64{1} << 63; }, right},
      {"for another NIC", [](RingHello& h) { ++h.destination_port; }, right},
      {"from nowhere", [](RingHello& h) { h.source_address = 0; }, right},
  };
  for (const Wrong& wrong : all) {
    Client client(nic_->self());
    ASSERT_TRUE(client.connected);
    RingHello hello = good;
    wrong.change(hello);
    ASSERT_TRUE(client.send(&hello, wrong.size, wrong.files)) << wrong.what;
    EXPECT_TRUE(eventually([&] {
      receive_nothing();
      return client.closed_by_other();
    })) << wrong.what;
  }
  std::array<u8, 4096> longer{};
  std::memcpy(longer.data(), &good, sizeof good);
  Client client(nic_->self());
  ASSERT_TRUE(client.send(longer.data(), longer.size(), right));
  EXPECT_TRUE(eventually([&] {
    receive_nothing();
    return client.closed_by_other();
  }));
  EXPECT_EQ(nic_->counters().rings_refused, all.size() + 1);
  EXPECT_EQ(nic_->counters().rings_accepted, 0U);
  expect_it_serves();
}

TEST_F(RoceRingLinks, AClientThatSaysNothingKeepsNoPlace) {
  std::vector<Client> silent;
  for (int i = 0; i < 200; ++i) {
    silent.emplace_back(nic_->self());
    receive_nothing();
  }
  expect_it_serves();
  EXPECT_TRUE(eventually([&] {
    receive_nothing();
    return std::ranges::all_of(silent, [](const Client& c) { return !c.connected || c.closed_by_other(); });
  }));
  expect_it_serves();
}

/// As many as the process has descriptors for, and more.
TEST_F(RoceRingLinks, AThousandRingsLeaveRoomForOthers) {
  const u64 before = nic_->counters().rings_refused;
  std::vector<Client> clients;
  RingMemory memory;
  const Descriptor file = ring_file(RingMemory::kLeastBytes, memory);
  const std::vector<int> files{file.get(), wakes()};
  const RingHello hello = hello_to(nic_->self());
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur < 4000) {
    limit.rlim_cur = std::min<rlim_t>(4000, limit.rlim_max);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  for (int i = 0; i < 1000; ++i) {
    clients.emplace_back(nic_->self());
    if (clients.back().connected) static_cast<void>(clients.back().send(&hello, sizeof hello, files));
    receive_nothing();
  }
  EXPECT_TRUE(eventually([&] {
    receive_nothing();
    return nic_->counters().rings_refused - before >= 1000 - RingLinks::kMostIncoming;
  }));
  EXPECT_EQ(nic_->counters().rings_accepted, RingLinks::kMostIncoming);
  clients.clear();
  EXPECT_TRUE(eventually([&] {
    receive_nothing();
    return nic_->counters().rings_closed == RingLinks::kMostIncoming;
  }));
  expect_it_serves();
}

TEST_F(RoceRingLinks, GoesOnWithoutDescriptors) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the undefined behaviour sanitizer looks at objects through a pipe";
#endif
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<Client> clients;
  for (int i = 0; i < 5; ++i) clients.emplace_back(nic_->self());
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  receive_nothing();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(eventually([&] {
    receive_nothing();
    return nic_->counters().rings_refused >= 1;
  }));
  expect_it_serves();
}

/// A client that is let in and then does what no writer does.
TEST_F(RoceRingLinks, MisbehaviourEndsARing) {
  const std::vector<std::function<void(Client&, RingMemory&)>> deeds = {
      [](Client&, RingMemory& m) { m.header().head.store(8); },
      [](Client&, RingMemory& m) { m.header().head.store(~u64{0}); },
      [](Client&, RingMemory& m) { m.header().head.store(32); },  // a record of 0 bytes
      [](Client& c, RingMemory&) { EXPECT_TRUE(c.send("ab", 2, {})); },
      [](Client& c, RingMemory&) { shutdown(c.socket.get(), SHUT_RDWR); },
  };
  const RingHello hello = hello_to(nic_->self());
  for (std::size_t i = 0; i < deeds.size(); ++i) {
    Client client(nic_->self());
    RingMemory memory;
    const Descriptor file = ring_file(RingMemory::kLeastBytes, memory);
    ASSERT_TRUE(client.send(&hello, sizeof hello, {file.get(), wakes()}));
    ASSERT_TRUE(eventually([&] {
      receive_nothing();
      return nic_->counters().rings_accepted == i + 1;
    }));
    deeds[i](client, memory);
    EXPECT_TRUE(eventually([&] {
      receive_nothing();
      return nic_->counters().rings_closed == i + 1 && client.closed_by_other();
    })) << "deed "
        << i;
  }
  expect_it_serves();
}

/// Wakes without end, with files in them, which are closed.
TEST_F(RoceRingLinks, AFloodOfWakesStopsNothing) {
  Client client(nic_->self());
  RingMemory memory;
  const Descriptor file = ring_file(RingMemory::kLeastBytes, memory);
  const RingHello hello = hello_to(nic_->self());
  ASSERT_TRUE(client.send(&hello, sizeof hello, {file.get(), wakes()}));
  for (int i = 0; i < 20000; ++i) {
    static_cast<void>(client.send("", 1, {file.get()}));
    if (i % 1000 == 0) receive_nothing();
  }
  expect_it_serves();
  const int next = dup(file.get());
  EXPECT_LT(next, 200) << "files have been left open";
  close(next);
}

TEST(RoceRingWays, ChangesToARingWhenTheOtherNicComes) {
  const auto a = test::carrier(CarrierKind::automatic);
  const Endpoint later = test::fresh_endpoint();
  Path& path = a->path(later);
  ASSERT_TRUE(test::put(path, test::packet(1)));
  a->flush();
  EXPECT_FALSE(path.lossless());
  CarrierOptions options;
  options.self = later;
  const auto b = make_carrier(options);
  EXPECT_TRUE(eventually([&] {
    Received got;
    if (!test::put(path, test::packet(2))) return false;
    a->flush();
    got.take(*b);
    return path.lossless();
  }));
}

TEST(RoceRingWays, AFullRingGivesNoRoomAndWakesWhenItHasSome) {
  const auto a = test::carrier(CarrierKind::ring), b = test::carrier(CarrierKind::ring);
  Path& path = a->path(b->self());
  u64 sent = 0;
  while (test::put(path, test::packet(sent))) ++sent;
  EXPECT_GT(sent, 400U);
  a->flush();
  EXPECT_FALSE(test::put(path, test::packet(sent)));
  pollfd p{a->descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&p, 1, 0), 0);
  Received got;
  ASSERT_TRUE(got.wait_for(*b, sent));
  got.take(*b);  // gives the last of the memory back
  EXPECT_EQ(::poll(&p, 1, 30'000), 1);
  ASSERT_TRUE(test::put(path, test::packet(sent++)));
  a->flush();
  ASSERT_TRUE(got.wait_for(*b, sent));
  for (u64 i = 0; i < sent; ++i) ASSERT_EQ(got.packets[i], test::packet(i)) << i;
}

}  // namespace
}  // namespace doorbell::roce
