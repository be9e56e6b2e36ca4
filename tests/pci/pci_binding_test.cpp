// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// bind and unbind with a simulated kernel: what they write, to which file, in which order, and what they
// undo.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "pci/binding.hpp"
#include "pci_machine.hpp"

namespace doorbell::pci {
namespace {

namespace fs = std::filesystem;

constexpr char kDiskA[] = "0000:01:00.0";
constexpr char kDiskB[] = "0000:02:00.0";

class Binding : public PciMachine {
 protected:
  void SetUp() override {
    PciMachine::SetUp();
    pci(kDiskA, "0x010802", "nvme", "7");
    fs::create_directories(root / "sys/bus/pci/drivers/vfio-pci");
    machine = {.root = root,
               .write = [this](const fs::path& f, const std::string& t) { return written(f, t); },
               .modprobe = [this](const std::string& m) { return loaded(m); },
               .try_open = [this](const fs::path& f) { return opened(f); }};
  }

  /// Acts as the kernel does when these files are written.
  int written(const fs::path& where, const std::string& what) {
    const std::string name = where.lexically_relative(root / "sys/bus/pci").string();
    log.push_back(fmt::format("{} < {}", name, what == "\n" ? "\\n" : what));
    if (name == fail_at) return fail_with;
    if (name.ends_with("driver_override")) {
      override_of[where.parent_path().filename().string()] = what == "\n" ? "" : what;
    } else if (name.ends_with("driver/unbind")) {
      driver(what, "");
    } else if (name == "drivers_probe") {
      const std::string wanted = override_of[what].empty() ? kernels_own : override_of[what];
      if (fs::exists(root / "sys/bus/pci/drivers" / wanted) && wanted != refuses) driver(what, wanted);
    }
    return 0;
  }
  std::string loaded(const std::string& module) {
    log.push_back("modprobe " + module);
    if (!modprobe_works) return "'/sbin/modprobe " + module + "' failed";
    fs::create_directories(root / "sys/bus/pci/drivers" / (module == "pci:alias" ? "nvme" : module));
    return {};
  }
  int opened(const fs::path& node) const { return node == root / "dev/vfio/7" ? open_error : ENOENT; }

