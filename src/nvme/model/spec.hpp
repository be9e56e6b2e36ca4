// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The keys of "model:KEY=VALUE,...": one table for parsing and for documentation.
#pragma once

#include <string>
#include <vector>

#include "options/option.hpp"

namespace doorbell::nvme {

[[nodiscard]] options::OptionTable model_keys();

}  // namespace doorbell::nvme
