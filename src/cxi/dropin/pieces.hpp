// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory of a client as the engine reaches it: an address in the same process, or files of another process
// that are mapped side by side.
#pragma once

#include <span>
#include <utility>

#include "cxi/dropin/protocol.hpp"
#include "system/descriptor.hpp"

namespace doorbell::cxi::dropin {

class Pieces {
 public:
  Pieces() = default;
  /// `foreign`: `files` are mapped; each must be sealed against shrinking, so that no access can fail later.
  /// Throws CallError (EINVAL, EPERM, ENOMEM).
  Pieces(const Request& request, const SharedMemory& memory, std::span<Descriptor> files, bool foreign);
  ~Pieces();
  Pieces(Pieces&& other) noexcept { swap(other); }
  Pieces& operator=(Pieces&& other) noexcept {
    swap(other);
    return *this;
  }

  [[nodiscard]] u8* data() const { return data_; }
  [[nodiscard]] u64 bytes() const { return bytes_; }

 private:
  void swap(Pieces& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
  }
  u8* data_ = nullptr;
  u64 bytes_ = 0;
  bool mapped_ = false;
};

}  // namespace doorbell::cxi::dropin
