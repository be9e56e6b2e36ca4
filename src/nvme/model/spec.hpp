// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The keys of "model:KEY=VALUE,...": one table, from which they are parsed and documented.
#pragma once

#include "options/option.hpp"

namespace doorbell::nvme {

[[nodiscard]] options::OptionTable model_keys();

}  // namespace doorbell::nvme
