// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The check that every target uses: it ends the process, because that is what libFuzzer looks for.
#pragma once

#include <doorbell/config.hpp>
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdlib>

namespace doorbell::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace doorbell::fuzz
