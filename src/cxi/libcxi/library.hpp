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
#include "cxi/settings.hpp"
#include "system/library.hpp"

namespace doorbell::cxi {

/// The library's structures, with the fields that are read or written here. Those that the library hands out
/// are longer.
namespace libcxi {

/// One NIC that the library has opened (struct cxil_dev).
struct OpenNic {
  u32 id;
  u32 nid;
  u32 pid_bits;
};

/// The library fills 68 bytes; the rest is room for newer versions that fill more.
struct alignas(8) Service {
  static constexpr u8 kRestrictedVnis = 1 << 1;
  u8 flags;
  u8 vni_count;
  u16 vnis[4];
  u8 rest[246];
};
static_assert(offsetof(Service, vnis) == 2 && sizeof(Service) == 256);

struct Lni;
struct PteMap;
struct WaitObject;

struct Domain {
  u32 vni;
  u32 pid;
};

/// A communication profile.
struct Cp {
  u32 vni;
  u32 traffic_class;
  u32 traffic_class_type;
  u32 lcid;
};

/// A memory descriptor.
struct Md {
  u64 iova;
  u64 va;
  u64 bytes;
  u8 lac;
};
static_assert(offsetof(Md, lac) == 24);

struct MdHints {
  u32 page_shift;
  u32 huge_shift;
  u32 ptg_mode;
  bool ptg_mode_valid;
  int dmabuf_fd;
  u64 dmabuf_offset;
  bool dmabuf_valid;
};
static_assert(offsetof(MdHints, dmabuf_fd) == 16 && offsetof(MdHints, dmabuf_offset) == 24 &&
              offsetof(MdHints, dmabuf_valid) == 32 && sizeof(MdHints) == 40);

struct EqAttributes {
  void* queue;
  u64 bytes;
  u64 flags;
  u32 rest[6];  ///< status thresholds, combining delay, CPU, reserved slots
};
static_assert(sizeof(EqAttributes) == 48);

struct Eq {
  u32 bytes;
  u64 sw_state;
  u64* csr;
  u64 last_status[2];
  u32 rd_offset;
  u32 prev_rd_offset;
  u32 index;
  void* context;
  u8* events;
};
static_assert(offsetof(Eq, csr) == 16 && offsetof(Eq, rd_offset) == 40 && offsetof(Eq, index) == 48 &&
              offsetof(Eq, events) == 64 && sizeof(Eq) == 72);

struct CqOptions {
  u32 slots;
  u32 update_policy;
  u32 counter_pool;
  u32 flags;
  u32 lcid;
  u32 threshold_id;
};
static_assert(sizeof(CqOptions) == 24);

struct Cq {
  u32 slots;
  u64* wp_address;
  u8* ll_64;
  u8* ll_128a;
  u8* ll_128u;
  u8* ring;
  u64 rp32;
  u32 index;
  u32 size32;
  u64 wp32;
  u64 hw_wp32;
};
static_assert(offsetof(Cq, ring) == 40 && offsetof(Cq, index) == 56 && offsetof(Cq, wp32) == 64 &&
              sizeof(Cq) == 80);

struct Ct {
  u64* doorbell;
  u32 index;
  void* writeback;
};
static_assert(offsetof(Ct, writeback) == 16);

struct Pte {
  u32 index;
};

inline constexpr u32 kDefaultService = 1;
inline constexpr u32 kAnyPid = 511;
inline constexpr int kBestEffort = 3;
inline constexpr int kDefaultType = 0;
inline constexpr int kAnyLcid = 2;  ///< a profile for triggered and other queues
inline constexpr u32 kMapPin = 1 << 0;
inline constexpr u32 kMapWrite = 1 << 2;
inline constexpr u32 kMapRead = 1 << 3;
inline constexpr u32 kMapDevice = 1 << 9;
inline constexpr u64 kEqNoCombining = 1 << 6;
inline constexpr u32 kCqTransmit = 1 << 1;
inline constexpr u32 kCqTriggered = 1 << 3;
inline constexpr u64 kPteNonMatching = 0;

}  // namespace libcxi

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
