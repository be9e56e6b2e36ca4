// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The path's view of a machine, on simulated ones: cards, their driver, and what a figure needs to be
// understood.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/path.hpp"
#include "eventually.hpp"
#include "qdma/bench/host_facts.hpp"

namespace doorbell::cli {
namespace {

namespace fs = std::filesystem;

const PathDescription& qdma() {
  for (const PathDescription& p : paths())
    if (p.name() == "qdma") return p;
  throw std::logic_error("qdma");
}

class SimulatedMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "doorbell-qdma-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }
  fs::path function(const std::string& address, const std::string& device) {
    const fs::path folder = fs::path("sys/bus/pci/devices") / address;
    write(folder / "vendor", "0x10ee");
    write(folder / "device", device);
    write(folder / "numa_node", "1");
    write(folder / "current_link_speed", "32.0 GT/s PCIe");
    write(folder / "current_link_width", "8");
    return folder;
  }
  void bind(const fs::path& folder, const std::string& driver) {
    fs::create_directories(root_ / "sys/bus/pci/drivers" / driver);
    fs::create_directory_symlink(root_ / "sys/bus/pci/drivers" / driver, root_ / folder / "driver");
  }
  [[nodiscard]] Check driver_check() const {
    Machine m;
    m.root = root_;
    return qdma().checks.front()(m);
  }

  fs::path root_;
};

TEST_F(SimulatedMachine, HasCardsByTheirPhysicalFunction) {
  const fs::path card = function("0000:61:00.1", "0x50c1");
  bind(card, "slash");
  write(card / "misc/slash_qdma_ctl_0000:61:00.1/dev", "10:60");
  function("0000:62:00.1", "0x50b5");
  function("0000:63:00.0", "0x50b4");  // physical function 0: management
  function("0000:64:00.0", "0x9048");  // another card of this vendor
  const auto found = qdma().devices(root_);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "0000:61:00.1");
  EXPECT_EQ(found[0].facts.at("driver"), "slash");
  EXPECT_EQ(found[0].facts.at("control_node"), "slash_qdma_ctl_0000:61:00.1");
  EXPECT_EQ(found[0].facts.at("numa_node"), 1);
  EXPECT_EQ(found[0].facts.at("link_speed"), "32.0 GT/s PCIe");
  EXPECT_TRUE(found[1].facts.at("driver").is_null());
  EXPECT_TRUE(found[1].facts.at("control_node").is_null());
}

TEST_F(SimulatedMachine, IsAskedForTheDriver) {
  EXPECT_EQ(driver_check().level, Level::ok) << "no card, nothing to do";
  const fs::path card = function("0000:61:00.1", "0x50c1");
  EXPECT_EQ(driver_check().level, Level::warn);
  EXPECT_NE(driver_check().fix, "");
  bind(card, "slash");
  EXPECT_EQ(driver_check().level, Level::warn) << "the driver has made no node";
  write("dev/slash_qdma_ctl0", "");
  const Check good = driver_check();
  EXPECT_EQ(good.level, Level::ok);
  EXPECT_NE(good.finding.find("/dev/slash_qdma_ctl0"), std::string::npos);
}

TEST_F(SimulatedMachine, FactsThatCannotBeReadAreUnknown) {
  const auto nothing = doorbell::qdma::host_facts("0000:61:00.1", root_);
  for (const char* const fact : {"numa_node", "iommu_group", "link_speed", "link_width"})
    EXPECT_EQ(nothing.at(fact), "unknown") << fact;
  const fs::path card = function("0000:61:00.1", "0x50c1");
  fs::create_directory_symlink(root_ / "sys/kernel/iommu_groups/7", root_ / card / "iommu_group");
  const auto facts = doorbell::qdma::host_facts("0000:61:00.1", root_);
  EXPECT_EQ(facts.at("numa_node"), "1");
  EXPECT_EQ(facts.at("iommu_group"), "7");
  EXPECT_EQ(facts.at("link_width"), "8");
  EXPECT_EQ(doorbell::qdma::host_facts("", root_).at("link_width"), "unknown");
}

/// As `doorbell demo` does: what the model counts as injected is what the run finds.
TEST(QdmaFaults, AreFoundAsOftenAsTheyAreInjected) {
  for (u32 kind = 0; kind < model::kFaultKinds; ++kind) {
    const auto fault = static_cast<model::Fault>(kind);
    SCOPED_TRACE(std::string(model::name(fault)));
    FaultCheck c;
    test::with_longer_times([&](double times) {
      c = qdma().check_fault(fault, times, {});
      return c.found == c.injected;
    });
    EXPECT_EQ(c.found, c.injected) << c.found_as;
    EXPECT_NE(c.found_as, "");
    EXPECT_TRUE(c.injected > 0 || fault == model::Fault::duplicate);
  }
}

}  // namespace
}  // namespace doorbell::cli
