// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "model/host_mover.hpp"

#include <atomic>

#include "model/fault_draw.hpp"

namespace doorbell::model {

bool HostMover::copy_damaged(const DmaPlace& to, const DmaPlace& from, u64 bytes, u64 at) {
  if (!settle()) return false;  // an earlier damaged copy may still be read from here
  scratch_.resize(bytes);
  const DmaPlace wire{scratch_.data(), nullptr, false};
  if (!copy(wire, from, bytes) || !settle()) return false;
  scratch_[at] ^= InjectedFault::kDamage;
  return copy(to, wire, bytes);
}

bool HostMover::atomic(const DmaPlace& at, bool adds, u64 operand, u64 compare, u64& old) {
  if (!at.gpu) {
    copier_.settle_shared();
    const std::atomic_ref<u64> word(*reinterpret_cast<u64*>(at.address));
    if (adds) {
      old = word.fetch_add(operand);
    } else {
      old = compare;
      word.compare_exchange_strong(old, operand);
    }
    return true;
  }
  // A device thread has no atomics on GPU memory, so all engines take turns.
  const std::scoped_lock lock(atomics_);
  u64 now = 0;
  const DmaPlace here{reinterpret_cast<u8*>(&now), nullptr, false};
  if (!copy(here, at, sizeof now) || !settle()) return false;
  old = now;
  if (!adds && old != compare) return true;
  now = adds ? old + operand : operand;
  return copy(at, here, sizeof now) && settle();
}

}  // namespace doorbell::model
