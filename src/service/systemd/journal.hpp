// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's log: the journal with its fields, or standard error.
#pragma once

#include <memory>
#include <string_view>

#include "service/log.hpp"

namespace doorbell::service {

/// "auto": the journal if this machine has one and standard error is not a terminal; "journal"; "stderr".
[[nodiscard]] std::unique_ptr<Log> open_log(std::string_view which, Priority least,
                                            const std::string& name = "log");

}  // namespace doorbell::service
