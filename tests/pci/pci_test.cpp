// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Addresses, functions, and the users of the disks behind functions.
#include <gtest/gtest.h>

#include "nvme/vfio.hpp"
#include "pci/function.hpp"
#include "pci/usage.hpp"
#include "pci_machine.hpp"

namespace doorbell::pci {
namespace {

constexpr char kA[] = "0000:01:00.0";
constexpr char kB[] = "0000:02:00.0";

TEST(Address, Forms) {
  EXPECT_EQ(parse_address("01:00.0"), kA);
  EXPECT_EQ(parse_address("0000:01:00.0"), kA);
  EXPECT_EQ(parse_address("00A1:FF:1f.7"), "00a1:ff:1f.7");
  EXPECT_EQ(parse_address("10000:e1:00.0"), "10000:e1:00.0");  // a domain behind a VMD controller
}

TEST(Address, NotOne) {
  for (const char* text : {"", "01:00", "1:00.0", "01:00.8", "01:00.00", "01-00.0", "0g:00.0", "000:01:00.0",
                           "nvme0", "/dev/nvme0", "0000:01:00.0 ", "000001000:01:00.0", "model"})
    EXPECT_FALSE(parse_address(text)) << text;
}

using Functions = PciMachine;

TEST_F(Functions, Facts) {
  pci(kA, "0x010802", "nvme", "12");
  const Function f = read_function(kA, root);
  EXPECT_EQ(f.id(), "144d:a808");
  EXPECT_TRUE(f.is_nvme());
  EXPECT_EQ(f.driver, "nvme");
  EXPECT_EQ(f.iommu_group, "12");
  EXPECT_EQ(f.numa_node, 1);
  EXPECT_EQ(f.group_members, Lines{});
}

TEST_F(Functions, OthersOfTheGroupWithoutBridges) {
  pci(kA, "0x010802", "vfio-pci", "3");
  pci(kB, "0x010802", "nvme", "3");
  pci("0000:00:1c.0", "0x060400", "pcieport", "3");
  pci("0000:03:00.0", "0x020000", "", "3");
  const Function f = read_function(kA, root);
  EXPECT_EQ(f.group_members, (Lines{kB, "0000:03:00.0"}));
  EXPECT_EQ(foreign_members(f, root), (Lines{"0000:02:00.0 (nvme)"}));
}

/// A member that went away while it was looked at has no class to be read; one without a
/// driver is no obstacle.
TEST_F(Functions, MembersThatSayLittle) {
  pci(kA, "0x010802", "vfio-pci", "3");
  pci(kB, "0x010802", "nvme", "3");
  pci("0000:03:00.0", "0x020000", "pci-stub", "3");
  std::filesystem::remove(root / at(kB) / "class");
  EXPECT_EQ(read_function(kA, root).group_members, (Lines{"0000:03:00.0"}));
  file("sys/devices/pci0000:00/" + std::string(kB) + "/class", "no number");
  EXPECT_EQ(read_function(kA, root).group_members, (Lines{"0000:03:00.0"}));
  // The class is the number's first byte alone: 0x06 elsewhere makes no bridge.
  file("sys/devices/pci0000:00/" + std::string(kB) + "/class", "0x010606");
  const Function f = read_function(kA, root);
  EXPECT_EQ(f.group_members, (Lines{kB, "0000:03:00.0"}));
  EXPECT_EQ(foreign_members(f, root), (Lines{"0000:02:00.0 (nvme)"})) << "stubs hold nothing";
}

TEST_F(Functions, Absent) {
  EXPECT_EQ(refusal([&] { (void)read_function(kA, root); }),
            "0000:01:00.0: this machine has no such PCI function | doorbell list shows those it has");
}

TEST_F(Functions, NoIommu) {
  pci(kA, "0x010802", "nvme", "");
  const std::string why = refusal([&] { require_iommu(read_function(kA, root)); });
  EXPECT_TRUE(has(why, "it is behind no IOMMU that the kernel uses"));
  EXPECT_TRUE(has(why, "intel_iommu=on"));
}

TEST_F(Functions, NvmeNames) {
  pci(kA, "0x010802", "nvme", "1");
  nvme_disk(kA);
  for (const char* name : {"nvme0", "/dev/nvme0", "nvme0n1", "/dev/nvme0n1"})
    EXPECT_EQ(address_of_nvme(name, root), kA) << name;
  for (const char* name : {"nvme", "nvme1", "nvme0n", "nvme0x", "nvme0n1p1", "sda", "/dev/sda"})
    EXPECT_FALSE(address_of_nvme(name, root)) << name;
}

class Usage : public PciMachine {
 protected:
  void SetUp() override {
    PciMachine::SetUp();
    pci(kA, "0x010802", "nvme", "1");
    nvme_disk(kA);
  }
  [[nodiscard]] std::vector<std::string> uses() const { return uses_of(kA, root); }
};

TEST_F(Usage, None) {
  mounts("22 1 0:21 / /proc rw - proc proc rw\n23 1 8:1 / / rw - ext4 /dev/sda1 rw");
  EXPECT_EQ(uses(), Lines{});
  EXPECT_NO_THROW(require_unused(kA, root));
}

TEST_F(Usage, MountedDiskAndPartition) {
  mounts(
      "23 1 259:1 / /boot rw shared:1 - vfat /dev/nvme0n1p1 rw\n24 1 259:0 / /my\\040disk rw - xfs /dev/x rw");
  EXPECT_EQ(uses(), (Lines{"nvme0n1p1 is mounted on /boot", "nvme0n1 is mounted on /my disk"}));
  EXPECT_TRUE(
      has(refusal([&] { require_unused(kA, root); }),
          "0000:01:00.0: it is in use: nvme0n1p1 is mounted on /boot; nvme0n1 is mounted on /my disk |"));
}

TEST_F(Usage, RootFileSystemComesFirst) {
  mounts("23 1 259:1 / /boot rw - vfat /dev/nvme0n1p1 rw\n24 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw");
  EXPECT_EQ(uses(),
            (Lines{"nvme0n1p2 is the root file system, mounted on /", "nvme0n1p1 is mounted on /boot"}));
}

TEST_F(Usage, MountedElsewhereCounts) {
  file("proc/1/mountinfo", "23 1 259:2 / /srv rw - ext4 /dev/nvme0n1p2 rw");
  EXPECT_EQ(uses(), (Lines{"nvme0n1p2 is mounted on /srv"}));
}

TEST_F(Usage, FileSystemWithoutADeviceNumberIsFoundByItsSource) {
  mounts("24 1 0:29 /sub /data rw - btrfs /dev/nvme0n1p2 rw");
  EXPECT_EQ(uses(), (Lines{"nvme0n1p2 is mounted on /data"}));
}

TEST_F(Usage, Swap) {
  file("proc/swaps", "Filename Type Size Used Priority\n/dev/nvme0n1p2 partition 1048572 0 -2");
  EXPECT_EQ(uses(), (Lines{"nvme0n1p2 is swap space"}));
}

TEST_F(Usage, ThroughEncryptionAndVolumes) {
  volume("dm-0", "luks", "nvme0n1p2", "254:0");
  volume("dm-1", "vg-home", "dm-0", "254:1");
  mounts("24 1 254:1 / /home rw - ext4 /dev/mapper/vg-home rw");
  EXPECT_EQ(uses(), (Lines{"dm-1 (vg-home, on dm-0) is mounted on /home"}));
}

TEST_F(Usage, VolumeThatIsNotMounted) {
  volume("dm-0", "vg-data", "nvme0n1p1", "254:0");
  EXPECT_EQ(uses(), (Lines{"nvme0n1p1 is part of dm-0 (vg-data, on nvme0n1p1)"}));
}

TEST_F(Usage, PartitionOfARaid) {
  block("md0", "sys/devices/virtual/block", "9:0");
  link("sys/class/block/nvme0n1/holders/md0", "sys/devices/virtual/block/md0");
  block("md0p1", "sys/devices/virtual/block/md0", "259:9");
  file("sys/devices/virtual/block/md0/md0p1/partition", "1");
  mounts("24 1 259:9 / /raid rw - ext4 /dev/md0p1 rw");
  EXPECT_EQ(uses(), (Lines{"md0p1 (on md0) is mounted on /raid"}));
}

TEST_F(Usage, NamespaceOfSeveralPaths) {
  pci(kB, "0x010802", "nvme", "2");
  const std::string subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys3";
  block("nvme3n1", subsystem, "259:30");
  link(subsystem + "/nvme3", "sys/devices/pci0000:00/0000:02:00.0/nvme/nvme3");
  mounts("24 1 259:30 / /shared rw - ext4 /dev/nvme3n1 rw");
  EXPECT_EQ(uses_of(kB, root), (Lines{"nvme3n1 is mounted on /shared"}));
  EXPECT_EQ(uses(), Lines{});
}

using nvme::parse_vfio_spec;

class Spec : public Usage {};

TEST_F(Spec, Forms) {
  for (const char* spec :
       {"01:00.0", "0000:01:00.0", "nvme0", "/dev/nvme0n1", "vfio:01:00.0", "vfio:nvme0"}) {
    EXPECT_TRUE(nvme::is_vfio_spec(spec)) << spec;
    EXPECT_EQ(parse_vfio_spec(spec, root).address, kA) << spec;
    EXPECT_EQ(parse_vfio_spec(spec, root).interface, VfioInterface::automatic) << spec;
  }
  EXPECT_EQ(parse_vfio_spec("vfio:01:00.0,interface=iommufd", root).interface, VfioInterface::iommufd);
  EXPECT_EQ(parse_vfio_spec("vfio:01:00.0,interface=group", root).interface, VfioInterface::group);
  for (const char* spec : {"model", "qemu", "nvme", "vfio", "/dev/sda", "01:00"})
    EXPECT_FALSE(nvme::is_vfio_spec(spec)) << spec;
}

TEST_F(Spec, Refusals) {
  EXPECT_TRUE(has(refusal([&] { (void)parse_vfio_spec("nvme7", root); }),
                  "controller 'nvme7': the kernel has no such NVMe controller"));
  EXPECT_TRUE(has(refusal([&] { (void)parse_vfio_spec("vfio:sda", root); }),
                  "controller 'sda': it is no PCI address"));
  EXPECT_TRUE(has(refusal([&] { (void)parse_vfio_spec("vfio:01:00.0,interfce=group", root); }),
                  "did you mean 'interface'?"));
  EXPECT_TRUE(has(refusal([&] { (void)parse_vfio_spec("vfio:01:00.0,interface=x", root); }),
                  "'x' is not one of auto, group, iommufd"));
}

TEST_F(Spec, ReadyWhenBound) {
  driver(kA, "vfio-pci");
  EXPECT_EQ(refusal([&] { nvme::require_ready(kA, root); }), "");
}

TEST_F(Spec, HeldByTheKernel) {
  EXPECT_EQ(refusal([&] { nvme::require_ready(kA, root); }),
            "0000:01:00.0: the kernel's driver nvme holds it | sudo doorbell bind 0000:01:00.0");
  driver(kA, "");
  EXPECT_EQ(refusal([&] { nvme::require_ready(kA, root); }),
            "0000:01:00.0: no driver holds it | sudo doorbell bind 0000:01:00.0");
}

TEST_F(Spec, MountedIsSaidBeforeAnythingElse) {
  mounts("24 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw");
  EXPECT_TRUE(has(refusal([&] { nvme::require_ready(kA, root); }), "nvme0n1p2 is the root file system"));
}

TEST_F(Spec, NotNvme) {
  pci(kB, "0x020000", "e1000e", "2");
  EXPECT_TRUE(has(refusal([&] { nvme::require_ready(kB, root); }),
                  "0000:02:00.0: it is no NVMe controller (class 0x020000)"));
}

TEST_F(Spec, SharedGroup) {
  driver(kA, "vfio-pci");
  pci(kB, "0x010802", "nvme", "1");
  EXPECT_EQ(refusal([&] { nvme::require_ready(kA, root); }),
            "0000:01:00.0: its IOMMU group 1 has members that other drivers hold: 0000:02:00.0 (nvme) | sudo "
            "doorbell bind --group 0000:01:00.0");
}

}  // namespace
}  // namespace doorbell::pci
