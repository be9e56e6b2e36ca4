// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/bench/host_facts.hpp"

#include <sys/utsname.h>

#include "system/sysfs.hpp"

namespace doorbell::qdma {

namespace {

std::string known(const std::optional<std::string>& line) {
  return line && !line->empty() ? *line : "unknown";
}

}  // namespace

nlohmann::ordered_json host_facts(const std::string& bdf, const std::filesystem::path& root) {
  const std::filesystem::path function = root / "sys/bus/pci/devices" / (bdf.empty() ? "none" : bdf);
  const std::string group = link_name(function / "iommu_group");
  const auto node = read_number(function / "numa_node");
  utsname system{};
  const bool named = uname(&system) == 0;
  return {{"host", named ? system.nodename : "unknown"},
          {"kernel", named ? system.release : "unknown"},
          {"numa_node", node && *node >= 0 ? std::to_string(*node) : "unknown"},
          {"iommu_group", group.empty() ? "unknown" : group},
          {"link_speed", known(read_line(function / "current_link_speed"))},
          {"link_width", known(read_line(function / "current_link_width"))}};
}

}  // namespace doorbell::qdma
