// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The slots of a raw send queue: whole frames, whose headers are written once and whose payloads the sender
// fills.
#pragma once

#include <doorbell/net/queue.hpp>
#include <doorbell/region.hpp>

#include <vector>

#include "net/raw/frames.hpp"
#include "net/stream.hpp"

namespace doorbell::net::raw {

/// Addresses of flow `flow`: its ports are request.port + flow at both ends. Links without addresses get ones
/// that no host uses. Throws Error when a port passes 65535.
[[nodiscard]] FlowAddress flow_address(const Link& link, const StreamRequest& request, u32 flow);

/// The largest payload whose packet is no longer than the link's MTU.
[[nodiscard]] u64 max_payload(const Link& link, Encapsulation encapsulation);
/// An engine's row, with all that raw frames have in common.
[[nodiscard]] StreamKind frames_kind(StreamKind engine);
/// Ethernet fills up frames that are shorter, and a bare frame does not say how long its payload is.
inline constexpr u32 kLeastBarePayload = 46;
/// Throws Error when the request's payload, flows or queues are out of range for raw frames over this link,
/// or it asks for RSS and the engine has none.
void check_request(const StreamRequest& request, const Link& link, bool has_rss = false);

class TxFrames {
 public:
  /// Slots of `stride` bytes (a multiple of 64; 0: as few as hold the longest frame) from a page boundary on.
  /// With a GPU they are memory that it reaches.
  TxFrames(const FlowAddress& address, u32 max_payload, std::shared_ptr<gpu::Gpu> gpu = {}, u64 stride = 0);

  [[nodiscard]] const TxSlots& slots() const { return slots_; }
  [[nodiscard]] u32 max_payload() const { return max_payload_; }
  /// Bytes that each frame has in front of its payload.
  [[nodiscard]] u32 header_bytes() const { return header_bytes_; }
  [[nodiscard]] u8* frame(u64 n) const { return slots_.payload(n) - header_bytes_; }
  /// All slots, from the region's begin.
  [[nodiscard]] const Region& region() const { return memory_; }
  /// Makes the headers of these packets say `bytes` and, over IPv6, what their payloads add up to: all that
  /// ever changes in them. The payloads have been written.
  void finish(u64 first, u32 count, u32 bytes);

 private:
  FlowAddress address_;
  u32 header_bytes_;
  u32 max_payload_;
  Region memory_;
  TxSlots slots_;
  std::vector<u32> payload_bytes_;  ///< what each slot's headers say
};

}  // namespace doorbell::net::raw
