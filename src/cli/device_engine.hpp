// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// --device-engine of the commands whose models a kernel can serve.
#pragma once

#include <string>

#include "cli/option.hpp"

namespace doorbell::cli {

[[nodiscard]] Option device_engine_option();

/// The value of the option `device`, with --device-engine as the model's key that it stands for. Throws
/// doorbell::Error if that is no model. `model`: what a model is called, before its keys.
[[nodiscard]] std::string spec_with_engine(const Options& options, const std::string& device,
                                           const std::string& model = "model");
/// The same where models have several names: whether the option's is one of them.
[[nodiscard]] std::string spec_with_engine(const Options& options, const std::string& device,
                                           const std::string& model, bool is_model);

}  // namespace doorbell::cli
