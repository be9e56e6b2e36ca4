// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Concepts that host and GPU compilers read alike.
#pragma once

namespace doorbell {

/// std::convertible_to. That one asks through std::declval, which hipcc 5 does not find in code for a GPU:
/// there every concept that uses it is false.
template <class From, class To>
concept ConvertibleTo = requires(void (&take)(To), From&& from) {
  take(static_cast<From&&>(from));
};

}  // namespace doorbell
