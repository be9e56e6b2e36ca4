// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A file whose close() waits until the test lets it: a TCP socket that lingers over bytes nobody takes.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "system/descriptor.hpp"

namespace doorbell::service {

class LingeringFile {
 public:
  LingeringFile() {
    const Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener.get(), at, size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), at, &size), 0);
    file_ = Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(file_.get(), at, size), 0);
    reader_ = Descriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_GE(reader_.get(), 0);
    const std::array<char, 65536> bytes{};
    while (::send(file_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    const linger wait{.l_onoff = 1, .l_linger = 3600};
    EXPECT_EQ(setsockopt(file_.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof wait), 0);
  }
  ~LingeringFile() { let_go(); }
  [[nodiscard]] int fd() const { return file_.get(); }
  [[nodiscard]] Descriptor take() { return std::move(file_); }
  /// Gives up this process's descriptor, once somebody else has one. If that one has been closed already, it
  /// is this close() that waits.
  void give_away() {
    closing_ = std::thread([file = file_.release()] { ::close(file); });
  }
  /// Nothing waits any more.
  void let_go() {
    const linger none{.l_onoff = 1, .l_linger = 0};
    if (file_.get() >= 0) setsockopt(file_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
    if (reader_.get() >= 0) setsockopt(reader_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
    reader_.reset();  // a reset, which ends the other side's waiting
    if (closing_.joinable()) closing_.join();
  }

 private:
  Descriptor file_, reader_;
  std::thread closing_;
};

}  // namespace doorbell::service
