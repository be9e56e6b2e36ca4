// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The IOMMU of a model: every access of the model is looked up here, and refused if it lies outside the map.
#pragma once

#include <doorbell/address_space.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "memory/remote_memory.hpp"

namespace doorbell {

/// Hands out IOVAs upwards from 4 GiB, with an unmapped gap behind each range. An access one byte past a
/// region is thus a fault and does not reach another region. A server gives ranges the IOVAs that its client
/// names, side by side if he likes: an access may then go over several.
class SoftwareAddressSpace final : public AddressSpace {
 public:
  struct Range {
    Iova begin = 0;
    Iova end = 0;
    u8* base = nullptr;    ///< host address, or GPU address when `gpu`
    u8* device = nullptr;  ///< the GPU's address; null where it cannot reach the memory
    Access access = Access::read_write;
    bool gpu = false;
    RemoteMemory* remote = nullptr;  ///< in place of `base`
  };

  [[nodiscard]] Iova map(const Region& region, Access access) override;
  void unmap(Iova iova) noexcept override;
  /// Adds ranges of somebody else's choice, which overlap none that is there and not each other. They are
  /// taken away by unmap().
  void map_at(const Range& range);
  /// Takes away several at once: those that begin at these IOVAs, which are sorted.
  void unmap_all(std::span<const Iova> begins) noexcept;

  /// Calls `follow` with all ranges, sorted, now and after each change, before map() or unmap() returns; for
  /// a device that keeps them where this class cannot. An empty function ends it. `follow` must not map.
  void on_change(std::function<void(std::span<const Range>)> follow);

 private:
  /// Never changed once it is published.
  using Table = std::vector<Range>;

 public:
  /// A device thread's view, with its own cache of the last range used. One for each device thread.
  class View {
   public:
    explicit View(const SoftwareAddressSpace& space) : space_(space) {}

    struct Target {
      u8* address = nullptr;  ///< null: fault, or remote
      bool gpu = false;
      RemoteMemory* remote = nullptr;
      u64 bytes = 0;  ///< that lie there, from the first on
    };
    /// Where the memory of the mapping ends in which find() or part() found something last.
    [[nodiscard]] const u8* mapping_end() const { return last_.base + mapping_bytes(); }
    /// The length of that mapping.
    [[nodiscard]] u64 mapping_bytes() const { return last_.end - last_.begin; }
    /// The place of [iova, iova + bytes), if all of it is in one mapping that allows `want`, and in this
    /// process or on the GPU.
    [[nodiscard]] Target find(Iova iova, u64 bytes, Access want) {
      const Target t = part(iova, bytes, want);
      if (t.bytes < bytes || t.address == nullptr) [[unlikely]]
        return fault();
      return t;
    }
    /// The place of the first bytes of [iova, iova + bytes): as many as lie in one mapping that allows
    /// `want`. None, with 0 bytes, is not counted as a fault.
    [[nodiscard]] Target part(Iova iova, u64 bytes, Access want) {
      // The acquire pairs with publish(): who knows of a change by its number, or by what was written after
      // it, takes no older table.
      if (space_.published_.load(std::memory_order_acquire) != seen_) [[unlikely]]
        look_again();
      if (!holds(last_, iova)) {
        const Range* r = search(*table_, iova);
        if (r == nullptr || !holds(*r, iova)) return {};
        last_ = *r;
      }
      if (!allows(last_.access, want)) return {};
      const u64 there = std::min(bytes, last_.end - iova);
      return {last_.base == nullptr ? nullptr : last_.base + (iova - last_.begin), last_.gpu, last_.remote,
              there};
    }
    [[nodiscard]] u64 faults() const { return faults_.load(std::memory_order_relaxed); }
    Target fault() {
      faults_.fetch_add(1, std::memory_order_relaxed);
      return {};
    }

   private:
    static bool holds(const Range& r, Iova iova) { return iova >= r.begin && iova < r.end; }
    void look_again() {
      const std::scoped_lock lock(space_.table_mutex_);
      seen_ = space_.published_.load(std::memory_order_relaxed);
      table_ = space_.table_;
      last_ = Range{};
    }
    const SoftwareAddressSpace& space_;
    u64 seen_ = ~u64{0};
    std::shared_ptr<const Table> table_;  // this view's, until it looks again
    Range last_;
    std::atomic<u64> faults_{0};
  };

 private:
  static const Range* search(std::span<const Range> ranges, Iova iova);
  void publish(Table next);

  std::mutex mutex_;                                    ///< one change at a time
  std::function<void(std::span<const Range>)> follow_;  ///< called under the mutex
  Iova next_ = u64{1} << 32;
  mutable std::mutex table_mutex_;  ///< of the pointer and its number
  std::shared_ptr<const Table> table_ = std::make_shared<Table>();
  std::atomic<u64> published_{0};
};

}  // namespace doorbell
