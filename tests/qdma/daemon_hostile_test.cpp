// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// doorbelld and clients that want to hold it up.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "errors.hpp"
#include "qdma/bound_socket.hpp"
#include "qdma/daemon_process.hpp"
#include "qdma/model/model_card.hpp"
#include "qdma/server/card_server.hpp"
#include "qdma/server/message.hpp"
#include "qdma/wire_client.hpp"
#include "service/lingering_file.hpp"

namespace doorbell::qdma::daemon {
namespace {

using service::LingeringFile;
using service::send_message;

TEST(DaemonHostile, FilesWhoseCloseWaitsHoldNobodyUp) {
  DaemonProcess daemon;
  ASSERT_TRUE(daemon.ready()) << daemon.child().errors();
  DaemonClient client(daemon.path());
  static_cast<void>(client.hello());
  const CardBuffer buffer = open_buffer(client, {.size = 4096});
  std::array<LingeringFile, 6> files;
  WireClient control{Descriptor(dup(client.fd()))}, wire{Descriptor(dup(buffer.descriptor.get()))};
  {
    DaemonClient gone(daemon.path());
    WireClient last{Descriptor(dup(gone.fd()))};
    // The daemon's descriptors are to be the last ones, so it must not be faster than this process.
    daemon.child().stop(SIGSTOP);
    // With a request, with a transfer, with a message that is none, with more than a message may have.
    const std::vector<u8> junk(4, 0xff);
    EXPECT_TRUE(control.send_bytes(junk, std::array{files[0].fd()}));
    const Transfer transfer = one_transfer(Direction::host_to_card, buffer.address, 4096);
    EXPECT_TRUE(wire.send(kCallTransfer, transfer, {files[1].fd()}));
    EXPECT_TRUE(wire.send(kCallTransfer, transfer, {files[2].fd(), files[3].fd(), files[4].fd()}));
    // And with a connection that goes at once.
    EXPECT_TRUE(last.send_bytes(junk, std::array{files[5].fd()}));
  }
  for (LingeringFile& f : files) f.give_away();
  daemon.child().stop(SIGCONT);
  pollfd answered{control.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&answered, 1, static_cast<int>(test::kWaitLimitS * 1000)), 1);
  // The third message ends the descriptor, before or after the transfer's answer.
  auto refused = wire.receive();
  if (refused && refused->header.sequence == 1) refused = wire.receive();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->header.result, -EPROTO);
  DaemonClient other(daemon.path());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(other.ask(Opcode::num_devices, Zero{}).error, 0);
  EXPECT_GE(daemon.metric("connections"), 1);
  for (LingeringFile& f : files) f.let_go();
  EXPECT_EQ(daemon.end(), 0) << daemon.child().errors();
}

TEST(DaemonHostile, AHostBufferCountsUntilNoProcessHasIt) {
  DaemonProcess daemon({"--max-host-buffers", "4MiB"});
  ASSERT_TRUE(daemon.ready()) << daemon.child().errors();
  constexpr u64 kSize = u64{3} << 20;
  const auto make = [&](DaemonClient& client, Descriptor* out) {
    HostBufferRequest request;
    request.create = BufCreate{.flags = kFlagCloseOnExec, .length = kSize};
    Answer answer = client.ask(Opcode::host_buffer, request);
    if (out != nullptr) *out = std::move(answer.descriptor);
    return answer.error;
  };
  Descriptor kept;
  {
    DaemonClient first(daemon.path());
    static_cast<void>(first.hello());
    ASSERT_EQ(make(first, &kept), 0);
  }
  DaemonClient second(daemon.path());
  static_cast<void>(second.hello());
  EXPECT_TRUE(test::eventually([&] { return daemon.metric("connections") == 1; }));
  EXPECT_EQ(make(second, nullptr), EDQUOT);  // its connection is gone, and the memory is not
  EXPECT_EQ(daemon.metric("host_buffer_bytes"), kSize);
  kept.reset();
  // The next request finds out, without waiting for the next look.
  Descriptor again;
  EXPECT_EQ(make(second, &again), 0);
  again.reset();
  EXPECT_TRUE(test::eventually([&] { return daemon.metric("host_buffer_bytes") == 0; }));
}

