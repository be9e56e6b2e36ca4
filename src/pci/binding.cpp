// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "pci/binding.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "pci/usage.hpp"
#include "system/child.hpp"
#include "system/descriptor.hpp"
#include "system/sysfs.hpp"

namespace doorbell::pci {

namespace fs = std::filesystem;

namespace {

int write_file(const fs::path& file, const std::string& text) {
  const Descriptor out(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (out.get() < 0) return errno;
  return ::write(out.get(), text.data(), text.size()) < 0 ? errno : 0;
}

std::string run_modprobe(const std::string& module) {
  const std::string program = "/sbin/modprobe";
  try {
    constexpr double kLimitS = 30;
    Child child({program, "-q", module});
    if (!child.wait(kLimitS)) return fmt::format("'{} {}' takes more than {} s", program, module, kLimitS);
    return child.exit_code() == 0 ? "" : fmt::format("'{} {}' failed", program, module);
  } catch (const std::system_error& e) {
    return fmt::format("{} cannot be run: {}", program, e.code().message());
  }
}

int try_open_file(const fs::path& file) {
  return Descriptor(::open(file.c_str(), O_RDWR | O_CLOEXEC)).get() < 0 ? errno : 0;
}

void write_or_throw(const Machine& m, const std::string& address, const fs::path& file,
                    const std::string& text) {
  const int error = m.write(file, text);
  if (error == 0) return;
  throw Error(
      address, fmt::format("writing to {}: {}", file.string(), reason(error)),
      error == EACCES || error == EPERM || error == EROFS ? "drivers are changed by root: use sudo" : "");
}

std::string driver_of(const Machine& m, const std::string& address) {
  return link_name(sysfs_folder(address, m.root) / "driver");
}

/// Takes the function from its driver, if it has one, and offers it to the drivers that its override allows.
void rebind(const Machine& m, const std::string& address, const std::string& override_text) {
  const fs::path at = sysfs_folder(address, m.root);
  write_or_throw(m, address, at / "driver_override", override_text);
  if (!driver_of(m, address).empty()) write_or_throw(m, address, at / "driver/unbind", address);
  write_or_throw(m, address, m.root / "sys/bus/pci/drivers_probe", address);
}

void load_vfio_pci(const Machine& m, const std::string& address) {
  const fs::path driver = m.root / "sys/bus/pci/drivers" / kVfioDriver;
  if (present(driver)) return;
  const std::string why = m.modprobe(std::string(kVfioDriver));
  if (present(driver)) return;
  throw Error(
      address, fmt::format("the kernel has no driver {}{}", kVfioDriver, why.empty() ? "" : " and " + why),
      "run 'sudo modprobe vfio-pci'; a kernel without CONFIG_VFIO_PCI cannot lend devices to programs");
}

Rebound bind_one(const Function& f, const Machine& m) {
  if (f.driver == kVfioDriver) return {f, f.driver, false};
  try {
    rebind(m, f.address, std::string(kVfioDriver));
    if (driver_of(m, f.address) != kVfioDriver)
      throw Error(f.address, fmt::format("{} does not take it", kVfioDriver), "dmesg says why");
  } catch (const Error&) {
    // The first error is shown, whether or not the old driver takes the function back.
    const fs::path at = sysfs_folder(f.address, m.root);
    (void)m.write(at / "driver_override", "\n");
    if (driver_of(m, f.address).empty()) (void)m.write(m.root / "sys/bus/pci/drivers_probe", f.address);
    throw;
  }
  return {read_function(f.address, m.root), f.driver, true};
}

void check_nvme(const Function& f) {
  if (f.is_nvme()) return;
  throw Error(f.address, fmt::format("it is no NVMe controller (class {:#08x})", f.class_code),
              "doorbell list shows the NVMe controllers");
}

/// No other program can open a group that is in use; unbinding would wait for its user without a time limit.
void check_idle(const Function& f, const Machine& m) {
  const fs::path node = m.root / "dev/vfio" / f.iommu_group;
  if (f.iommu_group.empty() || m.try_open(node) != EBUSY) return;
  throw Error(f.address, fmt::format("a program has {} open", node.string()),
              fmt::format("end it first; 'sudo fuser -v {}' names it", node.string()));
}

Rebound unbind_one(const Function& f, const Machine& m) {
  if (!f.driver.empty() && f.driver != kVfioDriver) return {f, f.driver, false};
  const fs::path at = sysfs_folder(f.address, m.root);
  rebind(m, f.address, "\n");
  if (driver_of(m, f.address).empty()) {
    // The driver may be a module that is not loaded yet.
    const std::string alias = read_line(at / "modalias").value_or("");
    const std::string why = alias.empty() ? "" : m.modprobe(alias);
    write_or_throw(m, f.address, m.root / "sys/bus/pci/drivers_probe", f.address);
    if (driver_of(m, f.address).empty())
      throw Error(f.address, fmt::format("no kernel driver takes it{}", why.empty() ? "" : ": " + why),
                  "load the driver (sudo modprobe nvme), or see dmesg");
  }
  if (driver_of(m, f.address) == kVfioDriver)
    throw Error(f.address, fmt::format("{} takes it again", kVfioDriver),
                "its id is registered there: see the ids= parameter of vfio-pci in /etc/modprobe.d");
  return {read_function(f.address, m.root), f.driver, true};
}

/// The function and, if asked for, the other members of its group.
std::vector<Function> chosen(const std::string& address, bool whole_group, const Machine& m) {
  std::vector<Function> all = {read_function(address, m.root)};
  if (!whole_group) return all;
  const std::vector<std::string> members = all.front().group_members;
  for (const std::string& member : members) all.push_back(read_function(member, m.root));
  return all;
}

}  // namespace

Machine this_machine() {
  return {.root = "/", .write = write_file, .modprobe = run_modprobe, .try_open = try_open_file};
}

std::vector<Rebound> bind(const std::string& address, bool whole_group, const Machine& m) {
  const std::vector<Function> functions = chosen(address, whole_group, m);
  for (const Function& f : functions) {
    check_nvme(f);
    if (f.driver != kVfioDriver) require_unused(f.address, m.root);
    require_iommu(f);
  }
  const Function& first = functions.front();
  if (const auto others = foreign_members(first, m.root); !others.empty() && !whole_group)
    throw Error(
        first.address,
        fmt::format("its IOMMU group {} has members that other drivers hold: {}", first.iommu_group,
                    fmt::join(others, ", ")),
        "the group can be lent as a whole only, if the others are unused NVMe controllers: doorbell bind --group "
        "binds them too; another slot, or ACS in the firmware set-up, may give it a group of its own");
  load_vfio_pci(m, first.address);
  std::vector<Rebound> done;
  try {
    for (const Function& f : functions) done.push_back(bind_one(f, m));
  } catch (const Error&) {
    for (const Rebound& r : done) {
      try {
        if (r.changed) (void)unbind_one(r.function, m);
      } catch (const Error&) {
        // The first error is the one that the user has to know.
      }
    }
    throw;
  }
  return done;
}

std::vector<Rebound> unbind(const std::string& address, bool whole_group, const Machine& m) {
  std::vector<Function> functions = chosen(address, whole_group, m);
  check_nvme(functions.front());
  // Other members of the group, for example a GPU that a virtual machine uses, must not be given back here.
  std::erase_if(functions, [](const Function& f) { return !f.is_nvme(); });
  for (const Function& f : functions) check_idle(f, m);
  std::vector<Rebound> done;
  done.reserve(functions.size());
  for (const Function& f : functions) done.push_back(unbind_one(f, m));
  return done;
}

}  // namespace doorbell::pci
