// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts that every engine inside a kernel is built of.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/memory_order.hpp>

#include "model/fault_draw.hpp"

namespace doorbell::model {

/// The faults of one engine in a kernel, with the functions of FaultInjector.
struct ServedFaults {
  FaultDraw rule;
  bool injects = false;
  u64 counts[kFaultKinds] = {};

  [[nodiscard]] DOORBELL_INLINE bool active() const { return injects; }
  [[nodiscard]] DOORBELL_INLINE InjectedFault draw(u64 queue, u64 serial, Direction d) const {
    return rule.draw(queue, serial, d);
  }
  template <class Now>
  [[nodiscard]] DOORBELL_HD CompletionReport apply_to_completion(const InjectedFault& injected, u64 due_ns,
                                                                 Now&& now) {
    if (FaultDraw::of_completion(injected.fault)) count(injected.fault);
    return rule.report(injected.fault, due_ns, now);
  }
  DOORBELL_INLINE void count(Fault f) { counts[static_cast<u32>(f)] += 1; }
};

/// A kernel reaches every ring itself.
struct NoDma {
  [[nodiscard]] DOORBELL_INLINE bool fetch(Iova, void*, u64) const { return false; }
  [[nodiscard]] DOORBELL_INLINE bool deliver(Iova, const void*, u64) const { return false; }
  [[nodiscard]] DOORBELL_INLINE bool commit() const { return true; }
};

/// The device goes away. Every engine looks at `gone`; the first one to set it, which gets true, tells
/// initiators by `alive`.
[[nodiscard]] DOORBELL_HD inline bool leave(u32* gone, u32* alive) {
#if defined(DOORBELL_ON_GPU)
  const u32 was = atomicExch(gone, 1u);
#else
  const u32 was = __atomic_exchange_n(gone, 1u, __ATOMIC_ACQ_REL);
#endif
  if (was != 0) return false;
  store_release(alive, 0);
  return true;
}

}  // namespace doorbell::model
