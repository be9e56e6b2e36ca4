// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The calls of a QDMA card's driver (AMD V80, /dev/slash_qdma_ctl*): structures, numbers, limits. Layout
// facts from Xilinx/SLASH 6a4cc11e, slash_interface.h; test vectors in tests/golden/qdma.json. All fields are
// little endian and naturally aligned; the structures have no hidden padding.
#pragma once

#include <doorbell/config.hpp>

#include <array>

namespace doorbell::qdma {

/// @name QpairAdd::mode
/// @{
inline constexpr u32 kModeMemoryMapped = 0, kModeStream = 1;
/// @}
/// @name Bits of QpairAdd::dir_mask: host to card, card to host, completions
/// @{
inline constexpr u32 kDirH2C = 1, kDirC2H = 2, kDirCompletion = 4;
/// @}
/// @name QpairAdd::mm_channel; kChannelAuto is the lowest bit of the queue pair's number
/// @{
inline constexpr u32 kChannelAuto = 0, kChannel0 = 1, kChannel1 = 2;
/// @}
/// @name The largest ring index, and the queue pairs of one card
/// @{
inline constexpr u32 kMaxRingIndex = 15, kMaxQueuePairs = 256;
/// @}
/// O_CLOEXEC: the only flag that the calls know.
inline constexpr u32 kFlagCloseOnExec = 0x80000;
/// @name Sub-transfers of one call, and queue pairs of one transfer descriptor
/// @{
inline constexpr u32 kMaxSubTransfers = 2, kMaxDescriptorQueuePairs = 2;
/// @}
/// Buffers are whole granules long and mapped; a sub-transfer's buffer offset is a multiple of it.
inline constexpr u32 kGranule = 4096;
/// All sub-transfers of one call together: ioctl() returns the total as an int.
inline constexpr u64 kMaxCallBytes = 0x7ffff000;

/// QpairOp::op. Source: slash_interface.h of Xilinx/SLASH 6a4cc11e.
enum class QueueOp : u32 { start = 0, stop = 1, del = 2 };

/// A sub-transfer's direction. Source: slash_interface.h of Xilinx/SLASH 6a4cc11e.
enum class Direction : u32 { host_to_card = 1, card_to_host = 2 };

/// A card as its driver describes it; that of a real one fills in `bdf` alone.
/// Source: slash_interface.h of Xilinx/SLASH 6a4cc11e.
struct Info {
  u32 size = sizeof(Info);
  u32 qsets_max = 0;
  u32 msix_qvecs = 0;
  u32 vf_max = 0;
  u32 caps = 0;
  std::array<char, 32> bdf{};  ///< "DDDD:BB:DD.1", terminated by a zero
};

/// Creates a queue pair. Source: slash_interface.h of Xilinx/SLASH 6a4cc11e.
struct QpairAdd {
  u32 size = sizeof(QpairAdd);
  u32 mode = kModeMemoryMapped;
  u32 dir_mask = kDirH2C | kDirC2H;
  u32 mm_channel = kChannelAuto;
  u32 h2c_ring = 0;  ///< index into kRingEntries
  u32 c2h_ring = 0;
  u32 cmpt_ring = 0;
  u32 qid = 0;            ///< out
  u32 aperture_size = 0;  ///< 0: linear; else a power of two, in which device addresses wrap
};

/// Starts, stops or deletes a queue pair. Source: slash_interface.h of Xilinx/SLASH 6a4cc11e.
struct QpairOp {
  u32 size = sizeof(QpairOp);
  u32 qid = 0;
  u32 op = 0;  ///< QueueOp
};

/// Returns a transfer descriptor: of `qid`, or of `qpair_count` queue pairs. Source: slash_interface.h of
/// Xilinx/SLASH 6a4cc11e.
struct QpairGetFd {
  u32 size = sizeof(QpairGetFd);
  u32 qid = 0;  ///< used if qpair_count is 0
  u32 flags = 0;
  u32 qpair_count = 0;
  std::array<u32, kMaxDescriptorQueuePairs> qpair_ids{};
};

/// Returns a descriptor of a new buffer, for mmap(). Source: slash_interface.h of Xilinx/SLASH 6a4cc11e.
struct BufCreate {
  u32 size = sizeof(BufCreate);
  u32 flags = 0;
  u64 length = 0;         ///< bytes
  u32 granule = 0;        ///< out
  u32 transfer_hint = 0;  ///< out: 1 one queue pair is enough, 2 split as for a V80
};

/// One sub-transfer of `length` bytes; `buf_offset` is a multiple of kGranule. Source: slash_interface.h of
/// Xilinx/SLASH 6a4cc11e.
struct SubXfer {
  u32 qpair_index = 0;  ///< of the descriptor's queue pairs
  u32 direction = 0;    ///< Direction
  std::int32_t buf_fd = -1;
  u32 pad = 0;
  u64 buf_offset = 0;
  u64 dev_addr = 0;
  u64 length = 0;
};

/// Moves bytes; returns their number, or a negative errno. Source: slash_interface.h of Xilinx/SLASH
/// 6a4cc11e.
struct Transfer {
  u32 size = sizeof(Transfer);
  u32 count = 0;  ///< 1..kMaxSubTransfers
  std::array<SubXfer, kMaxSubTransfers> xfers{};
};

static_assert(sizeof(Info) == 52 && sizeof(QpairAdd) == 36 && sizeof(QpairOp) == 12);
static_assert(sizeof(QpairGetFd) == 24 && sizeof(BufCreate) == 24);
static_assert(sizeof(SubXfer) == 40 && sizeof(Transfer) == 88);

/// The number of a call: type 'v', both directions (Linux, asm-generic/ioctl.h).
[[nodiscard]] constexpr u32 call_number(u32 nr, u32 encoded_size) {
  return 3u << 30 | encoded_size << 16 | u32{'v'} << 8 | nr;
}
/// @name Numbers of the calls, by their structures; kCallQpairAddOld is from before QpairAdd::aperture_size
/// @{
inline constexpr u32 kCallInfo = call_number(0x50, 20);  // the encoded size stays 20
inline constexpr u32 kCallQpairAdd = call_number(0x51, 36);
inline constexpr u32 kCallQpairAddOld = call_number(0x51, 32);
inline constexpr u32 kCallQpairOp = call_number(0x52, 12);
inline constexpr u32 kCallQpairGetFd = call_number(0x53, 24);
inline constexpr u32 kCallBufCreate = call_number(0x54, 24);
inline constexpr u32 kCallTransfer = call_number(0x56, 88);
/// @}
/// io_uring's cmd_op of a transfer; the command's payload is the address of a Transfer, 8 bytes.
inline constexpr u32 kUringTransfer = 0x56;

/// The smallest `size` that each call accepts (0: no such call).
[[nodiscard]] constexpr u32 smallest_size(u32 number) {
  switch (number) {
    case kCallInfo:
      return 4;
    case kCallQpairAdd:
    case kCallQpairAddOld:
      return 28;
    case kCallQpairOp:
    case kCallQpairGetFd:
      return 12;
    case kCallBufCreate:
      return 16;
    case kCallTransfer:
      return 8;
    default:
      return 0;
  }
}
/// The size of each call's structure as this driver knows it (0: no such call).
[[nodiscard]] constexpr u32 structure_size(u32 number) {
  switch (number) {
    case kCallInfo:
      return sizeof(Info);
    case kCallQpairAdd:
      return sizeof(QpairAdd);
    case kCallQpairAddOld:
      return 32;
    case kCallQpairOp:
      return sizeof(QpairOp);
    case kCallQpairGetFd:
      return sizeof(QpairGetFd);
    case kCallBufCreate:
      return sizeof(BufCreate);
    case kCallTransfer:
      return sizeof(Transfer);
    default:
      return 0;
  }
}

/// Descriptors of each ring index; one is never used. A descriptor moves at most 4 KiB.
inline constexpr std::array<u32, kMaxRingIndex + 1> kRingEntries = {
    2049, 65, 129, 193, 257, 385, 513, 769, 1025, 1537, 3073, 4097, 6145, 8193, 12289, 16385};

/// @name The card's HBM as the host's transfers see it
/// @{
inline constexpr u64 kHbmBase = 0x40'0000'0000, kHbmBytes = 32ull << 30;
/// @}
/// Where HBM's upper half begins.
inline constexpr u64 kHbmBoundary = 0x44'0000'0000;
/// @name The card's DDR as the host's transfers see it
/// @{
inline constexpr u64 kDdrBase = 0x600'0000'0000, kDdrBytes = 32ull << 30;
/// @}
/// @name Host to card only: a port that takes device images
/// @{
inline constexpr u64 kPdiBase = 0x1'0210'0000, kPdiBytes = 64 << 10;
/// @}
/// The unit in which the daemon hands out card memory; a software region is 8 of them.
inline constexpr u64 kAllocationUnit = 64ull << 20;

}  // namespace doorbell::qdma
