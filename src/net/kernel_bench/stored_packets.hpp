// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Packets as if they had been received: for measuring what comes behind the network.
#pragma once

#include <doorbell/net/packet.hpp>
#include <doorbell/region.hpp>

#include <memory>
#include <vector>

namespace doorbell::net {

/// Whole windows of packets of stream 0 and run tag 0, from sequence 0 on.
struct StoredShape {
  u32 data_bytes = 0;  ///< of a packet
  u32 packets = 0;     ///< of a window
  u32 windows = 0;
  Fill fill = Fill::bytes;
  u64 seed = 1;
  [[nodiscard]] u64 window_bytes() const { return u64{packets} * data_bytes; }
  [[nodiscard]] u64 total() const { return u64{packets} * windows; }
};

class StoredPackets {
 public:
  enum class Order {
    scattered,  ///< with headers, in buffers of their own, in random order
    windows,    ///< data alone, as assembled windows are
  };
  StoredPackets(const StoredShape& shape, Order order, Place place, const std::shared_ptr<gpu::Gpu>& gpu);

  /// Addresses for the GPU: of a scattered packet's header, and of a window's data.
  [[nodiscard]] u64 packet(u64 sequence) const {
    return reinterpret_cast<u64>(region_.device()) + position_[sequence] * stride_;
  }
  [[nodiscard]] u8* window(u32 index) const { return region_.device() + index * shape_.window_bytes(); }
  /// Null in GPU memory.
  [[nodiscard]] u8* host_window(u32 index) const {
    return region_.host() == nullptr ? nullptr : region_.host() + index * shape_.window_bytes();
  }
  [[nodiscard]] const StoredShape& shape() const { return shape_; }

 private:
  void fill(Order order, u8* to) const;

  StoredShape shape_;
  u64 stride_;
  std::vector<u64> position_;  ///< of each scattered packet
  Region region_;
};

}  // namespace doorbell::net
