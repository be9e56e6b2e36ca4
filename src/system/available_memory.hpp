// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How much memory a run may take.
#pragma once

#include <doorbell/config.hpp>

#include <filesystem>
#include <optional>
#include <string>

namespace doorbell {

/// Bytes that can be had without swapping: what the kernel calls available, or less where a control group
/// leaves less. Empty where neither can be read. `root` stands in place of "/".
[[nodiscard]] std::optional<u64> available_memory(const std::filesystem::path& root = "/");

/// Throws doorbell::Error when `bytes` are more than can be had. `what` names the options that ask for it,
/// and `sum` says how the bytes come about: "64 queues x 1023 I/Os x 2.1 MB". Linux grants more memory than
/// there is and kills who uses it, so that asking is the only way to be told.
void require_memory(u64 bytes, const std::string& what, const std::string& sum);

}  // namespace doorbell
