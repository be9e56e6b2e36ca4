// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "pci/usage.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "system/descriptor.hpp"
#include "system/sysfs.hpp"

namespace doorbell::pci {

namespace fs = std::filesystem;

namespace {

bool passes_through(const fs::path& path, const std::string& component) {
  return std::ranges::find(path, fs::path(component)) != path.end();
}

/// The target of a link; empty if there is none.
fs::path resolved(const fs::path& path) {
  std::error_code failed;
  fs::path target = fs::canonical(path, failed);
  return failed ? fs::path() : target;
}

/// True if a namespace with several paths, which hangs below its subsystem, belongs to this controller.
bool shared_with(const fs::path& device, const std::string& address) {
  fs::path subsystem = device;
  while (subsystem.has_relative_path() && subsystem.parent_path().filename() != "nvme-subsystem")
    subsystem = subsystem.parent_path();
  if (!subsystem.has_relative_path()) return false;
  return std::ranges::any_of(names_in(subsystem), [&](const std::string& name) {
    return name.starts_with("nvme") && passes_through(resolved(subsystem / name), address);
  });
}

/// Block devices by name, with the device on which each lies: "" for a disk or partition of the function
/// itself.
using Devices = std::map<std::string, std::string>;

Devices devices_of(const std::string& address, const fs::path& blocks) {
  Devices found;
  std::vector<std::string> todo;
  const auto add = [&](const std::string& name, const std::string& on) {
    if (found.emplace(name, on).second) todo.push_back(name);
  };
  for (const std::string& name : names_in(blocks)) {
    const fs::path device = resolved(blocks / name);
    if (passes_through(device, address) || shared_with(device, address)) add(name, "");
  }
  while (!todo.empty()) {
    const std::string name = todo.back();
    todo.pop_back();
    for (const std::string& holder : names_in(blocks / name / "holders")) add(holder, name);
    for (const std::string& part : names_in(blocks / name))
      if (present(blocks / name / part / "partition")) add(part, found[name].empty() ? "" : name);
  }
  return found;
}

/// "dm-0 (vg-home, on nvme0n1p3)"
std::string described(const std::string& name, const Devices& devices, const fs::path& blocks) {
  const std::string& on = devices.at(name);
  if (on.empty()) return name;
  const auto label = read_line(blocks / name / "dm/name");
  return fmt::format("{} ({}on {})", name, label ? *label + ", " : "", on);
}

/// Undoes the kernel's "\040" in the paths of /proc.
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// The kernel's name for a device file: "dm-0" for "/dev/mapper/vg-home".
std::string kernel_name(const std::string& file, const fs::path& root) {
  if (!file.starts_with("/dev/")) return {};
  const fs::path target = resolved(root / file.substr(1));
  return (target.empty() ? fs::path(file) : target).filename().string();
}

struct Mount {
  std::string number;  ///< "259:1"; with btrfs no block device has this number, so the source is used too
  std::string point;
  std::string source;
};

std::vector<Mount> mounts(const fs::path& table) {
  std::vector<Mount> found;
  std::ifstream in(table);
  for (std::string line; std::getline(in, line);) {
    // ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS...] - TYPE SOURCE SUPER_OPTIONS
    std::istringstream words(line);
    std::string id, parent, root, word;
    Mount m;
    words >> id >> parent >> m.number >> root >> m.point;
    while (words >> word && word != "-") {
    }
    words >> word >> m.source;
    m.point = unescaped(m.point);
    m.source = unescaped(m.source);
    found.push_back(std::move(m));
  }
  return found;
}

bool open_exclusively_elsewhere(const fs::path& file) {
  // Without O_CREAT, O_EXCL asks the kernel whether a user (a mount, swap, dm, md, ZFS) has claimed the disk.
  const Descriptor disk(::open(file.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK));
  return disk.get() < 0 && errno == EBUSY;
}

}  // namespace

std::vector<std::string> uses_of(const std::string& address, const fs::path& root) {
  const fs::path blocks = root / "sys/class/block";
  const Devices devices = devices_of(address, blocks);
  if (devices.empty()) return {};
  std::map<std::string, std::string> by_number;
  for (const auto& [name, on] : devices) by_number[read_line(blocks / name / "dev").value_or("")] = name;
  by_number.erase("");

  std::vector<std::string> uses;
  std::set<std::string> explained;  // devices whose use is already in the list
  const auto mark_explained = [&](const std::string& name) {
    for (std::string at = name; !at.empty(); at = devices.at(at)) explained.insert(at);
  };
  std::set<std::string> seen;
  // Mounts in other name spaces count too; those of process 1 are the machine's.
  for (const char* table : {"proc/self/mountinfo", "proc/1/mountinfo"}) {
    for (const Mount& m : mounts(root / table)) {
      const auto numbered = by_number.find(m.number);
      const std::string name = numbered != by_number.end() ? numbered->second : kernel_name(m.source, root);
      if (!devices.contains(name)) continue;
      mark_explained(name);
      std::string use =
          fmt::format("{} {} on {}", described(name, devices, blocks),
                      m.point == "/" ? "is the root file system, mounted" : "is mounted", m.point);
      if (!seen.insert(use).second) continue;
      if (m.point == "/") uses.insert(uses.begin(), std::move(use));
      else uses.push_back(std::move(use));
    }
  }
  std::ifstream swaps(root / "proc/swaps");
  for (std::string line; std::getline(swaps, line);) {
    const std::string name = kernel_name(unescaped(line.substr(0, line.find_first_of(" \t"))), root);
    if (!devices.contains(name)) continue;
    mark_explained(name);
    uses.push_back(fmt::format("{} is swap space", described(name, devices, blocks)));
  }
  for (const auto& [name, on] : devices) {
    if (on.empty() || explained.contains(name)) continue;
    mark_explained(name);
    uses.push_back(fmt::format("{} is part of {}", on, described(name, devices, blocks)));
  }
  for (const auto& [name, on] : devices) {
    if (!uses.empty() || !on.empty()) continue;
    if (open_exclusively_elsewhere(root / "dev" / name))
      uses.push_back(fmt::format("{} is held by the kernel or by a program that opened it for itself", name));
  }
  return uses;
}

void require_unused(const std::string& address, const fs::path& root) {
  const std::vector<std::string> uses = uses_of(address, root);
  if (uses.empty()) return;
  throw Error(
      address, fmt::format("it is in use: {}", fmt::join(uses, "; ")),
      "doorbell takes no disk that the machine uses; unmount it, switch the swap off or take the volume "
      "apart first");
}

}  // namespace doorbell::pci
