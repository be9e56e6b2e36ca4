// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// doorbelld as its clients and the service manager see it.
#include <doorbell/qdma/card.hpp>
#include <grp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "errors.hpp"
#include "qdma/daemon_process.hpp"
#include "qdma/wire_client.hpp"
#include "sanitized.hpp"

namespace doorbell::qdma::daemon {
namespace {

constexpr u64 kMiB = 1 << 20;

/// Puts bytes into card memory and gets them back, through the descriptor alone. 0 or an errno.
int there_and_back(int descriptor, u64 address, u64 bytes, u8 mark) {
  WireClient wire{Descriptor(dup(descriptor))};
  ClientBuffer buffer(wire, bytes);
  if (buffer.data() == nullptr) return ENOMEM;
  for (u64 i = 0; i < bytes; ++i) buffer.data()[i] = static_cast<u8>(mark + i % 251);
  auto move = [&](Direction d) {
    const WireReply r = wire.call(kCallTransfer, one_transfer(d, address, bytes), {buffer.fd()});
    return r.header.result == static_cast<i64>(bytes) ? 0
           : r.header.result < 0                      ? static_cast<int>(-r.header.result)
                                                      : EIO;
  };
  if (const int error = move(Direction::host_to_card)) return error;
  std::memset(buffer.data(), 0, bytes);
  if (const int error = move(Direction::card_to_host)) return error;
  for (u64 i = 0; i < bytes; ++i)
    if (buffer.data()[i] != static_cast<u8>(mark + i % 251)) return EILSEQ;
  return 0;
}

TEST(DaemonProcess, ServesBuffersAndQueuePairsAndEndsClean) {
  DaemonProcess daemon;
  ASSERT_TRUE(daemon.ready()) << daemon.child().errors();
  const std::size_t files = daemon.open_files();
  {
    DaemonClient client(daemon.path());
    EXPECT_EQ(client.hello().version, kProtocolVersion);
    const CardBuffer buffer = open_buffer(client, {.type = 1, .argument = 3, .size = kMiB});
    EXPECT_EQ(buffer.address, kHbmBase + 3 * (512 * kMiB));
    EXPECT_EQ(there_and_back(buffer.descriptor.get(), buffer.address, kMiB, 1), 0);
    EXPECT_EQ(there_and_back(buffer.descriptor.get(), buffer.address + buffer.bytes - 4096, 8192, 1), EACCES);
    DaemonClient other(daemon.path());
    const CardBuffer raw = open_raw_buffer(other, {.address = buffer.address, .size = 4096});
    EXPECT_EQ(there_and_back(raw.descriptor.get(), buffer.address, 4096, 2), 0);
    close_buffer(client, buffer);
    EXPECT_EQ(there_and_back(raw.descriptor.get(), buffer.address, 4096, 3), 0);
    WireClient stale{Descriptor(dup(buffer.descriptor.get()))};
    EXPECT_EQ(
        stale.call(kCallTransfer, one_transfer(Direction::host_to_card, buffer.address, 4096)).header.result,
        -ESTALE);
    EXPECT_EQ(daemon.metric("connections"), 2);
    EXPECT_EQ(daemon.metric("descriptors_revoked"), 1);
  }
  EXPECT_TRUE(test::eventually([&] { return daemon.holds_nothing() && daemon.open_files() == files; }))
      << daemon.http() << daemon.open_files() << " of " << files;
  EXPECT_NE(daemon.http("GET / HTTP/1.0").find("404"), std::string::npos);
  EXPECT_NE(daemon.http("PUT /metrics HTTP/1.0").find("405"), std::string::npos);
  EXPECT_NE(daemon.http("GET /metrics HTTP/1.0\r\nX: " + std::string(5000, 'x')).find("431"),
            std::string::npos);
  EXPECT_EQ(daemon.metric("metrics_readers_ended_total"), 0);
  EXPECT_EQ(daemon.end(), 0) << daemon.child().errors();
  EXPECT_FALSE(std::filesystem::exists(daemon.path()));
}

TEST(DaemonProcess, SigtermTakesEverythingBackFromClientsThatAreThere) {
  DaemonProcess daemon;
  ASSERT_TRUE(daemon.ready());
  DaemonClient client(daemon.path());
  static_cast<void>(client.hello());
  const CardBuffer buffer = open_buffer(client, {.size = kMiB});
  EXPECT_EQ(daemon.end(), 0) << daemon.child().errors();
  EXPECT_EQ(client.ask(Opcode::num_devices, Zero{}).error, ENODEV);
}

TEST(DaemonProcess, TheLibraryUsesItAsAnyOtherCard) {
  DaemonProcess daemon;
  ASSERT_TRUE(daemon.ready());
  const Card card = Card::open("daemon:" + daemon.path());
  EXPECT_EQ(card.kind(), "model");
  EXPECT_NE(std::string(card.info().bdf.data()), "");
  Card writable = card;
  TransferDescriptor both = writable.both_channels();
  Buffer buffer = both.create_buffer(kMiB);
  for (u64 i = 0; i < kMiB; ++i) buffer.data()[i] = static_cast<u8>(i * 7);
  EXPECT_EQ(both.transfer(Direction::host_to_card, buffer, 0, kDdrBase, kMiB).bytes, kMiB);
  std::memset(buffer.data(), 0, kMiB);
  EXPECT_EQ(both.transfer(Direction::card_to_host, buffer, 0, kDdrBase, kMiB).bytes, kMiB);
  u64 wrong = 0;
  for (u64 i = 0; i < kMiB; ++i) wrong += buffer.data()[i] != static_cast<u8>(i * 7);
  EXPECT_EQ(wrong, 0u);
}

TEST(DaemonProcess, AnIdleOrSilentClientHoldsNobodyUp) {
  DaemonProcess daemon;
  ASSERT_TRUE(daemon.ready());
  const DaemonClient idle(daemon.path());
  // One that asks and never reads.
  const DaemonClient deaf(daemon.path());
  const std::vector<u8> ask = request_message(Opcode::device_info, 1, bytes_of(DeviceRequest{}));
  while (::send(deaf.fd(), ask.data(), ask.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  DaemonClient client(daemon.path());
  static_cast<void>(client.hello());
  const CardBuffer buffer = open_buffer(client, {.size = kMiB});
  EXPECT_EQ(there_and_back(buffer.descriptor.get(), buffer.address, 65536, 1), 0);
}

TEST(DaemonProcess, OverQuotaClientsAreRefusedEachWithItsOwnError) {
  DaemonProcess daemon({"--max-connections", "3", "--max-buffers", "1"});
  ASSERT_TRUE(daemon.ready());
  DaemonClient a(daemon.path()), b(daemon.path()), c(daemon.path());
  for (DaemonClient* client : {&a, &b, &c}) static_cast<void>(client->hello());
  DaemonClient fourth(daemon.path());
  test::expect_says(test::error_of([&] { static_cast<void>(fourth.hello()); }), "takes no further client");
  static_cast<void>(open_buffer(a, {.size = 1}));
  const Answer refused = b.ask(Opcode::buffer_open, BufferOpenRequest{.size = 1});
  EXPECT_EQ(refused.error, EDQUOT);
  EXPECT_NE(refused.text.find("holds 1 buffers of 1"), std::string::npos) << refused.text;
  EXPECT_EQ(c.ask(Opcode::num_devices, Zero{}).error, 0);
  EXPECT_EQ(daemon.metric("connections_refused_total{reason=\"quota\"}"), 1);
}

TEST(DaemonProcess, WithoutAFreeDescriptorItRefusesAndServesOn) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP()
      << "UndefinedBehaviorSanitizer opens a pipe to look at an object, and takes its failure for a bad object";
#endif
  DaemonProcess daemon({"--max-connections", "500", "--max-clients", "500"});
  ASSERT_TRUE(daemon.ready());
  DaemonClient first(daemon.path());
  static_cast<void>(first.hello());
  const rlimit few{daemon.open_files() + 6, daemon.open_files() + 6};
  ASSERT_EQ(prlimit(daemon.child().pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  {
    std::vector<std::unique_ptr<DaemonClient>> clients;
    u32 refused = 0;
    for (u32 i = 0; i < 40; ++i) {
      clients.push_back(std::make_unique<DaemonClient>(daemon.path()));
      refused += clients.back()->ask(Opcode::num_devices, Zero{}).error == EBUSY;
    }
    EXPECT_GE(refused, 20u);
    // A descriptor cannot be had either: that is this request's error, and nobody else's.
    EXPECT_EQ(first.ask(Opcode::buffer_open, BufferOpenRequest{.size = 1}).code, Code::busy);
    EXPECT_EQ(first.ask(Opcode::num_devices, Zero{}).error, 0);
  }
  // With the others gone there is room again.
  EXPECT_TRUE(test::eventually([&] {
    Answer answer = first.ask(Opcode::buffer_open, BufferOpenRequest{.size = 1});
    return answer.error == 0 && answer.descriptor.get() >= 0;
  })) << daemon.child().errors();
}

/// The result of `act` as a user whom no database lists, or 1: it could not become one, and 3: it threw.
int as_stranger(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    int code = 1;
    if (setgroups(0, nullptr) == 0 && setgid(4100000001u) == 0 && setuid(4100000002u) == 0) {
      try {
        code = act();
      } catch (const std::exception&) {
        code = 3;
      }
    }
    _exit(code);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(DaemonProcess, AnUnknownUserIsServedAsEverybody) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  DaemonProcess daemon;
  ASSERT_TRUE(daemon.ready());
  EXPECT_EQ(as_stranger([&] {
              DaemonClient stranger(daemon.path());
              static_cast<void>(stranger.hello());
              const bool may = stranger.ask(Opcode::buffer_open, BufferOpenRequest{.size = 1}).error == 0;
              const bool may_not =
                  stranger.ask(Opcode::buffer_open_raw, BufferOpenRawRequest{.size = 1}).error == EPERM;
              return may && may_not ? 0 : 2;
            }),
            0);
  DaemonClient client(daemon.path());
  EXPECT_EQ(client.ask(Opcode::num_devices, Zero{}).error, 0);
}

TEST(DaemonProcess, AUserWhoMayNotConnectIsToldWhy) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  DaemonProcess daemon({"--socket-mode", "0600"});
  ASSERT_TRUE(daemon.ready());
  EXPECT_EQ(as_stranger([&] {
              try {
                const DaemonClient stranger(daemon.path());
              } catch (const Error& e) {
                return e.code() == ExitCode::usage && e.hint().starts_with("its --socket-mode") ? 0 : 2;
              }
              return 4;  // it may
            }),
            0);
}

TEST(DaemonProcess, SighupReadsTheRolesAgain) {
  char name[] = "/tmp/doorbelld-roles-XXXXXX";
  const Descriptor file(mkstemp(name));
  const auto write = [&](const std::string& text) { std::ofstream(name) << text; };
  write("[role:a]\nrights = query-devices buffer\n[user:*]\nroles = a\n");
  DaemonProcess daemon({"--roles", name});
  ASSERT_TRUE(daemon.ready()) << daemon.child().errors();
  DaemonClient client(daemon.path());
  static_cast<void>(client.hello());
  EXPECT_EQ(client.ask(Opcode::buffer_open, BufferOpenRequest{.size = 1}).error, 0);
  write("[role:a]\nrights = query-devices\n[user:*]\nroles = a\n");
  daemon.child().stop(SIGHUP);
  EXPECT_TRUE(daemon.wait_for("READY=1"));
  EXPECT_EQ(client.ask(Opcode::buffer_open, BufferOpenRequest{.size = 1}).error, EPERM);
  // A file with an error changes nothing.
  write("[role:a]\nrights = everything\n");
  daemon.child().stop(SIGHUP);
  EXPECT_TRUE(daemon.wait_for("READY=1"));
  EXPECT_EQ(client.ask(Opcode::num_devices, Zero{}).error, 0);
  // The log is written by a thread of its own.
  EXPECT_TRUE(test::eventually([&] {
    return daemon.child().errors().find("the roles stay as they were") != std::string::npos;
  })) << daemon.child().errors();
  ::unlink(name);
}

TEST(DaemonProcess, RefusesBadOptionsBeforeItServes) {
  const struct {
    std::vector<std::string> words;
    const char* said;
  } cases[] = {
      {{"--socket-mode", "999"}, "--socket-mode"},       {{"--metrics", "0.0.0.0:1"}, "neither a path"},
      {{"--roles", "/nowhere/roles"}, "/nowhere/roles"}, {{"--threads", "1"}, "16..1024"},
      {{"--first-request-limit", "0"}, "0.001..3600"},   {{"--log", "loud"}, "loud"}};
  for (const auto& c : cases) {
    std::vector<std::string> words = {DOORBELLD, "--card", "model", "--socket",
                                      "/tmp/doorbelld-test-refused.sock"};
    words.insert(words.end(), c.words.begin(), c.words.end());
    Child child(words);
    ASSERT_TRUE(child.wait(test::kWaitLimitS));
    EXPECT_EQ(child.exit_code(), 1);
    test::expect_says(child.errors(), c.said);
    EXPECT_FALSE(std::filesystem::exists("/tmp/doorbelld-test-refused.sock"));
  }
}

TEST(DaemonProcess, MetricsNeedTheLibraryThatServesThem) {
  setenv("DOORBELL_LIBMICROHTTPD", "/nonexistent/libmicrohttpd.so", 1);
  Child child(std::vector<std::string>{DOORBELLD, "--card", "server:/nowhere/card", "--socket",
                                       "/tmp/doorbelld-test-refused.sock", "--metrics", "127.0.0.1:0"});
  unsetenv("DOORBELL_LIBMICROHTTPD");
  ASSERT_TRUE(child.wait(test::kWaitLimitS));
  EXPECT_EQ(child.exit_code(), static_cast<int>(ExitCode::absent));
  test::expect_says(child.errors(), "install libmicrohttpd12");
}

// --- many clients that are killed --------------------------------------------------------------------------

/// A client that works until it is killed. It ends by itself only if something is wrong.
[[noreturn]] void storm_client(const std::string& path, u8 mark) {
  try {
    for (u32 round = 0;; ++round) {
      DaemonClient client(path);
      static_cast<void>(client.hello());
      QpairAdd add;
      std::span<u8> bytes(reinterpret_cast<u8*>(&add), sizeof add);
      const i64 added = control_call(client, kCallQpairAdd, bytes).result;
      // Queue pairs of those that were killed may be on their way out.
      if (added < 0 && added != -EBUSY && added != -EDQUOT) _exit(10);
      Answer answer = client.ask(
          Opcode::buffer_open,
          BufferOpenRequest{.type = round % 2 == 0 ? 0u : 2u, .channel = kChannel0 + mark % 2, .size = kMiB});
      if (answer.error == EBUSY || answer.error == EDQUOT || answer.error == ENOMEM) continue;
      if (answer.error != 0 || answer.descriptor.get() < 0) _exit(11);
      BufferOpenReply reply;
      std::memcpy(static_cast<void*>(&reply), answer.body.data(), sizeof reply);
      const u64 address = reply.address, size = reply.size;
      for (u32 i = 0; i < 8; ++i) {
        // Whoever else wrote there would be seen.
        if (const int error = there_and_back(answer.descriptor.get(), address + i * 65536, 65536, mark);
            error != 0)
          _exit(error == EILSEQ ? 12 : 13);
        if (there_and_back(answer.descriptor.get(), address + size, 4096, mark) != EACCES) _exit(14);
      }
    }
  } catch (const Error&) {
    _exit(15);
  }
}

/// 64 clients for `seconds`, one of them killed and replaced again and again.
void storm(double seconds) {
  DaemonProcess daemon({"--max-connections", "512", "--max-clients", "512", "--max-queue-pairs", "256",
                        "--max-buffers", "1024", "--max-descriptors", "1024", "--max-card-memory", "64Gi",
                        "--log-level", "warning"});
  ASSERT_TRUE(daemon.ready()) << daemon.child().errors();
  const std::size_t files = daemon.open_files();
  std::vector<pid_t> clients(64);
  u8 mark = 0;
  const auto start = [&] {
    const u8 own = mark++;
    const pid_t pid = fork();
    if (pid == 0) storm_client(daemon.path(), own);
    return pid;
  };
  for (pid_t& pid : clients) pid = start();
  const u64 begin = wall_ns(), end = begin + static_cast<u64>(seconds * 1e9);
  u64 memory_half_way = 0;
  u64 killed = 0, random = 88172645463325252ull;
  const auto reap = [&](pid_t pid) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ++killed;
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "a client ended with " << WEXITSTATUS(status);
  };
  while (wall_ns() < end && !testing::Test::HasFailure()) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    pid_t& pid = clients[random % clients.size()];
    std::this_thread::sleep_for(std::chrono::microseconds(random / 64 % 20000));
    kill(pid, SIGKILL);
    reap(pid);
    pid = start();
    if (memory_half_way == 0 && wall_ns() > begin + (end - begin) / 2)
      memory_half_way = daemon.memory_bytes();
  }
  for (const pid_t pid : clients) kill(pid, SIGKILL);
  for (const pid_t pid : clients) reap(pid);
  EXPECT_TRUE(test::eventually([&] { return daemon.holds_nothing() && daemon.open_files() <= files + 2; }))
      << daemon.http() << daemon.open_files() << " files open, " << files << " at the start";
  // Threads and their descriptors come with the first calls; what is here now must stay as it is.
  DaemonClient client(daemon.path());
  static_cast<void>(client.hello());
  const CardBuffer buffer = open_buffer(client, {.size = 512 * kMiB});
  EXPECT_EQ(buffer.address, kDdrBase);
  EXPECT_EQ(there_and_back(buffer.descriptor.get(), buffer.address, kMiB, 9), 0);
  const u64 memory = daemon.memory_bytes();
  const auto n = [](u64 value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "%llu clients killed, %.0f accepted, %.0f transfers, %.0f bytes to the card\n"
      "open files: %llu at the start, %llu at the end; memory: %llu bytes half-way, %llu at the end; "
      "%.0f queue pair ids and %.0f buffers held\n",
      n(killed), daemon.metric("connections_accepted_total"),
      daemon.metric("transfers_total{outcome=\"ok\"}"),
      daemon.metric("transfer_bytes_total{direction=\"host_to_card\"}"), n(files), n(daemon.open_files()),
      n(memory_half_way), n(memory), daemon.metric("queue_pair_ids"), daemon.metric("buffers"));
  // Half-way of a short storm the card's memory has not been written everywhere.
  if (!test::kSanitized) {
    EXPECT_LE(memory, memory_half_way + (seconds < 30 ? 128 : 32) * kMiB);
  }
  EXPECT_EQ(daemon.metric("retire_failures_total"), 0);
  EXPECT_EQ(daemon.end(), 0) << daemon.child().errors();
}

TEST(DaemonStorm, ClientsKilledAtRandomLeaveNothing) {
  const char* const seconds = std::getenv("DOORBELL_STORM_S");
  storm(seconds == nullptr ? 3 : std::strtod(seconds, nullptr));
}

}  // namespace
}  // namespace doorbell::qdma::daemon
