// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory of the kernel's ordinary pages.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell {

/// Zeroed private memory, to be given back by munmap(); nullptr and errno on failure. A range of 2 MiB and
/// more begins at a huge page, and the kernel is asked to use huge pages for it. `bytes`: whole pages.
[[nodiscard]] u8* map_ordinary(u64 bytes) noexcept;

/// Gives every page of the range memory of its own; what it holds stays. An untouched page is the page of
/// zeros that all programs share. Other threads may write there at the same time.
void own_every_page(u8* base, u64 bytes) noexcept;

}  // namespace doorbell
