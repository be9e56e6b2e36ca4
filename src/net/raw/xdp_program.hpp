// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The XDP program that hands received frames of some UDP ports to AF_XDP sockets, and how it is loaded: by
// bpf(2), without a library.
#pragma once

#include <linux/bpf.h>

#include <string>
#include <vector>

#include "net/raw/frames.hpp"
#include "system/backend.hpp"
#include "system/descriptor.hpp"

namespace doorbell::net::raw {

/// The frames of flows: UDP's destination ports (over IPv4 without options or fragments, over IPv6 without
/// extension headers), or the numbers of bare frames.
struct XdpFlows {
  Encapsulation encapsulation = Encapsulation::udp4;
  unsigned first = 0, last = 0;
};

/// These go to the socket that `map_fd` has for their receive queue; all others go on to the kernel.
[[nodiscard]] std::vector<bpf_insn> xdp_instructions(int map_fd, const XdpFlows& flows);

/// A program with its map, on an interface for as long as this lives. Set-up only.
class XdpProgram {
 public:
  /// Loads it. Throws Error without permission, or when the kernel has no AF_XDP.
  /// `engine`: the name of that setting in messages.
  XdpProgram(std::string engine, unsigned queues, const XdpFlows& flows);
  /// Enters the socket of a receive queue, which must be bound to it.
  void set_socket(unsigned queue, int fd);
  /// Attaches it to an interface of the calling thread's namespace: in the driver where that can be, else in
  /// the kernel's generic code. Throws Error when the interface has another program, or after a second.
  void attach(const std::string& interface, unsigned index);
  /// "native" or "generic"; "" before attach().
  [[nodiscard]] const std::string& mode() const { return mode_; }

 private:
  /// Throws Error: a call has failed.
  [[noreturn]] void fail(const std::string& call, int error) const;

  std::string engine_;
  Descriptor map_, program_;
  Descriptor link_;  ///< the kernel detaches the program when it is closed
  std::string mode_;
};

/// Whether this process may load the program, and what the kernel lacks. Never throws.
[[nodiscard]] BackendStatus xdp_status();

}  // namespace doorbell::net::raw
