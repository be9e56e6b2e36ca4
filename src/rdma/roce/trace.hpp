// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The packets of a NIC in a file that Wireshark reads: pcapng, each packet from IPv4 to ICRC, with the time
// in nanoseconds and its direction. Source: the pcapng specification (draft-ietf-opsawg-pcapng), link type
// LINKTYPE_IPV4.
#pragma once

#include <doorbell/config.hpp>

#include <span>
#include <string>
#include <vector>

#include "rdma/roce/counted.hpp"
#include "rdma/roce/icrc.hpp"
#include "system/descriptor.hpp"

namespace doorbell::roce {

class Trace {
 public:
  enum class Direction : u8 { in = 1, out = 2 };  ///< numbers of the format

  /// Begins `file` anew. Throws Error where it cannot be made. `name` is the NIC's.
  Trace(const std::string& file, const std::string& name);
  /// Writes what is still kept.
  ~Trace() { flush(); }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// A packet, BTH to ICRC.
  void packet(const Route& route, std::span<const u8> bytes, u16 identification, Direction direction);
  /// The same with the ICRC apart.
  void packet(const Route& route, std::span<const u8> bytes, u32 icrc, u16 identification,
              Direction direction);
  void flush();
  /// Writes the rest; packets that come later are left out.
  void finish() {
    flush();
    finished_ = true;
  }
  /// Packets that are missing because the file could not be written, as on a full disk.
  [[nodiscard]] u64 lost() const { return lost_.get(); }

 private:
  void begin_packet(const Route& route, std::size_t bytes, u16 identification);
  void end_packet(Direction direction);
  void put(const void* bytes, std::size_t size);
  template <class T>
  void put_value(T v) {
    put(&v, sizeof v);
  }
  void pad();

  static constexpr std::size_t kKept = 256 << 10;
  Descriptor file_;
  std::vector<u8> kept_;
  std::size_t block_ = 0;  ///< where the block that is being written begins
  u64 packets_kept_ = 0;
  bool failed_ = false, finished_ = false;
  Counted lost_;
};

}  // namespace doorbell::roce
