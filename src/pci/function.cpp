// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "pci/function.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "system/sysfs.hpp"

namespace doorbell::pci {

namespace fs = std::filesystem;

namespace {

constexpr u32 kBridge = 0x06;  // base class; bridges pass on DMA of others and do none themselves

bool all_hex(std::string_view digits) {
  return std::ranges::all_of(digits, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  });
}

/// "nvme12" for "nvme12n3"; empty for a name of another form.
std::string controller_of(std::string_view name) {
  if (!name.starts_with("nvme")) return {};
  const auto digits = [&](std::size_t from) {
    while (from < name.size() && name[from] >= '0' && name[from] <= '9') ++from;
    return from;
  };
  const std::size_t end = digits(4);
  if (end == 4) return {};
  const bool name_space =
      end < name.size() && name[end] == 'n' && digits(end + 1) == name.size() && end + 1 < name.size();
  return end == name.size() || name_space ? std::string(name.substr(0, end)) : std::string();
}

}  // namespace

std::optional<std::string> parse_address(std::string_view text) {
  // "01:00.0", optionally with a domain of four to eight digits before it.
  if (text.size() < 7) return {};
  const std::string_view short_form = text.substr(text.size() - 7);
  std::string_view domain = text.substr(0, text.size() - 7);
  if (domain.empty()) domain = "0000:";
  if (domain.size() < 5 || domain.size() > 9 || domain.back() != ':') return {};
  const bool shaped =
      short_form[2] == ':' && short_form[5] == '.' && short_form[6] >= '0' && short_form[6] <= '7';
  if (!shaped || !all_hex(domain.substr(0, domain.size() - 1)) || !all_hex(short_form.substr(0, 2)) ||
      !all_hex(short_form.substr(3, 2)))
    return {};
  std::string address = fmt::format("{}{}", domain, short_form);
  for (char& c : address) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  return address;
}

std::optional<std::string> address_of_nvme(std::string_view name, const fs::path& root) {
  if (name.starts_with("/dev/")) name.remove_prefix(5);
  const std::string controller = controller_of(name);
  if (controller.empty()) return {};
  return parse_address(link_name(root / "sys/class/nvme" / controller / "device"));
}

fs::path sysfs_folder(const std::string& address, const fs::path& root) {
  return root / "sys/bus/pci/devices" / address;
}

std::string Function::id() const {
  return fmt::format("{:04x}:{:04x}", vendor, device);
}

Function read_function(const std::string& address, const fs::path& root) {
  const fs::path at = sysfs_folder(address, root);
  if (!present(at))
    throw Error(address, "this machine has no such PCI function", "doorbell list shows those it has",
                ExitCode::absent);
  Function f;
  f.address = address;
  f.vendor = static_cast<u32>(read_number(at / "vendor").value_or(0));
  f.device = static_cast<u32>(read_number(at / "device").value_or(0));
  f.class_code = static_cast<u32>(read_number(at / "class").value_or(0));
  f.driver = link_name(at / "driver");
  f.iommu_group = link_name(at / "iommu_group");
  f.numa_node = static_cast<int>(read_number(at / "numa_node").value_or(-1));
  for (std::string& member : names_in(at / "iommu_group/devices")) {
    const auto code = read_number(sysfs_folder(member, root) / "class");
    if (member != address && code && *code >> 16 != kBridge) f.group_members.push_back(std::move(member));
  }
  return f;
}

std::vector<std::string> foreign_members(const Function& f, const fs::path& root) {
  std::vector<std::string> found;
  for (const std::string& member : f.group_members) {
    const std::string driver = link_name(sysfs_folder(member, root) / "driver");
    if (!driver.empty() && driver != kVfioDriver && driver != "pci-stub")
      found.push_back(fmt::format("{} ({})", member, driver));
  }
  return found;
}

void require_iommu(const Function& f) {
  if (!f.iommu_group.empty()) return;
  throw Error(f.address, "it is behind no IOMMU that the kernel uses",
              "switch the IOMMU on in the firmware set-up (VT-d, AMD-Vi), boot with intel_iommu=on or "
              "amd_iommu=on on the kernel command line, and look again with doorbell doctor");
}

}  // namespace doorbell::pci
