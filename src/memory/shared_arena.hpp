// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory that another process shares: one sparse memfd, of which regions are pieces.
#pragma once

#include <doorbell/region.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "system/descriptor.hpp"

namespace doorbell {

/// Lives as long as regions of it do. Any thread.
class SharedArena : public std::enable_shared_from_this<SharedArena> {
 public:
  /// As large as the machine's memory: pages exist only once they are touched. `with`: the other process, in
  /// messages. Throws Error.
  [[nodiscard]] static std::shared_ptr<SharedArena> make(const std::string& with);
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  /// Zeroed, of whole pages. Throws Error for a place that cannot be shared, and if it does not fit.
  [[nodiscard]] Region allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu);
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] u8* base() const { return base_; }
  [[nodiscard]] u64 bytes() const { return bytes_; }
  /// True if [at, at + n) is part of it.
  [[nodiscard]] bool holds(const u8* at, u64 n) const {
    return at >= base_ && n <= bytes_ && static_cast<u64>(at - base_) <= bytes_ - n;
  }

 private:
  explicit SharedArena(const std::string& with);
  u8* take(u64 bytes);
  void give_back(u8* at, u64 bytes);

  std::string with_;
  Descriptor fd_;
  u8* base_ = nullptr;
  u64 bytes_ = 0;
  std::mutex mutex_;
  std::map<u64, u64> free_;  ///< offset: bytes
};

}  // namespace doorbell