TEST(DaemonHostile, ACardThatComesBackIsServedAgain) {
  char folder[] = "/tmp/doorbell-card-XXXXXX";
  const std::string path = std::string(mkdtemp(folder)) + "/card";
  const auto serve = [&] {
    auto server = std::make_unique<CardServer>(make_model_card("model", {}));
    server->listen(path);
    return server;
  };
  auto card = serve();
  DaemonProcess daemon({}, "server:" + path);
  ASSERT_TRUE(daemon.ready()) << daemon.child().errors();
  DaemonClient client(daemon.path());
  static_cast<void>(client.hello());
  const CardBuffer buffer = open_buffer(client, {.size = 4096});
  card.reset();
  // Whoever asks first finds out.
  EXPECT_NE(client.ask(Opcode::buffer_open, BufferOpenRequest{.size = 1}).error, 0);
  EXPECT_TRUE(test::eventually([&] { return daemon.metric("card_gone") == 1; }));
  EXPECT_TRUE(test::eventually([&] { return daemon.metric("connections") == 0; }));
  card = serve();
  EXPECT_TRUE(test::eventually([&] { return daemon.metric("card_gone") == 0; }));
  DaemonClient later(daemon.path());
  static_cast<void>(later.hello());
  EXPECT_EQ(open_buffer(later, {.size = 4096}).address, buffer.address);
  EXPECT_EQ(daemon.end(), 0) << daemon.child().errors();
  card.reset();
  std::filesystem::remove_all(folder);
}

TEST(DaemonHostile, AnEmptyMessageLeavesNoFileHere) {
  DaemonProcess daemon;
  ASSERT_TRUE(daemon.ready()) << daemon.child().errors();
  DaemonClient client(daemon.path()), sender(daemon.path());
  static_cast<void>(client.hello());
  const CardBuffer buffer = open_buffer(client, {.size = 4096});
  WireClient wire{Descriptor(dup(buffer.descriptor.get()))}, control{Descriptor(dup(sender.fd()))};
  for (WireClient* const hostile : {&wire, &control}) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const Descriptor reader(ends[0]);
    EXPECT_TRUE(hostile->send_bytes({}, std::array{ends[1], ends[1], ends[1]}));
    close(ends[1]);
    pollfd closed{reader.get(), 0, 0};
    EXPECT_EQ(poll(&closed, 1, static_cast<int>(test::kWaitLimitS * 1000)), 1);
    EXPECT_NE(closed.revents & POLLHUP, 0);
  }
  EXPECT_EQ(client.ask(Opcode::num_devices, Zero{}).error, 0);
  EXPECT_EQ(daemon.metric("malformed_messages_total"), 2);
  EXPECT_EQ(daemon.end(), 0) << daemon.child().errors();
}

TEST(DaemonHostile, WhoDoesNotReadLosesARevokedDescriptorAllTheSame) {
  DaemonProcess daemon({"--max-clients", "8"});
  ASSERT_TRUE(daemon.ready()) << daemon.child().errors();
  DaemonClient client(daemon.path());
  static_cast<void>(client.hello());
  CardBuffer first = open_buffer(client, {.size = 4096});
  WireClient unread{Descriptor(dup(first.descriptor.get()))};
  // More replies than the socket holds: until the daemon, which goes on with others, reads no more of them.
  for (int idle = 0; idle < 50;) {
    if (unread.send(0x7777, u32{0})) {
      idle = 0;
    } else {
      ++idle;
      EXPECT_EQ(client.ask(Opcode::num_devices, Zero{}).error, 0);
    }
  }
  close_buffer(client, first);
  std::vector<CardBuffer> revoked;  // as many as stay open; the oldest goes
  for (u32 i = 0; i < 256; ++i) {
    revoked.push_back(open_buffer(client, {.size = 4096}));
    close_buffer(client, revoked.back());
  }
  pollfd p{unread.fd(), 0, 0};
  EXPECT_EQ(poll(&p, 1, static_cast<int>(test::kWaitLimitS * 1000)), 1);
  EXPECT_NE(p.revents & POLLHUP, 0);
}

