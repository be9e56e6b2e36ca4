// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Blocks of an NVMe namespace, read and written by plain calls with many commands at a time; for programs
// that need no queue of their own. Host code only.
//
//   const auto disk = nvme::BlockDevice::open("model");        // as doorbell nvme --controller has it
//   nvme::BlockMemory data = disk->allocate(8 << 20);          // or Place::gpu, with BlockOptions::gpu
//   disk->read(/*lba*/ 0, data.bytes() / disk->block_bytes(), data);
#pragma once

#include <doorbell/address_space.hpp>

#include <memory>
#include <string>

namespace doorbell::nvme {

/// How a namespace is opened.
struct BlockOptions {
  u32 nsid = 1;           ///< the namespace
  u32 in_flight = 32;     ///< commands at a time, 1..1023, as far as the controller takes so many
  u64 io_bytes = 0;       ///< of the largest command; 0: 128 KiB, or the controller's limit if that is less
  double timeout_s = 10;  ///< for the answer to each command, up to 86400
  bool allow_write = false;            ///< write() may overwrite data that is not doorbell's own
  std::shared_ptr<gpu::Gpu> gpu = {};  ///< for memory in it, and host memory that it reaches
};

/// Memory that a BlockDevice reaches. Move-only; freed on destruction, which must come before the device's
/// unless it was unmapped.
class BlockMemory {
 public:
  /// Takes over memory that the controller reaches already.
  explicit BlockMemory(Mapped memory) : memory_(std::move(memory)) {}
  /// The address for CPU code; null for GPU memory.
  [[nodiscard]] u8* host() const { return memory_.region().host(); }
  /// The address for the GPU; null if it does not reach it.
  [[nodiscard]] u8* device() const { return memory_.region().device(); }
  /// Whole pages.
  [[nodiscard]] u64 bytes() const { return memory_.region().bytes(); }
  /// As it was asked for.
  [[nodiscard]] Place place() const { return memory_.region().place(); }
  /// The memory with its address for the controller; it stays this object's.
  [[nodiscard]] const Mapped& mapped() const { return memory_; }
  /// After BlockDevice::end(): takes the memory from the device, and keeps it for its owner.
  void unmap() { memory_.unmap(); }

 private:
  Mapped memory_;
};

/// An open namespace, as blocks.
///
/// Thread rule: one thread at a time. Errors: every call throws doorbell::Error, which names the blocks and
/// the controller's status. After a command without an answer all further calls throw: the controller may
/// still use that command's memory, which must stay until the device is closed.
class BlockDevice {
 public:
  /// Opens a controller by its name on the command line: "model[:KEY=VALUE,...]", "qemu...", a PCI address.
  [[nodiscard]] static std::unique_ptr<BlockDevice> open(const std::string& controller,
                                                         const BlockOptions& options = {});
  ~BlockDevice();
  BlockDevice(const BlockDevice&) = delete;
  BlockDevice& operator=(const BlockDevice&) = delete;

  /// The controller's full name, for what the user wrote.
  [[nodiscard]] std::string name() const;
  /// The namespace's size, in blocks.
  [[nodiscard]] u64 blocks() const;
  /// The size of one: 512 or 4096 with most controllers.
  [[nodiscard]] u32 block_bytes() const;

  /// Zeroed memory of `bytes`, rounded up to whole pages, all of which are there: no read waits for the
  /// kernel.
  [[nodiscard]] BlockMemory allocate(u64 bytes, Place place = Place::pageable);
  /// Host memory of the caller's, whole pages that stay his and outlive what is returned. Throws where the
  /// device reaches its own memory alone (QEMU); read() and write() of any memory copy there.
  [[nodiscard]] BlockMemory map(void* pages, u64 bytes);
  /// Reads `count` blocks from `lba` to byte `offset` of `to`, a multiple of 4.
  void read(u64 lba, u64 count, BlockMemory& to, u64 offset = 0);
  /// The same the other way. Refuses to overwrite data that is not doorbell's own without allow_write.
  void write(u64 lba, u64 count, const BlockMemory& from, u64 offset = 0);
  /// Reads to any host memory, by way of memory that the device reaches: one copy more.
  void read(u64 lba, u64 count, void* to);
  /// Writes from any host memory, likewise.
  void write(u64 lba, u64 count, const void* from);
  /// Returns when all that was written is on the medium.
  void flush();
  /// Deletes the queue: from now on the device uses no memory, and other calls throw. Throws itself where
  /// what came at the end, such as a second completion, makes earlier results doubtful. Once is enough.
  void end();

 private:
  struct Parts;
  explicit BlockDevice(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace doorbell::nvme
