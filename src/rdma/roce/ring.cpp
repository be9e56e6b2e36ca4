// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/ring.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <utility>

#include "system/sealed_memory.hpp"

namespace doorbell::roce {

RingMemory::~RingMemory() {
  if (base_ != nullptr) munmap(base_, kHeader + bytes_);
}

RingMemory::RingMemory(RingMemory&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

RingMemory& RingMemory::operator=(RingMemory&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

bool RingMemory::map(int file, u64 bytes) {
  void* const at = mmap(nullptr, kHeader + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return false;
  base_ = static_cast<u8*>(at);
  bytes_ = bytes;
  return true;
}

bool RingMemory::make(u64 bytes, Descriptor& file) {
  file = sealed_memory("doorbell-roce-ring", kHeader + bytes);
  return file.get() >= 0 && map(file.get(), bytes);
}

bool RingMemory::adopt(const Descriptor& file, u64 bytes) {
  if (!std::has_single_bit(bytes) || bytes < kLeastBytes || bytes > kMostBytes) return false;
  // Seals come first: only a memory file has them, and no other file's size stays.
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_GROW) == 0) return false;
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0 || facts.st_size != static_cast<off_t>(kHeader + bytes)) return false;
  return map(file.get(), bytes);
}

std::span<u8> RingWriter::room(std::size_t bytes) {
  RingMemory::Header& shared = memory_.header();
  const u64 size = memory_.bytes();
  const auto look = [&] {
    const u64 tail = shared.tail.load(std::memory_order_acquire);
    // A reader can only go on, and not past what has been published.
    if (tail - tail_ <= published_ - tail_ && tail % Path::kRecordAlignment == 0) tail_ = tail;
  };
  const auto piece = [&]() -> std::span<u8> {
    u64 offset = at_ & (size - 1);
    const u64 free = size - (at_ - tail_);
    if (size - offset < bytes && free >= size - offset) {
      if (size - offset == 0) return {};
      const u32 skip = kSkip;
      std::memcpy(memory_.data() + offset, &skip, sizeof skip);
      at_ += size - offset;
      offset = 0;
    }
    const u64 room = std::min(size - offset, size - (at_ - tail_));
    return room < bytes ? std::span<u8>() : std::span(memory_.data() + offset, room);
  };
  std::span<u8> found = piece();
  if (!found.empty()) return found;
  look();
  found = piece();
  if (!found.empty()) return found;
  // The request comes before the look at the tail, as the reader's tail comes before its look at the request:
  // so one of the two sees the other's.
  shared.wake_writer.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  look();
  found = piece();
  if (!found.empty()) shared.wake_writer.store(0, std::memory_order_relaxed);
  return found;
}

bool RingWriter::publish() {
  if (at_ == published_) return false;
  RingMemory::Header& shared = memory_.header();
  published_ = at_;
  shared.head.store(at_, std::memory_order_release);
  // Between the head and the look at the request, as in ask_for_wake() the other way round.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return shared.wake_reader.load(std::memory_order_relaxed) != 0 &&
         shared.wake_reader.exchange(0, std::memory_order_relaxed) != 0;
}

bool RingReader::release() {
  if (released_ == read_) return false;
  RingMemory::Header& shared = memory_.header();
  released_ = read_;
  shared.tail.store(released_, std::memory_order_release);
  // Between the tail and the look at the request; see RingWriter::room().
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (shared.wake_writer.load(std::memory_order_relaxed) == 0) return false;
  const u64 waiting = shared.head.load(std::memory_order_relaxed) - released_;
  return waiting <= memory_.bytes() / 2 && shared.wake_writer.exchange(0, std::memory_order_relaxed) != 0;
}

void RingReader::ask_for_wake() {
  memory_.header().wake_reader.store(1, std::memory_order_relaxed);
  // Between the request and the caller's look at the head.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace doorbell::roce
