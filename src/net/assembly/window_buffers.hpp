// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The buffers in which windows of data are assembled.
#pragma once

#include <doorbell/net/window_consumer.hpp>
#include <doorbell/region.hpp>

#include <bit>
#include <memory>
#include <span>
#include <vector>

#include "net/assembly/window.hpp"

namespace doorbell::net {

/// A fixed number of equal buffers with what travels along with a window: its bitmap and its list of missing
/// slots. Thread rule: one thread at a time. Only the constructor allocates.
class WindowBuffers final : public WindowOwner {
 public:
  /// `bytes` and `packets` are those of a window. With `gpu`, the bitmaps and lists are reachable by it.
  WindowBuffers(Place place, std::shared_ptr<gpu::Gpu> gpu, u32 count, u64 bytes, u32 packets);

  /// False: all of them are out.
  [[nodiscard]] bool available() const { return !free_.empty(); }
  /// Takes a buffer; one must be available.
  [[nodiscard]] u32 acquire();
  /// Throws Error when the buffer is not out: a consumer that gives a window back twice.
  void give_back(const Window& window) override;

  [[nodiscard]] u32 count() const { return static_cast<u32>(out_.size()); }
  [[nodiscard]] u32 out() const { return count() - static_cast<u32>(free_.size()); }
  [[nodiscard]] u64 bytes() const { return bytes_; }
  /// Null for GPU memory.
  [[nodiscard]] u8* host(u32 buffer) const {
    return data_.host() == nullptr ? nullptr : data_.host() + at(buffer);
  }
  /// Null where no GPU reaches it.
  [[nodiscard]] u8* device(u32 buffer) const {
    return data_.device() == nullptr ? nullptr : data_.device() + at(buffer);
  }
  /// For each window of a buffer in which packets of earlier ones may lie: calls `zero(first, slots)` for
  /// those of its missing slots, neighbours together, that do not hold zeros, and notes that they do then.
  template <class Zero>
  void zero_missing(const Window& window, Zero&& zero) {
    u64* const written = &written_[u64{window.buffer} * words_];
    u32 first = 0, slots = 0;
    for (u32 i = 0; i < words_; ++i) {
      u64 left = window.packets > i * 64 ? window.packets - i * 64 : 0;
      const u64 stale = written[i] & ~window.arrived[i] & (left >= 64 ? ~u64{0} : (u64{1} << left) - 1);
      written[i] = (written[i] & ~stale) | window.arrived[i];
      for (u64 rest = stale; rest != 0; rest &= rest - 1) {
        const u32 slot = i * 64 + static_cast<u32>(std::countr_zero(rest));
        if (slot != first + slots) {
          if (slots != 0) zero(first, slots);
          first = slot, slots = 0;
        }
        ++slots;
      }
    }
    if (slots != 0) zero(first, slots);
  }

  /// The window of a buffer that closes: copies the bitmap and makes the list of missing slots.
  [[nodiscard]] Window describe(u32 buffer, const ClosedWindow& closed, u64 slot_bytes);
  /// The same for a buffer that holds a copy of another one's window.
  [[nodiscard]] Window describe(u32 buffer, const Window& copied);

 private:
  [[nodiscard]] u64* bits(u32 buffer) const {
    return reinterpret_cast<u64*>(notes_.host() + buffer * note_stride_);
  }
  [[nodiscard]] u32* list(u32 buffer) const { return reinterpret_cast<u32*>(bits(buffer) + words_); }
  /// The window's addresses, of data and of notes.
  void locate(u32 buffer, Window& w);
  [[nodiscard]] u64 at(u32 buffer) const { return u64{buffer} * stride_; }

  u64 bytes_;
  u64 stride_;
  u32 packets_;
  u32 words_;
  u64 note_stride_;
  Region data_;
  Region notes_;              ///< of each buffer the bitmap, then the list
  std::vector<bool> out_;     ///< of each buffer
  std::vector<u64> written_;  ///< of each buffer's slots, bit by bit: it may hold something else than zeros
  std::vector<u32> free_;
};

/// Waits, at most `limit_ns`, until `buffers` has a free one again. Throws Error when it then has none.
void wait_for_buffer(const WindowBuffers& buffers, WindowConsumer& consumer, u64 limit_ns);

}  // namespace doorbell::net
