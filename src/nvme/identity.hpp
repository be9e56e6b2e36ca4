// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How the software controller calls itself.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::nvme {

/// In Identify and in PCI configuration space; no authority gave it.
constexpr u16 kModelVendor = 0xdb01;

}  // namespace doorbell::nvme
