// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/libcxi/library.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "system/sysfs.hpp"

namespace doorbell::cxi {

namespace fs = std::filesystem;

namespace {

constexpr const char* kOverride = "DOORBELL_LIBCXI";
constexpr std::array kNames = {"libcxi.so.1"};
constexpr const char* kInstall = "install libcxi of the HPE Slingshot host software";
constexpr const char* kNotRun = "not yet run on hardware";
constexpr std::string_view kPrefix = "cxi";

std::string describe(const CxiDeviceFacts& d) {
  std::string text = d.name;
  if (!d.pci_address.empty()) text += fmt::format(" ({})", d.pci_address);
  if (!d.obstacle.empty()) text += " cannot be opened: " + d.obstacle;
  return text;
}

}  // namespace

LibcxiLibrary::LibcxiLibrary()
    : library(kOverride, kNames, kInstall),
      open_device(library.need("cxil_open_device")),
      close_device(library.need("cxil_close_device")),
      get_svc(library.need("cxil_get_svc")),
      alloc_lni(library.need("cxil_alloc_lni")),
      destroy_lni(library.need("cxil_destroy_lni")),
      alloc_domain(library.need("cxil_alloc_domain")),
      destroy_domain(library.need("cxil_destroy_domain")),
      alloc_trig_cp(library.find("cxil_alloc_trig_cp")),
      alloc_cp(library.need("cxil_alloc_cp")),
      destroy_cp(library.need("cxil_destroy_cp")),
      map(library.need("cxil_map")),
      unmap(library.need("cxil_unmap")),
      alloc_evtq(library.need("cxil_alloc_evtq")),
      destroy_evtq(library.need("cxil_destroy_evtq")),
      alloc_cmdq(library.need("cxil_alloc_cmdq")),
      alloc_buf_cmdq(library.find("cxil_alloc_buf_cmdq")),
      destroy_cmdq(library.need("cxil_destroy_cmdq")),
      alloc_ct(library.need("cxil_alloc_ct")),
      destroy_ct(library.need("cxil_destroy_ct")),
      alloc_pte(library.need("cxil_alloc_pte")),
      destroy_pte(library.need("cxil_destroy_pte")),
      map_pte(library.need("cxil_map_pte")),
      unmap_pte(library.need("cxil_unmap_pte")) {}

bool libcxi_accepts(const std::string& spec) {
  return spec.size() > kPrefix.size() && spec.starts_with(kPrefix) &&
         std::all_of(spec.begin() + kPrefix.size(), spec.end(), [](char c) { return c >= '0' && c <= '9'; });
}

u32 cxi_device_number(const std::string& spec, const std::string& device) {
  u32 number = 0;
  const char* const end = spec.data() + spec.size();
  if (!libcxi_accepts(spec) || std::from_chars(spec.data() + kPrefix.size(), end, number).ec != std::errc{})
    throw Error(fmt::format("{} {}", device, spec), "it is not 'cxi' and a number in 0..4294967295",
                "write cxi0, for example");
  return number;
}

std::vector<CxiDeviceFacts> cxi_devices(const fs::path& root) {
  std::vector<CxiDeviceFacts> all;
  for (const std::string& name : names_in(root / "sys/class/cxi")) {
    if (!libcxi_accepts(name)) continue;
    const fs::path file = root / "dev" / name;
    const bool usable = ::access(file.c_str(), R_OK | W_OK) == 0;
    all.push_back({.name = name,
                   .pci_address = link_name(root / "sys/class/cxi" / name / "device"),
                   .obstacle = usable ? "" : fmt::format("{}: {}", file.string(), reason(errno))});
  }
  std::sort(all.begin(), all.end(), [](const CxiDeviceFacts& a, const CxiDeviceFacts& b) {
    return std::pair(a.name.size(), a.name) < std::pair(b.name.size(), b.name);
  });
  return all;
}

BackendStatus libcxi_status() {
  return libcxi_status("/");
}

BackendStatus libcxi_status(const fs::path& root) {
  std::string file;
  try {
    file = LibcxiLibrary().library.name();
  } catch (const Error& e) {
    return {false, e.what()};
  }
  const std::vector<CxiDeviceFacts> devices = cxi_devices(root);
  if (devices.empty())
    return {false, fmt::format("{} is here, but no CXI device: {} is missing or empty", file,
                               (root / "sys/class/cxi").string())};
  BackendStatus status;
  for (const CxiDeviceFacts& d : devices) {
    status.usable = status.usable || d.obstacle.empty();
    status.detail += describe(d) + "; ";
  }
  status.detail += kNotRun;
  return status;
}

}  // namespace doorbell::cxi
