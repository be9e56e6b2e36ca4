// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The driver's calls as AMD's client library sends them to sockets in place of the driver's files. Facts from
// Xilinx/SLASH 13aef579 (pull request 152).
//
// Sockets are AF_UNIX SOCK_SEQPACKET. A request is a Header and the call's whole structure, and gets one
// reply, in order: a Header and the structure as the driver would have written it back, or nothing behind the
// Header. A descriptor that a call returns comes with the reply, and the result is then 0. In a Transfer,
// buf_fd is the position of the buffer among the message's descriptors. Sequence numbers come back as they
// are; those of a transfer descriptor may repeat.
#pragma once

#include <doorbell/qdma/abi.hpp>

#include <array>

namespace doorbell::qdma::slash {

/// @name The files of a folder: what stands for each of the driver's nodes
/// @{
inline constexpr const char* kQdmaFile = "slash_qdma_ctl0";
inline constexpr const char* kControlFile = "slash_ctl0";
inline constexpr const char* kHotplugFile = "slash_hotplug";
/// @}

/// The longest message that is taken, and the most descriptors in one. Upstream takes 65552 bytes, of which
/// no call has more than 104.
inline constexpr u32 kMaxMessage = 1024, kMaxDescriptors = 64;
/// The client gives up a call after 10 s, and then knows nothing of it.
inline constexpr u64 kTransferLimitNs = 9'000'000'000;

/// Source: slash_sysemu.h of Xilinx/SLASH 13aef579.
struct Header {
  u32 number = 0;  ///< of the call, as in ioctl()
  u32 sequence = 0;
  std::int32_t result = 0;  ///< of a reply: at least 0, or a negative errno
  u32 pad = 0;
};

/// @name Calls of the control socket (PCI function 2)
/// @{
inline constexpr u32 kCallBarInfo = call_number(0x30, 24);
inline constexpr u32 kCallBarFd = call_number(0x31, 24);
inline constexpr u32 kCallDeviceInfo = call_number(0x32, 44);
/// @}
/// @name Calls of the hotplug socket: type 'w', to the driver
/// @{
inline constexpr u32 kCallRescan = 0x7730;
inline constexpr u32 kCallRemove = 0x4024'7731, kCallToggleReset = 0x4024'7732, kCallHotplug = 0x4024'7733;
/// @}

/// Source: slash_interface.h of Xilinx/SLASH 13aef579.
struct BarInfo {
  u32 size = sizeof(BarInfo);
  u8 bar = 0;
  u8 usable = 0;
  u8 in_use = 0;
  u8 pad = 0;
  u64 start = 0;
  u64 length = 0;
};

/// Source: slash_interface.h of Xilinx/SLASH 13aef579.
struct BarFd {
  u32 size = sizeof(BarFd);
  u8 bar = 0;
  std::array<u8, 3> pad{};
  u32 flags = 0;
  u32 pad2 = 0;
  u64 length = 0;  ///< out
};

/// A PCI function's place: "DDDD:BB:DD.F", terminated by a zero.
using Place = std::array<char, 32>;

/// Source: slash_interface.h of Xilinx/SLASH 13aef579.
struct DeviceInfo {
  u32 size = sizeof(DeviceInfo);
  Place place{};
  u16 vendor = 0x10ee, device = 0x50b6, subsystem_vendor = 0x10ee, subsystem = 0x000e;
};

/// The subject of a hotplug call: a function, a card (no ".F"), or the only card (empty).
/// Source: slash_hotplug.h of Xilinx/SLASH 13aef579.
struct HotplugTarget {
  u32 size = sizeof(HotplugTarget);
  Place place{};
};

static_assert(sizeof(Header) == 16 && sizeof(BarInfo) == 24 && sizeof(BarFd) == 24);
static_assert(sizeof(DeviceInfo) == 44 && sizeof(HotplugTarget) == 36);
static_assert(kCallBarInfo == 0xc018'7630 && kCallBarFd == 0xc018'7631 && kCallDeviceInfo == 0xc02c'7632);

/// The size of a call's structure, which comes whole (0: none, or no such call).
[[nodiscard]] constexpr u32 size_of_structure(u32 number) {
  switch (number) {
    case kCallBarInfo:
      return sizeof(BarInfo);
    case kCallBarFd:
      return sizeof(BarFd);
    case kCallDeviceInfo:
      return sizeof(DeviceInfo);
    case kCallRemove:
    case kCallToggleReset:
    case kCallHotplug:
      return sizeof(HotplugTarget);
    default:
      return structure_size(number);
  }
}
/// Whether some socket has the call.
[[nodiscard]] constexpr bool is_call(u32 number) {
  return number == kCallRescan || size_of_structure(number) != 0;
}

}  // namespace doorbell::qdma::slash
