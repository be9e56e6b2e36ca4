// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Received packets as windows of contiguous data, in host or GPU memory: every packet's header is verified,
// and its data goes to its place by its sequence, whenever it comes. Host code only.
#pragma once

#include <doorbell/net/packet.hpp>
#include <doorbell/net/queue.hpp>
#include <doorbell/net/stream_queues.hpp>
#include <doorbell/net/window_consumer.hpp>

#include <optional>

namespace doorbell::net {

/// How a receive queue's packets become windows.
struct WindowReceiverRequest {
  u32 queue = 0;           ///< the receive queue that is read
  u16 run_tag = 0;         ///< of the headers; packets with another one are counted as alien
  WindowShape shape = {};  ///< packets of a window, windows open at a time, time limit, first sequence
  Missing missing = Missing::zero;  ///< what becomes of slots that no packet came for
  /// Of the windows. For Place::gpu a CPU assembles them in pinned memory, and each is copied over as a
  /// whole.
  Place place = Place::pageable;
  std::shared_ptr<gpu::Gpu> gpu = {};      ///< for Place::gpu and Place::pinned
  std::optional<Conversion> convert = {};  ///< integers to floating-point numbers on the way
  bool verify = true;                      ///< the data's CRC too, not only the header's
  u32 in_flight = 2;                       ///< windows that the consumer may keep, at least 1
  u64 wait_ns = 10'000'000'000;            ///< how long the consumer may keep all of them
};

/// The windows of one receive queue, each flow's by itself. Thread rule: one thread at a time, which also
/// calls the consumer and gives windows back.
class WindowReceiver {
 public:
  /// The stream's packets must begin with a Header (packet.hpp). Stream and consumer outlive the receiver. A
  /// window that the consumer gets is complete: with Place::gpu it has been copied. Throws Error: a number
  /// out of range, no memory, packets in GPU memory (`split`), where a CPU cannot assemble them.
  WindowReceiver(StreamQueues& stream, const WindowReceiverRequest& request, WindowConsumer& consumer);
  ~WindowReceiver();
  WindowReceiver(const WindowReceiver&) = delete;
  WindowReceiver& operator=(const WindowReceiver&) = delete;

  /// Takes one burst, never waits for one, and returns its packets. Where nothing has come it looks for
  /// windows whose time is over. Throws Error only when the consumer keeps every window for too long.
  u32 step();
  /// The end: delivers the windows that are open. `sent[f]`, where it is known, is the number of packets of
  /// flow f, up to which windows are delivered although nothing came for them.
  void finish(const std::vector<u64>& sent = {});

  /// Of the queue's packets, by class.
  [[nodiscard]] const ReceiveCounts& counts() const;
  /// Windows and placed packets, of all flows of the queue.
  [[nodiscard]] WindowCounts windows() const;
  /// Packets among the first `sent` of a flow of this queue that have not arrived whole.
  [[nodiscard]] u64 lost(u32 flow, u64 sent) const;
  /// The size of a whole window.
  [[nodiscard]] u64 window_bytes() const;
  /// The size of one packet's slot in it: its data, converted where that was asked for.
  [[nodiscard]] u64 slot_bytes() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace doorbell::net
