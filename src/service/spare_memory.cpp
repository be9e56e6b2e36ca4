// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/spare_memory.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace doorbell::service {

namespace {

std::atomic<void*> spare{nullptr};
std::atomic<bool> provided{false};

void give_up() {
  void* const block = spare.exchange(nullptr);
  if (block == nullptr) throw std::bad_alloc();
  std::free(block);
}

/// Touched, so that it is no mere address space.
void* take() noexcept {
  return std::calloc(1, SpareMemory::kBytes);
}

}  // namespace

void SpareMemory::provide() {
  void* const block = take();
  if (block == nullptr) throw std::bad_alloc();
  void* none = nullptr;
  if (!spare.compare_exchange_strong(none, block)) return std::free(block);
  std::set_new_handler(give_up);
  provided = true;  // last: there() takes a block of its own where it sees this and none
}

bool SpareMemory::there() noexcept {
  if (!provided || spare.load() != nullptr) return true;
  void* block = take();
  if (block == nullptr) return false;
  void* none = nullptr;
  if (!spare.compare_exchange_strong(none, block)) std::free(block);
  return true;
}

}  // namespace doorbell::service
