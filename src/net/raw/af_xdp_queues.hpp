// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Sending and receiving through AF_XDP sockets.
#pragma once

#include <doorbell/region.hpp>

#include <optional>
#include <string>
#include <vector>

#include "net/raw/rx_slots.hpp"
#include "net/raw/tx_frames.hpp"
#include "net/raw/xdp_socket.hpp"

namespace doorbell::net::raw {

/// The slots are the socket's UMEM, so that the kernel copies each frame once.
class XdpTx final : public TxQueue {
 public:
  /// `title`: of the engine in messages.
  XdpTx(const std::string& title, const std::string& interface, u32 index, u32 queue,
        const FlowAddress& address, u32 max_payload);

  [[nodiscard]] TxSlots slots() const override { return frames_.slots(); }
  u32 send(u64 first, u32 count, u32 bytes) override;
  [[nodiscard]] u64 completed() override;
  void wait(u64 limit_ns) override;
  [[nodiscard]] bool broken() override { return broken_; }
  /// True when the kernel has taken every frame out of the ring.
  [[nodiscard]] bool flush() override;
  [[nodiscard]] bool finish() override;

  /// Descriptors that one frame of `bytes` needs: none crosses the border of a chunk.
  [[nodiscard]] static u32 descriptors(u32 bytes);

 private:
  /// Makes the kernel send what is in the ring.
  void kick();

  TxFrames frames_;
  XdpSocket socket_;
  std::vector<u8> in_flight_;  ///< descriptors of each slot that have not been completed
  u64 sent_ = 0, completed_ = 0;
  bool broken_ = false;
};

/// Receives from one or more queues of an interface.
class XdpRx final : public RxQueue {
 public:
  XdpRx(const std::string& title, const std::string& interface, u32 index,
        const std::vector<u32>& hardware_queues, const StreamRequest& request, u16 queue);

  u32 receive(Burst& burst) override;
  void release(Burst& burst) override;
  void wait(u64 limit_ns) override;
  [[nodiscard]] Drops drops() override;
  [[nodiscard]] u64 unmatched() override { return unmatched_; }

  [[nodiscard]] int socket(u32 i) const { return sources_[i]->socket.socket.get(); }
  /// Frames that came in several descriptors.
  [[nodiscard]] u64 segmented() const { return segmented_; }
  [[nodiscard]] bool copies() const { return copies_.has_value(); }

 private:
  /// A socket and the memory that it receives into.
  struct Source {
    Source(const std::string& title, u32 chunks, Encapsulation encapsulation);
    Region memory;
    XdpSocket socket;
  };

  void take_from(u32 source, Burst& burst);
  /// Enters the frame in the `n` oldest descriptors into the burst, or counts it as unmatched. True when its
  /// memory belongs to the burst now.
  [[nodiscard]] bool take(u32 source, u32 n, Burst& burst);

  u16 queue_;
  Decoder decoder_;
  Encapsulation encapsulation_;
  u32 max_payload_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::optional<RxSlots> copies_;
  u64 taken_ = 0, released_ = 0;  ///< of copies_
  u32 next_ = 0;                  ///< the source that is asked first
  u64 unmatched_ = 0, segmented_ = 0;
};

}  // namespace doorbell::net::raw
