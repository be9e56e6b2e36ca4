// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/kernel_bench/stored_packets.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace doorbell::net {
namespace {

// Of a receive buffer; data behind a header of 32 bytes is then aligned for the widest loads.
constexpr u64 kReceiveAlignment = 64;

/// The data of every template that `packets` packets have.
std::vector<u8> templates(const StoredShape& shape, u64 stride) {
  std::vector<u8> all(std::min<u64>(shape.total(), kTemplates) * stride);
  for (u64 t = 0; t * stride < all.size(); ++t)
    for (u64 w = 0; w * 8 < stride; ++w) {
      const u64 word = data_word(shape.fill, shape.seed, 0, static_cast<u32>(t), w);
      std::memcpy(all.data() + t * stride + w * 8, &word, 8);
    }
  return all;
}

}  // namespace

StoredPackets::StoredPackets(const StoredShape& shape, Order order, Place place,
                             const std::shared_ptr<gpu::Gpu>& gpu)
    : shape_(shape),
      stride_(order == Order::windows ? shape.data_bytes
                                      : (kHeaderBytes + shape.data_bytes + kReceiveAlignment - 1) /
                                            kReceiveAlignment * kReceiveAlignment),
      region_(place, shape.total() * stride_, gpu) {
  if (order == Order::scattered) {
    position_.resize(shape.total());
    std::iota(position_.begin(), position_.end(), u64{0});
    std::mt19937_64 random(shape.seed);
    std::shuffle(position_.begin(), position_.end(), random);
  }
  if (region_.host() != nullptr) {
    fill(order, region_.host());
  } else {
    std::vector<u8> image(shape.total() * stride_);
    fill(order, image.data());
    region_.write(0, image.data(), image.size());
  }
}

void StoredPackets::fill(Order order, u8* to) const {
  const u64 data_stride = (u64{shape_.data_bytes} + 7) / 8 * 8;
  const std::vector<u8> data = templates(shape_, data_stride);
  for (u64 n = 0; n < shape_.total(); ++n) {
    const u8* const from = data.data() + n % kTemplates * data_stride;
    u8* at = to + (order == Order::scattered ? position_[n] : n) * stride_;
    if (order == Order::scattered) {
      // The CRCs are for a CPU, which has checked them by then.
      Header header;
      header.data_bytes = shape_.data_bytes;
      header.stream_sequence = stream_sequence(0, n);
      std::memcpy(at, &header, sizeof header);
      at += kHeaderBytes;
    }
    std::memcpy(at, from, shape_.data_bytes);
  }
}

}  // namespace doorbell::net
