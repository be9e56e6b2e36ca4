// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/file_table.hpp"

#include <sched.h>

#include <atomic>

namespace doorbell {

namespace {
std::atomic<bool> kept{false};
}  // namespace

void own_file_table() {
  if (!kept.load(std::memory_order_relaxed)) (void)::unshare(CLONE_FILES);
}

void keep_one_file_table() {
  kept.store(true, std::memory_order_relaxed);
}

}  // namespace doorbell
