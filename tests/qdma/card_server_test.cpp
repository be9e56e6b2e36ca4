// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A software card behind its server: what clients get, whatever others do.

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "errors.hpp"
#include "eventually.hpp"
#include "qdma/server_rig.hpp"

namespace doorbell::qdma {
namespace {

using model::Fault;
using test::eventually;

constexpr auto kPut = Direction::host_to_card;
constexpr auto kGet = Direction::card_to_host;
constexpr u64 kMiB = 1 << 20;

u64 open_descriptors() {
  u64 n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

/// open_descriptors() when the server has closed its copies of what it has sent, since it answers afterwards,
/// and what it was sent.
u64 settled_descriptors(const CardServer& server, WireClient& client) {
  EXPECT_EQ(client.call(kCallInfo, Info{}).header.result, 0);
  EXPECT_TRUE(eventually([&] { return server.counts().closing == 0; }));
  return open_descriptors();
}

model::Use dropping() {
  model::Use use;
  use.faults.probability[static_cast<u32>(Fault::drop)] = 1;
  return use;
}

/// Sub-transfers that ended with their owner: cancelled, or drained by the end of their queue pair.
u64 given_up(const ModelCard& card) {
  const auto counters = counters_of(card);
  return counters["cancelled"].get<u64>() + counters["drained"].get<u64>();
}

/// A client with a queue pair, its descriptor and a buffer.
struct Client {
  explicit Client(Descriptor socket, u64 bytes = kMiB)
      : control(std::move(socket)),
        greeted(control.hello()),
        id(control.queue_pair()),
        data(control.descriptor(id)),
        buffer(control, bytes) {}
  WireReply transfer(Direction d, u64 address, u64 bytes, u64 deadline_ns = 0) {
    return data.call(kCallTransfer, one_transfer(d, address, bytes), {buffer.fd()}, deadline_ns);
  }
  bool begin(Direction d, u64 address, u64 bytes, u64 deadline_ns = 0) {
    return data.send(kCallTransfer, one_transfer(d, address, bytes), {buffer.fd()}, deadline_ns);
  }
  /// Bytes go to the card and come back.
  bool works(u64 address) {
    std::fill_n(buffer.data(), 4096, static_cast<u8>(address >> 12 | 1));
    if (transfer(kPut, address, 4096).header.result != 4096) return false;
    std::fill_n(buffer.data(), 4096, u8{0});
    return transfer(kGet, address, 4096).header.result == 4096 &&
           buffer.data()[4095] == static_cast<u8>(address >> 12 | 1);
  }
  WireClient control;
  bool greeted;
  u32 id;
  WireClient data;
  ClientBuffer buffer;
};

// --- what clients get ---

TEST(CardServerCalls, BytesGoToTheCardAndBack) {
  ServerRig rig;
  Client c(rig.server.connect());
  for (u64 i = 0; i < kMiB; ++i) c.buffer.data()[i] = static_cast<u8>(i * 7 + i / 251);
  const std::vector<u8> sent(c.buffer.data(), c.buffer.data() + kMiB);
  const WireReply put = c.transfer(kPut, kDdrBase, kMiB);
  EXPECT_EQ(put.header.result, static_cast<i64>(kMiB));
  ASSERT_EQ(put.parts.size(), 1u);
  EXPECT_EQ(put.parts[0].error, 0u);
  EXPECT_EQ(put.parts[0].bytes, kMiB);
  EXPECT_TRUE(put.structure.empty());
  std::fill_n(c.buffer.data(), kMiB, u8{0});
  EXPECT_EQ(c.transfer(kGet, kDdrBase, kMiB).header.result, static_cast<i64>(kMiB));
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), c.buffer.data()));
}

TEST(CardServerCalls, ClientsShareTheCard) {
  ServerRig rig;
  Client a(rig.server.connect()), b(rig.server.connect());
  std::fill_n(a.buffer.data(), 4096, u8{0x5a});
  EXPECT_EQ(a.transfer(kPut, kHbmBase, 4096).header.result, 4096);
  EXPECT_EQ(b.transfer(kGet, kHbmBase, 4096).header.result, 4096);
  EXPECT_EQ(b.buffer.data()[4095], 0x5a);
  EXPECT_NE(a.id, b.id);
  // Both buffers may be used on either descriptor: they are the card's.
  EXPECT_EQ(a.data.call(kCallTransfer, one_transfer(kGet, kHbmBase, 4096), {b.buffer.fd()}).header.result,
            4096);
}

