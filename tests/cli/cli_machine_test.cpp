// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Discovery and doctor on a simulated machine, the progress line, and Ctrl-C.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <doorbell/error.hpp>
#include <fstream>
#include <unistd.h>

#include "cli/fault_table.hpp"
#include "cli/path.hpp"
#include "cli/progress.hpp"
#include "cli/run_plan.hpp"
#include "cli/terminal.hpp"
#include "measure/stop.hpp"
#include "system/clock.hpp"

namespace doorbell::cli {
namespace {

namespace fs = std::filesystem;

class MadeUpMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "doorbell-cli-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    machine.root = name;
  }
  void TearDown() override { fs::remove_all(machine.root); }

  void file(const std::string& path, const std::string& text) const {
    fs::create_directories((machine.root / path).parent_path());
    std::ofstream(machine.root / path) << text << '\n';
  }
  void link(const std::string& path, const std::string& target) const {
    fs::create_directories((machine.root / path).parent_path());
    fs::create_symlink(target, machine.root / path);
  }
  /// A PCI function of this class and vendor.
  void pci(const std::string& address, const std::string& code, const std::string& vendor) const {
    file("sys/bus/pci/devices/" + address + "/class", code);
    file("sys/bus/pci/devices/" + address + "/vendor", vendor);
  }

  /// The devices that the path's description finds here.
  [[nodiscard]] std::vector<FoundDevice> devices(std::string_view name) const {
    for (const PathDescription& path : paths())
      if (path.name() == name) return path.devices(machine.root);
    ADD_FAILURE() << "no path " << name;
    return {};
  }

  Machine machine;
};

TEST_F(MadeUpMachine, EmptyOneHasNothing) {
  EXPECT_TRUE(devices("nvme").empty());
  EXPECT_TRUE(devices("rdma").empty());
  EXPECT_TRUE(devices("cxi").empty());
  EXPECT_TRUE(network_interfaces(machine.root).empty());
  EXPECT_EQ(all_checks(machine).size(), 14u);
}

TEST_F(MadeUpMachine, NvmeByKernelDriverAndByPci) {
  pci("0000:01:00.0", "0x010802", "0x144d");
  pci("0000:02:00.0", "0x010802", "0x8086");
  pci("0000:03:00.0", "0x020000", "0x8086");
  link("sys/bus/pci/devices/0000:02:00.0/driver", "../../../bus/pci/drivers/vfio-pci");
  link("sys/bus/pci/devices/0000:02:00.0/iommu_group", "../../kernel/iommu_groups/17");
  link("sys/class/nvme/nvme0/device", "../../../bus/pci/devices/0000:01:00.0");
  file("sys/class/nvme/nvme0/model", "Some SSD          ");
  file("sys/class/nvme/nvme0/nvme0n1/size", "2048");
  const auto found = devices("nvme");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "nvme0");
  EXPECT_EQ(found[0].facts["model"], "Some SSD");
  EXPECT_EQ(found[0].facts["pci_address"], "0000:01:00.0");
  EXPECT_EQ(found[0].facts["namespaces"][0]["capacity_bytes"], 2048 * 512);
  EXPECT_EQ(found[1].name, "0000:02:00.0");
  EXPECT_EQ(found[1].facts["driver"], "vfio-pci");
  EXPECT_EQ(found[1].facts["iommu_group"], "17");
}

