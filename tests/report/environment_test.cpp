// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/environment.hpp"

#include <doorbell/config.hpp>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "report/tool.hpp"

namespace doorbell::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A directory that stands for "/"; removed at the end.
class FakeRoot {
 public:
  FakeRoot() {
    std::string name = (fs::temp_directory_path() / "doorbell-root-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~FakeRoot() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

bool mentions(const std::vector<std::string>& lines, const std::string& text) {
  return std::ranges::any_of(lines, [&](const std::string& l) { return l.find(text) != std::string::npos; });
}

TEST(Environment, NothingReadableIsNullThroughout) {
  const FakeRoot root;
  const Json e = read_machine(root.path());
  for (const char* key : {"kernel_cmdline", "distribution", "container", "cpu", "sockets", "cores", "smt",
                          "numa", "governor", "cpu_max_hz", "turbo", "clocksource", "memory_bytes",
                          "hugepages", "transparent_hugepages", "load_average", "runnable_threads"}) {
    ASSERT_TRUE(e.contains(key)) << key;
    EXPECT_TRUE(e[key].is_null()) << key << " is " << e[key];
  }
  EXPECT_TRUE(e["cgroup"]["version"].is_null());
  EXPECT_TRUE(e["iommu"]["groups_count"].is_null());
}

TEST(Environment, ReadsATwoSocketServer) {
  const FakeRoot root;
  root.write("proc/cpuinfo",
             "processor\t: 0\nmodel name\t: Example CPU 9000\nprocessor\t: 1\nmodel name\t: x\n");
  root.write("proc/meminfo", "MemTotal:       16384 kB\nMemAvailable:    8192 kB\n");
  root.write("proc/cmdline", "root=/dev/vda iommu=pt\n");
  root.write("proc/loadavg", "1.25 0.50 0.25 3/120 999\n");
  root.write("etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  const std::string cpu = "sys/devices/system/cpu/";
  for (int i = 0; i < 4; ++i) {
    const std::string one = cpu + "cpu" + std::to_string(i);
    root.write(one + "/topology/physical_package_id", std::to_string(i / 2) + "\n");
    root.write(one + "/topology/core_id", "0\n");
    root.write(one + "/topology/thread_siblings_list", i / 2 == 0 ? "0-1\n" : "2-3\n");
    root.write(one + "/cpufreq/scaling_governor", i == 3 ? "powersave\n" : "performance\n");
    root.write(one + "/cpufreq/cpuinfo_max_freq", "3500000\n");
  }
  root.write(cpu + "cpufreq/boost", "1\n");
  root.write(cpu + "online", "0-3\n");
  root.write(cpu + "isolated", "\n");
  root.write(cpu + "smt/active", "1\n");
  root.write("sys/devices/system/node/node0/cpulist", "0-1\n");
  root.write("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:        8192 kB\n");
  root.write("sys/devices/system/node/node0/distance", "10 21\n");
  root.write("sys/devices/system/node/node1/cpulist", "2-3\n");
  root.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8\n");
  root.write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "6\n");
  root.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  root.write("sys/kernel/iommu_groups/0/type", "DMA\n");
  root.write("sys/kernel/iommu_groups/1/type", "DMA\n");
  root.write("run/systemd/container", "docker\n");

  const Json e = read_machine(root.path());
  EXPECT_EQ(e["cpu"], "Example CPU 9000");
  EXPECT_EQ(e["sockets"], 2);
  EXPECT_EQ(e["cores"], 2);
  EXPECT_EQ(e["smt"], true);
  EXPECT_EQ(e["turbo"], true);
  EXPECT_EQ(e["cpus_isolated"], "");
  EXPECT_EQ(e["governor"], "mixed");
  EXPECT_EQ(e["cpu_max_hz"], 3'500'000'000u);
  EXPECT_EQ(e["memory_bytes"], 16384 * 1024);
  EXPECT_EQ(e["memory_available_bytes"], 8192 * 1024);
  EXPECT_EQ(e["kernel_cmdline"], "root=/dev/vda iommu=pt");
  EXPECT_EQ(e["distribution"], "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(e["container"], "docker");
  EXPECT_EQ(e["load_average"], Json::array({1.25, 0.5, 0.25}));
  EXPECT_EQ(e["runnable_threads"], 3);
  EXPECT_EQ(e["transparent_hugepages"], "madvise");
  EXPECT_EQ(e["iommu"]["groups_count"], 2);
  ASSERT_EQ(e["numa"].size(), 2u);
  EXPECT_EQ(e["numa"][0]["memory_bytes"], 8192 * 1024);
  EXPECT_EQ(e["numa"][0]["distances"], Json::array({10, 21}));
  EXPECT_TRUE(e["numa"][1]["memory_bytes"].is_null());
  ASSERT_EQ(e["hugepages"].size(), 1u);
  EXPECT_EQ(e["hugepages"][0]["size_bytes"], 2048 * 1024);
  EXPECT_EQ(e["hugepages"][0]["free_count"], 6);
}

TEST(Environment, TheTightestLimitOfTheControlGroupsCounts) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/outer/inner\n");
  root.write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  root.write("sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
  root.write("sys/fs/cgroup/outer/memory.max", "1048576\n");
  root.write("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  const Json limits = read_machine(root.path())["cgroup"];
  EXPECT_EQ(limits["version"], 2);
  EXPECT_EQ(limits["cpu_limit_cpus"], 1.5);
  EXPECT_EQ(limits["memory_limit_bytes"], 1'048'576);
}

TEST(Environment, ReadsTheFirstVersionOfControlGroups) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "4:cpu,cpuacct:/job\n3:memory:/job\n");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4096\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const Json limits = read_machine(root.path())["cgroup"];
  EXPECT_EQ(limits["version"], 1);
  EXPECT_TRUE(limits["cpu_limit_cpus"].is_null());
  EXPECT_EQ(limits["memory_limit_bytes"], 4096);
}

TEST(Environment, ReadsAPcieLinkByEitherSpellingOfItsAddress) {
  const FakeRoot root;
  const std::string device = "sys/bus/pci/devices/0000:3b:00.0/";
  root.write(device + "current_link_speed", "32.0 GT/s PCIe\n");
  root.write(device + "max_link_speed", "Unknown\n");
  root.write(device + "current_link_width", "8\n");
  root.write(device + "max_link_width", "16\n");
  root.write(device + "numa_node", "-1\n");
  for (const char* address : {"0000:3b:00.0", "00000000:3B:00.0"}) {
    const Json link = read_pci_link(root.path(), address);
    ASSERT_TRUE(link.is_object()) << address;
    EXPECT_EQ(link["current_transfers_per_s"], 32e9);
    EXPECT_TRUE(link["max_transfers_per_s"].is_null());
    EXPECT_EQ(link["current_lanes"], 8);
    EXPECT_TRUE(link["numa_node"].is_null());
  }
  EXPECT_TRUE(read_pci_link(root.path(), "0000:00:00.0").is_null());
  EXPECT_TRUE(read_pci_link(root.path(), "").is_null());
  EXPECT_TRUE(read_pci_link(root.path(), "../devices/0000:3b:00.0").is_null());
}

TEST(Environment, ThisMachineHasAKernelAndAClock) {
  const Json e = collect_environment();
  EXPECT_TRUE(e["kernel"].is_string());
  EXPECT_TRUE(e["cpus_allowed"].is_string());
  EXPECT_GE(e["cpus_count"], 1);
  EXPECT_GT(e["clock_read_ns"], 0.0);
  EXPECT_LT(e["clock_read_ns"], 1e6);
  EXPECT_TRUE(e["gpu"].is_array());
  EXPECT_EQ(e["date_utc"].get<std::string>().size(), 20u);
}

TEST(EnvironmentWarnings, NameTheLoadTheGovernorAndTheLink) {
  const Json e{{"load_average", {6.0, 1.0, 1.0}},
               {"cpus_count", 8},
               {"governor", "powersave"},
               {"gpu", Json::array({{{"index", 1}, {"link", {{"current_lanes", 8}, {"max_lanes", 16}}}}})}};
  const auto lines = environment_warnings(e);
  EXPECT_TRUE(mentions(lines, "load average 6.00 on 8 CPUs"));
  EXPECT_TRUE(mentions(lines, "'powersave'"));
  EXPECT_TRUE(mentions(lines, "GPU 1 uses 8 of its 16 PCIe lanes"));
  EXPECT_EQ(mentions(lines, "build"), tool().build != "Release" || !tool().sanitizer.empty());
}

TEST(EnvironmentWarnings, StayQuietOnACalmOrUnknownMachine) {
  const auto about_the_build = [](const std::string& l) { return l.find("buil") != std::string::npos; };
  for (const Json& e :
       {Json{{"load_average", {4.0, 1.0, 1.0}}, {"cpus_count", 8}, {"governor", "performance"}},
        Json{{"load_average", nullptr}, {"cpus_count", nullptr}, {"governor", nullptr}, {"gpu", nullptr}},
        Json::object(), Json()}) {
    EXPECT_TRUE(std::ranges::all_of(environment_warnings(e), about_the_build)) << e;
  }
}

}  // namespace
}  // namespace doorbell::report
