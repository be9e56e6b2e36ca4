// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "qdma/cli/doorbelld.hpp"
#include "qdma/cli/parts.hpp"
#include "system/sysfs.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVendor = "0x10ee";
/// Physical function 1 of a V80: now, and of older shells.
constexpr std::array<std::string_view, 3> kFunctions = {"0x50c1", "0x50b5", "0x50bd"};

/// The driver's control node of the function at `address`, if the kernel shows one: slash_qdma_ctl_<address>.
nlohmann::ordered_json node_of(const fs::path& root, const std::string& address) {
  const fs::path folder = root / "sys/bus/pci/devices" / address / "misc";
  for (const std::string& name : names_in(folder))
    if (name.starts_with("slash_qdma_ctl")) return name;
  return nullptr;
}

std::vector<FoundDevice> qdma_devices(const fs::path& root) {
  std::vector<FoundDevice> found;
  const fs::path folder = root / "sys/bus/pci/devices";
  for (const std::string& address : names_in(folder)) {
    const fs::path device = folder / address;
    if (read_line(device / "vendor") != kVendor) continue;
    const auto id = read_line(device / "device");
    if (!id || std::ranges::find(kFunctions, *id) == kFunctions.end()) continue;
    found.push_back({address,
                     {{"device_id", *id},
                      {"driver", link_fact(device / "driver")},
                      {"control_node", node_of(root, address)},
                      {"iommu_group", link_fact(device / "iommu_group")},
                      {"numa_node", numa_node_fact(device)},
                      {"link_speed", text_fact(device / "current_link_speed")},
                      {"link_width", text_fact(device / "current_link_width")}}});
  }
  return found;
}

std::vector<std::string> control_nodes(const fs::path& root) {
  std::vector<std::string> nodes;
  for (const std::string& name : names_in(root / "dev"))
    if (name.starts_with("slash_qdma_ctl")) nodes.push_back("/dev/" + name);
  return nodes;
}

/// A card needs its driver, and the driver makes a control node.
Check check_qdma_driver(const Machine& m) {
  Check c{.name = "QDMA driver"};
  const auto cards = qdma_devices(m.root);
  const auto nodes = control_nodes(m.root);
  if (cards.empty() && nodes.empty()) {
    c.finding = "no V80 here; the software card needs nothing";
    return c;
  }
  std::vector<std::string> without;
  for (const FoundDevice& card : cards)
    if (card.facts.at("driver") != "slash") without.push_back(card.name);
  if (!without.empty()) {
    c.level = Level::warn;
    c.finding = fmt::format("{} has not the driver slash: --device kernel: cannot use it", without.front());
    c.fix = "sudo modprobe slash";
  } else if (nodes.empty()) {
    c.level = Level::warn;
    c.finding = "the driver slash has made no /dev/slash_qdma_ctl*";
  } else {
    c.finding =
        fmt::format("{} cards, first control node {}", std::max(cards.size(), nodes.size()), nodes.front());
  }
  return c;
}

}  // namespace

PathDescription qdma_path() {
  return {.title = "QDMA",
          .work = "card transfers",
          .command = qdma_command(),
          .tools = {qdma_validate_command(), qdma_tune_command(), card_command(), run_card_command()},
          .programs = {doorbelld_program()},
          .backends = [] { return states_of(qdma::backends()); },
          .models = {{"model", "software QDMA card: HBM, DDR, two NoC channels, rings, faults"}},
          .devices_title = "QDMA cards (AMD V80)",
          .devices = qdma_devices,
          .checks = {check_qdma_driver},
          .demo_steps = qdma_demo_steps,
          .check_fault = check_qdma_fault};
}

}  // namespace doorbell::cli
