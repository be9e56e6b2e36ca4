// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The server of the Cassini: two processes on it, clients that speak another language, lie about their
// memory, or die; and `doorbell run cxi`.
#include "cxi/dropin/server.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "eventually.hpp"
#include "sanitized.hpp"
#include "system/child.hpp"
#include "system/passed_files.hpp"

namespace doorbell::cxi::dropin {

namespace fs = std::filesystem;
using test::eventually;

std::string path_of(const char* what) {
  return (fs::temp_directory_path() / ("cxi-" + std::to_string(::getpid()) + what)).string();
}

ModelConfig resting() {
  ModelConfig c;
  c.rests = true;
  return c;
}

/// A client by hand.
struct Raw {
  explicit Raw(const std::string& path, bool greet = true)
      : socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const timeval limit{20, 0};
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (greet) {
      EXPECT_EQ(ask(Call::hello, {kProtocol}).result, 0);
    }
  }
  void send(const void* bytes, std::size_t n, std::span<const int> files = {}) {
    alignas(cmsghdr) std::array<u8, CMSG_SPACE(200 * sizeof(int))> room;
    iovec part{const_cast<void*>(bytes), n};
    msghdr m{};
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    pass_files(m, files, room);
    (void)::sendmsg(socket.get(), &m, MSG_NOSIGNAL);
  }
  /// False: the server has ended the connection.
  bool receive(Reply& reply) { return ::recv(socket.get(), &reply, sizeof reply, 0) == sizeof reply; }
  Reply ask(const Request& request, std::span<const int> files = {}) {
    send(&request, sizeof request, files);
    Reply reply;
    if (!receive(reply)) reply.result = -9999;
    return reply;
  }
  Reply ask(Call call, std::initializer_list<u64> arguments) {
    Request r;
    r.call = call;
    u32 i = 0;
    for (const u64 a : arguments) r.argument[i++] = a;
    return ask(r);
  }
  u64 lni() { return ask(Call::alloc_lni, {1}).handle; }
  Descriptor socket;
};

