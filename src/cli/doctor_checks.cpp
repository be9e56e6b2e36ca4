// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/doctor_checks.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

#include "cli/path.hpp"
#include "report/environment.hpp"
#include "system/sysfs.hpp"

namespace doorbell::cli {
namespace {

namespace fs = std::filesystem;

constexpr u64 kMiB = u64{1} << 20;
constexpr u64 kEnoughLocked = 512 * kMiB;  // 64 queues, their data and pattern buffers
constexpr u64 kCapIpcLock = u64{1} << 14;
constexpr double kBusyShare = 0.1;  // of all CPUs; such a load changes percentiles

/// True if CAP_IPC_LOCK lifts the limit on locked memory.
bool may_lock_everything(const Machine& m) {
  std::ifstream in(m.root / "proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("CapEff:")) continue;
    const auto begin = line.find_first_not_of(": \t", 6);
    u64 caps = 0;
    if (begin == std::string::npos) return false;
    std::from_chars(line.data() + begin, line.data() + line.size(), caps, 16);
    return (caps & kCapIpcLock) != 0;
  }
  return false;
}

struct GpuHardware {
  bool nvidia = false, amd = false, intel = false;
  [[nodiscard]] bool any() const { return nvidia || amd || intel; }
};

/// PCI display and accelerator functions of the vendors whose runtimes doorbell loads.
GpuHardware gpu_hardware(const Machine& m) {
  GpuHardware found;
  for (const char* display : {"0x03", "0x12"}) {
    for (const FoundDevice& function : pci_functions(display, m.root)) {
      found.nvidia = found.nvidia || function.facts["vendor_id"] == "0x10de";
      found.amd = found.amd || function.facts["vendor_id"] == "0x1002";
      found.intel = found.intel || function.facts["vendor_id"] == "0x8086";
    }
  }
  return found;
}

bool any_usable(const Machine& m) {
  for (const RuntimeState& r : m.runtimes) {
    if (r.usable) return true;
  }
  return false;
}

}  // namespace

Check check_locked_memory(const Machine& m) {
  Check c{.name = "locked memory"};
  if (!m.locked_limit_bytes) {
    c.finding = "unlimited";
  } else if (may_lock_everything(m)) {
    c.finding = fmt::format("limit {} MiB, which this user's privilege (CAP_IPC_LOCK) lifts",
                            *m.locked_limit_bytes / kMiB);
  } else if (*m.locked_limit_bytes >= kEnoughLocked) {
    c.finding = fmt::format("limit {} MiB", *m.locked_limit_bytes / kMiB);
  } else {
    c.level = Level::fix;
    c.finding = fmt::format("limit {} MiB; pinned and DMA memory needs {} MiB or more",
                            *m.locked_limit_bytes / kMiB, kEnoughLocked / kMiB);
    c.fix =
        "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/doorbell.conf  # then log in again";
  }
  return c;
}

Check check_huge_pages(const Machine& m, bool gigantic) {
  const std::string folder = gigantic ? "hugepages-1048576kB" : "hugepages-2048kB";
  const fs::path at = m.root / "sys/kernel/mm/hugepages" / folder;
  const auto total = read_number(at / "nr_hugepages");
  const auto free = read_number(at / "free_hugepages");
  Check c{.name = gigantic ? "huge pages 1 GiB" : "huge pages 2 MiB"};
  if (!total || !free) {
    c.level = Level::warn;
    c.finding = "this kernel has none; buffers use normal pages";
  } else if (*free > 0) {
    c.finding = fmt::format("{} of {} free", *free, *total);
  } else {
    c.level = Level::warn;
    c.finding = *total > 0 ? fmt::format("all {} are in use", *total)
                           : "none are reserved; only buffers asked to be huge need them";
    c.fix = fmt::format("echo {} | sudo tee /sys/kernel/mm/hugepages/{}/nr_hugepages",
                        *total + (gigantic ? 2 : 512), folder);
  }
  return c;
}

Check check_transparent_huge_pages(const Machine& m) {
  Check c{.name = "transparent huge pages"};
  const auto modes = read_line(m.root / "sys/kernel/mm/transparent_hugepage/enabled");
  if (!modes) {
    c.finding = "not in this kernel";
  } else if (modes->find("[never]") != std::string::npos) {
    c.level = Level::warn;
    c.finding = "never; large host buffers cost more TLB misses";
    c.fix = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled";
  } else {
    c.finding = modes->find("[always]") != std::string::npos ? "always" : "madvise";
  }
  return c;
}

Check check_iommu(const Machine& m) {
  Check c{.name = "IOMMU"};
  const auto units = names_in(m.root / "sys/class/iommu").size();
  if (units > 0) {
    c.finding = fmt::format("on ({} unit{})", units, units == 1 ? "" : "s");
    return c;
  }
  c.level = Level::warn;
  c.finding = "off or absent; a model needs none, real devices through VFIO do";
  c.fix =
      "echo 'GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT intel_iommu=on amd_iommu=on\"' | "
      "sudo tee /etc/default/grub.d/iommu.cfg && sudo update-grub  # then reboot";
  return c;
}

Check check_vfio(const Machine& m) {
  Check c{.name = "VFIO"};
  const fs::path device = m.root / "dev/vfio/vfio";
  std::error_code failed;
  if (!fs::exists(device, failed)) {
    c.level = Level::warn;
    c.finding = "/dev/vfio/vfio is absent; a model needs none, real devices do";
    c.fix = "sudo modprobe vfio-pci";
  } else if (access(device.c_str(), R_OK | W_OK) != 0) {
    c.level = Level::fix;
    c.finding = "/dev/vfio/vfio is there, but this user may not open it";
    c.fix = "sudo setfacl -R -m u:$USER:rw /dev/vfio";
  } else {
    c.finding = "/dev/vfio/vfio can be opened";
  }
  return c;
}

Check check_governor(const Machine& m) {
  Check c{.name = "CPU governor"};
  const fs::path folder = m.root / "sys/devices/system/cpu";
  std::size_t slow = 0, seen = 0;
  std::string slow_name;
  for (const std::string& cpu : names_in(folder)) {
    const auto governor = read_line(folder / cpu / "cpufreq/scaling_governor");
    if (!governor) continue;
    ++seen;
    if (*governor == "performance") continue;
    ++slow;
    slow_name = *governor;
  }
  if (seen == 0) {
    c.finding = "not the kernel's to set (virtual machine, or fixed clock)";
  } else if (slow == 0) {
    c.finding = "performance";
  } else {
    c.level = Level::fix;
    c.finding = fmt::format("{} of {} CPUs use '{}'; latencies include clock changes", slow, seen, slow_name);
    c.fix = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
  }
  return c;
}

Check check_load(const Machine& m) {
  Check c{.name = "load"};
  const auto line = read_line(m.root / "proc/loadavg");
  double load = 0;
  if (!line || std::from_chars(line->data(), line->data() + line->size(), load).ec != std::errc{}) {
    c.level = Level::warn;
    c.finding = "cannot be read";
    return c;
  }
  c.finding = fmt::format("{:.2f} over the last minute on {} CPU{}", load, m.cpus, m.cpus == 1 ? "" : "s");
  if (load > kBusyShare * m.cpus) {
    c.level = Level::warn;
    c.finding += "; figures will be noisy";
    c.fix = "top -b -n 1 -o %CPU | head -n 15  # then wait for, or stop, what is busy";
  }
  // Threads that have used it up stand still until the next period, a tenth of a second mostly.
  const auto quota = report::read_machine(m.root)["cgroup"]["cpu_limit_cpus"];
  if (quota.is_number() && quota < m.cpus) {
    c.level = Level::warn;
    c.finding += fmt::format("; a CPU quota (cgroup) gives the time of {:.3g} of them", quota.get<double>());
    if (c.fix.empty()) c.fix = "cat /proc/self/cgroup  # cpu.max of this group or one above has the quota";
  }
  return c;
}

Check check_gpu(const Machine& m) {
  Check c{.name = "GPU driver"};
  const GpuHardware hardware = gpu_hardware(m);
  for (const RuntimeState& r : m.runtimes) {
    if (r.usable) c.finding += fmt::format("{}{}: {}", c.finding.empty() ? "" : "; ", r.name, r.detail);
  }
  if (!c.finding.empty()) return c;
  if (!hardware.any()) {
    c.level = Level::warn;
    c.finding = "no GPU on PCI; --initiator cpu runs everything";
    return c;
  }
  // Many processors have one of Intel's, and it can hold data only.
  const bool holds_data = !hardware.nvidia && !hardware.amd;
  c.level = holds_data ? Level::warn : Level::fix;
  const std::string wanted = hardware.nvidia ? "cuda" : hardware.amd ? "hip" : "level_zero";
  c.finding = holds_data ? "a GPU that could hold data is here, but its runtime is not usable"
                         : "a GPU is here, but its runtime is not usable";
  for (const RuntimeState& r : m.runtimes) {
    if (r.name == wanted) c.finding += ": " + r.detail;
  }
  c.fix = hardware.nvidia ? "sudo apt-get install nvidia-driver  # then reboot"
          : hardware.amd  ? "sudo apt-get install libamdhip64-5"
                          : "sudo apt-get install libze1  # and Intel's driver for Level Zero";
  return c;
}

Check check_dmabuf(const Machine& m) {
  Check c{.name = "GPU dma-buf"};
  const GpuHardware hardware = gpu_hardware(m);
  if (!hardware.any() || !any_usable(m)) {
    c.finding = "not needed without a usable GPU";
    return c;
  }
  if (!hardware.nvidia) {
    c.finding = hardware.amd ? "the amdgpu driver exports GPU memory" : "i915 and xe export GPU memory";
    return c;
  }
  const auto version = read_line(m.root / "proc/driver/nvidia/version");
  if (version && version->find("Open Kernel Module") != std::string::npos) {
    c.finding = "open NVIDIA kernel modules: GPU memory can be exported to other devices";
  } else {
    c.level = Level::warn;
    c.finding = version ? "closed NVIDIA kernel modules: GPU memory cannot be exported to other devices"
                        : "the NVIDIA kernel modules cannot be seen from here";
    if (version) c.fix = "sudo apt-get install nvidia-open-kernel-dkms  # then reboot";
  }
  return c;
}

Check check_build(const Machine& m) {
  Check c{.name = "build"};
  if (m.optimized && m.sanitizer.empty()) {
    c.finding = "optimized";
    return c;
  }
  c.level = Level::fix;
  c.finding = m.sanitizer.empty() ? "not optimized" : "with the " + m.sanitizer + " sanitizer";
  c.finding += "; its figures mean nothing";
  c.fix = "make";
  return c;
}

std::vector<Check> all_checks(const Machine& m) {
  std::vector<Check> checks = {check_build(m),
                               check_locked_memory(m),
                               check_huge_pages(m, false),
                               check_huge_pages(m, true),
                               check_transparent_huge_pages(m),
                               check_governor(m),
                               check_load(m)};
  std::vector<Check (*)(const Machine&)> of_paths;
  for (const PathDescription& path : paths())
    for (const auto check : path.checks)
      if (std::ranges::find(of_paths, check) == of_paths.end()) of_paths.push_back(check);
  for (const auto check : of_paths) checks.push_back(check(m));
  checks.push_back(check_gpu(m));
  checks.push_back(check_dmabuf(m));
  return checks;
}

}  // namespace doorbell::cli
