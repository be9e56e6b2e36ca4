// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The keys of "model:KEY=VALUE,...": one table, from which they are parsed and documented.
#pragma once

#include "options/option.hpp"
#include "rdma/model/config.hpp"

namespace doorbell::rdma {

[[nodiscard]] options::OptionTable model_keys();

/// "model:threads=2,mtu=1024" to a configuration; an unknown key or a bad value is an Error that names it.
[[nodiscard]] ModelConfig parse_model_spec(const std::string& spec);

}  // namespace doorbell::rdma
