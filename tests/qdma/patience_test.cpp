// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Servers and daemons that take a client and do not answer.
#include "service/patience.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "errors.hpp"
#include "qdma/bound_socket.hpp"
#include "qdma/driver.hpp"
#include "qdma/peer/incoming.hpp"
#include "qdma/peer/socket_driver.hpp"
#include "qdma/server/message.hpp"
#include "qdma/wire_client.hpp"
#include "service/local_socket.hpp"

namespace doorbell::qdma {
namespace {

using namespace service;

/// Takes clients, as far as the kernel does that, and never answers one.
struct SilentServer {
  SilentServer() : path("/tmp/doorbell-silent-" + std::to_string(getpid())) {
    unlink(path.c_str());
    listener = bound_at(path);
    EXPECT_EQ(listen(listener.get(), 8), 0);
  }
  ~SilentServer() { unlink(path.c_str()); }
  std::string path;
  Descriptor listener;
};

TEST(Patience, EndsTheWaitForAHello) {
  const SilentServer server;
  for (const auto& [kind, who] : {std::pair{"daemon:", "doorbelld"}, {"server:", "the card's server"}})
    test::expect_says(
        test::error_of([&, kind = kind] {
          static_cast<void>(open_driver({.spec = kind + server.path, .patience = {.limit_s = 0.02}}));
        }),
        std::string(who) + " did not answer in 0.02 s");
}

TEST(Patience, AStopEndsTheWaitForAHello) {
  const SilentServer server;
  measure::StopFlag stop;
  stop.request(SIGINT);
  const Patience patience{.limit_s = 3600, .stop = &stop, .stop_grace_s = 0.001};
  for (const char* kind : {"daemon:", "server:"})
    test::expect_says(
        test::error_of(
            [&] { static_cast<void>(open_driver({.spec = kind + server.path, .patience = patience})); },
            ExitCode::interrupted),
        "interrupted before");
}

/// A server that has answered a hello, and nothing after that.
class Deaf : public testing::Test {
 protected:
  std::unique_ptr<SocketDriver> connect(const Patience& patience) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    theirs = Descriptor(fds[1]);
    const wire::Hello hello;
    const std::span bytes(reinterpret_cast<const u8*>(&hello), sizeof hello);
    // A channel counts its requests from 1.
    EXPECT_EQ(send_message(theirs.get(), encode_reply({.bytes = sizeof hello, .sequence = 1}, bytes, {}), -1),
              0);
    auto driver = std::make_unique<SocketDriver>(Descriptor(fds[0]), "made up", nullptr, patience);
    EXPECT_EQ(receive_message(theirs.get()).status, Incoming::Status::message);
    return driver;
  }
  Descriptor theirs;
};

template <class T>
std::span<u8> structure_of(T& value) {
  return {reinterpret_cast<u8*>(&value), sizeof value};
}

TEST_F(Deaf, ACallIsGivenUpAndThoseAfterItAreNotWaitedFor) {
  const auto driver = connect({.limit_s = 0.02, .gives_up = true});
  QpairAdd add;
  EXPECT_EQ(driver->call(-1, kCallQpairAdd, structure_of(add)).result, -ETIMEDOUT);
  test::expect_says(driver->why(ETIMEDOUT), "the card's server did not answer in 0.02 s");
  EXPECT_EQ(receive_message(theirs.get()).status, Incoming::Status::message);
  EXPECT_EQ(driver->call(-1, kCallQpairAdd, structure_of(add)).result, -ETIMEDOUT);
  EXPECT_EQ(receive_message(theirs.get()).status, Incoming::Status::none);
}

TEST_F(Deaf, AStopEndsACall) {
  measure::StopFlag stop;
  const auto driver = connect({.limit_s = 3600, .stop = &stop, .stop_grace_s = 0.001});
  Info info;
  i64 result = 0;
  std::thread caller([&] { result = driver->call(-1, kCallInfo, structure_of(info)).result; });
  pollfd asked{theirs.get(), POLLIN, 0};
  EXPECT_EQ(poll(&asked, 1, static_cast<int>(test::kWaitLimitS * 1000)), 1);
  stop.request(SIGINT);
  caller.join();
  EXPECT_EQ(result, -EINTR);
  const Card card = card_over(std::shared_ptr<Driver>(driver.get(), [](Driver*) {}));
  test::expect_says(test::error_of([&] { static_cast<void>(card.info()); }, ExitCode::interrupted),
                    "interrupted before the card's server answered");
}

/// A transfer descriptor of the driver, and the server's end.
struct TransferSocket {
  explicit TransferSocket(SocketDriver& driver) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    descriptor = Descriptor(fds[0]);
    of_server = Descriptor(fds[1]);
    driver.adopt(descriptor.get());
  }
  Descriptor descriptor, of_server;
};

TEST_F(Deaf, ATransferThatIsNotEvenGivenUpIsTheLastThingAsked) {
  const auto driver = connect({.limit_s = 0.02, .gives_up = true});
  const TransferSocket socket(*driver);
  Transfer transfer{.count = 1};
  transfer.xfers[0] = {.buf_fd = 0, .length = 4096};
  const i64 result =
      driver->call(socket.descriptor.get(), kCallTransfer, structure_of(transfer), {.deadline_ns = 1'000'000})
          .result;
  EXPECT_EQ(result, -ETIMEDOUT);
  Info info;
  EXPECT_EQ(driver->call(-1, kCallInfo, structure_of(info)).result, -ETIMEDOUT);
  EXPECT_EQ(receive_message(theirs.get()).status, Incoming::Status::none);
}

TEST_F(Deaf, ABufferOfADescriptorIsNotWaitedForLonger) {
  const auto driver = connect({.limit_s = 0.02});
  const TransferSocket socket(*driver);
  BufCreate create{.length = 4096};
  EXPECT_EQ(driver->call(socket.descriptor.get(), kCallBufCreate, structure_of(create)).result, -ETIMEDOUT);
}

}  // namespace
}  // namespace doorbell::qdma
