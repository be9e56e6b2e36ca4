// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Values inside one option: "model:media=ram,lba=4096", checked against a table like a command line.
#pragma once

#include "options/option.hpp"

namespace doorbell::options {

/// Parses what follows the first ':' of `spec` (if nothing follows: all defaults). Messages begin with
/// `title`. Throws doorbell::Error for an unknown key (and names the nearest one), for a key given twice, or
/// for a value that the table refuses.
[[nodiscard]] Options parse_spec(const std::string& title, const OptionTable& keys, std::string_view spec);

}  // namespace doorbell::options
