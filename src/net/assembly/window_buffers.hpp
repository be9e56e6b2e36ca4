// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The buffers in which windows of data are assembled.
#pragma once

#include <doorbell/net/window_consumer.hpp>
#include <doorbell/region.hpp>

#include <memory>
#include <span>
#include <vector>

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

  [[nodiscard]] u32 count() const { return static_cast<u32>(states_.size()); }
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
  /// True while all bytes of the buffer are known to be 0.
  [[nodiscard]] bool zeroed(u32 buffer) const { return states_[buffer].zeroed; }
  void set_zeroed(u32 buffer, bool zeroed) { states_[buffer].zeroed = zeroed; }

  /// The window of a buffer that closes: copies the bitmap and makes the list of missing slots.
  [[nodiscard]] Window describe(u32 buffer, const ClosedWindow& closed, u64 slot_bytes);
  /// The same for a buffer that holds a copy of another one's window.
  [[nodiscard]] Window describe(u32 buffer, const Window& copied);

 private:
  struct State {
    bool out = false;
    bool zeroed = true;
  };
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
  Region notes_;  ///< of each buffer the bitmap, then the list
  std::vector<State> states_;
  std::vector<u32> free_;
};

/// Waits, at most `limit_ns`, until `buffers` has a free one again. Throws Error when it then has none.
void wait_for_buffer(const WindowBuffers& buffers, WindowConsumer& consumer, u64 limit_ns);

}  // namespace doorbell::net
