// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The IOMMU of a model: every access of the model is looked up here, and refused if it lies outside the map.
#pragma once

#include <doorbell/address_space.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace doorbell {

/// Hands out IOVAs upwards from 4 GiB, with an unmapped gap behind each range. An access one byte past a
/// region is thus a fault and does not reach another region.
class SoftwareAddressSpace final : public AddressSpace {
 public:
  struct Range {
    Iova begin = 0;
    Iova end = 0;
    u8* base = nullptr;    ///< host address, or GPU address when `gpu`
    u8* device = nullptr;  ///< the GPU's address; null where it cannot reach the memory
    Access access = Access::read_write;
    bool gpu = false;
  };

  [[nodiscard]] Iova map(const Region& region, Access access) override;
  void unmap(Iova iova) noexcept override;

  /// Calls `follow` with all ranges, sorted, now and after each change, before map() or unmap() returns; for
  /// a device that keeps them where this class cannot. An empty function ends it. `follow` must not map.
  void on_change(std::function<void(std::span<const Range>)> follow);

  /// A device thread's view, with its own cache of the last range used. One for each device thread.
  class View {
   public:
    explicit View(const SoftwareAddressSpace& space) : space_(space) {}

    struct Target {
      u8* address = nullptr;  ///< null: fault
      bool gpu = false;
    };
    /// The place of [iova, iova + bytes), if all of it is in one mapping that allows `want`.
    /// Where the memory of the mapping ends in which find() found something last.
    [[nodiscard]] const u8* mapping_end() const { return last_.base + (last_.end - last_.begin); }
    [[nodiscard]] Target find(Iova iova, u64 bytes, Access want) {
      // The acquire pairs with publish(): a table that is seen here is complete.
      const Table* now = space_.table_.load(std::memory_order_acquire);
      if (now != seen_) {
        seen_ = now;
        last_ = Range{};
      }
      if (!covers(last_, iova, bytes)) {
        const Range* r = search(*now, iova);
        if (r == nullptr || !covers(*r, iova, bytes)) return fault();
        last_ = *r;
      }
      if (!allows(last_.access, want)) return fault();
      return {last_.base + (iova - last_.begin), last_.gpu};
    }
    [[nodiscard]] u64 faults() const { return faults_.load(std::memory_order_relaxed); }

   private:
    static bool covers(const Range& r, Iova iova, u64 bytes) {
      return iova >= r.begin && iova < r.end && bytes <= r.end - iova;
    }
    Target fault() {
      faults_.fetch_add(1, std::memory_order_relaxed);
      return {};
    }
    const SoftwareAddressSpace& space_;
    const std::vector<Range>* seen_ = nullptr;
    Range last_;
    std::atomic<u64> faults_{0};
  };

 private:
  using Table = std::vector<Range>;
  static const Range* search(const Table& table, Iova iova);
  void publish(std::unique_ptr<Table> next);

  std::mutex mutex_;
  std::function<void(std::span<const Range>)> follow_;  ///< called under the mutex
  Iova next_ = u64{1} << 32;
  std::atomic<const Table*> table_{&empty_};
  Table empty_;
  // Device threads read tables without a lock, so replaced tables live as long as the space.
  std::vector<std::unique_ptr<const Table>> tables_;
};

}  // namespace doorbell
