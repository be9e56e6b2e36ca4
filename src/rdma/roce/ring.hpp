// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Packets of one NIC to another in memory that two processes share: one writer, one reader, records as in
// carrier.hpp. Each side takes everything that the other can write for a stranger's: sizes are checked and
// read once, and its own positions are kept in memory of its own.
#pragma once

#include <doorbell/config.hpp>

#include <atomic>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "rdma/roce/carrier.hpp"
#include "rdma/roce/wire.hpp"
#include "system/descriptor.hpp"

namespace doorbell::roce {

inline constexpr std::size_t kLeastPacket = 12;  ///< BTH alone
inline constexpr std::size_t kMostPacket = kLongestHeaders + kLargestMtu + 3;

/// A mapped file without a name, which nobody can make shorter or longer: what lies in it can be read and
/// written without a signal.
class RingMemory {
 public:
  static constexpr u64 kLeastBytes = 64 << 10;
  static constexpr u64 kMostBytes = 64 << 20;

  RingMemory() = default;
  ~RingMemory();
  RingMemory(RingMemory&& other) noexcept;
  RingMemory& operator=(RingMemory&& other) noexcept;

  /// For `bytes` of records, a power of two from kLeastBytes to kMostBytes; its file goes to `file`. False
  /// where the system has none: errno says why.
  bool make(u64 bytes, Descriptor& file);
  /// Maps a file that another process gives; false if it is not one as make() makes.
  bool adopt(const Descriptor& file, u64 bytes);

  [[nodiscard]] u64 bytes() const { return bytes_; }
  [[nodiscard]] u8* data() const { return base_ + kHeader; }

  /// The words of the two sides to each other; each member is written by one side, but for the two requests,
  /// which the other side takes back.
  struct Header {
    alignas(64) std::atomic<u64> head;  ///< the writer's: records end here
    alignas(64) std::atomic<u64> tail;  ///< the reader's: it needs nothing before this any more
    alignas(64) std::atomic<u32> wake_reader;
    alignas(64) std::atomic<u32> wake_writer;
  };
  [[nodiscard]] Header& header() const { return *reinterpret_cast<Header*>(base_); }

 private:
  static constexpr u64 kHeader = 4096;
  bool map(int file, u64 bytes);

  u8* base_ = nullptr;
  u64 bytes_ = 0;
};

/// Of a record's size: nothing more up to the ring's end.
inline constexpr u32 kSkip = ~u32{0};

class RingWriter {
 public:
  explicit RingWriter(RingMemory memory) : memory_(std::move(memory)) {}

  /// Room for a record of `bytes` at least, as long as it is in one piece; empty when the reader is behind.
  /// In that case the reader's next release() that frees half of the ring asks for a wake.
  std::span<u8> room(std::size_t bytes);
  /// Records fill the first `bytes` of the room() last given.
  void wrote(std::size_t bytes) { at_ += bytes; }
  /// Calls see(bytes of the packet, packet) for each record since the last publish(). False when another has
  /// written into them.
  template <class See>
  bool unpublished(See see);
  /// Shows the reader all records. True when it sleeps and wants to be woken.
  [[nodiscard]] bool publish();
  [[nodiscard]] bool has_unpublished() const { return at_ != published_; }
  /// Whether the reader has ever taken something.
  [[nodiscard]] bool was_read() const { return memory_.header().tail.load(std::memory_order_relaxed) != 0; }

 private:
  RingMemory memory_;
  u64 at_ = 0, published_ = 0;
  u64 tail_ = 0;  ///< as last seen
};

class RingReader {
 public:
  explicit RingReader(RingMemory memory) : memory_(std::move(memory)) {}

  /// Calls take(packet) for at most `most` records. False when the writer is broken: the ring is of no more
  /// use.
  template <class Take>
  bool read(std::size_t most, Take take);
  /// Gives back the memory of all that has been read. True when the writer waits for room and wants to be
  /// woken.
  [[nodiscard]] bool release();
  /// From now on the writer's publish() asks for a wake, once. The caller looks again afterwards.
  void ask_for_wake();

 private:
  RingMemory memory_;
  u64 read_ = 0, released_ = 0;
};

template <class See>
bool RingWriter::unpublished(See see) {
  const u64 size = memory_.bytes();
  for (u64 p = published_; p != at_;) {
    const u64 offset = p & (size - 1);
    u8* const record = memory_.data() + offset;
    u32 n = 0;
    std::memcpy(&n, record, sizeof n);
    if (n == kSkip) {
      p += size - offset;
      if (p > at_) return false;
      continue;
    }
    if (n < kLeastPacket || n > kMostPacket) return false;
    const u64 next = p + Path::record_bytes(n);
    if (next > at_ || next - p > size - offset) return false;
    see(n, record + Path::kRecordHeader);
    p = next;
  }
  return true;
}

template <class Take>
bool RingReader::read(std::size_t most, Take take) {
  const u64 size = memory_.bytes();
  const u64 head = memory_.header().head.load(std::memory_order_acquire);
  if (head - released_ > size || head - released_ < read_ - released_ || head % Path::kRecordAlignment != 0)
    return false;
  while (read_ != head && most != 0) {
    const u64 offset = read_ & (size - 1);
    const u64 most_bytes = std::min(size - offset, head - read_);
    const u8* const record = memory_.data() + offset;
    // Read once: the writer may change it between a check and its use.
    const u32 n = __atomic_load_n(reinterpret_cast<const u32*>(record), __ATOMIC_RELAXED);
    if (n == kSkip) {
      if (most_bytes != size - offset) return false;
      read_ += most_bytes;
      continue;
    }
    if (n < kLeastPacket || n > kMostPacket || Path::record_bytes(n) > most_bytes) return false;
    take(std::span<const u8>(record + Path::kRecordHeader, n));
    read_ += Path::record_bytes(n);
    --most;
  }
  return true;
}

}  // namespace doorbell::roce