TEST_F(MadeUpMachine, NetworkRdmaAndCxi) {
  file("sys/class/net/eth0/operstate", "up");
  file("sys/class/net/eth0/speed", "100000");
  file("sys/class/net/eth0/mtu", "9000");
  file("sys/class/net/lo/speed", "-1");
  file("sys/class/net/bonding_masters", "");
  file("sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet");
  file("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  file("sys/class/cxi/cxi0/uevent", "");
  const auto net = network_interfaces(machine.root);
  ASSERT_EQ(net.size(), 2u);
  EXPECT_EQ(net[0].facts["speed_bits_per_s"], 100'000'000'000);
  EXPECT_EQ(net[0].facts["mtu_bytes"], 9000);
  EXPECT_TRUE(net[1].facts["speed_bits_per_s"].is_null());
  const auto rdma = devices("rdma");
  ASSERT_EQ(rdma.size(), 1u);
  EXPECT_EQ(rdma[0].facts["ports"][0]["state"], "4: ACTIVE");
  EXPECT_EQ(devices("cxi").at(0).name, "cxi0");
}

TEST_F(MadeUpMachine, LockedMemory) {
  EXPECT_EQ(check_locked_memory(machine).level, Level::ok);
  machine.locked_limit_bytes = 8 << 20;
  EXPECT_EQ(check_locked_memory(machine).level, Level::fix);
  file("proc/self/status", "Name:\tx\nCapEff:\t0000000000004000");
  EXPECT_EQ(check_locked_memory(machine).level, Level::ok);
  file("proc/self/status", "Name:\tx\nCapEff:\tffffffffffffbfff");
  EXPECT_EQ(check_locked_memory(machine).level, Level::fix);
  machine.locked_limit_bytes = u64{1} << 30;
  EXPECT_EQ(check_locked_memory(machine).level, Level::ok);
}

TEST_F(MadeUpMachine, HugePages) {
  EXPECT_EQ(check_huge_pages(machine, false).level, Level::warn);
  file("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "100");
  file("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0");
  const Check used = check_huge_pages(machine, false);
  EXPECT_EQ(used.level, Level::warn);
  EXPECT_NE(used.fix.find("echo 612 "), std::string::npos);
  file("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "40");
  EXPECT_EQ(check_huge_pages(machine, false).finding, "40 of 100 free");
}

TEST_F(MadeUpMachine, KernelSettings) {
  file("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
  EXPECT_EQ(check_transparent_huge_pages(machine).level, Level::warn);
  file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
  EXPECT_EQ(check_transparent_huge_pages(machine).finding, "madvise");
  EXPECT_EQ(check_iommu(machine).level, Level::warn);
  file("sys/class/iommu/dmar0/x", "");
  EXPECT_EQ(check_iommu(machine).level, Level::ok);
  EXPECT_EQ(check_vfio(machine).level, Level::warn);
  file("dev/vfio/vfio", "");
  EXPECT_EQ(check_vfio(machine).level, Level::ok);
  EXPECT_EQ(check_governor(machine).level, Level::ok);
  file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance");
  EXPECT_EQ(check_governor(machine).finding, "performance");
  file("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave");
  EXPECT_EQ(check_governor(machine).level, Level::fix);
  machine.cpus = 4;
  file("proc/loadavg", "0.10 0.2 0.3 1/100 1");
  EXPECT_EQ(check_load(machine).level, Level::ok);
  file("proc/self/cgroup", "0::/job");
  file("sys/fs/cgroup/cgroup.controllers", "cpu");
  file("sys/fs/cgroup/job/cpu.max", "150000 100000");
  EXPECT_EQ(check_load(machine).level, Level::warn);
  EXPECT_NE(check_load(machine).finding.find("quota (cgroup) gives the time of 1.5"), std::string::npos);
  file("sys/fs/cgroup/job/cpu.max", "max 100000");
  EXPECT_EQ(check_load(machine).level, Level::ok);
  file("proc/loadavg", "3.10 0.2 0.3 1/100 1");
  EXPECT_EQ(check_load(machine).level, Level::warn);
}

TEST_F(MadeUpMachine, GpuAndBuild) {
  machine.runtimes = {{"cuda", false, "libcuda.so.1 is missing"},
                      {"hip", false, "no"},
                      {"level_zero", false, "no libze_loader"}};
  EXPECT_EQ(check_gpu(machine).level, Level::warn);
  pci("0000:03:00.0", "0x038000", "0x8086");
  EXPECT_EQ(check_gpu(machine).level, Level::warn) << "it can hold data only";
  EXPECT_NE(check_gpu(machine).finding.find("no libze_loader"), std::string::npos);
  machine.runtimes[2].usable = true;
  EXPECT_EQ(check_gpu(machine).level, Level::ok);
  EXPECT_NE(check_dmabuf(machine).finding.find("i915"), std::string::npos);
  machine.runtimes[2].usable = false;
  pci("0000:18:00.0", "0x030200", "0x10de");
  EXPECT_EQ(check_gpu(machine).level, Level::fix);
  EXPECT_NE(check_gpu(machine).finding.find("libcuda.so.1 is missing"), std::string::npos);
  EXPECT_EQ(check_dmabuf(machine).level, Level::ok);
  machine.runtimes[0] = {"cuda", true, "driver 580"};
  EXPECT_EQ(check_gpu(machine).finding, "cuda: driver 580");
  EXPECT_EQ(check_dmabuf(machine).level, Level::warn);
  file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580");
  EXPECT_EQ(check_dmabuf(machine).level, Level::ok);
  EXPECT_EQ(check_build(machine).level, Level::ok);
  machine.sanitizer = "thread";
  EXPECT_EQ(check_build(machine).level, Level::fix);
}

TEST(Pace, KnowsRateAndTimeLeft) {
  Pace pace;
  EXPECT_EQ(pace.text(), "");
  for (int i = 0; i <= 20; ++i) pace.note(0.1 * i, 0.02 * i, static_cast<u64>(i) * 250'000);
  EXPECT_EQ(pace.text(), "2.500 M ops/s, 3 s left");  // 40 % in 2 s
  // The next phase begins at its own 0; operations go on.
  pace.note(2.1, 0, 5'250'000);
  EXPECT_EQ(pace.text(), "2.500 M ops/s");
  for (int i = 1; i <= 30; ++i) pace.note(2.1 + 0.1 * i, 0.001 * i, 5'250'000 + static_cast<u64>(i) * 500);
  EXPECT_EQ(pace.text(), "5000 ops/s, 97 s left");
}

TEST(Pace, HasNoEstimateWithoutAnEndAndNoRateWithoutOperations) {
  Pace endless;
  for (int i = 0; i <= 20; ++i)
    endless.note(0.1 * i, std::numeric_limits<double>::quiet_NaN(), static_cast<u64>(i) * 100);
  EXPECT_EQ(endless.text(), "1000 ops/s");
  Pace runs;  // of a sweep, which counts runs and no operations
  for (int i = 0; i <= 20; ++i) runs.note(60.0 * i, 0.01 * i, 0);
  EXPECT_EQ(runs.text(), "80 min left");
  Pace stopped;
  for (int i = 0; i <= 20; ++i) stopped.note(0.1 * i, 0.5, 1000);
  EXPECT_EQ(stopped.text(), "");
}

TEST(RunPlan, SaysWhatRunsAndHowLong) {
  measure::RunOptions run;
  EXPECT_EQ(text_of({}, run), "");
  EXPECT_EQ(text_of({.work = "10 writes"}, run), "1 repeat of 10 writes");
  EXPECT_EQ(text_of({.work = "10 packets", .work_s = 200}, run), "1 repeat of 10 packets, about 3 min");
  run.repeats = 7;
  run.duration_s = 2;
  run.warmup_s = 0.2;
  EXPECT_EQ(text_of({}, run),
            "7 repeats of 2 s, a warm-up of 0.2 s, about 14 s; --repeats 1 takes about 2 s");
  EXPECT_EQ(text_of({.settle_s = 0.25}, run),
            "7 repeats of 2 s, a warm-up of 0.2 s, about 16 s; --repeats 1 takes about 3 s");
  EXPECT_EQ(text_of({.work = "9 packets", .work_s = 0.5}, run),
            "7 repeats of 9 packets, at most 2 s, a warm-up of 0.2 s, about 4 s");
  EXPECT_EQ(
      text_of({.cells = 20, .ways = 2}, run),
      "2 programs in turns, 20 cells, each 7 repeats of 2 s, a warm-up of 0.2 s, about 9 min; --repeats 1 takes about 88 s");
  EXPECT_EQ(text_of({.cells = 0}, run), "");
  EXPECT_EQ(text_of({.check_s = 3}, run),
            "7 repeats of 2 s, a warm-up of 0.2 s, about 35 s; --repeats 1 takes about 5 s");
  EXPECT_EQ(text_of({.once = "all once"}, run), "all once");
  run.duration_s = measure::kEndlessS;
  EXPECT_EQ(text_of({}, run), "until Ctrl-C");
  run = {};
  run.duration_s = 0.02;
  EXPECT_EQ(text_of({}, run), "1 repeat of 0.02 s, about 0.02 s");
}

TEST(FaultTable, HasARowAPathAndSaysWhatDoesNotMatch) {
  std::vector<FaultRow> rows = {{"some", "Some", {}}, {"stopped", "Stopped", {}}};
  for (u32 i = 0; i < model::kFaultKinds; ++i) rows[0].checks.push_back(FaultCheck{i, i, "itself"});
  EXPECT_EQ(fault_table(rows),
            "  found/injected  drop  delay  error  corrupt  misplace  stale  duplicate  reorder  removal\n"
            "  Some               -    1/1    2/2      3/3       4/4    5/5        6/6      7/7      8/8\n"
            "  Stopped                                                                                  \n");
  rows[0].checks[2] = FaultCheck{10, 7, "a status"};
  const std::string text = fault_table(rows);
  EXPECT_NE(text.find("7/10 !"), std::string::npos) << text;
  EXPECT_NE(text.find("\nMISMATCH: fault error of the Some model: 10 injected, 7 found as a status\n"),
            std::string::npos)
      << text;
  EXPECT_NE(fault_lines(rows).find("error      injected  10   found   7 as a status   MISMATCH"),
            std::string::npos)
      << fault_lines(rows);
}

TEST(Terminal, BreaksLinesBetweenWords) {
  EXPECT_EQ(folded("one two three\n", 80), "one two three\n");
  EXPECT_EQ(folded("one two three four\n\nfive", 10), "one two\n  three\n  four\n\nfive");
  EXPECT_EQ(folded("  a bb  cc dd", 8), "  a bb\n    cc\n    dd");
  EXPECT_EQ(folded("waaaaaaaaaaaaay too long", 8), "waaaaaaaaaaaaay\n  too\n  long");
  EXPECT_EQ(folded("\x1b[33mwarning: it is so\x1b[0m", 12), "\x1b[33mwarning: it\n  is so\x1b[0m");
  EXPECT_EQ(folded("\xc3\xa4\xc3\xa4 \xc3\xa4\xc3\xa4", 5), "\xc3\xa4\xc3\xa4 \xc3\xa4\xc3\xa4");
}

TEST(FaultTable, HasItsChecksForTheResult) {
  const std::vector<FaultRow> rows = {{"some", "Some", {FaultCheck{3, 2, "itself"}, FaultCheck{}}},
                                      {"stopped", "Stopped", {}}};
  const std::vector<report::FaultFinding> found = findings(rows);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].path, "some");
  EXPECT_EQ(found[0].fault, model::fault_names()[0]);
  EXPECT_EQ(found[0].injected, 3u);
  EXPECT_EQ(found[0].found, 2u);
  EXPECT_EQ(found[0].found_as, "itself");
  EXPECT_EQ(found[1].fault, model::fault_names()[1]);
}

TEST(Progress, DrawsSeldomAndCleansUp) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  {
    Progress progress(true, out);
    for (int i = 0; i < 1000; ++i)
      progress.update(i / 1000.0,
                      "half way, and a text that goes on and on "
                      "until no terminal of eighty columns holds it");
  }
  {
    Progress off(false, out);
    off.update(0.5, "never seen");
  }
  std::fclose(out);
  const std::string drawn(text, size);
  std::free(text);
  EXPECT_TRUE(drawn.starts_with("\r\x1b[K[....................]   0 %  half way"));
  EXPECT_TRUE(drawn.ends_with("\r\x1b[K"));
  EXPECT_EQ(drawn.find("never seen"), std::string::npos);
  EXPECT_LE(drawn.size(), 3 * 90u);
}

TEST(StopFlag, FirstSignalAsks) {
  measure::StopFlag stop;
  stop.install();
  EXPECT_FALSE(stop.requested());
  measure::StopFlag other;
  EXPECT_THROW(other.install(), Error);
  std::raise(SIGTERM);
  EXPECT_TRUE(stop.requested());
  EXPECT_EQ(stop.signal(), SIGTERM);
  stop.uninstall();
  other.install();
}

TEST(StopFlagDeathTest, TheSameSignalAThirdTimeExits130) {
  EXPECT_EXIT(
      {
        measure::StopFlag stop;
        stop.install();
        std::raise(SIGINT);
        std::raise(SIGINT);  // too soon after the first to count
        if (stop.gave_up()) std::_Exit(1);
        for (int more = 0; more < 2; ++more) {
          const u64 before = wall_ns();
          while (wall_ns() - before < measure::StopFlag::kNextRequestNs) {
          }
          std::raise(SIGINT);
          if (!stop.gave_up()) std::_Exit(1);
        }
      },
      ::testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace doorbell::cli