Descriptor memory_file(u64 bytes, bool sealed) {
  Descriptor f(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(f.get(), static_cast<off_t>(bytes)), 0);
  if (sealed) {
    EXPECT_EQ(::fcntl(f.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  }
  return f;
}

Request map_request(u64 lni, u64 bytes, u64 offset = 0, u64 address = 0x10000) {
  Request r;
  r.call = Call::map;
  r.argument[0] = lni;
  r.argument[1] = address;
  r.argument[2] = bytes;
  r.argument[3] = 12;
  r.memory[0] = {address, bytes, 0, 1};
  r.piece[0] = {offset, bytes};
  return r;
}

TEST(CxiServer, TwoProcessesExchangeData) {
  const std::string path = path_of("two");
  Server server(resting(), path);
  ::setenv(kServerVariable, path.c_str(), 1);
  Child target({CXI_PEER, "target"});
  ASSERT_TRUE(eventually([&] { return target.output().find('\n') != std::string::npos || target.ended(); }));
  ASSERT_EQ(target.output().substr(0, 4), "pid ") << target.output() << target.errors();
  const std::string pid = target.output().substr(4, target.output().find('\n') - 4);
  // Another process dies on the same Cassini first. Its puts are those of nobody's entry.
  {
    Child dying({CXI_PEER, "dies", "400"});
    ASSERT_TRUE(dying.wait(60));
    EXPECT_EQ(dying.exit_code(), 128 + SIGKILL) << dying.errors();
  }
  Child initiator({CXI_PEER, "initiator", pid});
  ASSERT_TRUE(initiator.wait(100)) << initiator.output();
  EXPECT_EQ(initiator.exit_code(), 0) << initiator.output() << initiator.errors();
  ASSERT_TRUE(target.wait(60));
  EXPECT_EQ(target.exit_code(), 0) << target.output() << target.errors();
  EXPECT_TRUE(eventually([&] { return server.connected() == 0; }));
  const auto counts = server.counts();
  EXPECT_EQ(counts["puts"], 50u);
  // 8 bytes for each look at the target's progress.
  const u64 looks = counts["gets"].get<u64>() - 50;
  EXPECT_GE(looks, 50u);
  EXPECT_EQ(counts["bytes"], 100u * 40'000 + 8 * looks);
  EXPECT_EQ(counts["malformed"], 0u);
  EXPECT_EQ(counts["dma_faults"], 0u);
  ::unsetenv(kServerVariable);
}

TEST(CxiServer, WhoSpeaksAnotherLanguageIsSentAway) {
  const std::string path = path_of("malformed");
  Server server(resting(), path);
  Reply reply;
  const Request request;
  for (const std::size_t n : {std::size_t{1}, sizeof request - 1}) {
    Raw c(path, false);
    c.send(&request, n);
    EXPECT_FALSE(c.receive(reply)) << n;
  }
  {
    Raw c(path, false);
    std::vector<u8> longer(sizeof request + 1);
    c.send(longer.data(), longer.size());
    EXPECT_FALSE(c.receive(reply));
  }
  {
    Raw c(path, false);  // no greeting
    EXPECT_EQ(c.ask(Call::alloc_lni, {1}).result, -9999);
  }
  {
    Raw c(path, false);
    EXPECT_EQ(c.ask(Call::hello, {kProtocol + 1}).result, -EPROTO);
  }
  {
    Raw c(path);
    Request unknown;
    unknown.call = static_cast<Call>(999);
    EXPECT_EQ(c.ask(unknown).result, -ENOTSUP);
  }
  {
    Raw c(path);  // more files than a request has room for
    const Descriptor f = memory_file(4096, true);
    const std::vector<int> files(100, f.get());
    c.send(&request, sizeof request, files);
    EXPECT_FALSE(c.receive(reply));
  }
  EXPECT_TRUE(eventually([&] { return server.connected() == 0; }));
  EXPECT_EQ(server.counts()["malformed"], 5u);
  Raw good(path);
  EXPECT_NE(good.lni(), 0u);
}

TEST(CxiServer, MemoryThatIsNotWhatItIsSaidToBe) {
  const std::string path = path_of("memory");
  Server server(resting(), path);
  Raw c(path);
  const u64 lni = c.lni();
  const Descriptor sealed = memory_file(8192, true), open_end = memory_file(8192, false);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Descriptor from(ends[0]), to(ends[1]);
  const auto result = [&](const Request& r, int fd) {
    const int files[] = {fd};
    return c.ask(r, files).result;
  };
  EXPECT_EQ(result(map_request(lni, 8192), sealed.get()), 0);
  EXPECT_EQ(result(map_request(lni, 8192), open_end.get()), -EPERM);
  EXPECT_EQ(result(map_request(lni, 8192), from.get()), -EINVAL);
  EXPECT_EQ(result(map_request(lni, 8192, 4096), sealed.get()), -EINVAL) << "behind the end";
  EXPECT_EQ(result(map_request(lni, 12288), sealed.get()), -EINVAL);
  EXPECT_EQ(result(map_request(lni, 100), sealed.get()), -EINVAL) << "no whole page";
  for (const u64 huge : {~u64{0}, ~u64{0} - 4095, u64{1} << 63, u64{1} << 41}) {
    EXPECT_EQ(result(map_request(lni, huge), sealed.get()), -EINVAL) << huge;
    EXPECT_EQ(result(map_request(lni, 4096, huge), sealed.get()), -EINVAL) << huge;
    EXPECT_EQ(result(map_request(lni, 4096, 0, huge), sealed.get()), huge > ~u64{0} - 8192 ? -EINVAL : 0)
        << huge;
  }
  Request r = map_request(lni, 8192);
  r.memory[0].first = 63;
  EXPECT_EQ(result(r, sealed.get()), -EINVAL);
  r.memory[0].first = ~u32{0};
  r.memory[0].pieces = ~u32{0};
  EXPECT_EQ(result(r, sealed.get()), -EINVAL);
  EXPECT_EQ(c.ask(map_request(lni, 8192)).result, -EINVAL) << "no file came";
  EXPECT_EQ(result(map_request(lni + 77, 8192), sealed.get()), -EINVAL) << "no such LNI";
  EXPECT_EQ(server.connected(), 1u) << "refused, and still served";
}

TEST(CxiServer, RandomRequestsChangeNothingForOthers) {
  const std::string path = path_of("random");
  Server server(resting(), path);
  std::mt19937_64 random(11);
  const Descriptor f = memory_file(1 << 20, true);
  Raw c(path);
  std::vector<u64> handles{c.lni()};
  const auto number = [&]() -> u64 {
    switch (random() % 6) {
      case 0:
        return handles[random() % handles.size()];
      case 1:
        return random();
      case 2:
        return ~u64{0} - random() % 3;
      case 3:
        return random() % 70'000;
      case 4:
        return 4096 * (random() % 20);
      default:
        return random() % 16;
    }
  };
  const u64 lni = handles[0];
  for (int n = 0; n < 4000; ++n) {
    Request r;
    r.call = static_cast<Call>(random() % 24);
    for (u64& a : r.argument) a = number();
    if (random() % 2 == 0) r.argument[0] = lni;
    for (SharedMemory& m : r.memory)
      m = {number(), number(), static_cast<u32>(random() % 3), static_cast<u32>(random() % 3)};
    for (u32 k = 0; k < 4; ++k) r.piece[k] = {4096 * (random() % 40), 4096 * (random() % 8)};
    if (random() % 2 == 0) {
      r.memory[0] = {0, 4096, 0, 1}, r.memory[1] = {0, 4096, 1, 1};
      r.piece[0] = r.piece[1] = {4096 * (random() % 100), 4096};
    }
    const int files[] = {f.get(), f.get()};
    const Reply reply = c.ask(r, random() % 4 == 0 ? std::span<const int>() : files);
    ASSERT_NE(reply.result, -9999) << n;
    if (reply.result == 0 && reply.handle != 0) handles.push_back(reply.handle);
  }
  EXPECT_GT(handles.size(), 20u) << "some are right by chance";
  // Those queues hold whatever the file has now.
  void* const at = ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, f.get(), 0);
  ASSERT_NE(at, MAP_FAILED);
  for (int n = 0; n < 20'000; ++n)
    static_cast<u64*>(at)[random() % (1 << 17)] = random() % 3 == 0 ? random() : number();
  (void)::munmap(at, 1 << 20);
  Raw other(path);
  EXPECT_NE(other.lni(), 0u);
  c.socket.reset();
  EXPECT_TRUE(eventually([&] { return server.connected() == 1; }));
  EXPECT_NE(other.lni(), 0u);
}

/// The counts of a Cassini that two programs shared; the first of them has the report.
nlohmann::ordered_json counts_of_two(const char* first, const char* second) {
  const std::string socket = path_of("run"), file = path_of("report");
  Child target(
      {DOORBELL_PROGRAM, "run", "cxi", "--socket", socket, "--report-file", file, "--", CXI_PEER, first});
  const auto pid_of = [&] {
    const std::string text = target.output();
    const auto at = text.find("pid ");
    return at == std::string::npos || text.find('\n', at) == std::string::npos
               ? std::string()
               : text.substr(at + 4, text.find('\n', at) - at - 4);
  };
  EXPECT_TRUE(eventually([&] { return !pid_of().empty() || target.ended(); })) << target.errors();
  Child initiator({DOORBELL_PROGRAM, "run", "cxi", "--socket", socket, "--", CXI_PEER, second, pid_of()});
  EXPECT_TRUE(initiator.wait(100));
  EXPECT_EQ(initiator.exit_code(), 0) << initiator.output() << initiator.errors();
  EXPECT_TRUE(target.wait(60));
  EXPECT_EQ(target.exit_code(), 0) << target.output() << target.errors();
  std::ifstream report(file);
  auto counts = nlohmann::ordered_json::parse(report, nullptr, false);
  EXPECT_FALSE(fs::exists(socket));
  fs::remove(file);
  return counts;
}

/// With the command line, which a sanitizer's build of the model tests leaves out.
class CxiRun : public testing::Test {
 protected:
  void SetUp() override {
    if (doorbell::test::kSanitized && ::access(DOORBELL_PROGRAM, X_OK) != 0)
      GTEST_SKIP() << "the command line is not built";
  }
};

TEST_F(CxiRun, TheExitCodeAndTheReportOfAProgram) {
  Child fails({DOORBELL_PROGRAM, "run", "cxi", "--", "sh", "-c", "exit 7"});
  ASSERT_TRUE(fails.wait(60));
  EXPECT_EQ(fails.exit_code(), 7) << fails.errors();
  Child none({DOORBELL_PROGRAM, "run", "cxi", "--"});
  ASSERT_TRUE(none.wait(60));
  EXPECT_EQ(none.exit_code(), 1);
  Child unknown({DOORBELL_PROGRAM, "run", "cxi", "--", "/nonexistent/program"});
  ASSERT_TRUE(unknown.wait(60));
  EXPECT_EQ(unknown.exit_code(), 1);
  EXPECT_NE(unknown.errors().find("/nonexistent/program"), std::string::npos);

  const auto counts = counts_of_two("target", "initiator");
  EXPECT_EQ(counts["puts"], 50u);
  EXPECT_EQ(counts["bytes"], 100u * 40'000 + 8 * (counts["gets"].get<u64>() - 50));
  EXPECT_EQ(counts["refused_operations"], 0u);
}

TEST_F(CxiRun, RendezvousBetweenTwoPrograms) {
  const auto counts = counts_of_two("receiver", "sender");
  EXPECT_EQ(counts["puts"], 50u);
  EXPECT_EQ(counts["gets"], 50u);
  EXPECT_EQ(counts["bytes"], 50u * 40'000);
  EXPECT_EQ(counts["refused_operations"], 0u);
  EXPECT_EQ(counts["dropped_events"], 0u);
}

}  // namespace doorbell::cxi::dropin
