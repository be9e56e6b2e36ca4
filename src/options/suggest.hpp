// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Finds the word that a typing error was probably meant to be.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell::options {

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that `word` most likely means: the only one that begins with it, else the one at the
/// smallest edit distance, which is at most a third of its length. Empty if no candidate is near.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace doorbell::options
