// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A mapped file that another program cuts short: loads and stores behind its new end raise SIGBUS, which ends
// a process that does not expect it.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell {

/// While one exists, a load or store that the mapped file cannot serve (no byte of the file is there, no
/// space on the disk, an error of the disk) gets a page of zeros in its place, and lost() is true from then
/// on. What was stored to such a page is gone with the mapping. Thread rule: any thread may load, store and
/// ask; one thread makes and ends it. The first one installs a handler of SIGBUS, which hands other signals
/// to the action before it.
class MappingGuard {
 public:
  /// Of the `bytes` at `base`, which is the start of a page. Throws doorbell::Error when 1024 exist already.
  MappingGuard(const void* base, u64 bytes);
  ~MappingGuard();
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;

  [[nodiscard]] bool lost() const;

 private:
  u32 slot_ = 0;
};

}  // namespace doorbell