TEST(CardServerCalls, ErrorsOfTheDriverComeAsResults) {
  ServerRig rig;
  Client c(rig.server.connect());
  EXPECT_EQ(c.control.call(kCallQpairAdd, QpairAdd{.dir_mask = 0}).header.result, -EINVAL);
  EXPECT_EQ(c.control.call(kCallQpairOp, QpairOp{.qid = 99}).header.result, -ENOENT);
  EXPECT_EQ(c.control.call(0xc0187655u, BufCreate{}).header.result, -ENOTTY);
  EXPECT_EQ(c.transfer(kPut, 0, 4096).header.result, -EFAULT);
  EXPECT_EQ(c.data.call(kCallTransfer, one_transfer(kPut, kDdrBase, 4096)).header.result, -EBADF);
  const Descriptor file(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(c.data.call(kCallTransfer, one_transfer(kPut, kDdrBase, 4096), {file.get()}).header.result,
            -EINVAL);
  EXPECT_EQ(c.data.call(kCallQpairOp, QpairOp{.qid = c.id, .op = 1}).header.result, -ENOTTY);
  EXPECT_TRUE(c.works(kDdrBase));
  EXPECT_EQ(rig.server.counts().refused, 0u);
}

TEST(CardServerCalls, RepliesNeedNotWaitForEachOther) {
  ServerRig rig("model:bandwidth=1M");
  Client c(rig.server.connect());
  ASSERT_TRUE(c.begin(kPut, kDdrBase, kMiB));
  const u64 slow = c.data.sequence();
  // The same socket answers while the transfer is under way; the card has the other direction free.
  const WireReply quick = c.transfer(kGet, kDdrBase, 1);
  EXPECT_EQ(quick.header.result, 1);
  EXPECT_NE(quick.header.sequence, slow);
  EXPECT_EQ(c.data.call(wire::kCancel, wire::Cancel{slow + 100}).header.result, -ENOENT);
  ASSERT_TRUE(c.data.send(wire::kCancel, wire::Cancel{slow}));
  const u64 cancel = c.data.sequence();
  for (int i = 0; i < 2; ++i) {
    const auto reply = c.data.receive();
    ASSERT_TRUE(reply);
    if (reply->header.sequence == cancel) {
      EXPECT_EQ(reply->header.result, 0);
    } else {
      EXPECT_EQ(reply->header.sequence, slow);
      EXPECT_EQ(reply->header.result, -ECANCELED);
      ASSERT_EQ(reply->parts.size(), 1u);
      EXPECT_LT(reply->parts[0].bytes, kMiB);
    }
  }
}

TEST(CardServerCalls, StopDrainsAnotherSocketsTransfer) {
  ServerRig rig("model:bandwidth=1M");
  Client c(rig.server.connect());
  ASSERT_TRUE(c.begin(kPut, kDdrBase, kMiB));
  ASSERT_TRUE(eventually([&] { return rig.server.card().bytes_moved() > 0; }));
  EXPECT_EQ(c.control.call(kCallQpairOp, QpairOp{.qid = c.id, .op = 1}).header.result, 0);
  const auto reply = c.data.receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->header.result, -ENXIO);
  EXPECT_GT(reply->parts.at(0).bytes, 0u);
}

TEST(CardServerCalls, DeadlineOfATransfer) {
  ServerRig rig("model:clock=counted", dropping());
  Client c(rig.server.connect());
  EXPECT_EQ(c.transfer(kPut, kDdrBase, 4096).header.result, -ETIMEDOUT);  // the driver's own limit
  const WireReply r = c.transfer(kPut, kDdrBase, 4096, 1000);
  EXPECT_EQ(r.header.result, -ETIMEDOUT);
  EXPECT_EQ(r.parts.at(0).error, static_cast<u32>(ETIMEDOUT));
}

