// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The two ends of an exchange over the loopback interface, and a peer that misbehaves.
#pragma once

#include <arpa/inet.h>
#include <doorbell/error.hpp>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "errors.hpp"
#include "exchange/exchange.hpp"

namespace doorbell::exchange {

inline const SocketName kAnyPort{"127.0.0.1", 0};

/// The kind of the runs of these tests.
inline constexpr RunKind kKind{"rdma", 18515};

/// The message that `call` throws, its hint behind it; "" when it throws nothing.
inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return std::string(e.what()) + " / " + e.hint();
  }
  return "";
}

inline void expect_error(const std::function<void()>& call, const std::string& part) {
  test::expect_says(error_of(call), part);
}

/// A server and a client that have said hello.
struct Pair {
  std::optional<Exchange> server;
  std::optional<Exchange> client;

  explicit Pair(double limit_s = 5) {
    Listener listener(kKind, kAnyPort);
    std::thread other([&] { client.emplace(Exchange::connect(kKind, listener.at(), limit_s)); });
    server.emplace(listener.accept(5, limit_s));
    other.join();
  }
};

/// A peer that speaks only what a test makes it say.
class RawPeer {
 public:
  explicit RawPeer(const SocketName& to) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in a = {};
    a.sin_family = AF_INET;
    a.sin_port = htons(to.port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
  }
  void say(const std::string& bytes) {
    EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void say_message(const std::string& text) { say(frame(text)); }
  void close() { socket_.reset(); }
  static std::string frame(const std::string& text) {
    const std::size_t n = text.size();
    std::string all = "dbrx";
    for (int shift = 24; shift >= 0; shift -= 8) all += static_cast<char>(n >> shift & 0xff);
    return all + text;
  }

 private:
  Descriptor socket_;
};

/// A hello of this version of the protocol, or of another, with more fields in `rest`.
inline std::string hello(const std::string& rest, u32 version = Exchange::kVersion) {
  return R"({"type":"hello","body":{"version":)" + std::to_string(version) + rest + "}}";
}
inline const std::string kHello = hello(R"(,"path":"rdma","nonce":7,"server":false)");

}  // namespace doorbell::exchange
