// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Calls on a socket whose server is slow, and whose descriptors are not what they should be.
#include "qdma/peer/socket_driver.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "qdma/flow/call_engine.hpp"
#include "qdma/peer/socket_channel.hpp"
#include "qdma/server/message.hpp"
#include "qdma/wire_client.hpp"
#include "service/local_socket.hpp"

namespace doorbell::qdma {
namespace {

using namespace service;

template <class T>
std::span<u8> bytes_of(T& value) {
  return {reinterpret_cast<u8*>(&value), sizeof value};
}

/// The next request on a socket, waiting for it.
wire::RequestHeader next_request(int fd, std::vector<u8>& structure) {
  pollfd p{fd, POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, static_cast<int>(test::kWaitLimitS * 1000)), 1);
  std::array<u8, wire::kMaxMessage> space;
  Message in;
  EXPECT_EQ(take_message(fd, space, nullptr, 0, in), Taken::message);
  wire::RequestHeader header;
  EXPECT_EQ(check_request(in, header), 0);
  structure.assign(in.bytes.begin() + sizeof header, in.bytes.end());
  return header;
}

void reply(int fd, u64 sequence, i64 result, std::span<const u8> structure = {}, int descriptor = -1) {
  const wire::ReplyHeader header{.bytes = static_cast<u32>(structure.size()),
                                 .sequence = sequence,
                                 .result = result,
                                 .descriptors = descriptor >= 0 ? 1u : 0u};
  EXPECT_EQ(send_message(fd, encode_reply(header, structure, {}), descriptor), 0);
}

std::pair<Descriptor, Descriptor> ends() {
  int fds[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
  return {Descriptor(fds[0]), Descriptor(fds[1])};
}

TEST(SocketDriver, ATransferThatIsLateIsCancelledAndWaitedFor) {
  auto [control, theirs] = ends();
  auto [descriptor, of_server] = ends();
  std::thread server([&] {
    std::vector<u8> structure;
    wire::Hello hello;
    reply(theirs.get(), next_request(theirs.get(), structure).sequence, 0, bytes_of(hello));
    const wire::RequestHeader call = next_request(of_server.get(), structure);
    EXPECT_EQ(call.number, kCallTransfer);
    // It is at work until it is told to stop, whatever the request's deadline was.
    const wire::RequestHeader cancel = next_request(of_server.get(), structure);
    EXPECT_EQ(cancel.number, wire::kCancel);
    wire::Cancel which;
    ASSERT_EQ(structure.size(), sizeof which);
    std::memcpy(&which, structure.data(), sizeof which);
    EXPECT_EQ(which.sequence, call.sequence);
    reply(of_server.get(), call.sequence, -ECANCELED);
  });
  {
    SocketDriver driver(std::move(control), "made up");
    driver.adopt(descriptor.get());
    Transfer transfer{.count = 1};
    transfer.xfers[0] = {.buf_fd = 0, .length = 4096};
    const CallResult r =
        driver.call(descriptor.get(), kCallTransfer, bytes_of(transfer), {.deadline_ns = 1'000'000});
    EXPECT_EQ(r.result, -ECANCELED);  // the server's own word, so it is done with the buffer
  }
  server.join();
}

TEST(SocketDriver, ABufferThatIsClosedIsSaidThroughTheRingToo) {
  if (!socket_rings_work()) GTEST_SKIP() << "no io_uring here";
  const auto driver = open_driver({.spec = "model"});
  QpairAdd add;
  ASSERT_EQ(driver->call(-1, kCallQpairAdd, bytes_of(add)).result, 0);
  QpairOp start{.qid = add.qid, .op = static_cast<u32>(QueueOp::start)};
  ASSERT_EQ(driver->call(-1, kCallQpairOp, bytes_of(start)).result, 0);
  QpairGetFd get{.qid = add.qid};
  const auto fd = static_cast<int>(driver->call(-1, kCallQpairGetFd, bytes_of(get)).result);
  ASSERT_GE(fd, 0);
  constexpr int kNotOpen = 1 << 29;
  Transfer transfer{.count = 1};
  transfer.xfers[0] = {.direction = kDirH2C, .buf_fd = kNotOpen, .dev_addr = kDdrBase, .length = 4096};
  EXPECT_EQ(driver->call(fd, kCallTransfer, bytes_of(transfer)).result, -EBADF);
  auto engine = driver->uring_engine(fd);
  ASSERT_TRUE(engine);
  transfer.xfers[0].buf_fd = kNotOpen;
  EXPECT_EQ(driver->call(fd, kCallTransfer, bytes_of(transfer)).result, -EBADF);
  // And a call that is begun and not waited for.
  std::shared_ptr<PendingCall> ended;
  engine->set_ended([&](const std::shared_ptr<PendingCall>& call) { ended = call; });
  auto call = std::make_shared<PendingCall>();
  call->structure = transfer;
  call->structure.xfers[0].buf_fd = kNotOpen;
  ASSERT_EQ(engine->begin(call), 0);
  while (!ended) engine->drive(wall_ns() + 60'000'000'000);
  EXPECT_EQ(ended->result.result, -EBADF);
  engine.reset();
  driver->close(fd);
}

/// A listening socket with room for one client that waits, which is taken.
struct FullServer {
  FullServer() : path("/tmp/doorbell-full-" + std::to_string(getpid())) {
    const sockaddr_un address = local_address(path, "a server");
    unlink(path.c_str());
    const auto* const at = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(bind(listener.get(), at, sizeof address), 0);
    EXPECT_EQ(listen(listener.get(), 0), 0);
    for (;;) {
      Descriptor one(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (connect(one.get(), at, sizeof address) != 0) break;
      waiting.push_back(std::move(one));
    }
    EXPECT_EQ(errno, EAGAIN);
  }
  ~FullServer() { unlink(path.c_str()); }
  std::string path;
  Descriptor listener{socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  std::vector<Descriptor> waiting;
};

TEST(ConnectLocal, AServerThatTakesNoClientsIsGivenUp) {
  const FullServer server;
  int error = 0;
  EXPECT_LT(connect_local(local_address(server.path, "a server"), {.limit_s = 0.02}, error).get(), 0);
  EXPECT_EQ(error, ETIMEDOUT);
  EXPECT_FALSE(is_abandoned(server.path, SOCK_SEQPACKET));
  EXPECT_LT(connect_local(local_address("/nowhere/socket", "a server"), {.limit_s = 0.02}, error).get(), 0);
  EXPECT_EQ(error, ENOENT);
}

TEST(ConnectLocal, AStopEndsTheWait) {
  const FullServer server;
  measure::StopFlag stop;
  stop.request(SIGINT);
  int error = 0;
  const Patience patience{.limit_s = 3600, .stop = &stop, .stop_grace_s = 0.001};
  EXPECT_LT(connect_local(local_address(server.path, "a server"), patience, error).get(), 0);
  EXPECT_EQ(error, EINTR);
}

TEST(ConnectLocal, AServerThatIsBusyIsWaitedFor) {
  FullServer server;
  Descriptor connected;
  int error = 0;
  std::thread client([&] { connected = connect_local(local_address(server.path, "a server"), {}, error); });
  for (std::size_t i = 0; i <= server.waiting.size(); ++i)
    EXPECT_GE(Descriptor(accept(server.listener.get(), nullptr, nullptr)).get(), 0);
  client.join();
  EXPECT_GE(connected.get(), 0) << error;
  EXPECT_EQ(fcntl(connected.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(ConnectLocal, AnAbandonedSocketIsKnown) {
  std::string path;
  {
    const FullServer server;
    path = server.path + "-moved";
    ASSERT_EQ(rename(server.path.c_str(), path.c_str()), 0);
    EXPECT_FALSE(is_abandoned(path, SOCK_STREAM));  // another type is somebody's all the same
  }
  EXPECT_TRUE(is_abandoned(path, SOCK_STREAM));
  EXPECT_TRUE(is_abandoned(path, SOCK_SEQPACKET));
  unlink(path.c_str());
  EXPECT_FALSE(is_abandoned("/dev/null", SOCK_STREAM));
}

}  // namespace
}  // namespace doorbell::qdma