TEST(CardServerCalls, RemovalIsNoDeviceForEverybody) {
  ServerRig rig("model:bandwidth=1M");
  Client a(rig.server.connect()), b(rig.server.connect());
  ASSERT_TRUE(a.begin(kPut, kDdrBase, kMiB));
  ASSERT_TRUE(eventually([&] { return rig.server.card().bytes_moved() > 0; }));
  rig.server.card().remove();
  const auto r = a.data.receive();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->header.result, -ENODEV);
  EXPECT_EQ(b.transfer(kPut, kDdrBase, 1).header.result, -ENODEV);
  EXPECT_EQ(b.control.call(kCallInfo, Info{}).header.result, -ENODEV);
}

// --- hostile clients ---

wire::RequestHeader header_of(u32 number, u32 bytes, u32 descriptors = 0) {
  return {.number = number, .sequence = 7, .bytes = bytes, .descriptors = descriptors};
}
template <class T>
std::vector<u8> bytes_with(const wire::RequestHeader& h, const T& structure) {
  std::vector<u8> out(sizeof h + sizeof structure);
  std::memcpy(out.data(), &h, sizeof h);
  std::memcpy(out.data() + sizeof h, &structure, sizeof structure);
  return out;
}

TEST(CardServerHostile, WhatIsNoMessageEndsOnlyItsConnection) {
  ServerRig rig;
  Client good(rig.server.connect());
  const Info info;
  const auto with_magic = [&](u32 magic) {
    wire::RequestHeader h = header_of(kCallInfo, sizeof info);
    h.magic = magic;
    return bytes_with(h, info);
  };
  std::vector<u8> shorter = bytes_with(header_of(kCallInfo, sizeof info), info);
  shorter.resize(20);
  const std::vector<std::vector<u8>> bad = {
      with_magic(0),
      with_magic(0x32514244),
      std::vector<u8>(1, 0x42),
      shorter,
      bytes_with(header_of(kCallInfo, sizeof info + 1), info),
      bytes_with(header_of(kCallInfo, sizeof info - 1), info),
      bytes_with(header_of(kCallInfo, ~0u), info),
      bytes_with(header_of(kCallInfo, sizeof info, 1), info),
      bytes_with(header_of(kCallInfo, sizeof info, 3), info),
      bytes_with(header_of(kCallInfo, 2000), std::array<u8, 2000>{}),
      bytes_with(header_of(wire::kCancel, 4), u32{0}),
      bytes_with(header_of(wire::kHello, sizeof(wire::Hello)), wire::Hello{}),  // a second time
  };
  u64 refused = 0;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    WireClient c = rig.greeted();
    ASSERT_TRUE(c.send_bytes(bad[i]));
    const auto reply = c.receive();
    ASSERT_TRUE(reply) << i;
    EXPECT_EQ(reply->header.result, -EPROTO) << i;
    EXPECT_FALSE(c.receive()) << i;  // closed
    ++refused;
    EXPECT_TRUE(eventually([&] { return rig.server.counts().refused == refused; })) << i;
    EXPECT_TRUE(good.works(kDdrBase + i * 4096));
  }
}

TEST(CardServerHostile, AControlSocketSaysHelloFirst) {
  ServerRig rig;
  const auto result_of = [&](u32 number, const auto& structure) {
    WireClient c(rig.server.connect());
    WireReply r = c.call(number, structure);
    const bool refused = r.header.result < 0;
    EXPECT_TRUE(!refused || !c.receive());  // and closed
    EXPECT_TRUE(r.structure.empty() || r.as<wire::Hello>().version == wire::kVersion);
    return r.header.result;
  };
  EXPECT_EQ(result_of(kCallInfo, Info{}), -EPROTO);
  EXPECT_EQ(result_of(wire::kHello, wire::Hello{.version = 2}), -EPROTO);
  EXPECT_EQ(result_of(wire::kHello, wire::Hello{.caps = 1}), -EPROTO);
  EXPECT_EQ(result_of(wire::kHello, u32{1}), -EPROTO);
  EXPECT_EQ(result_of(wire::kHello, wire::Hello{}), 0);
}

