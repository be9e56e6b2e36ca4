// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The messages between a QEMU x-remote machine and its proxy, which is this process. A private protocol of
// QEMU 7.2 to 10.0 (include/hw/remote/mpqemu-link.h there): 16 bytes of header (command, size), then the
// payload. Replies carry no tag and come in the order of the requests.
#pragma once

#include <doorbell/config.hpp>

#include <functional>
#include <mutex>
#include <span>
#include <vector>

namespace doorbell::nvme {

/// Thread rule: any thread. Once the other side is gone, writes do nothing and reads give all ones.
class QemuLink {
 public:
  /// Owns the socket. A peer that takes or answers nothing for `timeout_s` counts as gone.
  explicit QemuLink(int socket, double timeout_s = 10);
  ~QemuLink();
  QemuLink(const QemuLink&) = delete;
  QemuLink& operator=(const QemuLink&) = delete;

  /// All memory that the device can reach: `bytes` of `fd` from offset 0, at bus address `base`.
  void share_memory(int fd, u64 base, u64 bytes);
  [[nodiscard]] u32 read_config(u32 offset, u32 bytes);
  void write_config(u32 offset, u32 value, u32 bytes);
  /// Waits for the reply.
  [[nodiscard]] u64 read(u64 address, u32 bytes);
  /// Waits for the reply: nothing else is under way while a write to CC drains the drive.
  void write(u64 address, u32 value);
  /// Does not wait: the reply is taken off the socket some time later. For doorbells.
  void post_write(u64 address, u32 value);
  /// Asks for a 32-bit read whose value `take_replies` hands to `done`; one at a time.
  void post_read(u64 address, std::function<void(u32)> done);
  /// Takes what replies there are. Finds out when the other side is gone.
  void take_replies();

  [[nodiscard]] bool gone() const;
  [[nodiscard]] u64 messages() const;

 private:
  void send(u32 command, std::span<const u8> payload, int fd = -1);
  u64 request(u32 command, std::span<const u8> payload);
  void receive(bool wait);
  u64 await(u64 number);

  int socket_;
  u64 timeout_ns_;
  mutable std::mutex mutex_;
  bool gone_ = false;
  u64 asked_ = 0;     ///< requests that are answered
  u64 answered_ = 0;  ///< replies taken
  u64 last_value_ = 0;
  std::vector<u8> partial_;  ///< of a reply that has not come whole
  u64 reading_ = 0;          ///< number of the posted read
  std::function<void(u32)> on_read_;
  u64 sent_ = 0;
};

}  // namespace doorbell::nvme