  Machine machine;
  std::vector<std::string> log;
  std::map<std::string, std::string> override_of;
  std::string fail_at, refuses, kernels_own = "nvme";
  int fail_with = EIO;
  int open_error = 0;
  bool modprobe_works = true;
};

TEST_F(Binding, Bind) {
  const auto done = bind(kDiskA, false, machine);
  EXPECT_EQ(log,
            (Lines{"devices/0000:01:00.0/driver_override < vfio-pci",
                   "devices/0000:01:00.0/driver/unbind < 0000:01:00.0", "drivers_probe < 0000:01:00.0"}));
  ASSERT_EQ(done.size(), 1u);
  EXPECT_TRUE(done[0].changed);
  EXPECT_EQ(done[0].before, "nvme");
  EXPECT_EQ(done[0].function.driver, "vfio-pci");
  EXPECT_EQ(done[0].function.iommu_group, "7");
}

TEST_F(Binding, BindWithoutADriverBefore) {
  driver(kDiskA, "");
  EXPECT_EQ(bind(kDiskA, false, machine)[0].before, "");
  EXPECT_EQ(log, (Lines{"devices/0000:01:00.0/driver_override < vfio-pci", "drivers_probe < 0000:01:00.0"}));
}

TEST_F(Binding, BindTwiceChangesNothing) {
  driver(kDiskA, "vfio-pci");
  EXPECT_FALSE(bind(kDiskA, false, machine)[0].changed);
  EXPECT_EQ(log, Lines{});
}

TEST_F(Binding, LoadsVfioPci) {
  fs::remove(root / "sys/bus/pci/drivers/vfio-pci");
  EXPECT_TRUE(bind(kDiskA, false, machine)[0].changed);
  EXPECT_EQ(log.front(), "modprobe vfio-pci");
}

TEST_F(Binding, SaysThatVfioPciCannotBeLoaded) {
  fs::remove(root / "sys/bus/pci/drivers/vfio-pci");
  modprobe_works = false;
  EXPECT_EQ(
      refusal([&] { (void)bind(kDiskA, false, machine); }),
      "0000:01:00.0: the kernel has no driver vfio-pci and '/sbin/modprobe vfio-pci' failed | run 'sudo modprobe "
      "vfio-pci'; a kernel without CONFIG_VFIO_PCI cannot lend devices to programs");
  EXPECT_EQ(log, (Lines{"modprobe vfio-pci"}));
}

TEST_F(Binding, RefusesAndTouchesNothing) {
  pci(kDiskB, "0x020000", "e1000e", "9");
  EXPECT_TRUE(has(refusal([&] { (void)bind(kDiskB, false, machine); }), "it is no NVMe controller"));
  pci(kDiskB, "0x010802", "nvme", "");
  fs::remove(root / at(kDiskB) / "iommu_group");
  EXPECT_TRUE(has(refusal([&] { (void)bind(kDiskB, false, machine); }), "behind no IOMMU"));
  nvme_disk(kDiskA);
  mounts("24 1 259:2 / /home rw - ext4 /dev/nvme0n1p2 rw");
  EXPECT_TRUE(has(refusal([&] { (void)bind(kDiskA, false, machine); }), "nvme0n1p2 is mounted on /home"));
  EXPECT_EQ(log, Lines{});
}

TEST_F(Binding, SharedGroupNeedsTheWholeGroup) {
  pci(kDiskB, "0x010802", "nvme", "7");
  const std::string why = refusal([&] { (void)bind(kDiskA, false, machine); });
  EXPECT_TRUE(has(why, "its IOMMU group 7 has members that other drivers hold: 0000:02:00.0 (nvme)"));
  EXPECT_TRUE(has(why, "--group"));
  EXPECT_EQ(log, Lines{});
  const auto done = bind(kDiskA, true, machine);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[1].function.address, kDiskB);
  EXPECT_EQ(done[1].function.driver, "vfio-pci");
}

TEST_F(Binding, WholeGroupRefusesWhatIsNoNvme) {
  pci(kDiskB, "0x020000", "e1000e", "7");
  EXPECT_TRUE(
      has(refusal([&] { (void)bind(kDiskA, true, machine); }), "0000:02:00.0: it is no NVMe controller"));
  EXPECT_EQ(log, Lines{});
}

TEST_F(Binding, NoPermission) {
  fail_at = "devices/0000:01:00.0/driver_override";
  fail_with = EACCES;
  const std::string why = refusal([&] { (void)bind(kDiskA, false, machine); });
  EXPECT_TRUE(has(why, "driver_override: Permission denied"));
  EXPECT_TRUE(has(why, "use sudo"));
  EXPECT_EQ(read_function(kDiskA, root).driver, "nvme");
}

TEST_F(Binding, FailedBindGivesTheDeviceBack) {
  refuses = "vfio-pci";
  EXPECT_TRUE(
      has(refusal([&] { (void)bind(kDiskA, false, machine); }), "0000:01:00.0: vfio-pci does not take it"));
  EXPECT_EQ(read_function(kDiskA, root).driver, "nvme");
  EXPECT_EQ(override_of[kDiskA], "");
}

TEST_F(Binding, FailedGroupGivesBackWhatWasBoundBefore) {
  pci(kDiskB, "0x010802", "nvme", "7");
  fail_at = "devices/0000:02:00.0/driver/unbind";
  EXPECT_TRUE(has(refusal([&] { (void)bind(kDiskA, true, machine); }), "Input/output error"));
  EXPECT_EQ(read_function(kDiskA, root).driver, "nvme");
  EXPECT_EQ(read_function(kDiskB, root).driver, "nvme");
}

TEST_F(Binding, Unbind) {
  driver(kDiskA, "vfio-pci");
  override_of[kDiskA] = "vfio-pci";
  fs::create_directories(root / "sys/bus/pci/drivers/nvme");
  const auto done = unbind(kDiskA, false, machine);
  EXPECT_EQ(log,
            (Lines{"devices/0000:01:00.0/driver_override < \\n",
                   "devices/0000:01:00.0/driver/unbind < 0000:01:00.0", "drivers_probe < 0000:01:00.0"}));
  EXPECT_EQ(done[0].function.driver, "nvme");
}

TEST_F(Binding, UnbindOfWhatTheKernelHolds) {
  const auto done = unbind(kDiskA, false, machine);
  EXPECT_FALSE(done[0].changed);
  EXPECT_EQ(done[0].function.driver, "nvme");
  EXPECT_EQ(log, Lines{});
}

TEST_F(Binding, UnbindWhileOpen) {
  driver(kDiskA, "vfio-pci");
  open_error = EBUSY;
  const std::string why = refusal([&] { (void)unbind(kDiskA, false, machine); });
  EXPECT_TRUE(has(why, "0000:01:00.0: a program has " + (root / "dev/vfio/7").string() + " open"));
  EXPECT_TRUE(has(why, "fuser"));
  EXPECT_EQ(log, Lines{});
}

TEST_F(Binding, UnbindLoadsTheDriver) {
  driver(kDiskA, "vfio-pci");
  fs::remove_all(root / "sys/bus/pci/drivers/nvme");
  file(at(kDiskA) + "/modalias", "pci:alias");
  EXPECT_EQ(unbind(kDiskA, false, machine)[0].function.driver, "nvme");
  EXPECT_NE(std::ranges::find(log, "modprobe pci:alias"), log.end());
}

TEST_F(Binding, UnbindWithoutADriverToGo) {
  driver(kDiskA, "vfio-pci");
  kernels_own = "none";
  EXPECT_TRUE(has(refusal([&] { (void)unbind(kDiskA, false, machine); }), "no kernel driver takes it"));
}

TEST_F(Binding, UnbindThatVfioPciTakesAgain) {
  driver(kDiskA, "vfio-pci");
  kernels_own = "vfio-pci";
  EXPECT_TRUE(has(refusal([&] { (void)unbind(kDiskA, false, machine); }), "vfio-pci takes it again"));
}

}  // namespace
}  // namespace doorbell::pci