TEST(CardServerHostile, TooManyDescriptors) {
  ServerRig rig;
  Client c(rig.server.connect());
  const u64 before = settled_descriptors(rig.server, c.control);
  const std::vector<int> many(9, c.buffer.fd());
  ASSERT_TRUE(c.data.send_bytes(
      bytes_with(header_of(kCallTransfer, sizeof(Transfer), 2), one_transfer(kPut, kDdrBase, 1)), many));
  const auto reply = c.data.receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->header.result, -EPROTO);
  EXPECT_FALSE(c.data.receive());
  // Descriptors that did arrive have been closed: only the server's end of the descriptor has gone as well.
  EXPECT_TRUE(eventually([&] { return open_descriptors() == before - 1; }));
}

TEST(CardServerHostile, TooManyRequestsInFlight) {
  ServerRig rig("model", dropping());
  Client c(rig.server.connect()), other(rig.server.connect());
  for (u32 i = 0; i < wire::kMaxInFlight + 3; ++i)
    ASSERT_TRUE(eventually([&] { return c.begin(kPut, kDdrBase, 64, ~u64{0}); })) << i;
  for (u32 i = 0; i < 3; ++i) {
    const auto reply = c.data.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.result, -EAGAIN);
    EXPECT_GT(reply->header.sequence, wire::kMaxInFlight);
  }
  EXPECT_EQ(other.control.call(kCallInfo, Info{}).header.result, 0);
  EXPECT_EQ(c.control.call(kCallQpairOp, QpairOp{.qid = c.id, .op = 1}).header.result, 0);
  for (u32 i = 0; i < wire::kMaxInFlight; ++i) {
    const auto reply = c.data.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.result, -ENXIO);
  }
}

TEST(CardServerHostile, WhoDoesNotReadIsNotServedFurther) {
  ServerRig rig;
  Client other(rig.server.connect());
  WireClient c = rig.greeted();
  // Until the server takes no more: its own memory does not grow with what a client leaves unread.
  u64 sent = 0;
  const Info info;
  for (int idle = 0; idle < 200;) {
    if (c.send(kCallInfo, info)) {
      ++sent;
      idle = 0;
    } else {
      ++idle;
      std::this_thread::yield();
      EXPECT_TRUE(other.works(kDdrBase + u64(idle) * 4096));
    }
    ASSERT_LT(sent, 200'000u);
  }
  // Nothing is lost: with the first read it goes on.
  for (u64 i = 0; i < sent; ++i) {
    const auto reply = c.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.result, 0);
  }
  EXPECT_EQ(c.call(kCallInfo, info).header.result, 0);
}

