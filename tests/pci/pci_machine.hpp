// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A simulated machine in a temporary folder: those parts of /sys, /proc and /dev that src/pci reads.
#pragma once

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace doorbell::pci {

/// "WHAT: WHY" and the hint of the Error that `call` throws; empty when it throws none.
template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return fmt::format("{} | {}", e.what(), e.hint());
  }
  return {};
}

using Lines = std::vector<std::string>;

inline ::testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << text << "' has no '" << part << "'";
}

class PciMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "doorbell-pci-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root = name;
  }
  void TearDown() override { std::filesystem::remove_all(root); }

  void file(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text << '\n';
  }
  /// The link's target is from the root of the fake machine.
  void link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::filesystem::create_directories(root / target);
    std::filesystem::remove(root / path);
    std::filesystem::create_symlink(root / target, root / path);
  }
  [[nodiscard]] std::string text(const std::string& path) const {
    std::ifstream in(root / path);
    std::string line;
    std::getline(in, line);
    return line;
  }

  static std::string at(const std::string& address) { return "sys/bus/pci/devices/" + address; }
  void driver(const std::string& address, const std::string& name) const {
    std::filesystem::remove(root / at(address) / "driver");
    if (!name.empty()) link(at(address) + "/driver", "sys/bus/pci/drivers/" + name);
  }
  void pci(const std::string& address, const std::string& code, const std::string& held_by,
           const std::string& group) const {
    const std::string real = "sys/devices/pci0000:00/" + address;
    link(at(address), real);
    file(real + "/class", code);
    file(real + "/vendor", "0x144d");
    file(real + "/device", "0xa808");
    file(real + "/numa_node", "1");
    driver(address, held_by);
    if (group.empty()) return;
    link(real + "/iommu_group", "sys/kernel/iommu_groups/" + group);
    link("sys/kernel/iommu_groups/" + group + "/devices/" + address, real);
  }
  /// A block device below `parent` (a folder of /sys), and its device file's number.
  void block(const std::string& name, const std::string& parent, const std::string& number) const {
    const std::string real = parent + "/" + name;
    file(real + "/dev", number);
    std::filesystem::create_directories(root / real / "holders");
    link("sys/class/block/" + name, real);
  }
  /// nvme0n1 with partitions 1 and 2, numbers 259:0 to 259:2, on a controller of the kernel's driver.
  void nvme_disk(const std::string& address) const {
    const std::string controller = "sys/devices/pci0000:00/" + address + "/nvme/nvme0";
    link("sys/class/nvme/nvme0", controller);
    link(controller + "/device", "sys/devices/pci0000:00/" + address);
    block("nvme0n1", controller, "259:0");
    for (const char* part : {"1", "2"}) {
      block(std::string("nvme0n1p") + part, controller + "/nvme0n1", std::string("259:") + part);
      file(controller + "/nvme0n1/nvme0n1p" + part + "/partition", part);
    }
  }
  /// A device-mapper volume on another device.
  void volume(const std::string& name, const std::string& label, const std::string& on,
              const std::string& number) const {
    block(name, "sys/devices/virtual/block", number);
    file("sys/devices/virtual/block/" + name + "/dm/name", label);
    link("sys/class/block/" + on + "/holders/" + name, "sys/devices/virtual/block/" + name);
  }
  void mounts(const std::string& lines) const { file("proc/self/mountinfo", lines); }

  std::filesystem::path root;
};

}  // namespace doorbell::pci
