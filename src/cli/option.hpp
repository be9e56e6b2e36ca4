// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The option table under the command line's own name, and the options that every path has.
#pragma once

#include "options/option.hpp"

namespace doorbell::cli {

using namespace options;  // the table is the command line's vocabulary

/// The options that mean the same on every path.
void add_common_options(OptionTable& table);

}  // namespace doorbell::cli
