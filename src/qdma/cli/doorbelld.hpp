// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The program `doorbelld`: a binary of its own, whose manual page and completion are made with the others.
#pragma once

#include "cli/path.hpp"

namespace doorbell::cli {

Command doorbelld_texts();
/// For PathDescription::programs.
Program doorbelld_program();

}  // namespace doorbell::cli
