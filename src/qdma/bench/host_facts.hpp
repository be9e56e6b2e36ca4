// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Facts without which a figure of a card cannot be understood: the host, and how the card is attached to it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace doorbell::qdma {

/// Host, kernel, and of the function at `bdf`: NUMA node, IOMMU group, link speed and width. "unknown" for
/// what cannot be read. `root` stands in place of "/". Never throws.
[[nodiscard]] nlohmann::ordered_json host_facts(const std::string& bdf,
                                                const std::filesystem::path& root = "/");

}  // namespace doorbell::qdma