/// Lets this process have `more` descriptors beyond those that it has.
class FewDescriptors {
 public:
  explicit FewDescriptors(u64 more) {
    getrlimit(RLIMIT_NOFILE, &before_);
    // The limit is on the numbers: fill the holes below the highest one.
    u64 highest = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
      highest = std::max<u64>(highest, std::stoull(entry.path().filename().string()));
    for (int fd = dup(0); fd >= 0; fd = dup(0)) {
      if (static_cast<u64>(fd) > highest) {
        ::close(fd);
        break;
      }
      fillers_.emplace_back(fd);
    }
    rlimit few = before_;
    few.rlim_cur = highest + 1 + more;
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
  std::vector<Descriptor> fillers_;
};

TEST(CardServerHostile, WithoutDescriptorsItAnswersAndGoesOn) {
  ServerRig rig;
  Client c(rig.server.connect());
  const std::string path = "/tmp/doorbell-card-" + std::to_string(getpid());
  rig.server.listen(path);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  ASSERT_TRUE(eventually([&] { return rig.server.counts().connections == 1; }));
  WireClient late(Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)));
  {
    (void)settled_descriptors(rig.server, c.control);
    const FewDescriptors none(0);
    EXPECT_EQ(c.control.call(kCallBufCreate, BufCreate{.length = 4096}).header.result, -EMFILE);
    EXPECT_EQ(c.control.call(kCallQpairGetFd, QpairGetFd{.qid = c.id}).header.result, -EMFILE);
    EXPECT_EQ(c.transfer(kPut, kDdrBase, 4096).header.result, -EMFILE);
    EXPECT_EQ(c.control.call(kCallInfo, Info{}).header.result, 0);
    // A new connection is turned away, and the server does not spin on it.
    ASSERT_EQ(::connect(late.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_FALSE(late.receive());
    EXPECT_EQ(c.control.call(kCallInfo, Info{}).structure.size(), sizeof(Info));
  }
  EXPECT_TRUE(c.works(kDdrBase));
  EXPECT_EQ(rig.greeted().call(kCallInfo, Info{}).header.result, 0);
}

TEST(CardServerHostile, FewDescriptorsDelayNothing) {
  for (u64 few = 0; few <= 4; ++few) {
    SCOPED_TRACE(few);
    ServerRig rig;
    Client c(rig.server.connect());
    (void)settled_descriptors(rig.server, c.control);
    {
      const FewDescriptors some(few);
      const auto result = c.transfer(kPut, kDdrBase, 4096).header.result;
      EXPECT_TRUE(result == 4096 || result == -EMFILE) << result;
      EXPECT_EQ(c.control.call(kCallInfo, Info{}).header.result, 0);
    }
    EXPECT_TRUE(c.works(kDdrBase));
  }
}

TEST(CardServerLimits, OneTooManyIsRefusedWithItsOwnErrorUntilOneGoes) {
  ServerRig rig("model", {}, {.connections = 2, .queue_pairs = 2, .descriptors = 2, .host_bytes = 2 * kMiB});
  Client a(rig.server.connect());
  auto b = std::make_unique<Client>(rig.server.connect());
  EXPECT_EQ(a.control.call(kCallQpairAdd, QpairAdd{}).header.result, -EDQUOT);
  EXPECT_EQ(a.control.call(kCallQpairGetFd, QpairGetFd{.qid = a.id}).header.result, -EDQUOT);
  EXPECT_EQ(a.control.call(kCallBufCreate, BufCreate{.length = 4096}).header.result, -EDQUOT);
  EXPECT_EQ(a.data.call(kCallBufCreate, BufCreate{.length = 4096}).header.result, -EDQUOT);
  // A connection too many is told so; what it has said before that counts for nothing.
  WireClient late(rig.server.connect());
  EXPECT_EQ(late.call(wire::kHello, wire::Hello{}).header.result, -EDQUOT);
  EXPECT_FALSE(late.receive());
  EXPECT_EQ(rig.server.counts().connections, 2u);
  EXPECT_TRUE(a.works(kDdrBase));
  EXPECT_TRUE(b->works(kDdrBase + kMiB));
  b.reset();
  EXPECT_TRUE(eventually([&] {
    const ServerCounts c = rig.server.counts();
    return c.connections == 1 && c.descriptors == 1 && c.buffers == 1 && c.queue_pairs == 1;
  }));
  EXPECT_TRUE(Client(rig.server.connect()).works(kDdrBase));
}

TEST(CardServerLimits, ConnectionsTooManyThatSayNothingTakeNobodysPlace) {
  ServerRig rig("model", {}, {.connections = 1});
  Client a(rig.server.connect());
  const u64 before = settled_descriptors(rig.server, a.control);
  std::vector<WireClient> silent;
  for (u32 i = 0; i < 100; ++i) silent.emplace_back(rig.server.connect());
  // 16 of them wait to be told; the others are closed at once. This process has the clients' ends too.
  EXPECT_TRUE(eventually([&] { return rig.server.counts().refused == 84; }));
  EXPECT_TRUE(eventually([&] { return open_descriptors() == before + 100 + 16; }));
  EXPECT_EQ(rig.server.counts().connections, 1u);
  EXPECT_TRUE(a.works(kDdrBase));
  silent.clear();
  EXPECT_TRUE(eventually([&] { return open_descriptors() == before; }));
  EXPECT_EQ(WireClient(rig.server.connect()).call(wire::kHello, wire::Hello{}).header.result, -EDQUOT);
}

// --- what goes away ---

TEST(CardServerLife, NothingIsLeftOfAClient) {
  ServerRig rig("model", dropping());
  ASSERT_TRUE(rig.empty());
  const u64 before = open_descriptors();
  for (u32 i = 0; i < 20; ++i) {
    Client c(rig.server.connect());
    WireClient second(c.control.descriptor(c.id));
    for (u32 k = 0; k < 5; ++k) ASSERT_TRUE(c.begin(kPut, kDdrBase, 4096, ~u64{0}));
    if (i % 2 == 0) c.control.close();
  }
  EXPECT_TRUE(rig.empty());
  EXPECT_TRUE(eventually([&] { return open_descriptors() == before; })) << open_descriptors() - before;
  EXPECT_EQ(counters_of(rig.server.card())["completed"], 0);
}

TEST(CardServerLife, ABufferOutlivesItsConnectionWhileItIsMapped) {
  ServerRig rig;
  auto owner = std::make_unique<Client>(rig.server.connect());
  Client other(rig.server.connect());
  const Descriptor kept(dup(owner->buffer.fd()));
  owner.reset();
  ASSERT_TRUE(eventually([&] { return rig.server.counts().connections == 1; }));
  EXPECT_EQ(other.data.call(kCallTransfer, one_transfer(kPut, kDdrBase, kMiB), {kept.get()}).header.result,
            static_cast<i64>(kMiB));
  const_cast<Descriptor&>(kept).reset();
  EXPECT_TRUE(eventually([&] { return rig.server.counts().buffers == 1; }));
}

TEST(CardServerLife, QueuePairsOfAClosedConnectionAreStale) {
  ServerRig rig;
  Client c(rig.server.connect());
  c.control.close();
  ASSERT_TRUE(eventually([&] { return rig.server.counts().queue_pairs == 0; }));
  EXPECT_EQ(c.transfer(kPut, kDdrBase, 4096).header.result, -ESTALE);
}

TEST(CardServerLife, AKilledProcessLeavesNothing) {
  ServerRig rig("model:bandwidth=1M");
  const std::string path = "/tmp/doorbell-card-" + std::to_string(getpid());
  rig.server.listen(path);
  Client bystander(rig.server.connect());
  const u64 before = settled_descriptors(rig.server, bystander.control);
  const auto counts = rig.server.counts();
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Descriptor s(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), address.sun_path);
    // The other ends that this process has inherited are no part of it.
    close_range(3, static_cast<unsigned>(ready[1]) - 1, 0);
    Descriptor mine(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (::connect(mine.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) _exit(1);
    Client c(std::move(mine));
    if (!c.begin(kPut, kDdrBase, kMiB)) _exit(2);
    if (write(ready[1], "x", 1) != 1) _exit(3);
    for (;;) pause();
  }
  ::close(ready[1]);
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ASSERT_TRUE(eventually([&] { return rig.server.card().bytes_moved() > 0; }));
  EXPECT_EQ(rig.server.counts().queue_pairs, counts.queue_pairs + 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(eventually([&] {
    const ServerCounts c = rig.server.counts();
    return c.connections == 1 && c.descriptors == 1 && c.buffers == 1 && c.queue_pairs == 1;
  }));
  EXPECT_TRUE(eventually([&] { return open_descriptors() == before; }));
  EXPECT_EQ(bystander.transfer(kGet, kHbmBase, 16).header.result, 16);
  EXPECT_EQ(given_up(rig.server.card()), 1u);
}

TEST(CardServerLife, AServerThatEndsLeavesNoTransferBehind) {
  const auto card = make_model_card("model:bandwidth=1M");
  auto server = std::make_unique<CardServer>(card);
  Client c(server->connect());
  ASSERT_TRUE(c.begin(kPut, kDdrBase, kMiB));
  ASSERT_TRUE(eventually([&] { return card->bytes_moved() > 0; }));
  server.reset();
  EXPECT_FALSE(c.data.receive());
  EXPECT_TRUE(eventually([&] { return given_up(*card) == 1; }));
}

}  // namespace
}  // namespace doorbell::qdma
