// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "options/setting.hpp"

#include <atomic>

namespace doorbell {
namespace {

std::atomic<bool> by_options{false};

}  // namespace

void Setting::name_by_options(bool on) noexcept {
  by_options.store(on, std::memory_order_relaxed);
}

bool Setting::named_by_options() noexcept {
  return by_options.load(std::memory_order_relaxed);
}

}  // namespace doorbell
