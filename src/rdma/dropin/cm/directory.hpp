// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How processes of one host find each other's devices: a listener on all addresses is found by its port,
// whatever address of the host its client names, and a device's process is known to have ended. Names are
// abstract sockets, which a network namespace has of its own, as it has ports.
#pragma once

#include <doorbell/config.hpp>

#include <optional>

namespace doorbell::cm {

/// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset(other.release());
    return *this;
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset(int fd = -1);

 private:
  int fd_;
};

/// The name of a port of this host; nothing, with errno, where another process has it.
[[nodiscard]] Descriptor claim_port(u32 port_space, u16 port);
/// From then on clients find the port.
void open_port(const Descriptor& claim);
/// Answers who asks for the port; does not wait.
void answer_port(int claim, u32 address);
/// The device behind a port of this host, if somebody listens there. Waits for that process a second at most.
[[nodiscard]] std::optional<u32> find_port(u32 port_space, u16 port);

/// A socket that exists as long as a device's process.
[[nodiscard]] Descriptor announce_device(u32 address);
/// Takes whoever watches the device; none: empty. They are kept until this process ends.
[[nodiscard]] Descriptor admit(int announced);
/// Readable when that process ends. Empty for a device of another host or namespace, or of no process.
[[nodiscard]] Descriptor watch_device(u32 address);

/// Whether the host has this IPv4 address.
[[nodiscard]] bool is_of_this_host(u32 address);

}  // namespace doorbell::cm
