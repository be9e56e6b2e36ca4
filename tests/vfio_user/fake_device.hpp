// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A device of sixteen KiB of registers that remember what is written, and a raw client that checks nothing.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "eventually.hpp"
#include "system/passed_files.hpp"
#include "vfio_user/device.hpp"
#include "vfio_user/server.hpp"

namespace doorbell::vfio_user {

inline Descriptor memory_file(u64 bytes) {
  Descriptor fd(memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  return fd;
}

/// A write to offset 14h waits, as NVMe's CC does; one of 0 there ends what the device does.
class FakeDevice final : public Device {
 public:
  static constexpr u64 kBytes = 0x4000;
  explicit FakeDevice(bool maps = true, u16 vendor = 0x1234)
      : file_(memory_file(0x2000)), maps_(maps), vendor_(vendor) {}

  [[nodiscard]] PciIdentity identity() const override {
    return {.vendor = vendor_,
            .device = 0x5678,
            .subsystem_vendor = 1,
            .subsystem = 2,
            .revision = 3,
            .class_code = 0x010802};
  }
  [[nodiscard]] u32 vectors() const override { return 65; }
  [[nodiscard]] Bar0 bar0() const override {
    return maps_ ? Bar0{kBytes, {0x1000, 0x1000}, file_.get()} : Bar0{kBytes};
  }
  [[nodiscard]] SoftwareAddressSpace& space() override { return space_; }
  [[nodiscard]] int read(u64 offset, std::span<u8> to) override {
    std::memcpy(to.data(), bytes_.data() + offset, to.size());
    return 0;
  }
  [[nodiscard]] int write(u64 offset, std::span<const u8> from) override {
    if (offset == kSlow)
      while (hold.load()) std::this_thread::yield();
    std::memcpy(bytes_.data() + offset, from.data(), from.size());
    ++writes;
    return 0;
  }
  static constexpr u64 kSlow = 0x14;
  [[nodiscard]] Way way_of_write(u64 offset, std::span<const u8> from) const override {
    if (offset != kSlow) return Way::at_once;
    return from.front() == 0 ? Way::ends_work : Way::waits;
  }
  void reset() override {
    bytes_.fill(0);
    ++resets;
  }
  void change_memory(const std::function<void()>& change) override { change(); }
  void interrupt_by(Interrupts* i) override { interrupts = i; }
  void raise_again() override { ++again; }

  std::atomic<bool> hold{false};
  std::atomic<u32> resets{0}, writes{0}, again{0};
  std::atomic<Interrupts*> interrupts{nullptr};

 private:
  SoftwareAddressSpace space_;
  Descriptor file_;
  bool maps_;
  u16 vendor_;
  std::array<u8, kBytes> bytes_{};
};

/// An answer that has come, or none.
struct Got {
  Header header;
  std::vector<u8> payload;
  std::vector<Descriptor> files;
};

class RawClient {
 public:
  explicit RawClient(Descriptor fd) : fd_(std::move(fd)) {}

  bool send(std::span<const u8> bytes, std::span<const int> files = {}) {
    iovec part{const_cast<u8*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 253)> room{};
    msghdr m{};
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    pass_files(m, files, room);
    return sendmsg(fd_.get(), &m, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  /// The next message; none at the end of the connection, or if none comes in time.
  std::optional<Got> next() {
    Got g;
    if (!fill(reinterpret_cast<u8*>(&g.header), sizeof g.header, g.files)) return {};
    g.payload.resize(g.header.size - kHeaderBytes);
    if (!fill(g.payload.data(), g.payload.size(), g.files)) return {};
    return g;
  }
  /// One command and its answer's errno, 0 for success; -1 if the connection has ended.
  int call(Command c, std::span<const u8> payload = {}, std::span<const u8> data = {},
           std::span<const int> files = {}) {
    if (!send(command(++id_, c, payload, data), files)) return -1;
    answer = next();
    if (!answer || answer->header.id != id_) return -1;
    return answer->header.failed() ? static_cast<int>(answer->header.error) : 0;
  }
  template <class T>
  requires std::is_trivially_copyable_v<T> &&
      (!std::convertible_to<const T&, std::span<const u8>>)int call(Command c, const T& structure,
                                                                    std::span<const u8> data = {},
                                                                    std::span<const int> files = {}) {
    return call(c, bytes_of(structure), data, files);
  }
  int greet() {
    const Capabilities mine{.max_msg_fds = 8};
    return call(Command::version, encode_version(0, 1, &mine));
  }
  /// True once the server has closed the connection.
  bool ended() {
    std::array<u8, 4096> space;
    return test::eventually([&] {
      const ssize_t n = recv(fd_.get(), space.data(), space.size(), MSG_DONTWAIT);
      return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    });
  }
  [[nodiscard]] int fd() const { return fd_.get(); }
  void close() { fd_.reset(); }

  std::optional<Got> answer;

 private:
  bool fill(u8* to, std::size_t n, std::vector<Descriptor>& files) {
    for (std::size_t have = 0; have < n;) {
      pollfd p{fd_.get(), POLLIN, 0};
      if (poll(&p, 1, static_cast<int>(test::kWaitLimitS * 1000)) != 1) return false;
      iovec part{to + have, n - have};
      alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 253)> room{};
      msghdr m{};
      m.msg_iov = &part;
      m.msg_iovlen = 1;
      m.msg_control = room.data();
      m.msg_controllen = room.size();
      const ssize_t got = recvmsg(fd_.get(), &m, MSG_CMSG_CLOEXEC);
      if (got <= 0) return false;
      take_files(m, [&](Descriptor d) { files.push_back(std::move(d)); });
      have += static_cast<std::size_t>(got);
    }
    return true;
  }
  Descriptor fd_;
  u16 id_ = 0;
};

}  // namespace doorbell::vfio_user
