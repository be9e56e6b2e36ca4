// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Receiving through a packet socket's ring of blocks (TPACKET_V3), which the kernel fills and this program
// reads in place.
#pragma once

#include <linux/if_packet.h>

#include <optional>
#include <string>
#include <vector>

#include "net/raw/kernel_socket.hpp"
#include "net/raw/rx_slots.hpp"

namespace doorbell::net::raw {

class PacketRx final : public RxQueue {
 public:
  /// Opens the socket in the calling thread's namespace. Packets in the default place are handed out where
  /// the kernel puts them; for another place, or to split header and data, they are copied once more.
  /// `title`: of the engine in messages.
  PacketRx(const std::string& title, const std::string& interface, const StreamRequest& request, u16 queue);

  u32 receive(Burst& burst) override;
  void release(Burst& burst) override;
  void wait(u64 limit_ns) override;
  [[nodiscard]] Drops drops() override;
  [[nodiscard]] u64 unmatched() override { return unmatched_; }

  [[nodiscard]] u64 ring_bytes() const { return memory_.bytes(); }
  [[nodiscard]] bool copies() const { return copies_.has_value(); }

 private:
  /// The receiver's hold on a block.
  struct Block {
    u32 held = 0;         ///< packets handed out and not released
    bool walked = false;  ///< all its packets have been looked at
  };

  [[nodiscard]] tpacket_block_desc* block(u32 i) const {
    return reinterpret_cast<tpacket_block_desc*>(memory_.base() + u64{i} * block_bytes_);
  }
  [[nodiscard]] bool ready(u32 i) const;
  /// Enters what the packet at next_packet_ says into the burst, or counts it as unmatched.
  void take(Burst& burst);
  void end_block();
  void give_back(u32 i);

  Descriptor socket_;
  Mapping memory_;
  u32 block_bytes_ = 0;
  std::vector<Block> blocks_;
  u16 queue_;
  Decoder decoder_;
  Encapsulation encapsulation_;
  u32 max_payload_;
  u32 current_ = 0;            ///< the block that is read, or waited for
  u32 left_ = 0;               ///< packets of it that have not been looked at
  u8* next_packet_ = nullptr;  ///< null: the block has not been opened
  std::optional<RxSlots> copies_;
  u64 taken_ = 0, released_ = 0;  ///< of copies_
  u64 unmatched_ = 0;
  u64 dropped_ = 0;
};

}  // namespace doorbell::net::raw
