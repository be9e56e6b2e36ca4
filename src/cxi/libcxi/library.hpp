// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// libcxi, the user library of HPE's Cassini NICs. It is loaded at run time, so the build needs neither the
// library nor its headers. The declarations of its public interface here are our own. Not yet run on
// hardware.
#pragma once

#include <doorbell/config.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "cxi/backends.hpp"
#include "cxi/libcxi/abi.hpp"
#include "cxi/settings.hpp"
#include "system/library.hpp"

namespace doorbell::cxi {

/// The functions in use; their names here lack cxil_. All that return int return 0 or a negative errno.
struct LibcxiLibrary {
  /// Throws doorbell::Error (ExitCode::absent) when there is no usable libcxi.
  LibcxiLibrary();

  Library library;
  int (*open_device)(u32, libcxi::OpenNic**);
  void (*close_device)(libcxi::OpenNic*);
  /// Since version 1.2; without this function the VNI of a service is unknown.
  int (*get_svc)(libcxi::OpenNic*, unsigned, libcxi::Service*);
  int (*alloc_lni)(libcxi::OpenNic*, libcxi::Lni**, unsigned);
  int (*destroy_lni)(libcxi::Lni*);
  int (*alloc_domain)(libcxi::Lni*, unsigned, unsigned, libcxi::Domain**);
  int (*destroy_domain)(libcxi::Domain*);
  /// Null in versions before 1.9, where alloc_cp() gives a profile for every queue.
  int (*alloc_trig_cp)(libcxi::Lni*, unsigned, int, int, int, libcxi::Cp**);
  int (*alloc_cp)(libcxi::Lni*, unsigned, int, int, libcxi::Cp**);
  int (*destroy_cp)(libcxi::Cp*);
  int (*map)(libcxi::Lni*, void*, size_t, u32, libcxi::MdHints*, libcxi::Md**);
  int (*unmap)(libcxi::Md*);
  int (*alloc_evtq)(libcxi::Lni*, const libcxi::Md*, const libcxi::EqAttributes*, libcxi::WaitObject*,
                    libcxi::WaitObject*, libcxi::Eq**);
  int (*destroy_evtq)(libcxi::Eq*);
  int (*alloc_cmdq)(libcxi::Lni*, libcxi::Eq*, const libcxi::CqOptions*, libcxi::Cq**);
  /// Null in versions before 1.11, which have no queues in memory of the caller.
  int (*alloc_buf_cmdq)(libcxi::Lni*, libcxi::Eq*, const libcxi::CqBufferOptions*, libcxi::Cq**);
  int (*destroy_cmdq)(libcxi::Cq*);
  int (*alloc_ct)(libcxi::Lni*, void*, libcxi::Ct**);
  int (*destroy_ct)(libcxi::Ct*);
  int (*alloc_pte)(libcxi::Lni*, libcxi::Eq*, u64*, libcxi::Pte**);
  int (*destroy_pte)(libcxi::Pte*);
  int (*map_pte)(libcxi::Pte*, libcxi::Domain*, unsigned, bool, libcxi::PteMap**);
  int (*unmap_pte)(libcxi::PteMap*);
};

/// The facts that the kernel shows of one CXI device, whether the device can be used or not.
struct CxiDeviceFacts {
  std::string name;         ///< "cxi0"
  std::string pci_address;  ///< "0000:c1:00.0"; "" if unknown
  std::string obstacle;     ///< why it cannot be opened; "" if it can
};
/// Sorted by number. `root` is the folder of /sys and /dev.
[[nodiscard]] std::vector<CxiDeviceFacts> cxi_devices(const std::filesystem::path& root = "/");

/// Whether the libcxi back end can be used: with which devices, or why not, on one line. Never throws.
[[nodiscard]] BackendStatus libcxi_status();
[[nodiscard]] BackendStatus libcxi_status(const std::filesystem::path& root);

/// True if `spec` is the name of a CXI device: "cxi" and a number of any size.
[[nodiscard]] bool libcxi_accepts(const std::string& spec);
/// The number in the name; throws Error unless it is in 0..4294967295.
[[nodiscard]] u32 cxi_device_number(const std::string& spec, const std::string& device = setting::device);

}  // namespace doorbell::cxi
