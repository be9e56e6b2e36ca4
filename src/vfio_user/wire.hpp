// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The messages of vfio-user: a PCI device over a local socket. Encoding and decoding alone, with every limit
// checked; both ends use the same. Words are the host's, which is little-endian.
#pragma once

#include <doorbell/config.hpp>

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace doorbell::vfio_user {

enum class Command : u16 {
  version = 1,
  dma_map = 2,
  dma_unmap = 3,
  device_get_info = 4,
  get_region_info = 5,
  get_region_io_fds = 6,
  get_irq_info = 7,
  set_irqs = 8,
  region_read = 9,
  region_write = 10,
  dma_read = 11,
  dma_write = 12,
  device_reset = 13,
  dirty_pages = 14,
  region_write_multi = 15,
  device_feature = 16,
  mig_data_read = 17,
  mig_data_write = 18,
};
/// "DMA_MAP"; "command 99" for a number that is none.
[[nodiscard]] std::string name(u16 command);

/// The start of each message.
struct Header {
  u16 id = 0;  ///< the sender's; a reply has that of its command. Need not be unique
  u16 command = 0;
  u32 size = 0;  ///< of the message with this header
  u32 flags = 0;
  u32 error = 0;  ///< an errno, of a reply with kError; may be 0 even there

  static constexpr u32 kTypeMask = 0xf, kReply = 1, kNoReply = 1u << 4, kError = 1u << 5;
  [[nodiscard]] bool is_reply() const { return (flags & kTypeMask) == kReply; }
  [[nodiscard]] bool is_command() const { return (flags & kTypeMask) == 0; }
  [[nodiscard]] bool no_reply() const { return is_command() && (flags & kNoReply) != 0; }
  [[nodiscard]] bool failed() const { return is_reply() && (flags & kError) != 0; }
};
inline constexpr u32 kHeaderBytes = 16;
static_assert(sizeof(Header) == kHeaderBytes);

/// `count` of a region or DMA access, at most, by default; and the longest message that has one.
inline constexpr u64 kMostData = u64{1} << 20;
inline constexpr u32 kLongest = static_cast<u32>(kMostData) + 64;
/// The text behind VERSION's numbers.
inline constexpr u32 kLongestVersion = 4096;

// Payloads, by command. DMA_UNMAP's reply is the request's structure.

struct DmaMap {
  u32 argsz = 32, flags = 0;
  u64 offset = 0, address = 0, size = 0;
  static constexpr u32 kReadable = 1, kWriteable = 2, kByMmap = 4, kByFile = 8;
};
struct DmaUnmap {
  u32 argsz = 24, flags = 0;
  u64 address = 0, size = 0;
  static constexpr u32 kDirtyBitmap = 1, kAll = 2;
};
struct DeviceInfo {
  u32 argsz = 16, flags = 0, regions = 0, irqs = 0;
  static constexpr u32 kReset = 1, kPci = 2;
};
struct RegionInfo {
  u32 argsz = 32, flags = 0, index = 0, cap_offset = 0;
  u64 size = 0, offset = 0;  ///< `offset`: into the descriptor
  static constexpr u32 kRead = 1, kWrite = 2, kMmap = 4, kCaps = 8;
};
struct IrqInfo {
  u32 argsz = 16, flags = 0, index = 0, count = 0;
  static constexpr u32 kEventfd = 1, kMaskable = 2, kAutomasked = 4, kNoResize = 8;
};
struct IrqSet {
  u32 argsz = 20, flags = 0, index = 0, start = 0, count = 0;
  static constexpr u32 kNone = 1, kBool = 2, kEventfd = 4, kMask = 8, kUnmask = 16, kTrigger = 32;
  static constexpr u32 kData = kNone | kBool | kEventfd, kAction = kMask | kUnmask | kTrigger;
};
struct RegionAccess {
  u64 offset = 0;
  u32 region = 0, count = 0;
};
struct DmaAccess {
  u64 address = 0, count = 0;
};
static_assert(sizeof(DmaMap) == 32 && sizeof(DmaUnmap) == 24 && sizeof(DeviceInfo) == 16);
static_assert(sizeof(RegionInfo) == 32 && sizeof(IrqInfo) == 16 && sizeof(IrqSet) == 20);
static_assert(sizeof(RegionAccess) == 16 && sizeof(DmaAccess) == 16);

/// A PCI device's regions and interrupts, by index.
enum Region : u32 { bar0 = 0, bar4 = 4, bar5 = 5, rom = 6, config = 7, vga = 8, kRegions = 9 };
enum Irq : u32 { intx = 0, msi = 1, msix = 2, err = 3, req = 4, kIrqs = 5 };

/// The abilities of a side, from the text of VERSION; a key that is not there has the default.
struct Capabilities {
  u64 max_msg_fds = 1;
  u64 max_data_xfer_size = kMostData;
  u64 max_dma_maps = 65535;
  u64 pgsizes = 4096;
  bool write_multiple = false;
};
struct Version {
  u16 major = 0, minor = 0;
  Capabilities capabilities = {};
};

/// A part of a region that may be mapped.
struct Area {
  u64 offset = 0, size = 0;
};

/// The bytes of a structure.
template <class T>
[[nodiscard]] std::span<const u8> bytes_of(const T& structure) {
  return {reinterpret_cast<const u8*>(&structure), sizeof structure};
}
/// The structure that a payload begins with; none if it is shorter.
template <class T>
[[nodiscard]] std::optional<T> first_of(std::span<const u8> payload) {
  if (payload.size() < sizeof(T)) return {};
  T out;
  std::memcpy(&out, payload.data(), sizeof out);
  return out;
}

/// A whole message: `size` is filled in.
[[nodiscard]] std::vector<u8> encode(Header header, std::span<const u8> payload = {},
                                     std::span<const u8> data = {});
[[nodiscard]] std::vector<u8> command(u16 id, Command c, std::span<const u8> payload = {},
                                      std::span<const u8> data = {}, bool no_reply = false);
/// To a command: `error` 0, or an errno, with which nothing else goes.
[[nodiscard]] std::vector<u8> reply(const Header& to, u32 error, std::span<const u8> payload = {},
                                    std::span<const u8> data = {});

/// The whole length of a message that begins with these kHeaderBytes; 0 for what begins no message of at most
/// `longest` bytes.
[[nodiscard]] std::size_t length_of(std::span<const u8> header, std::size_t longest);

/// VERSION's payload. `capabilities`: null for none, which means all defaults.
[[nodiscard]] std::vector<u8> encode_version(u16 major, u16 minor, const Capabilities* capabilities);
/// None with a reason: too short or long, a text without its final zero or that is no JSON, a value of
/// another type or outside its range.
[[nodiscard]] std::optional<Version> decode_version(std::span<const u8> payload, std::string& why);

/// A region's answer: the structure and, where it has areas and `room` (the client's argsz) suffices, the
/// sparse-mmap capability. `fits` is false where it does not: the client asks again, and gets no descriptor.
[[nodiscard]] std::vector<u8> encode_region(RegionInfo info, std::span<const Area> areas, u32 room,
                                            bool& fits);
/// The mappable areas of a region's answer: those of its capability, the whole region without one. None
/// with a reason for an answer that contradicts itself.
[[nodiscard]] std::optional<std::vector<Area>> decode_areas(std::span<const u8> payload, std::string& why);

/// 0 or EINVAL: whether SET_IRQS with `data` bytes behind it and `files` descriptors is one for a type with
/// `have` interrupts.
[[nodiscard]] int check(const IrqSet& set, u32 have, std::size_t data, std::size_t files);

/// Whether [offset, offset + count) lies within `size`.
[[nodiscard]] constexpr bool within(u64 offset, u64 count, u64 size) {
  return offset <= size && count <= size - offset;
}

}  // namespace doorbell::vfio_user
