// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A software card's memory as transfers see it: HBM, DDR and the port for device images. Every queue sees the
// same bytes. The process holds memory only for the pages that were written.
#pragma once

#include <doorbell/qdma/abi.hpp>

namespace doorbell::qdma {

class CardMemory {
 public:
  /// Throws Error if the process may not have so large a mapping.
  CardMemory();
  ~CardMemory();
  CardMemory(const CardMemory&) = delete;
  CardMemory& operator=(const CardMemory&) = delete;

  /// A range of addresses behind which there is something.
  struct Region {
    u64 base;
    u64 bytes;
    u32 directions;  ///< kDirH2C, kDirC2H
    u64 offset;      ///< in the mapping
    [[nodiscard]] bool holds(u64 address, u64 n) const {
      return address >= base && address - base < bytes && n <= bytes - (address - base);
    }
  };
  /// The region that holds all of [address, address + bytes); null for a hole or a range that leaves one.
  [[nodiscard]] static const Region* find(u64 address, u64 bytes);
  /// True if a transfer of this direction may touch [address, address + bytes) through a queue whose
  /// addresses wrap in `aperture` (0: linear).
  [[nodiscard]] static bool reaches(Direction direction, u64 address, u64 bytes, u64 aperture);

  /// Where an address lies that find() has found.
  [[nodiscard]] u8* at(u64 address) const;
  /// Copies between `host` and the card. The range is one that reaches() has accepted; `skip` bytes of it
  /// have been copied already.
  void copy(Direction direction, u8* host, u64 address, u64 skip, u64 bytes, u64 aperture) const;

 private:
  u8* base_ = nullptr;
};

}  // namespace doorbell::qdma
