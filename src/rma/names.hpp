// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The names of operations and of their outcomes.
#pragma once

#include <doorbell/rma/types.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace doorbell::rma {

[[nodiscard]] std::string_view name(Op op);
/// Every name, in order.
[[nodiscard]] const std::vector<std::string>& op_names();
/// The name of a completion's status, in the words of the InfiniBand specification.
[[nodiscard]] std::string status_name(u16 status);

}  // namespace doorbell::rma