TEST(DaemonHostile, WhoSendsNoRequestIsDisconnected) {
  DaemonProcess daemon({"--first-request-limit", "0.05"});
  ASSERT_TRUE(daemon.ready()) << daemon.child().errors();
  DaemonClient silent(daemon.path()), late(daemon.path()), beginner(daemon.path());
  WireClient half{Descriptor(dup(beginner.fd()))};
  // Of no use, or too late if this process had to pause.
  static_cast<void>(half.send_bytes(std::vector<u8>(3)));
  for (const DaemonClient* client : {&silent, &late, &beginner}) {
    pollfd p{client->fd(), 0, 0};
    EXPECT_EQ(poll(&p, 1, static_cast<int>(test::kWaitLimitS * 1000)), 1);
    EXPECT_NE(p.revents & POLLHUP, 0);
  }
  const Answer answer = late.ask(Opcode::num_devices, Zero{});
  EXPECT_EQ(answer.error, ETIMEDOUT);
  EXPECT_EQ(answer.text, "no request within 0.05 s");
  EXPECT_EQ(daemon.metric("connections_refused_total{reason=\"silent\"}"), 3);
  EXPECT_EQ(daemon.metric("connections"), 0);
  EXPECT_EQ(daemon.end(), 0) << daemon.child().errors();
}

TEST(DaemonHostile, TheMetricsSocketOfAnotherProcessStays) {
  DaemonProcess daemon;
  ASSERT_TRUE(daemon.ready()) << daemon.child().errors();
  const std::string socket = daemon.path() + "-second";
  Child second(std::vector<std::string>{DOORBELLD, "--card", "model", "--socket", socket, "--metrics",
                                        daemon.metrics_path(), "--log", "stderr"});
  ASSERT_TRUE(second.wait(test::kWaitLimitS));
  EXPECT_EQ(second.exit_code(), 1) << second.errors();
  test::expect_says(second.errors(), daemon.metrics_path());
  EXPECT_EQ(daemon.metric("connections"), 0);
}

/// A card server that a test plays: the daemon's only client.
class PlayedCard {
 public:
  PlayedCard() : path_("/tmp/doorbell-played-" + std::to_string(getpid())) {
    unlink(path_.c_str());
    listener_ = bound_at(path_);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
  }
  ~PlayedCard() { unlink(path_.c_str()); }
  [[nodiscard]] std::string name() const { return "server:" + path_; }
  /// The daemon's next call; its number is 0 if there is none.
  wire::RequestHeader next() {
    wire::RequestHeader header{.number = 0};
    if (socket_.get() < 0) socket_ = Descriptor(accept(listener_.get(), nullptr, nullptr));
    pollfd p{socket_.get(), POLLIN, 0};
    if (poll(&p, 1, static_cast<int>(test::kWaitLimitS * 1000)) != 1) return header;
    std::array<u8, wire::kMaxMessage> space;
    service::Message in;
    if (service::take_message(socket_.get(), space, nullptr, 0, in) != service::Taken::message) return header;
    EXPECT_EQ(check_request(in, header), 0);
    return header;
  }
  template <class T>
  void reply(const wire::RequestHeader& to, i64 result, const T& structure) {
    const std::span bytes(reinterpret_cast<const u8*>(&structure), sizeof structure);
    const wire::ReplyHeader header{.bytes = sizeof structure, .sequence = to.sequence, .result = result};
    EXPECT_EQ(send_message(socket_.get(), encode_reply(header, bytes, {}), -1), 0);
  }

 private:
  std::string path_;
  Descriptor listener_;
  Descriptor socket_;
};

TEST(DaemonHostile, WhoGoesWithRequestsUnreadIsNoticed) {
  PlayedCard card;
  std::thread at_first([&] {
    card.reply(card.next(), 0, wire::Hello{});
    card.reply(card.next(), 0, Info{});
  });
  DaemonProcess daemon({}, card.name());
  at_first.join();
  ASSERT_TRUE(daemon.ready()) << daemon.child().errors();
  wire::RequestHeader create;
  {
    const DaemonClient client(daemon.path());
    const HostBufferRequest request{.create = {.length = 4096}};
    WireClient socket{Descriptor(dup(client.fd()))};
    EXPECT_TRUE(socket.send_bytes(request_message(Opcode::host_buffer, 1, bytes_of(request))));
    EXPECT_TRUE(socket.send_bytes(request_message(Opcode::num_devices, 2, bytes_of(Zero{}))));
    create = card.next();
    EXPECT_EQ(create.number, kCallBufCreate);
  }
  // The card is told that nobody waits for the buffer.
  const wire::RequestHeader cancel = card.next();
  EXPECT_EQ(cancel.number, wire::kCancel);
  card.reply(create, -ECANCELED, BufCreate{});
  EXPECT_TRUE(test::eventually([&] { return daemon.holds_nothing(); })) << daemon.http();
  EXPECT_EQ(daemon.end(), 0) << daemon.child().errors();
}

}  // namespace
}  // namespace doorbell::qdma::daemon
