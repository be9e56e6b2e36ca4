// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// CRC-32C (Castagnoli), as in RFC 3720 section 12.1: the CRC of "123456789" is 0xE3069283. Host code only.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::net {

/// The CRC of `n` bytes. With `crc`, the CRC of what came before, that of both together. Uses the CPU's
/// instruction where there is one.
[[nodiscard]] u32 crc32c(const void* data, std::size_t n, u32 crc = 0);

}  // namespace doorbell::net
