// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The keys of "model:KEY=VALUE,...": one table for parsing and for documentation.
#pragma once

#include "options/option.hpp"
#include "rdma/model/config.hpp"
#include "rdma/settings.hpp"

namespace doorbell::rdma {

[[nodiscard]] options::OptionTable model_keys();

/// Converts "model:threads=2,mtu=1024" to a configuration. Throws an Error that names an unknown key or a bad
/// value. `device`: the setting that names the device.
[[nodiscard]] ModelConfig parse_model_spec(const std::string& spec,
                                           const std::string& device = setting::device);

}  // namespace doorbell::rdma
